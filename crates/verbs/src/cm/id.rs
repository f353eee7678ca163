//! Ids: what they are, until they go.

use super::abi::{self, MAX_RESP_RES, option, port_space};
use super::address::{Bound, read, write};
use super::channel::{self, Mail, Mailbox};
use super::port::{self, Port};
use super::{connect, done};
use crate::abi::{Pd, Qp, QpInitAttr, qp_type};
use crate::device;
use crate::queue_pair::READS;
use libc::{c_int, c_uint, c_void};
use roci_endpoint::cm::{
    ConnectRequest, Connecting, Connection, DatagramListener, DatagramRequest, Listener, Resolving,
};
use std::net::SocketAddr;
use std::ptr::null_mut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a program has of an id.
#[repr(C)]
struct Id {
    base: abi::CmId,
    own: Arc<Own>,
}

/// What an id is besides.
pub(crate) struct Own {
    state: Mutex<State>,
    /// Events that the program has and has not acknowledged.
    unacknowledged: Mutex<i32>,
    acknowledged: Condvar,
}

pub(crate) struct State {
    /// What the program has of it; null when that is gone.
    pub(crate) id: *mut abi::CmId,
    pub(crate) mail: Arc<Mailbox>,
    /// Whether the channel is its own, and what it asks for is waited for.
    is_synchronous: bool,
    pub(crate) port: Option<&'static Port>,
    pub(crate) bound: Option<Bound>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) phase: Phase,
    options: Options,
    /// Of one that listens: what a queue pair of each connection is made with.
    pub(crate) made_with: Option<(*mut Pd, QpInitAttr)>,
    /// What is told with a request or an answer to one where nothing is said then.
    pub(crate) private_data: Vec<u8>,
}

// SAFETY: its pointers are used under its lock, and to objects that any thread may use.
unsafe impl Send for State {}

/// What was set by `rdma_set_option`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) is_shared: bool,
    pub(crate) is_of_one_family: bool,
    pub(crate) ack_timeout: Option<u8>,
    /// The type of service, or traffic class, of its packets.
    pub(crate) tos: Option<u8>,
    /// Its ports are those for datagrams, which the program says when it makes the id.
    pub(crate) is_for_datagrams: bool,
}

