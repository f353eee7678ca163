//! Completion channels and queues.

use crate::device::{self, Context};
use crate::events::Told;
use crate::memory::{Domain, free};
use crate::posting::{self, Note};
use crate::reading::{self, Reading};
use crate::{abi, code, errno, none, told};
use libc::{c_int, c_uint, c_void};
use roci_endpoint::{Buffer, CompletionKind, CompletionQueue, Status, Tail, WorkCompletion};
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Completions that a queue may be asked to have room for.
pub(crate) const ROOM: c_int = 1 << 22;

/// A channel: readable while one of its queues has a notification that was asked for.
#[repr(C)]
struct Channel {
    /// How many queues it has is counted there.
    base: UnsafeCell<abi::CompChannel>,
    _watch: OwnedFd,
    /// Where its queues are. Who waits was told the place of one that may have gone since.
    queues: Mutex<HashSet<usize>>,
}

#[repr(C)]
pub(crate) struct Queue {
    /// All of it, whether it was made to be read one by one or not. The program, and who polls for it, write there.
    base: UnsafeCell<abi::CqEx>,
    pub(crate) reading: Reading,
    pub(crate) cq: CompletionQueue,
    pub(crate) users: AtomicU32,
    /// Completions on their way from the one to the other form.
    taken: Mutex<Vec<WorkCompletion>>,
    /// Of its channel.
    told: Told,
    /// The parent domain that it was made with, or null.
    domain: *mut abi::Pd,
}

impl Channel {
    unsafe fn of<'a>(channel: *mut abi::CompChannel) -> &'a Self {
        &*channel.cast::<Self>()
    }

    fn queues(&self) -> MutexGuard<'_, HashSet<usize>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    pub(crate) unsafe fn of<'a>(cq: *mut abi::Cq) -> &'a Self {
        &*cq.cast::<Self>()
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut abi::Context) -> *mut abi::CompChannel {
    // SAFETY: it makes a descriptor that nobody else has.
    let made = libc::epoll_create1(libc::EPOLL_CLOEXEC);
    if made < 0 {
        return std::ptr::null_mut();
    }
    let watch = <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(made);
    let base = UnsafeCell::new(abi::CompChannel { context, fd: made, refcnt: 0 });
    Box::into_raw(Box::new(Channel { base, _watch: watch, queues: Mutex::default() })).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut abi::CompChannel) -> c_int {
    if !Channel::of(channel).queues().is_empty() {
        return libc::EBUSY;
    }
    drop(Box::from_raw(channel.cast::<Channel>()));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut abi::Context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut abi::CompChannel,
    vector: c_int,
) -> *mut abi::Cq {
    make(context, cqe, cq_context, channel, &Besides { vector, ..Besides::default() }).unwrap_or_else(none)
}

/// Vectors among which a program can choose, as many as processors; which one it is makes no difference.
pub(crate) fn vectors() -> c_int {
    // What was told once holds, and to count them takes the system a while.
    static COUNT: OnceLock<c_int> = OnceLock::new();
    let counted = || {
        std::thread::available_parallelism()
            .map_or(1, |count| c_int::try_from(count.get()).unwrap_or(c_int::MAX))
    };
    *COUNT.get_or_init(counted)
}

/// What extended queues may have.
pub(crate) struct Besides {
    pub(crate) has_times: bool,
    pub(crate) vector: c_int,
    /// Or null.
    pub(crate) domain: *mut abi::Pd,
}

impl Default for Besides {
    fn default() -> Self {
        Self { has_times: false, vector: 0, domain: null_mut() }
    }
}

pub(crate) unsafe fn make(
    context: *mut abi::Context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut abi::CompChannel,
    besides: &Besides,
) -> Result<*mut abi::Cq, c_int> {
    has_room(cqe)?;
    let (vector, vectors) = (besides.vector, vectors());
    if !(0..vectors).contains(&vector) {
        let range = format_args!("completion vectors are below {vectors}: asked for was {vector}");
        return Err(told(libc::EINVAL, range));
    }
    let device = &Context::of(context).device;
    let made = if besides.has_times { device.create_timed_cq() } else { device.create_cq() };
    let cq = made.map_err(|error| errno(&error))?;
    let queue = Box::into_raw(Box::new(Queue {
        base: UnsafeCell::new(reading::made(abi::Cq {
            context,
            channel,
            cq_context,
            handle: 0,
            cqe,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            comp_events_completed: 0,
            async_events_completed: 0,
        })),
        reading: Reading::default(),
        cq,
        users: AtomicU32::new(0),
        taken: Mutex::default(),
        told: Told::default(),
        domain: besides.domain,
    }));
    if !channel.is_null() {
        let place = queue.expose_provenance();
        let mut queues = Channel::of(channel).queues();
        if let Err(error) = device::watch_also((*channel).fd, &(*queue).cq, place as u64) {
            drop(Box::from_raw(queue));
            return Err(errno(&error));
        }
        queues.insert(place);
        (*channel).refcnt += 1;
    }
    if !besides.domain.is_null() {
        Domain::of(besides.domain).users.fetch_add(1, Ordering::SeqCst);
    }
    Ok(queue.cast())
}

