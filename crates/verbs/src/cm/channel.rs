//! Event channels and events.

use super::abi::{self, event};
use super::done;
use super::id::{self, Own};
use crate::{device, errno, none};
use libc::{c_char, c_int, c_uint};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a program has of a channel: its descriptor is readable while an event waits, and whether it blocks is the program's to say.
#[repr(C)]
struct Channel {
    base: abi::EventChannel,
    _watch: OwnedFd,
    mail: Arc<Mailbox>,
}

/// The events that wait.
pub(crate) struct Mailbox {
    bell: OwnedFd,
    waiting: Mutex<VecDeque<Mail>>,
    /// How often something was put, for who waits in futex(2): that goes on after signals whose handlers say so (`SA_RESTART`), as a read of
    /// the kernel's channel does, and waits for descriptors do not.
    puts: AtomicU32,
}

/// An event, until it is acknowledged.
#[repr(C)]
pub(crate) struct Mail {
    base: abi::CmEvent,
    private_data: Vec<u8>,
    /// Which id does not go before: the one that listens, of a request.
    of: Arc<Own>,
}

// SAFETY: its pointers are to ids, which whoever destroys them takes from all mailboxes before.
unsafe impl Send for Mail {}

impl Mail {
    pub(crate) fn new(of: Arc<Own>, id: *mut abi::CmId, event: c_uint, status: c_int) -> Self {
        let param = abi::Param { conn: abi::ConnParam::NONE };
        let base = abi::CmEvent { id, listen_id: null_mut(), event, status, param };
        Self { base, private_data: Vec::new(), of }
    }

    /// The event tells of a connection, and what the peer's user says.
    pub(crate) fn with(mut self, conn: abi::ConnParam, private_data: &[u8]) -> Self {
        self.private_data = private_data.to_vec();
        let mut conn = conn;
        if !self.private_data.is_empty() {
            conn.private_data = self.private_data.as_ptr().cast();
            conn.private_data_len = u8::try_from(private_data.len()).unwrap_or(u8::MAX);
        }
        self.base.param.conn = conn;
        self
    }

    /// The event tells of datagrams, and what the peer's user says.
    pub(crate) fn with_datagrams(self, ud: abi::UdParam, private_data: &[u8]) -> Self {
        let mut told = self.with(abi::ConnParam::NONE, private_data);
        // SAFETY: it was written by `with`.
        let conn = unsafe { told.base.param.conn };
        let (private_data, private_data_len) = (conn.private_data, conn.private_data_len);
        told.base.param.ud = abi::UdParam { private_data, private_data_len, ..ud };
        told
    }

    /// The event is a request to who listens.
    pub(crate) fn to(mut self, listens: *mut abi::CmId) -> Self {
        self.base.listen_id = listens;
        self
    }

    fn is_request(&self) -> bool {
        self.base.event == event::CONNECT_REQUEST
    }
}

