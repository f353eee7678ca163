//! Requests, as calls build them up: `ibv_wr_start`, an operation with what it takes for each request, `ibv_wr_complete`.

use crate::abi::{self, wr_opcode as opcode};
use crate::posting::{self, Asked, Data, Datagram, Made};
use crate::queue_pair::QueuePair;
use libc::{c_int, c_uint, c_void};
use roci_endpoint::RemoteMemory;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Requests that a queue may have outstanding.
pub(crate) const WORKS: c_int = 1 << 15;

/// Operations that may be asked for: `IBV_QP_EX_WITH_…`, from WRITE to FETCH_AND_ADD, of memory windows, and SEND with invalidation.
pub(crate) const POSSIBLE: u64 = 0x7f | OF_WINDOWS | 1 << 9;
/// The same on an unreliable connection: WRITE and SEND, without and with immediate data, and of memory windows.
pub(crate) const POSSIBLE_UNANSWERED: u64 = 0xf | OF_WINDOWS;
/// LOCAL_INV and BIND_MW.
const OF_WINDOWS: u64 = 1 << 7 | 1 << 8;

/// What one thread builds between start and completion.
#[derive(Default)]
pub(crate) struct Batch {
    /// Whether a thread is at it: others wait, from their start on.
    busy: AtomicBool,
    building: Mutex<Building>,
}

#[derive(Default)]
struct Building {
    made: Vec<Made>,
    /// The operation that what it takes is still to be said of.
    asked: Option<Asked>,
    parts: Vec<abi::Sge>,
    octets: Option<Vec<u8>>,
    address: Option<Datagram>,
    error: c_int,
}

