//! Requests, as lists of them are posted.

use crate::abi;
use crate::device::Context;
use crate::header;
use crate::memory::{Handle, Regions};
use crate::queue_pair::QueuePair;
use crate::shared::Shared;
use crate::window;
use abi::{send_flags as flags, wr_opcode as opcode};
use libc::{c_int, c_uint};
use roci_endpoint::{Buffer, Qpn, RecvWr, RemoteMemory, SendWr, Slice, WrError};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::PoisonError;

/// Parts that a request gathers from or scatters to.
pub(crate) const PARTS: c_int = 32;

/// What is known of requests that the endpoint's completions do not tell all of.
pub(crate) enum Note {
    /// The result of an atomic goes there; nowhere where that is no memory of the queue pair's.
    Atomic { wr_id: u64, signaled: bool, into: Option<Buffer> },
}

/// All of them, by the names under which their requests were posted.
#[derive(Default)]
pub(crate) struct Special {
    /// Each with the number of its queue pair.
    notes: Vec<Option<(u32, Note)>>,
    free: Vec<usize>,
}

impl Special {
    fn keep(&mut self, number: u32, note: Note) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.notes.push(None);
            self.notes.len() - 1
        });
        self.notes[place] = Some((number, note));
        place as u64
    }

    /// What is known of a request of queue pair `number`.
    pub(crate) fn take(&mut self, number: u32, name: u64) -> Option<Note> {
        let place = usize::try_from(name).ok()?;
        let note = self.notes.get_mut(place)?.take_if(|(of, _)| *of == number);
        self.free.extend(note.is_some().then_some(place));
        note.map(|(_, note)| note)
    }

    /// A queue pair is gone, and its requests with it.
    pub(crate) fn forget(&mut self, number: u32) {
        for (place, note) in self.notes.iter_mut().enumerate() {
            if note.take_if(|(of, _)| *of == number).is_some() {
                self.free.push(place);
            }
        }
    }
}

/// Whether the queue pair of a number has datagrams; `None` where it is gone or about to go.
pub(crate) fn has_datagrams(context: &Context, number: u32) -> Option<bool> {
    let alive = context.queue_pairs.read().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: it is in the table, which it leaves before it is freed.
    alive.get(&number).map(|it| unsafe { &*it.0 }.is_datagrams())
}

/// Puts the header before a datagram of `length` octets from `source`, at the front of what it was received into; whether the memory is
/// there still.
pub(crate) fn put_header(places: Vec<Buffer>, context: &Context, source: IpAddr, length: u32) -> bool {
    // UDP, BTH, DETH and the ICRC lie between.
    const BETWEEN: u32 = 8 + 12 + 8 + 4;
    let length = u16::try_from(length + BETWEEN).unwrap_or(u16::MAX);
    let octets = header::made(source, context.device.address(), length);
    let mut rest = &octets[..];
    for mut place in places {
        let (now, later) = rest.split_at(rest.len().min(place.len()));
        if !now.is_empty() && (!place.is_there() || place.write(0, now).is_err()) {
            return false;
        }
        rest = later;
    }
    rest.is_empty()
}

/// What a request is to do, without what it takes.
pub(crate) struct Asked {
    pub(crate) wr_id: u64,
    pub(crate) flags: c_uint,
    pub(crate) opcode: c_uint,
    /// As C has it.
    pub(crate) imm_data: u32,
    pub(crate) remote: RemoteMemory,
    /// Of atomics: what to add or to compare with, and what to put there.
    pub(crate) operands: (u64, u64),
    pub(crate) datagram: Option<Datagram>,
    /// Which window is to be bound to what.
    pub(crate) bind: Option<abi::Bind>,
}

/// Where a datagram goes.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    address: IpAddr,
    dscp: u8,
    qpn: Qpn,
    q_key: u32,
}

impl Datagram {
    /// To a queue pair at a handle's address.
    pub(crate) unsafe fn new(handle: *mut abi::Ah, qpn: u32, q_key: u32) -> Self {
        let Handle { address, dscp, .. } = *handle.cast::<Handle>();
        Self { address, dscp, qpn: Qpn::new(qpn & 0xff_ffff), q_key }
    }
}

/// What a request takes.
pub(crate) enum Data<'a> {
    Parts(&'a [abi::Sge]),
    Octets(Vec<u8>),
}

/// A list with its length, which is `most` at most: what the queue was made for. Programs have lists, and requests, at addresses that
/// are no multiples of their alignment as well: in packed structures (libiscsi).
unsafe fn parts<'a>(list: *const abi::Sge, count: c_int, most: u32) -> Result<Cow<'a, [abi::Sge]>, c_int> {
    let count = match usize::try_from(count) {
        Ok(0) => return Ok(Cow::Borrowed(&[])),
        Ok(count) if count <= most as usize && !list.is_null() => count,
        _ => return Err(libc::EINVAL),
    };
    Ok(if list.is_aligned() {
        Cow::Borrowed(std::slice::from_raw_parts(list, count))
    } else {
        Cow::Owned((0..count).map(|place| list.add(place).read_unaligned()).collect())
    })
}