impl Mailbox {
    fn new() -> io::Result<Arc<Self>> {
        // SAFETY: it makes a descriptor that nobody else has.
        let bell = unsafe {
            let made = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if made < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(made)
        };
        Ok(Arc::new(Self { bell, waiting: Mutex::default(), puts: AtomicU32::new(0) }))
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Mail>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readable as long as something waits.
    fn ring(&self, waits: bool) {
        let mut count: u64 = 1;
        // SAFETY: eight octets from and to a number of as many.
        unsafe {
            let fd = self.bell.as_raw_fd();
            if waits {
                libc::write(fd, (&raw const count).cast(), 8);
            } else {
                libc::read(fd, (&raw mut count).cast(), 8);
            }
        }
    }

    pub(crate) fn put(&self, mail: Mail) {
        let mut waiting = self.waiting();
        waiting.push_back(mail);
        self.ring(true);
        drop(waiting);
        self.wake();
    }

    /// Tells those who wait that something was put.
    fn wake(&self) {
        self.puts.fetch_add(1, Ordering::SeqCst);
        let (place, what) = (self.puts.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
        // SAFETY: the place is there, and is only looked at.
        unsafe { libc::syscall(libc::SYS_futex, place, what, c_int::MAX) };
    }

    /// Waits until something has been put since it was `seen`.
    fn wait(&self, seen: u32) -> io::Result<()> {
        let (place, what) = (self.puts.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
        // SAFETY: the place is there, and is only looked at.
        let failed = unsafe { libc::syscall(libc::SYS_futex, place, what, seen, null::<libc::timespec>()) };
        let error = io::Error::last_os_error();
        if failed == 0 || error.raw_os_error() == Some(libc::EAGAIN) { Ok(()) } else { Err(error) }
    }

    /// The next, which its id waits for from now on.
    fn take(&self) -> Option<Mail> {
        let mut waiting = self.waiting();
        let mail = waiting.pop_front()?;
        mail.of.count(1);
        self.ring(!waiting.is_empty());
        Some(mail)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Takes those of an id.
    pub(crate) fn withdraw(&self, of: &Arc<Own>) -> Vec<Mail> {
        let mut waiting = self.waiting();
        let (theirs, others): (Vec<_>, Vec<_>) =
            waiting.drain(..).partition(|mail| Arc::ptr_eq(&mail.of, of));
        waiting.extend(others);
        self.ring(!waiting.is_empty());
        theirs
    }

    /// Puts those that another one had.
    pub(crate) fn put_all(&self, mails: Vec<Mail>) {
        let mut waiting = self.waiting();
        waiting.extend(mails);
        self.ring(!waiting.is_empty());
        drop(waiting);
        self.wake();
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Destroys what requests that nobody has taken are of.
pub(crate) unsafe fn discard(mails: Vec<Mail>) {
    for mail in mails {
        if mail.is_request() {
            id::rdma_destroy_id(mail.base.id);
        }
    }
}

/// The events of a channel that a program has.
pub(crate) unsafe fn mailbox(channel: *mut abi::EventChannel) -> Arc<Mailbox> {
    (*channel.cast::<Channel>()).mail.clone()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_event_channel() -> *mut abi::EventChannel {
    let made = Mailbox::new().and_then(|mail| device::watching(&*mail, 0).map(|watch| (mail, watch)));
    match made {
        Ok((mail, watch)) => {
            let base = abi::EventChannel { fd: watch.as_raw_fd() };
            Box::into_raw(Box::new(Channel { base, _watch: watch, mail })).cast()
        }
        Err(error) => none(errno(&error)),
    }
}

/// Channels that were destroyed last, the newest at the end.
static DESTROYED: Mutex<VecDeque<Box<Channel>>> = Mutex::new(VecDeque::new());
/// So many are kept.
const DESTROYED_MAX: usize = 8;

/// It is kept a while: the thread of a program that hears of events may come back to it after another one has destroyed it (rping), and
/// waits there then until the process ends, as one does that was there before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut abi::EventChannel) {
    let channel = Box::from_raw(channel.cast::<Channel>());
    let left = channel.mail.waiting().drain(..).collect();
    discard(left);
    let mut destroyed = DESTROYED.lock().unwrap_or_else(PoisonError::into_inner);
    destroyed.push_back(channel);
    if destroyed.len() > DESTROYED_MAX {
        destroyed.pop_front();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_cm_event(
    channel: *mut abi::EventChannel,
    event: *mut *mut abi::CmEvent,
) -> c_int {
    if channel.is_null() || event.is_null() {
        return done(Err(libc::EINVAL));
    }
    let mail = mailbox(channel);
    loop {
        let seen = mail.puts.load(Ordering::SeqCst);
        if let Some(next) = mail.take() {
            if next.is_request()
                && let Err(error) = follow(&next)
            {
                next.of.count(-1);
                id::rdma_destroy_id(next.base.id);
                return done(Err(error));
            }
            event.write(Box::into_raw(Box::new(next)).cast());
            return 0;
        }
        let waited = match device::does_block((*channel).fd) {
            Ok(false) => return done(Err(libc::EAGAIN)),
            Ok(true) => mail.wait(seen),
            Err(error) => Err(error),
        };
        if let Err(error) = waited {
            return done(Err(errno(&error)));
        }
    }
}

/// The id of a request has what who listens has by now: its context, and its channel, or one of its own where calls wait.
unsafe fn follow(request: &Mail) -> Result<(), c_int> {
    let (listens, asked) = (&*request.base.listen_id, &mut *request.base.id);
    asked.context = listens.context;
    let channel = if request.of.is_synchronous() { null_mut() } else { listens.channel };
    if channel == asked.channel || id::rdma_migrate_id(asked, channel) == 0 {
        return Ok(());
    }
    Err(errno(&io::Error::last_os_error()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_ack_cm_event(event: *mut abi::CmEvent) -> c_int {
    if event.is_null() {
        return done(Err(libc::EINVAL));
    }
    let mail = Box::from_raw(event.cast::<Mail>());
    mail.of.count(-1);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn rdma_event_str(event: c_uint) -> *const c_char {
    let text = match event {
        event::ADDR_RESOLVED => c"RDMA_CM_EVENT_ADDR_RESOLVED",
        event::ADDR_ERROR => c"RDMA_CM_EVENT_ADDR_ERROR",
        event::ROUTE_RESOLVED => c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        event::ROUTE_ERROR => c"RDMA_CM_EVENT_ROUTE_ERROR",
        event::CONNECT_REQUEST => c"RDMA_CM_EVENT_CONNECT_REQUEST",
        event::CONNECT_RESPONSE => c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        event::CONNECT_ERROR => c"RDMA_CM_EVENT_CONNECT_ERROR",
        event::UNREACHABLE => c"RDMA_CM_EVENT_UNREACHABLE",
        event::REJECTED => c"RDMA_CM_EVENT_REJECTED",
        event::ESTABLISHED => c"RDMA_CM_EVENT_ESTABLISHED",
        event::DISCONNECTED => c"RDMA_CM_EVENT_DISCONNECTED",
        11 => c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        12 => c"RDMA_CM_EVENT_MULTICAST_JOIN",
        13 => c"RDMA_CM_EVENT_MULTICAST_ERROR",
        14 => c"RDMA_CM_EVENT_ADDR_CHANGE",
        event::TIMEWAIT_EXIT => c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
        _ => c"UNKNOWN EVENT",
    };
    text.as_ptr()
}