/// How far a connection is.
pub(crate) enum Phase {
    Idle,
    Listening(Vec<(&'static Port, Listener)>),
    /// A connection of that queue pair, which has that number, or of one that is known by its number alone, was asked for.
    Asking(Connecting, Option<(*mut Qp, u32)>),
    /// It was granted; the program connects its queue pair.
    Granted(Connecting),
    /// A peer asks.
    Asked(ConnectRequest),
    /// We granted it, and the peer has not said that it knows.
    Granting(Connection),
    Connected(Connection),
    /// It is over, and the peer may ask once more for what was said last.
    TimeWait(Connection),
    /// Waits for who asks where to send datagrams.
    ListeningDatagrams(Vec<(&'static Port, DatagramListener)>),
    /// Asks where to send datagrams.
    Resolving(Resolving),
    /// A peer asks where to send datagrams.
    Queried(DatagramRequest),
    Over,
}

impl Own {
    pub(crate) unsafe fn of(id: *mut abi::CmId) -> &'static Arc<Self> {
        &(*id.cast::<Id>()).own
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.state().is_synchronous
    }

    /// More events that the program has, or fewer.
    pub(crate) fn count(&self, more: i32) {
        *self.unacknowledged.lock().unwrap_or_else(PoisonError::into_inner) += more;
        self.acknowledged.notify_all();
    }

    /// Waits until the program has acknowledged all that it has.
    fn wait(&self) {
        let mut count = self.unacknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.acknowledged.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells the peer of a connection, or of a request for one, that the process ends. Who holds the id for longer than a moment is a thread
    /// that ends with it.
    pub(crate) fn say_goodbye(&self) {
        let mut tries = 0..100;
        let mut state = loop {
            match self.state.try_lock() {
                Ok(state) => break state,
                Err(_) if tries.next().is_some() => std::thread::sleep(Duration::from_millis(1)),
                Err(_) => return,
            }
        };
        match &state.phase {
            Phase::Granting(connection) | Phase::Connected(connection) => connection.disconnect(),
            // What goes is given up or rejected.
            _ => drop(std::mem::replace(&mut state.phase, Phase::Over)),
        }
    }
}

impl State {
    /// Puts an event that has no more to say.
    pub(crate) fn tell(&self, own: &Arc<Own>, event: c_uint, status: c_int) {
        self.mail.put(Mail::new(own.clone(), self.id, event, status));
    }

    pub(crate) fn options(&self) -> Options {
        self.options
    }

    /// Binds to an address, or at any device's, and to a port, or to a free one.
    pub(crate) unsafe fn bind(&mut self, own: &Arc<Own>, address: SocketAddr) -> Result<(), c_int> {
        if self.bound.is_some() || !matches!(self.phase, Phase::Idle) {
            return Err(libc::EINVAL);
        }
        // For the kernel the loopback is any address, and programs ask by it which devices there are (libfabric): it is a device's where
        // the user has named it.
        let ip = address.ip();
        let is_any = ip.is_unspecified() || ip.is_loopback() && !device::is_named(ip);
        let port = if is_any { None } else { Some(Port::at(ip)?) };
        port.map(Port::manager).transpose()?;
        let bound = Bound::new(address, self.options)?;
        if let Some(port) = port {
            self.join(own, port);
        }
        write(&raw mut (*self.id).route.addr.src_storage, bound.address());
        self.bound = Some(bound);
        if ip.is_unspecified() {
            // Programs tell their peers at which port they will listen (qperf). From the first manager on requests are answered, and to make
            // one takes longer than a peer does to ask. Which cannot be made is told by who listens.
            for port in connect::reached(ip, self.options).filter_map(|at| Port::at(at).ok()) {
                let _ = port.manager();
            }
        }
        Ok(())
    }

    /// It is a port's from now on.
    pub(crate) unsafe fn join(&mut self, own: &Arc<Own>, port: &'static Port) {
        self.port = Some(port);
        let id = &mut *self.id;
        (id.verbs, id.pd, id.port_num) = (port.context, port.pd, 1);
        let gids = &mut id.route.addr.addr;
        (gids.sgid, gids.pkey) = (crate::device::gid_of(port.address), 0xffff);
        port.attach(own);
    }
}

/// An id with this channel.
pub(crate) unsafe fn new(
    channel: *mut abi::EventChannel,
    context: *mut c_void,
    is_synchronous: bool,
    ps: c_uint,
) -> *mut abi::CmId {
    let is_for_datagrams = ps == port_space::UDP;
    let mail = channel::mailbox(channel);
    let state = State {
        id: null_mut(),
        mail,
        is_synchronous,
        port: None,
        bound: None,
        peer: None,
        phase: Phase::Idle,
        options: Options { is_for_datagrams, ..Options::default() },
        made_with: None,
        private_data: Vec::new(),
    };
    let own = Arc::new(Own {
        state: Mutex::new(state),
        unacknowledged: Mutex::default(),
        acknowledged: Condvar::new(),
    });
    let mut base: abi::CmId = std::mem::zeroed();
    (base.channel, base.context) = (channel, context);
    (base.ps, base.qp_type) = (ps, if is_for_datagrams { qp_type::UD } else { qp_type::RC });
    let id = Box::into_raw(Box::new(Id { base, own: own.clone() })).cast();
    own.state().id = id;
    id
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_id(
    channel: *mut abi::EventChannel,
    id: *mut *mut abi::CmId,
    context: *mut c_void,
    ps: c_uint,
) -> c_int {
    if ![port_space::TCP, port_space::UDP].contains(&ps) {
        let reason = "ids are for connections (RDMA_PS_TCP) and for datagrams (RDMA_PS_UDP); there are none for multicast over IPoIB \
                      (RDMA_PS_IPOIB), and none of RDMA_PS_IB";
        return done(Err(crate::told(libc::EOPNOTSUPP, reason)));
    }
    let own = if channel.is_null() { channel::rdma_create_event_channel() } else { channel };
    if own.is_null() {
        return -1;
    }
    id.write(new(own, context, channel.is_null(), ps));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_id(id: *mut abi::CmId) -> c_int {
    let own = Own::of(id).clone();
    let (phase, mail, is_synchronous) = {
        let mut state = own.state();
        state.id = null_mut();
        state.bound = None;
        (std::mem::replace(&mut state.phase, Phase::Over), state.mail.clone(), state.is_synchronous)
    };
    // Whoever asked for the connection, or has it, hears that it is over.
    drop(phase);
    port::detach(&own);
    channel::discard(mail.withdraw(&own));
    if !(*id).event.is_null() {
        channel::rdma_ack_cm_event((*id).event);
    }
    own.wait();
    let id = Box::from_raw(id.cast::<Id>());
    if !id.base.route.path_rec.is_null() {
        drop(Box::from_raw(id.base.route.path_rec));
    }
    if is_synchronous {
        channel::rdma_destroy_event_channel(id.base.channel);
    }
    0
}

/// Waits, where that is how the id is, for the event of what was asked for.
pub(crate) unsafe fn complete(id: *mut abi::CmId) -> c_int {
    if !Own::of(id).is_synchronous() {
        return 0;
    }
    if !(*id).event.is_null() {
        channel::rdma_ack_cm_event((*id).event);
        (*id).event = null_mut();
    }
    let failed = channel::rdma_get_cm_event((*id).channel, &raw mut (*id).event);
    if failed != 0 {
        return failed;
    }
    let event = &*(*id).event;
    done(match (event.event, event.status) {
        (_, 0) => Ok(()),
        (abi::event::REJECTED, _) => Err(libc::ECONNREFUSED),
        (_, status) => Err(status.abs()),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_migrate_id(id: *mut abi::CmId, channel: *mut abi::EventChannel) -> c_int {
    let to = if channel.is_null() { channel::rdma_create_event_channel() } else { channel };
    if to.is_null() {
        return -1;
    }
    let own = Own::of(id);
    if !(*id).event.is_null() {
        channel::rdma_ack_cm_event((*id).event);
        (*id).event = null_mut();
    }
    own.wait();
    let was_synchronous = {
        let mut state = own.state();
        let mail = channel::mailbox(to);
        mail.put_all(state.mail.withdraw(own));
        state.mail = mail;
        std::mem::replace(&mut state.is_synchronous, channel.is_null())
    };
    let from = std::mem::replace(&mut (*id).channel, to);
    if was_synchronous {
        channel::rdma_destroy_event_channel(from);
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_set_option(
    id: *mut abi::CmId,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: usize,
) -> c_int {
    let mut state = Own::of(id).state();
    let octet = || (length == 1).then(|| value.cast::<u8>().read()).ok_or(libc::EINVAL);
    let number = || {
        let right = length == size_of::<c_int>();
        right.then(|| value.cast::<c_int>().read_unaligned()).ok_or(libc::EINVAL)
    };
    let options = &mut state.options;
    done(match (level, name) {
        (option::LEVEL_ID, option::ID_TOS) => octet().map(|tos| options.tos = Some(tos)),
        (option::LEVEL_ID, option::ID_REUSEADDR) => number().map(|on| options.is_shared = on != 0),
        (option::LEVEL_ID, option::ID_AFONLY) => number().map(|on| options.is_of_one_family = on != 0),
        (option::LEVEL_ID, option::ID_ACK_TIMEOUT) => octet().and_then(|exponent| {
            options.ack_timeout = Some(exponent).filter(|exponent| *exponent < 32);
            options.ack_timeout.map(drop).ok_or(libc::EINVAL)
        }),
        _ => Err(libc::EOPNOTSUPP),
    })
}

/// A port as the header's functions have it.
unsafe fn port_of(address: *const libc::sockaddr_storage) -> u16 {
    read(address.cast()).map_or(0, |address| address.port()).to_be()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_src_port(id: *mut abi::CmId) -> u16 {
    port_of(&raw const (*id).route.addr.src_storage)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_dst_port(id: *mut abi::CmId) -> u16 {
    port_of(&raw const (*id).route.addr.dst_storage)
}

/// READs and atomics that a program names; as many as there are where it says so.
pub(crate) fn reads(asked: u8) -> Result<u8, c_int> {
    match asked {
        MAX_RESP_RES => Ok(READS),
        asked if asked > READS => Err(libc::EINVAL),
        asked => Ok(asked),
    }
}