/// The octets of parts, wherever they are, where they are `most` at most.
unsafe fn copied(parts: &[abi::Sge], most: u32) -> Result<Vec<u8>, c_int> {
    let length: u64 = parts.iter().map(|part| u64::from(part.length)).sum();
    if length > most.into() {
        return Err(libc::EINVAL);
    }
    let mut octets = Vec::new();
    for part in parts {
        let start = std::ptr::with_exposed_provenance::<u8>(usize::try_from(part.addr).unwrap_or(0));
        if part.length > 0 {
            octets.extend_from_slice(std::slice::from_raw_parts(start, part.length as usize));
        }
    }
    Ok(octets)
}

/// Parts as buffers; those without octets are left out, whatever their keys. `None` where some of the others are not registered.
unsafe fn buffers(regions: &Regions, parts: &[abi::Sge]) -> Option<Vec<Buffer>> {
    parts.iter().filter(|part| part.length > 0).map(|part| regions.part(part)).collect()
}

/// A request that the endpoint is to be posted, and the name of what is known of it besides.
pub(crate) type Made = (SendWr, Option<u64>);

/// The request that is asked for.
pub(crate) unsafe fn request(qp: &QueuePair, asked: &Asked, data: Data<'_>) -> Result<Made, c_int> {
    let context = qp.context();
    let signaled = qp.sig_all || asked.flags & flags::SIGNALED != 0;
    let (remote, regions) = (asked.remote, &context.regions);
    let outgoing = |made: &dyn Fn(Out) -> SendWr| -> SendWr {
        let nothing = || made(Out::Octets(&[]));
        match data {
            Data::Octets(ref octets) => made(Out::Octets(octets)),
            Data::Parts([one]) if one.length > 0 => match regions.part(one) {
                Some(part) => made(Out::Slice(part.freeze())),
                None => nothing().without_memory(),
            },
            Data::Parts(parts) => {
                let Some(parts) = buffers(regions, parts) else { return nothing().without_memory() };
                let slices: Vec<_> = parts.into_iter().map(Buffer::freeze).collect();
                match slices.first() {
                    None => nothing(),
                    Some(first) => made(Out::Slice(first.clone())).gather(slices),
                }
            }
        }
    };
    let into = || match data {
        Data::Parts(parts) => Ok(buffers(regions, parts)),
        Data::Octets(_) => Err(libc::EINVAL),
    };
    let mut made = match (asked.opcode, asked.datagram) {
        (opcode::SEND | opcode::SEND_WITH_IMM, Some(Datagram { address, dscp, qpn, q_key }))
            if qp.is_datagrams() =>
        {
            let made = outgoing(&|out| match out {
                Out::Octets(octets) => SendWr::datagram_inline(octets, address, qpn, q_key),
                Out::Slice(slice) => SendWr::datagram(slice, address, qpn, q_key),
            });
            made.dscp(dscp)
        }
        _ if qp.is_datagrams() => return Err(libc::EINVAL),
        (opcode::SEND | opcode::SEND_WITH_IMM | opcode::SEND_WITH_INV, _) => outgoing(&|out| match out {
            Out::Octets(octets) => SendWr::send_inline(octets),
            Out::Slice(slice) => SendWr::send(slice),
        }),
        (opcode::RDMA_WRITE | opcode::RDMA_WRITE_WITH_IMM, _) => outgoing(&|out| match out {
            Out::Octets(octets) => SendWr::write_inline(octets, remote),
            Out::Slice(slice) => SendWr::write(slice, remote),
        }),
        (opcode::RDMA_READ, _) => match into()? {
            None => SendWr::read_scattered(Vec::new(), remote).without_memory(),
            Some(mut into) if into.len() == 1 => SendWr::read(into.remove(0), remote),
            Some(into) => SendWr::read_scattered(into, remote),
        },
        (opcode::ATOMIC_CMP_AND_SWP | opcode::ATOMIC_FETCH_AND_ADD, _) => {
            let Data::Parts(parts) = data else { return Err(libc::EINVAL) };
            let mut filled = parts.iter().filter(|part| part.length > 0);
            let Some(part) = filled.next().filter(|part| part.length == 8 && filled.next().is_none()) else {
                return Err(libc::EINVAL);
            };
            let may_be_filled = regions.may_be_filled(qp.domain(), [part]);
            let into = regions.part(part).filter(|_| may_be_filled);
            let is_there = into.is_some();
            let note = Note::Atomic { wr_id: asked.wr_id, signaled, into };
            let name = context.special().keep(qp.qp.qp_num().get(), note);
            let (first, second) = asked.operands;
            let made = match asked.opcode {
                opcode::ATOMIC_CMP_AND_SWP => SendWr::compare_swap(remote, first, second),
                _ => SendWr::fetch_add(remote, first),
            };
            let made = if is_there { made } else { made.without_memory() };
            return Ok((flagged(made.wr_id(name), asked.flags), Some(name)));
        }
        (opcode::BIND_MW, _) => {
            let bind = asked.bind.filter(|it| !it.mw.is_null() && (*it.mw).kind == abi::mw_type::TYPE_2);
            window::binding(context, &bind.ok_or(libc::EINVAL)?)?
        }
        (opcode::LOCAL_INV, _) => SendWr::invalidate_local(asked.imm_data),
        _ => return Err(libc::EOPNOTSUPP),
    };
    match asked.opcode {
        opcode::SEND_WITH_IMM | opcode::RDMA_WRITE_WITH_IMM => made = made.imm(u32::from_be(asked.imm_data)),
        opcode::SEND_WITH_INV => made = made.invalidate(asked.imm_data),
        _ => {}
    }
    made = flagged(made.wr_id(asked.wr_id), asked.flags);
    Ok((if signaled { made } else { made.unsignaled() }, None))
}

