//! Memory windows: keys to parts of regions, which requests give and take away.

use super::foreign::ForeignRegion;
use super::region::{Handle, MemoryRegion, range_in};
use crate::device::{DeviceInner, ProtectionDomain};
use roci_transport::{Access, Binding, RegisterError, WindowKind};
use std::ops::RangeBounds;
use std::sync::Arc;

/// A memory window (IBTA Vol 1 §10.6.7): a remote key that is bound to some octets of a region by a request,
/// [`SendWr::bind`](crate::SendWr::bind), which takes no longer than a request does, while a region is registered with all shards.
///
/// One of [type 1](WindowKind::Type1) serves the peers of all queue pairs of its protection domain, and moves with each binding. One of
/// [type 2](WindowKind::Type2) serves the peer of the queue pair that bound it, until its key is invalidated: by
/// [`SendWr::invalidate_local`](crate::SendWr::invalidate_local), or by the peer with [`SendWr::invalidate`](crate::SendWr::invalidate). A
/// window that is dropped is bound to nothing from then on.
#[derive(Debug)]
pub struct MemoryWindow {
    device: Arc<DeviceInner>,
    key: u32,
    kind: WindowKind,
}

impl ProtectionDomain {
    /// Makes a memory window, which is bound to nothing yet.
    ///
    /// # Errors
    /// [`RegisterError::Full`]: there are too many.
    pub fn alloc_mw(&self, kind: WindowKind) -> Result<MemoryWindow, RegisterError> {
        let key = self.device.allocate_window(self.pd, kind)?;
        Ok(MemoryWindow { device: self.device.clone(), key, kind })
    }
}

impl MemoryWindow {
    /// A key of it, with which it has not been bound. The upper 24 bits are those of all its keys.
    pub fn rkey(&self) -> u32 {
        self.key
    }

    /// Its type.
    pub fn kind(&self) -> WindowKind {
        self.kind
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        self.device.deallocate_window(self.key);
    }
}

/// The octets that a window is to be bound to, and what peers may do there.
#[derive(Clone, Debug)]
pub struct WindowTarget {
    handle: Option<Arc<Handle>>,
    address: u64,
    length: u64,
    access: Access,
    is_zero_based: bool,
}

impl WindowTarget {
    /// A part of a region that was registered with [`Access::BIND`]; with [`Access::LOCAL_WRITE`] too where peers are to write. A range without
    /// octets is [`nothing`](Self::nothing).
    pub fn new(region: &MemoryRegion, range: impl RangeBounds<usize>, access: Access) -> Self {
        let range = range_in(&range, region.len());
        let address = region.addr().wrapping_add(range.start as u64);
        let length = range.end.saturating_sub(range.start) as u64;
        Self { handle: Some(region.handle.clone()), address, length, access, is_zero_based: false }
    }

    /// The same of memory that is not ours: `length` octets from address `address` on.
    pub fn foreign(region: &ForeignRegion, address: u64, length: u64, access: Access) -> Self {
        Self { handle: Some(region.handle.clone()), address, length, access, is_zero_based: false }
    }

    /// Nothing: a window of type 1 that is bound to it has no key that fits.
    pub fn nothing() -> Self {
        Self { handle: None, address: 0, length: 0, access: Access::NONE, is_zero_based: false }
    }

    /// Has peers name the first octet by 0, and those behind it by what follows. Windows of type 2 alone are bound so.
    #[must_use]
    pub fn zero_based(mut self) -> Self {
        self.is_zero_based = true;
        self
    }

    /// What binds `window` to it under a key with the lower 8 bits of `rkey`.
    pub(crate) fn binding(&self, window: &MemoryWindow, rkey: u32) -> Binding {
        Binding {
            key: window.key & !0xff | rkey & 0xff,
            region: self.handle.as_ref().map_or(0, |handle| handle.key),
            address: self.address,
            length: self.length,
            access: self.access,
            is_zero_based: self.is_zero_based,
        }
    }

    pub(crate) fn into_handle(self) -> Option<Arc<Handle>> {
        self.handle
    }
}