impl Batch {
    fn building(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Building {
    /// All of the last operation has been said.
    unsafe fn close(&mut self, qp: &QueuePair) {
        let Some(mut asked) = self.asked.take() else { return };
        asked.datagram = self.address.take();
        let (parts, octets) = (std::mem::take(&mut self.parts), self.octets.take());
        if self.error != 0 {
            return;
        }
        let data = octets.map_or(Data::Parts(&parts), Data::Octets);
        match posting::request(qp, &asked, data) {
            Ok(made) => self.made.push(made),
            Err(error) => self.error = error,
        }
    }
}

/// A queue pair with these calls.
pub(crate) fn made(qp_base: abi::Qp) -> abi::QpEx {
    abi::QpEx {
        qp_base,
        comp_mask: 0,
        wr_id: 0,
        wr_flags: 0,
        wr_atomic_cmp_swp: compare_swap,
        wr_atomic_fetch_add: fetch_add,
        wr_bind_mw: bind,
        wr_local_inv: invalidate,
        wr_rdma_read: read,
        wr_rdma_write: write,
        wr_rdma_write_imm: write_immediate,
        wr_send: send,
        wr_send_imm: send_immediate,
        wr_send_inv: send_invalidate,
        wr_send_tso: null(),
        wr_set_ud_addr: set_address,
        wr_set_xrc_srqn: null(),
        wr_set_inline_data: set_inline,
        wr_set_inline_data_list: set_inline_list,
        wr_set_sge: set_part,
        wr_set_sge_list: set_parts,
        wr_start: start,
        wr_complete: complete,
        wr_abort: abort,
        wr_atomic_write: null(),
    }
}

unsafe fn of<'a>(qp: *mut abi::QpEx) -> &'a QueuePair {
    QueuePair::of(qp.cast())
}

unsafe extern "C" fn start(qp: *mut abi::QpEx) {
    let batch = &of(qp).batch;
    while batch.busy.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    *batch.building() = Building::default();
}

unsafe extern "C" fn complete(qp: *mut abi::QpEx) -> c_int {
    let it = of(qp);
    let mut building = it.batch.building();
    building.close(it);
    let Building { made, error, .. } = std::mem::take(&mut *building);
    drop(building);
    it.batch.busy.store(false, Ordering::Release);
    if error != 0 {
        posting::let_go(it, made);
        return error;
    }
    posting::post_together(it, made).err().unwrap_or(0)
}

unsafe extern "C" fn abort(qp: *mut abi::QpEx) {
    let it = of(qp);
    let building = std::mem::take(&mut *it.batch.building());
    posting::let_go(it, building.made);
    it.batch.busy.store(false, Ordering::Release);
}

/// Another request, by the name and the flags that stand in the queue pair.
unsafe fn ask(qp: *mut abi::QpEx, opcode: c_uint, imm_data: u32, remote: RemoteMemory, operands: (u64, u64)) {
    let mut building = of(qp).batch.building();
    building.close(of(qp));
    let (wr_id, flags) = ((*qp).wr_id, (*qp).wr_flags);
    let (datagram, bind) = (None, None);
    building.asked = Some(Asked { wr_id, flags, opcode, imm_data, remote, operands, datagram, bind });
}

unsafe extern "C" fn bind(qp: *mut abi::QpEx, mw: *mut abi::Mw, rkey: u32, info: *const abi::MwBindInfo) {
    ask(qp, opcode::BIND_MW, 0, RemoteMemory::default(), (0, 0));
    if let Some(asked) = &mut of(qp).batch.building().asked {
        asked.bind = Some(abi::Bind { mw, rkey, bind_info: info.read_unaligned() });
    }
}

unsafe extern "C" fn invalidate(qp: *mut abi::QpEx, key: u32) {
    ask(qp, opcode::LOCAL_INV, key, RemoteMemory::default(), (0, 0));
}

unsafe extern "C" fn send(qp: *mut abi::QpEx) {
    ask(qp, opcode::SEND, 0, RemoteMemory::default(), (0, 0));
}

unsafe extern "C" fn send_immediate(qp: *mut abi::QpEx, immediate: u32) {
    ask(qp, opcode::SEND_WITH_IMM, immediate, RemoteMemory::default(), (0, 0));
}

unsafe extern "C" fn send_invalidate(qp: *mut abi::QpEx, key: u32) {
    ask(qp, opcode::SEND_WITH_INV, key, RemoteMemory::default(), (0, 0));
}

unsafe extern "C" fn write(qp: *mut abi::QpEx, rkey: u32, address: u64) {
    ask(qp, opcode::RDMA_WRITE, 0, RemoteMemory { address, rkey }, (0, 0));
}

unsafe extern "C" fn write_immediate(qp: *mut abi::QpEx, rkey: u32, address: u64, immediate: u32) {
    ask(qp, opcode::RDMA_WRITE_WITH_IMM, immediate, RemoteMemory { address, rkey }, (0, 0));
}

unsafe extern "C" fn read(qp: *mut abi::QpEx, rkey: u32, address: u64) {
    ask(qp, opcode::RDMA_READ, 0, RemoteMemory { address, rkey }, (0, 0));
}

unsafe extern "C" fn compare_swap(qp: *mut abi::QpEx, rkey: u32, address: u64, compare: u64, swap: u64) {
    ask(qp, opcode::ATOMIC_CMP_AND_SWP, 0, RemoteMemory { address, rkey }, (compare, swap));
}

unsafe extern "C" fn fetch_add(qp: *mut abi::QpEx, rkey: u32, address: u64, add: u64) {
    ask(qp, opcode::ATOMIC_FETCH_AND_ADD, 0, RemoteMemory { address, rkey }, (add, 0));
}

unsafe extern "C" fn set_address(qp: *mut abi::QpEx, ah: *mut abi::Ah, qpn: u32, q_key: u32) {
    of(qp).batch.building().address = Some(Datagram::new(ah, qpn, q_key));
}

unsafe extern "C" fn set_part(qp: *mut abi::QpEx, lkey: u32, addr: u64, length: u32) {
    of(qp).batch.building().parts = vec![abi::Sge { addr, length, lkey }];
}

unsafe extern "C" fn set_parts(qp: *mut abi::QpEx, count: usize, list: *const abi::Sge) {
    let mut building = of(qp).batch.building();
    if count > of(qp).cap().max_send_sge as usize {
        building.error = libc::EINVAL;
    } else if count > 0 {
        building.parts = (0..count).map(|place| list.add(place).read_unaligned()).collect();
    }
}

unsafe extern "C" fn set_inline(qp: *mut abi::QpEx, addr: *mut c_void, length: usize) {
    let buffer = abi::DataBuf { addr, length };
    set_inline_list(qp, 1, &raw const buffer);
}

unsafe extern "C" fn set_inline_list(qp: *mut abi::QpEx, count: usize, list: *const abi::DataBuf) {
    let mut octets = Vec::new();
    for place in 0..count {
        let buffer = list.add(place).read_unaligned();
        if buffer.length > 0 {
            octets.extend_from_slice(std::slice::from_raw_parts(buffer.addr.cast::<u8>(), buffer.length));
        }
    }
    let mut building = of(qp).batch.building();
    if octets.len() > of(qp).cap().max_inline_data as usize {
        building.error = libc::EINVAL;
    }
    building.octets = Some(octets);
}
