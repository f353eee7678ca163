//! Queue pairs and their states.

use crate::abi::{self, attr_mask as mask, qp_state as state, qp_type};
use crate::calls::{self, Batch};
use crate::completion::Queue;
use crate::device::{Alive, Context, address_of};
use crate::events::Told;
use crate::memory::{self, Domain};
use crate::shared::Shared;
use crate::{changes, code, none, posting, told};
use libc::{c_int, c_uint};
use roci_endpoint::{Change, Mtu, Psn, QpInfo, QpState, Qpn, Span, Transition};
use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// READs and atomics that may be outstanding, at either end.
pub(crate) const READS: u8 = 16;

/// Octets inline that every queue pair takes.
const INLINE_MIN: u32 = 64;

#[repr(C)]
pub(crate) struct QueuePair {
    /// All of it, whether it was made to be posted to by calls or not. The program writes there, and so do we by its pointer.
    base: UnsafeCell<abi::QpEx>,
    pub(crate) qp: roci_endpoint::QueuePair,
    pub(crate) sig_all: bool,
    has_calls: bool,
    init: abi::QpInitAttr,
    /// What it was told last.
    attr: Mutex<abi::QpAttr>,
    pub(crate) batch: Batch,
    pub(crate) told: Told,
}

impl QueuePair {
    pub(crate) fn domain(&self) -> *mut abi::Pd {
        // SAFETY: it does not change.
        unsafe { (*self.base.get()).qp_base.pd }
    }

    /// Whether it is to be told when requests of a queue pair in SQD have ended.
    pub(crate) fn tells_of_drain(&self) -> bool {
        self.attr.lock().unwrap_or_else(PoisonError::into_inner).en_sqd_async_notify != 0
    }

    pub(crate) unsafe fn of<'a>(qp: *mut abi::Qp) -> &'a Self {
        &*qp.cast::<Self>()
    }

    /// What it was made for.
    pub(crate) fn cap(&self) -> abi::QpCap {
        self.init.cap
    }

    pub(crate) fn is_datagrams(&self) -> bool {
        self.init.qp_type == qp_type::UD
    }

