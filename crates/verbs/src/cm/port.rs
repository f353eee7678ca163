//! Devices with their connection managers. They stay as long as the process.

use super::id::Own;
use super::{news, refusal};
use crate::memory::ibv_alloc_pd;
use crate::{abi, device, errno};
use libc::c_int;
use roci_endpoint::cm::ConnectionManager;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

/// How long what was said last is given to leave when the process ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the thread of a port sleeps where nothing happens.
const WHILE: Duration = Duration::from_secs(3600);

pub(crate) struct Port {
    pub(crate) address: IpAddr,
    pub(crate) context: *mut abi::Context,
    /// For ids whose program has none of its own.
    pub(crate) pd: *mut abi::Pd,
    manager: OnceLock<ConnectionManager>,
    /// Those of which the manager may have news.
    ids: Mutex<Vec<Arc<Own>>>,
}

// SAFETY: the objects behind its pointers stay, and may be used by any thread.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

static PORTS: Mutex<BTreeMap<IpAddr, &'static Port>> = Mutex::new(BTreeMap::new());

impl Port {
    /// The port at an address; `ENODEV` where no device is there.
    pub(crate) fn at(address: IpAddr) -> Result<&'static Self, c_int> {
        let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(&address) {
            return Ok(port);
        }
        let context = device::open_at(address)
            .ok_or(libc::ENODEV)?
            .map_err(|error| crate::told(errno(&error), format_args!("{address}: {error}")))?;
        // SAFETY: the context was opened here, and is never closed.
        let pd = unsafe { ibv_alloc_pd(context) };
        let port = Self { address, context, pd, manager: OnceLock::new(), ids: Mutex::default() };
        let port: &'static Self = Box::leak(Box::new(port));
        ports.insert(address, port);
        Ok(port)
    }

    /// The port by which a peer is reached: the one at the address from which the system would go there, or else the first of that
    /// family; `ENODEV` where there is none.
    pub(crate) fn toward(peer: SocketAddr) -> Result<&'static Self, c_int> {
        let source = roci_endpoint::addresses::toward(peer).map_err(|error| errno(&error))?;
        let mut devices = device::addresses();
        let fits = |address: &IpAddr| address.is_ipv4() == peer.is_ipv4();
        let at = devices.find(|address| *address == source);
        Self::at(at.or_else(|| device::addresses().find(fits)).ok_or(libc::ENODEV)?)
    }

    /// Its connection manager, which it has from now on.
    pub(crate) fn manager(&'static self) -> Result<&'static ConnectionManager, c_int> {
        static STARTS: Mutex<()> = Mutex::new(());
        let _one = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manager) = self.manager.get() {
            return Ok(manager);
        }
        // SAFETY: the context was opened here, and is never closed.
        let device = unsafe { &device::Context::of(self.context).device };
        let manager = ConnectionManager::new(device).map_err(|error| {
            let code = refusal(&error);
            crate::told(code, format_args!("{} has no RDMA-CM therefore", self.address))
        })?;
        let watched = manager.clone();
        let watching = roci_endpoint::threads::spawn("roci-rdmacm", move || self.watch(&watched));
        watching.map_err(|error| errno(&error))?;
        static ENDS: Once = Once::new();
        ENDS.call_once(|| {
            PROCESS.get_or_init(std::process::id);
            // SAFETY: the function is there as long as the process: nobody unloads this library.
            unsafe { libc::atexit(farewell) };
        });
        Ok(self.manager.get_or_init(|| manager))
    }

    pub(crate) fn attach(&self, id: &Arc<Own>) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if !ids.iter().any(|known| Arc::ptr_eq(known, id)) {
            ids.push(id.clone());
        }
    }

    fn ids(&self) -> Vec<Arc<Own>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What its thread does: looks at each id when there is news.
    fn watch(&'static self, manager: &ConnectionManager) {
        let mut seen = 0;
        loop {
            seen = manager.wait_news(seen, WHILE);
            news::look(self, &self.ids());
        }
    }
}

/// An id is gone.
pub(crate) fn detach(id: &Arc<Own>) {
    for port in ports() {
        port.ids.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| !Arc::ptr_eq(known, id));
    }
}

fn ports() -> Vec<&'static Port> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
}

/// The process that has managers: its children have copies, and no threads.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Peers hear that a process has ended, as the kernel has them hear it.
extern "C" fn farewell() {
    if PROCESS.get() != Some(&std::process::id()) {
        return;
    }
    for port in ports() {
        port.ids().iter().for_each(|id| id.say_goodbye());
        if let Some(manager) = port.manager.get() {
            manager.settle(FAREWELL);
        }
    }
}