/// What leaves with a request.
enum Out<'a> {
    Octets(&'a [u8]),
    Slice(Slice),
}

fn flagged(mut made: SendWr, given: c_uint) -> SendWr {
    if given & flags::FENCE != 0 {
        made = made.fence();
    }
    if given & flags::SOLICITED != 0 {
        made = made.solicited();
    }
    made.fault_late()
}

pub(crate) fn refusal(error: WrError) -> c_int {
    match error {
        WrError::QueueFull => libc::ENOMEM,
        WrError::Address(_) => libc::EHOSTUNREACH,
        _ => libc::EINVAL,
    }
}

unsafe fn asked(wr: &abi::SendWr) -> Asked {
    let mut asked = Asked {
        wr_id: wr.wr_id,
        flags: wr.send_flags,
        opcode: wr.opcode,
        imm_data: wr.imm_data,
        remote: RemoteMemory::default(),
        operands: (0, 0),
        datagram: None,
        bind: None,
    };
    match wr.opcode {
        opcode::ATOMIC_CMP_AND_SWP | opcode::ATOMIC_FETCH_AND_ADD => {
            let it = wr.wr.atomic;
            asked.remote = RemoteMemory { address: it.remote_addr, rkey: it.rkey };
            asked.operands = (it.compare_add, it.swap);
        }
        opcode::RDMA_WRITE | opcode::RDMA_WRITE_WITH_IMM | opcode::RDMA_READ => {
            let it = wr.wr.rdma;
            asked.remote = RemoteMemory { address: it.remote_addr, rkey: it.rkey };
        }
        opcode::BIND_MW => asked.bind = Some(wr.bind_mw),
        _ => {}
    }
    asked
}

/// Binds a window of type 1.
pub(crate) unsafe fn post_bind(qp: &QueuePair, bind: &abi::MwBind, of: &abi::Bind) -> Result<(), c_int> {
    let signaled = qp.sig_all || bind.send_flags & flags::SIGNALED != 0;
    let made = flagged(window::binding(qp.context(), of)?.wr_id(bind.wr_id), bind.send_flags);
    let made = if signaled { made } else { made.unsignaled() };
    qp.qp.post_send(made).map_err(|refused| refusal(refused.error))
}

/// Posts a request that has none behind it.
unsafe fn post_one(qp: &QueuePair, wr: &abi::SendWr) -> Result<(), c_int> {
    let (request, name) = one(qp, wr)?;
    qp.qp.post_send(request).map_err(|refused| {
        drop(name.and_then(|name| qp.context().special().take(qp.qp.qp_num().get(), name)));
        refusal(refused.error)
    })
}

pub(crate) unsafe extern "C" fn post_send(
    qp: *mut abi::Qp,
    mut wr: *mut abi::SendWr,
    bad: *mut *mut abi::SendWr,
) -> c_int {
    let it = QueuePair::of(qp);
    let first = wr;
    let (mut made, mut error) = (Vec::new(), 0);
    while !wr.is_null() {
        let asked = wr.read_unaligned();
        if wr == first && asked.next.is_null() {
            error = post_one(it, &asked).err().unwrap_or(0);
            if error != 0 && !bad.is_null() {
                bad.write(wr);
            }
            return error;
        }
        match one(it, &asked) {
            Ok(request) => made.push(request),
            Err(refused) => {
                error = refused;
                break;
            }
        }
        wr = asked.next;
    }
    if let Err((posted, refused)) = post_all(it, made) {
        // The one that was refused is as far from the first.
        wr = (0..posted).fold(first, |wr, _| (&raw const (*wr).next).read_unaligned());
        error = refused;
    }
    if error != 0 && !bad.is_null() {
        bad.write(wr);
    }
    error
}