/// It never overruns, and takes as many as come. Those that are there have to fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_resize_cq(cq: *mut abi::Cq, cqe: c_int) -> c_int {
    let waiting = Queue::of(cq).cq.len();
    if usize::try_from(cqe).is_ok_and(|cqe| cqe < waiting) {
        return told(
            libc::EINVAL,
            format_args!("{waiting} completions wait in a queue that is to have room for {cqe}"),
        );
    }
    code(has_room(cqe).map(|()| (*cq).cqe = cqe))
}

/// Whether a queue can be made for so many. It has no bound; but no device takes more than it says (`max_cqe`).
fn has_room(cqe: c_int) -> Result<(), c_int> {
    if (1..=ROOM).contains(&cqe) {
        return Ok(());
    }
    let most = format_args!("a completion queue has room for 1 to {ROOM}: asked for were {cqe}");
    Err(told(libc::EINVAL, most))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut abi::Cq) -> c_int {
    code(free(&Queue::of(cq).users).map(|()| {
        let (queue, channel) = (Queue::of(cq), (*cq).channel);
        if !channel.is_null() {
            use std::os::fd::AsFd;
            let mut queues = Channel::of(channel).queues();
            libc::epoll_ctl((*channel).fd, libc::EPOLL_CTL_DEL, queue.cq.as_fd().as_raw_fd(), null_mut());
            queues.remove(&cq.addr());
            (*channel).refcnt -= 1;
        }
        queue.told.wait();
        if !queue.domain.is_null() {
            Domain::of(queue.domain).users.fetch_sub(1, Ordering::SeqCst);
        }
        drop(Box::from_raw(cq.cast::<Queue>()));
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut abi::CompChannel,
    cq: *mut *mut abi::Cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    Context::of((*channel).context).device.hand_over();
    loop {
        match device::wait((*channel).fd) {
            Ok(Some(of)) => {
                let place = usize::try_from(of).unwrap_or(0);
                let queue = std::ptr::with_exposed_provenance_mut::<Queue>(place);
                // Another thread may have taken it, or the queue away.
                let queues = Channel::of(channel).queues();
                if queues.contains(&place) && (*queue).cq.take_notify() {
                    (*queue).told.another();
                    cq.write(queue.cast());
                    cq_context.write((*queue.cast::<abi::Cq>()).cq_context);
                    return 0;
                }
            }
            Ok(None) => {
                none::<()>(libc::EAGAIN);
                return -1;
            }
            Err(error) => {
                none::<()>(errno(&error));
                return -1;
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut abi::Cq, count: c_uint) {
    Queue::of(cq).told.acknowledge(count);
}

/// Of the attributes of a queue its moderation is known, which holds back the events of its channel.
pub(crate) unsafe extern "C" fn modify_cq(cq: *mut abi::Cq, attr: *mut abi::ModifyCqAttr) -> c_int {
    let abi::ModifyCqAttr { attr_mask, cq_count, cq_period } = *attr;
    if attr_mask != abi::CQ_ATTR_MODERATE {
        let unknown = attr_mask & !abi::CQ_ATTR_MODERATE;
        return told(
            libc::EINVAL,
            format_args!(
                "of a completion queue moderation alone can be changed: attr_mask has {unknown:#x} besides"
            ),
        );
    }
    let period = Duration::from_micros(cq_period.into());
    code(Queue::of(cq).cq.moderate(cq_count, period).map_err(|error| errno(&error)))
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut abi::Cq, solicited_only: c_int) -> c_int {
    Queue::of(cq).cq.req_notify(solicited_only != 0);
    0
}

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut abi::Cq, most: c_int, wc: *mut abi::Wc) -> c_int {
    let (queue, context) = (Queue::of(cq), Context::of((*cq).context));
    let most = usize::try_from(most).unwrap_or(0);
    let mut taken = queue.taken.lock().unwrap_or_else(PoisonError::into_inner);
    let mut count = 0;
    // What nobody asked to hear of leaves room for others.
    while count < most && queue.cq.poll_into(&mut taken, most - count) > 0 {
        for completion in taken.drain(..) {
            if let Some(told) = convert(context, completion) {
                wc.add(count).write(told);
                count += 1;
            }
        }
    }
    if count == 0 {
        context.device.pause();
    }
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// A completion as C has it; `None` where it is of a request that was to have none.
pub(crate) fn convert(context: &Context, it: WorkCompletion) -> Option<abi::Wc> {
    use CompletionKind as Kind;
    let opcode = match it.opcode {
        Kind::Send => abi::wc::SEND,
        Kind::Write => abi::wc::RDMA_WRITE,
        Kind::Read => abi::wc::RDMA_READ,
        Kind::FetchAdd => abi::wc::FETCH_ADD,
        Kind::CompareSwap => abi::wc::COMP_SWAP,
        Kind::Recv => abi::wc::RECV,
        Kind::RecvWrite => abi::wc::RECV_RDMA_WITH_IMM,
        Kind::BindWindow => abi::wc::BIND_MW,
        Kind::LocalInvalidate => abi::wc::LOCAL_INV,
    };
    let (wc_flags, imm_data) = match it.tail {
        Tail::Plain => (0, 0),
        Tail::Immediate(immediate) => (abi::wc::WITH_IMM, immediate.to_be()),
        Tail::Invalidate(key) => (abi::wc::WITH_INV, key),
    };
    let mut wc = abi::Wc {
        wr_id: it.wr_id,
        status: status(it.status),
        opcode,
        byte_len: it.byte_len,
        imm_data,
        qp_num: it.qp_num.get(),
        wc_flags,
        ..abi::Wc::default()
    };
    let is_atomic = matches!(it.opcode, Kind::FetchAdd | Kind::CompareSwap);
    let may_be_datagram = it.opcode == Kind::Recv && context.has_datagrams.load(Ordering::Relaxed);
    // Of one that is about to go nobody is to hear any more.
    let is_datagram = may_be_datagram && posting::has_datagrams(context, it.qp_num.get())?;
    if !is_atomic && !is_datagram {
        return Some(wc);
    }
    // Held until all is in its place: memory is not given back meanwhile.
    let mut special = context.special();
    if is_datagram {
        if let Some((address, qpn)) = it.source.filter(|_| it.status == Status::Success) {
            wc.src_qp = qpn.get();
            wc.wc_flags |= abi::wc::GRH;
            if !posting::put_header(it.into_buffers(), context, address, wc.byte_len) {
                wc.status = abi::wc::LOC_PROT_ERR;
            }
            wc.byte_len += abi::GRH;
        }
        return Some(wc);
    }
    match special.take(it.qp_num.get(), it.wr_id)? {
        Note::Atomic { wr_id, signaled, into } => {
            wc.wr_id = wr_id;
            if it.status == Status::Success {
                match into.filter(Buffer::is_there) {
                    // The place has eight octets, as was looked at when it was posted.
                    Some(mut into) => {
                        let _ = into.write(0, &it.original.to_ne_bytes());
                    }
                    None => wc.status = abi::wc::LOC_PROT_ERR,
                }
            }
            (signaled || wc.status != abi::wc::SUCCESS).then_some(wc)
        }
    }
}

const fn status(status: Status) -> c_uint {
    match status {
        Status::Success => abi::wc::SUCCESS,
        Status::LocalLengthError => abi::wc::LOC_LEN_ERR,
        Status::LocalQpOperationError => abi::wc::LOC_QP_OP_ERR,
        Status::LocalProtectionError => abi::wc::LOC_PROT_ERR,
        Status::WorkRequestFlushed => abi::wc::WR_FLUSH_ERR,
        Status::RemoteInvalidRequestError => abi::wc::REM_INV_REQ_ERR,
        Status::RemoteAccessError => abi::wc::REM_ACCESS_ERR,
        Status::RemoteOperationError => abi::wc::REM_OP_ERR,
        Status::TransportRetryCounterExceeded => abi::wc::RETRY_EXC_ERR,
        Status::RnrRetryCounterExceeded => abi::wc::RNR_RETRY_EXC_ERR,
        Status::BadResponseError => abi::wc::BAD_RESP_ERR,
        Status::MemoryWindowBindError => abi::wc::MW_BIND_ERR,
    }
}