    pub(crate) unsafe fn context(&self) -> &Context {
        Context::of((*self.base.get()).qp_base.context)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut abi::Pd, init: *mut abi::QpInitAttr) -> *mut abi::Qp {
    match create(pd, &mut *init, None) {
        Ok(qp) => qp,
        Err(error) => none(error),
    }
}

/// What `comp_mask` says to be there.
pub(crate) const HAS_PD: u32 = 1;
const HAS_CREATE_FLAGS: u32 = 4;
const HAS_SEND_OPS: u32 = 64;

pub(crate) unsafe extern "C" fn create_qp_ex(
    _context: *mut abi::Context,
    init: *mut abi::QpInitAttrEx,
) -> *mut abi::Qp {
    let it = &mut *init;
    let has_flags = it.comp_mask & HAS_CREATE_FLAGS != 0 && it.create_flags != 0;
    if it.comp_mask & !(HAS_PD | HAS_CREATE_FLAGS | HAS_SEND_OPS) != 0 || has_flags {
        return none(libc::EOPNOTSUPP);
    }
    if it.comp_mask & HAS_PD == 0 {
        return none(libc::EINVAL);
    }
    let calls = (it.comp_mask & HAS_SEND_OPS != 0).then_some(it.send_ops_flags);
    let possible = if it.qp_type == qp_type::UC { calls::POSSIBLE_UNANSWERED } else { calls::POSSIBLE };
    if calls.is_some_and(|asked| asked & !possible != 0) {
        return none(libc::EOPNOTSUPP);
    }
    let mut attr = abi::QpInitAttr {
        qp_context: it.qp_context,
        send_cq: it.send_cq,
        recv_cq: it.recv_cq,
        srq: it.srq,
        cap: it.cap,
        qp_type: it.qp_type,
        sq_sig_all: it.sq_sig_all,
    };
    match create(it.pd, &mut attr, calls) {
        Ok(qp) => {
            it.cap = attr.cap;
            qp
        }
        Err(error) => none(error),
    }
}

unsafe fn create(
    pd: *mut abi::Pd,
    init: &mut abi::QpInitAttr,
    calls: Option<u64>,
) -> Result<*mut abi::Qp, c_int> {
    if ![qp_type::RC, qp_type::UC, qp_type::UD].contains(&init.qp_type) {
        let kind = init.qp_type;
        return Err(told(
            libc::EOPNOTSUPP,
            format_args!("queue pairs are RC, UC or UD, and none of type {kind}"),
        ));
    }
    let (cap, parts) = (&mut init.cap, posting::PARTS.cast_unsigned());
    let too_many = cap.max_send_wr.max(cap.max_recv_wr) > calls::WORKS.cast_unsigned()
        || cap.max_send_sge.max(cap.max_recv_sge) > parts
        || cap.max_inline_data as usize > roci_endpoint::INLINE_MAX;
    if too_many {
        let (works, inline) = (calls::WORKS, roci_endpoint::INLINE_MAX);
        let most = format_args!(
            "a queue pair has room for {works} requests of {parts} parts, or of {inline} octets inline: asked for were \
             {} to send and {} to receive, of {} and {} parts, and {} octets",
            cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data
        );
        return Err(told(libc::EINVAL, most));
    }
    if init.send_cq.is_null() || init.recv_cq.is_null() {
        return Err(told(libc::EINVAL, "a queue pair has completion queues"));
    }
    cap.max_send_sge = cap.max_send_sge.max(1);
    cap.max_recv_sge = cap.max_recv_sge.max(1);
    // A NIC's requests have room for so many whether asked for or not, and some programs take it for granted.
    cap.max_inline_data = cap.max_inline_data.max(INLINE_MIN);
    let (domain, context) = (Domain::of(pd), Context::of((*pd).context));
    let (sends, receives) = (Queue::of(init.send_cq), Queue::of(init.recv_cq));
    let builder = domain.pd.create_qp(&sends.cq, &receives.cq);
    let mut builder = builder.max_send_wr(cap.max_send_wr).max_recv_wr(cap.max_recv_wr);
    if init.qp_type == qp_type::UD {
        const _: () = assert!(abi::GRH == 40, "as many octets as the room for a header");
        builder = builder.datagrams(0).header_room(40);
        context.has_datagrams.store(true, Ordering::SeqCst);
    }
    if init.qp_type == qp_type::UC {
        builder = builder.unreliable();
    }
    if !init.srq.is_null() {
        builder = builder.srq(&Shared::of(init.srq).srq);
    }
    let qp = builder.build().map_err(|error| told(libc::EINVAL, error))?;
    // The builder's are further than those of verbs are at first.
    let reset = Change { transition: Some(Transition::Reset), ..Change::default() };
    qp.modify(&reset).map_err(|error| told(libc::EINVAL, error))?;
    let number = qp.qp_num().get();
    let made = Box::into_raw(Box::new(QueuePair {
        base: UnsafeCell::new(calls::made(abi::Qp {
            context: (*pd).context,
            qp_context: init.qp_context,
            pd,
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            srq: init.srq,
            handle: 0,
            qp_num: number,
            state: state::RESET,
            qp_type: init.qp_type,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            events_completed: 0,
        })),
        qp,
        sig_all: init.sq_sig_all != 0,
        has_calls: calls.is_some(),
        init: *init,
        attr: Mutex::default(),
        batch: Batch::default(),
        told: Told::default(),
    }));
    count(&(*made).init, pd, |users| users.fetch_add(1, Ordering::SeqCst));
    context.queue_pairs.write().unwrap_or_else(PoisonError::into_inner).insert(number, Alive(made));
    Ok(made.cast())
}

/// Has all that a queue pair uses count it.
unsafe fn count(
    init: &abi::QpInitAttr,
    pd: *mut abi::Pd,
    change: impl Fn(&std::sync::atomic::AtomicU32) -> u32,
) {
    change(&Domain::of(pd).users);
    change(&Queue::of(init.send_cq).users);
    change(&Queue::of(init.recv_cq).users);
    if !init.srq.is_null() {
        change(&Shared::of(init.srq).users);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut abi::Qp) -> c_int {
    let (number, context) = ((*qp).qp_num, QueuePair::of(qp).context());
    context.queue_pairs.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    QueuePair::of(qp).told.wait();
    let it = Box::from_raw(qp.cast::<QueuePair>());
    let (init, pd, qpn) = (it.init, it.domain(), it.qp.qp_num());
    drop(it);
    forget(&init, context, qpn);
    count(&init, pd, |users| users.fetch_sub(1, Ordering::SeqCst));
    0
}

/// Of what was posted to a queue pair that is gone or was reset a program hears no more, and another may have its number.
unsafe fn forget(init: &abi::QpInitAttr, context: &Context, qpn: Qpn) {
    [init.send_cq, init.recv_cq].into_iter().for_each(|cq| Queue::of(cq).cq.forget(qpn));
    context.special().forget(qpn.get());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut abi::Qp) -> *mut abi::QpEx {
    if QueuePair::of(qp).has_calls { qp.cast() } else { std::ptr::null_mut() }
}

/// What a change of state has to say, and what it may say besides (IBTA Vol 1 §11.2.5.2); `None`: there is no such change. An unreliable
/// connection says nothing of answers.
fn attributes(from: c_uint, to: c_uint, kind: c_uint) -> Option<(c_int, c_int)> {
    use mask::{
        ACCESS_FLAGS, AV, CUR_STATE, DEST_QPN, EN_SQD_ASYNC_NOTIFY, MAX_DEST_RD_ATOMIC, MAX_QP_RD_ATOMIC,
        MIN_RNR_TIMER, PATH_MTU, PKEY_INDEX, PORT, QKEY, RETRY_CNT, RNR_RETRY, RQ_PSN, SQ_PSN, TIMEOUT,
    };
    let is_datagrams = kind == qp_type::UD;
    let answered = |what: c_int| if kind == qp_type::RC { what } else { 0 };
    let right = if is_datagrams { QKEY } else { ACCESS_FLAGS };
    let running = CUR_STATE | right | answered(MIN_RNR_TIMER);
    Some(match (from, to) {
        (_, state::RESET | state::ERR) => (0, 0),
        (state::RESET, state::INIT) => (PKEY_INDEX | PORT | right, 0),
        (state::INIT, state::INIT) => (0, PKEY_INDEX | PORT | right),
        (state::INIT, state::RTR) if is_datagrams => (0, PKEY_INDEX | right),
        (state::INIT, state::RTR) => {
            let needed = AV | PATH_MTU | DEST_QPN | RQ_PSN;
            (needed | answered(MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER), PKEY_INDEX | right)
        }
        (state::RTR, state::RTS) => {
            (SQ_PSN | answered(TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC), running)
        }
        (state::RTS | state::SQD, state::RTS) => (0, running),
        (state::RTS, state::SQD) => (0, EN_SQD_ASYNC_NOTIFY),
        (state::SQD, state::SQD) if kind != qp_type::RC => (0, PKEY_INDEX | right),
        (state::SQD, state::SQD) => {
            let times = TIMEOUT | RETRY_CNT | RNR_RETRY | MIN_RNR_TIMER;
            (0, PORT | times | MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC | right | PKEY_INDEX)
        }
        _ => return None,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_qp(qp: *mut abi::Qp, attr: *mut abi::QpAttr, what: c_int) -> c_int {
    code(modify(qp, &*attr, what))
}

pub(crate) unsafe fn modify(qp: *mut abi::Qp, attr: &abi::QpAttr, what: c_int) -> Result<(), c_int> {
    let it = QueuePair::of(qp);
    // Held to the end: an event that the change brings is told by what it says.
    let mut known = it.attr.lock().unwrap_or_else(PoisonError::into_inner);
    let now = current(it, (*qp).state);
    let to = if what & mask::STATE != 0 { attr.qp_state } else { now };
    let has = |bit| what & bit != 0;
    let is_other_path = now == state::SQD && to == state::SQD && has(mask::AV);
    if has(mask::ALT_PATH | mask::RATE_LIMIT | mask::CAP) || is_other_path {
        return Err(libc::EOPNOTSUPP);
    }
    let (needed, allowed) =
        attributes(now, to, it.init.qp_type).ok_or_else(|| told(libc::EINVAL, changes::no_way(now, to)))?;
    if let Some(wrong) = changes::misfit((now, to), (needed, allowed), what, attr) {
        return Err(told(libc::EINVAL, wrong));
    }
    let change = change(attr, what)?;
    let given = |transition| it.qp.modify(&Change { transition: Some(transition), ..change });
    let changed = match (now, to) {
        (_, state::RESET) => given(Transition::Reset),
        (_, state::ERR) => given(Transition::Fail),
        (state::RESET, state::INIT) => given(Transition::Initialize),
        (state::INIT, state::RTR) if it.is_datagrams() => given(Transition::Receive),
        (state::INIT, state::RTR) => {
            if attr.ah_attr.is_global == 0 {
                let reason = "RoCE knows peers by their GIDs: name one's own (index 0), as by `-g 0`";
                return Err(told(libc::EINVAL, reason));
            }
            let active = it.context().device.active_mtu();
            if change.mtu.is_some_and(|asked| asked > active.octets()) {
                let (asked, active) = (change.mtu.unwrap_or_default(), active.octets());
                let reason = format_args!(
                    "a path MTU of {asked} is above the device's, {active} (its link's MTU says so)"
                );
                return Err(told(libc::EINVAL, reason));
            }
            let address = address_of(&attr.ah_attr.grh.dgid);
            let (qpn, psn) = (Qpn::new(attr.dest_qp_num), Psn::new(attr.rq_psn & 0xff_ffff));
            // Its two lowest bits are ECN's.
            let dscp = it.qp.set_dscp(attr.ah_attr.grh.traffic_class >> 2);
            dscp.and_then(|()| it.qp.ready_to_receive(QpInfo { address, qpn, psn }, &change))
        }
        (state::RTR | state::SQD, state::RTS) => given(Transition::Send),
        (state::RTS, state::SQD) => given(Transition::Drain),
        _ => it.qp.modify(&change),
    };
    changed.map_err(|error| told(libc::EINVAL, error))?;
    if has(mask::ACCESS_FLAGS) {
        it.qp.set_access(memory::rights(attr.qp_access_flags));
    }
    (*qp).state = to;
    if to == state::RESET {
        *known = abi::QpAttr::default();
        forget(&it.init, it.context(), it.qp.qp_num());
    }
    remember(&mut known, attr, what);
    // Each time that it drains is to be asked for.
    if to == state::SQD && now != state::SQD && !has(mask::EN_SQD_ASYNC_NOTIFY) {
        known.en_sqd_async_notify = 0;
    }
    Ok(())
}

/// Whether a queue pair that had this number is still there.
pub(crate) fn is_there(context: &Context, qp: *mut abi::Qp, number: u32) -> bool {
    let alive = context.queue_pairs.read().unwrap_or_else(PoisonError::into_inner);
    alive.get(&number).is_some_and(|alive| std::ptr::addr_eq(alive.0, qp))
}

/// The queue pair has been brought to a state, with these attributes.
pub(crate) unsafe fn took(qp: *mut abi::Qp, to: c_uint, attr: &abi::QpAttr, what: c_int) {
    (*qp).state = to;
    let it = QueuePair::of(qp);
    remember(&mut it.attr.lock().unwrap_or_else(PoisonError::into_inner), attr, what);
}

/// The state as C counts: what the program made of it, or that it has failed since.
fn current(it: &QueuePair, known: c_uint) -> c_uint {
    if it.qp.state() == QpState::Error { state::ERR } else { known }
}

/// The attributes that the endpoint knows as well.
fn change(attr: &abi::QpAttr, what: c_int) -> Result<Change, c_int> {
    let has = |bit| what & bit != 0;
    let mtu = |code: c_uint| Mtu::from_octets(128u16.checked_shl(code).unwrap_or(0)).ok_or(libc::EINVAL);
    if has(mask::TIMEOUT) && attr.timeout > 31 || has(mask::MIN_RNR_TIMER) && attr.min_rnr_timer > 31 {
        return Err(libc::EINVAL);
    }
    let reads = |bit, count: u8| {
        if has(bit) && count > READS { Err(libc::EINVAL) } else { Ok(has(bit).then_some(count)) }
    };
    let timeout = match attr.timeout {
        0 => Span::ZERO,
        exponent => Span::from_nanos(4096 << (exponent & 31)),
    };
    Ok(Change {
        send_psn: has(mask::SQ_PSN).then(|| Psn::new(attr.sq_psn & 0xff_ffff)),
        mtu: if has(mask::PATH_MTU) { Some(mtu(attr.path_mtu)?.octets()) } else { None },
        timeout: has(mask::TIMEOUT).then_some(timeout),
        retry: has(mask::RETRY_CNT).then_some(attr.retry_cnt),
        rnr_retry: has(mask::RNR_RETRY).then_some(attr.rnr_retry),
        min_rnr_timer: has(mask::MIN_RNR_TIMER).then(|| roci_wire::rnr_delay(attr.min_rnr_timer)),
        max_rd_atomic: reads(mask::MAX_QP_RD_ATOMIC, attr.max_rd_atomic)?,
        max_dest_rd_atomic: reads(mask::MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic)?,
        q_key: has(mask::QKEY).then_some(attr.qkey),
        ..Change::default()
    })
}

/// For who asks later.
fn remember(known: &mut abi::QpAttr, attr: &abi::QpAttr, what: c_int) {
    macro_rules! keep {
        ($($bit:ident: $($field:ident),+;)*) => {
            $(if what & mask::$bit != 0 { $(known.$field = attr.$field;)+ })*
        };
    }
    keep! {
        EN_SQD_ASYNC_NOTIFY: en_sqd_async_notify;
        ACCESS_FLAGS: qp_access_flags;
        PKEY_INDEX: pkey_index;
        PORT: port_num;
        QKEY: qkey;
        AV: ah_attr;
        PATH_MTU: path_mtu;
        TIMEOUT: timeout;
        RETRY_CNT: retry_cnt;
        RNR_RETRY: rnr_retry;
        RQ_PSN: rq_psn;
        SQ_PSN: sq_psn;
        MAX_QP_RD_ATOMIC: max_rd_atomic;
        MIN_RNR_TIMER: min_rnr_timer;
        MAX_DEST_RD_ATOMIC: max_dest_rd_atomic;
        DEST_QPN: dest_qp_num;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp(
    qp: *mut abi::Qp,
    attr: *mut abi::QpAttr,
    _what: c_int,
    init: *mut abi::QpInitAttr,
) -> c_int {
    let it = QueuePair::of(qp);
    let mut told = *it.attr.lock().unwrap_or_else(PoisonError::into_inner);
    let now = current(it, (*qp).state);
    (*qp).state = now;
    (told.qp_state, told.cur_qp_state, told.cap) = (now, now, it.init.cap);
    if let Ok(status) = it.qp.query() {
        told.sq_draining = status.sq_draining.into();
        (told.sq_psn, told.rq_psn) = (status.send_psn.get(), status.receive_psn.get());
    }
    attr.write(told);
    init.write(it.init);
    0
}