/// Posts requests; where one is refused, how many were posted before it, and why it was.
pub(crate) fn post_all(qp: &QueuePair, made: Vec<Made>) -> Result<(), (usize, c_int)> {
    let (requests, mut names): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    qp.qp.post_sends(requests).map(drop).map_err(|refused| {
        forget(qp, names.split_off(refused.posted));
        (refused.posted, refusal(refused.error))
    })
}

/// Posts all requests or none of them.
pub(crate) fn post_together(qp: &QueuePair, made: Vec<Made>) -> Result<(), c_int> {
    let (requests, mut names): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    qp.qp.post_sends_together(requests).map_err(|refused| {
        forget(qp, names.split_off(refused.posted));
        refusal(refused.error)
    })
}

/// Drops requests that are not to be posted.
pub(crate) fn let_go(qp: &QueuePair, made: Vec<Made>) {
    forget(qp, made.into_iter().map(|(_, name)| name).collect());
}

fn forget(qp: &QueuePair, names: Vec<Option<u64>>) {
    // SAFETY: the context outlives its queue pairs.
    let (mut special, number) = (unsafe { qp.context() }.special(), qp.qp.qp_num().get());
    names.into_iter().flatten().for_each(|name| drop(special.take(number, name)));
}

unsafe fn one(qp: &QueuePair, wr: &abi::SendWr) -> Result<Made, c_int> {
    let cap = qp.cap();
    let parts = parts(wr.sg_list, wr.num_sge, cap.max_send_sge)?;
    let mut asked = asked(wr);
    if qp.is_datagrams() {
        let it = wr.wr.ud;
        if it.ah.is_null() {
            return Err(libc::EINVAL);
        }
        asked.datagram = Some(Datagram::new(it.ah, it.remote_qpn, it.remote_qkey));
    }
    let data = match wr.send_flags & flags::INLINE {
        0 => Data::Parts(&parts),
        _ => Data::Octets(copied(&parts, cap.max_inline_data)?),
    };
    request(qp, &asked, data)
}

/// A receive request of `most` parts at most, and of `least` octets at least.
unsafe fn receive(context: &Context, wr: &abi::RecvWr, most: u32, least: u32) -> Result<RecvWr, c_int> {
    let list = parts(wr.sg_list, wr.num_sge, most)?;
    let length = list.iter().map(|part| u64::from(part.length)).sum::<u64>();
    if length < least.into() {
        return Err(libc::EINVAL);
    }
    let made = match buffers(&context.regions, &list) {
        None => RecvWr::without_memory(u32::try_from(length).unwrap_or(u32::MAX)),
        Some(into) if into.is_empty() => RecvWr::empty(),
        Some(mut into) if into.len() == 1 => RecvWr::new(into.remove(0)),
        Some(into) => RecvWr::scatter(into),
    };
    Ok(made.wr_id(wr.wr_id).fault_late())
}

/// Posts a list one after the other, to a queue that takes `most` parts and for each request at least `least` octets.
unsafe fn receives(
    context: &Context,
    mut wr: *mut abi::RecvWr,
    bad: *mut *mut abi::RecvWr,
    (most, least): (u32, u32),
    post: impl Fn(RecvWr) -> Result<(), c_int>,
) -> c_int {
    while !wr.is_null() {
        let asked = wr.read_unaligned();
        if let Err(error) = receive(context, &asked, most, least).and_then(&post) {
            if !bad.is_null() {
                bad.write(wr);
            }
            return error;
        }
        wr = asked.next;
    }
    0
}

pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut abi::Qp,
    wr: *mut abi::RecvWr,
    bad: *mut *mut abi::RecvWr,
) -> c_int {
    let it = QueuePair::of(qp);
    let least = if it.is_datagrams() { abi::GRH } else { 0 };
    receives(it.context(), wr, bad, (it.cap().max_recv_sge, least), |request| {
        it.qp.post_recv(request).map_err(|refused| refusal(refused.error))
    })
}

pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut abi::Srq,
    wr: *mut abi::RecvWr,
    bad: *mut *mut abi::RecvWr,
) -> c_int {
    let it = Shared::of(srq);
    // Nobody knows yet whether a datagram takes it.
    receives(Context::of((*srq).context), wr, bad, (it.max_sge, 0), |request| {
        it.srq.post_recv(request).map_err(|refused| refusal(refused.error))
    })
}
