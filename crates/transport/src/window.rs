//! Memory windows: keys to parts of regions, which requests give and take away (IBTA Vol 1 §10.6.7).

use crate::config::Pd;
use crate::engine::Engine;
use crate::memory::{Access, AccessError, Regions, RegisterError};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use roci_units::Qpn;

/// Which keys a window has, and whom they serve (IBTA Vol 1 §10.6.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// Type 1: it serves all queue pairs of its protection domain, and is bound anew or to nothing at any time.
    Type1,
    /// Type 2B: it serves the queue pair that bound it, until that or its peer has invalidated the key.
    Type2,
}

/// What a window is to be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The window's key from now on: the upper 24 bits are its own, the lower 8 the application's to choose.
    pub key: u32,
    /// The key of the region.
    pub region: u32,
    /// The first octet, by the region's addresses.
    pub address: u64,
    /// How many octets; none unbinds a window of type 1.
    pub length: u64,
    /// What peers may do there. Local rights have no meaning.
    pub access: Access,
    /// Whether peers name the first octet by 0, and not by its address; windows of type 2 alone may be named so (IBTA Vol 1 o10-36.2.2).
    pub is_zero_based: bool,
}

/// Why a window was not bound. A requester ends them all alike, as [`MemoryWindowBindError`](crate::Status::MemoryWindowBindError).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindError {
    /// No window has this key.
    Window,
    /// Window, region and queue pair are not of one protection domain.
    ProtectionDomain,
    /// A window of type 2 is bound: its key has to be invalidated first.
    Bound,
    /// A window of type 2 was to be bound to nothing.
    Empty,
    /// A window of type 1 was to be named from zero on.
    ZeroBased,
    /// No region has this key, or it was invalidated.
    Region,
    /// No windows may be bound to the region, or what peers may change there we may not ourselves.
    Rights,
    /// Not all octets lie within the region.
    Bounds,
}

/// The windows of one engine, by the upper 24 bits of their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(
    /// Most engines have none, and simulations have many engines.
    Option<Box<Table>>,
);

#[derive(Clone, Debug, Default)]
struct Table {
    windows: BTreeMap<u32, Window>,
    /// What the last index was made from.
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    kind: WindowKind,
    pd: Pd,
    /// What it was bound to last. It is kept when its key has been invalidated, for what arrived before that has still to be placed.
    bound: Option<Bound>,
    is_valid: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    key: u32,
    region: u32,
    start: u64,
    /// The last octet.
    last: u64,
    /// What leads from an address that a peer names to one of the region.
    shift: u64,
    access: Access,
    owner: Qpn,
}

/// Which window a key is of.
pub(crate) const fn index_of(key: u32) -> u32 {
    key >> 8
}

impl Windows {
    /// The most windows at once: so few that an index that is free is soon found.
    pub(crate) const MAX: usize = 1 << 20;

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn has(&self, index: u32) -> bool {
        self.get(index).is_some()
    }

    /// What the next index is to be made from.
    pub(crate) fn next(&mut self) -> u32 {
        let table = self.0.get_or_insert_default();
        table.last = table.last.wrapping_add(1);
        table.last
    }

    fn get(&self, index: u32) -> Option<&Window> {
        self.0.as_ref()?.windows.get(&index)
    }

    fn get_mut(&mut self, index: u32) -> Option<&mut Window> {
        self.0.as_mut()?.windows.get_mut(&index)
    }

    fn all(&self) -> impl Iterator<Item = &Window> {
        self.0.iter().flat_map(|table| table.windows.values())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Window> {
        self.0.iter_mut().flat_map(|table| table.windows.values_mut())
    }

    pub(crate) fn insert(&mut self, index: u32, pd: Pd, kind: WindowKind) -> Result<(), RegisterError> {
        let windows = &mut self.0.get_or_insert_default().windows;
        if windows.len() >= Self::MAX {
            return Err(RegisterError::Full);
        }
        windows.insert(index, Window { kind, pd, bound: None, is_valid: false });
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: u32) -> Result<(), AccessError> {
        let removed = self.0.as_mut().and_then(|table| table.windows.remove(&index_of(key)));
        removed.map(drop).ok_or(AccessError::UnknownKey)
    }

    /// Binds a window at the wish of queue pair `qpn` of domain `pd`; `region` is the domain, the rights and the octets of the region, from
    /// the first to the last, or what is wrong with its key.
    pub(crate) fn bind(
        &mut self,
        (pd, qpn): (Pd, Qpn),
        binding: &Binding,
        region: Result<(Pd, Access, u64, u64), AccessError>,
    ) -> Result<(), BindError> {
        let window = self.get_mut(index_of(binding.key)).ok_or(BindError::Window)?;
        if window.pd != pd {
            return Err(BindError::ProtectionDomain);
        }
        if window.kind == WindowKind::Type2 && window.is_valid {
            return Err(BindError::Bound);
        }
        if window.kind == WindowKind::Type1 && binding.is_zero_based {
            return Err(BindError::ZeroBased);
        }
        let Some(beyond_first) = binding.length.checked_sub(1) else {
            if window.kind == WindowKind::Type2 {
                return Err(BindError::Empty);
            }
            window.is_valid = false;
            return Ok(());
        };
        let (of, access, first, last) = region.map_err(|_| BindError::Region)?;
        if of != pd {
            return Err(BindError::ProtectionDomain);
        }
        let writes = binding.access.has(Access::REMOTE_WRITE) || binding.access.has(Access::REMOTE_ATOMIC);
        if !access.has(Access::BIND) || writes && !access.has(Access::LOCAL_WRITE) {
            return Err(BindError::Rights);
        }
        let address = binding.address;
        if address < first || address > last || beyond_first > last - address {
            return Err(BindError::Bounds);
        }
        let start = if binding.is_zero_based { 0 } else { address };
        window.bound = Some(Bound {
            key: binding.key,
            region: binding.region,
            start,
            last: start + beyond_first,
            shift: address - start,
            access: binding.access,
            owner: qpn,
        });
        window.is_valid = true;
        Ok(())
    }

    /// Whether queue pair `qpn` of domain `pd` is let in by `key`, for it or for its peer.
    fn admits(&self, (pd, qpn): (Pd, Qpn), key: u32) -> Result<(&Window, &Bound), AccessError> {
        let window = self.get(index_of(key)).ok_or(AccessError::UnknownKey)?;
        let bound = window.bound.as_ref().filter(|bound| bound.key == key).ok_or(AccessError::UnknownKey)?;
        if window.pd != pd {
            return Err(AccessError::ProtectionDomain);
        }
        if window.kind == WindowKind::Type2 && bound.owner != qpn {
            return Err(AccessError::QueuePair);
        }
        if !window.is_valid {
            return Err(AccessError::Invalidated);
        }
        Ok((window, bound))
    }

    /// As [`Regions::check`](crate::memory::Regions::check); gives the region that is behind the window, which has to be valid as well.
    pub(crate) fn check(
        &self,
        asks: (Pd, Qpn),
        key: u32,
        address: u64,
        beyond_first: u64,
        needs: Access,
    ) -> Result<u32, AccessError> {
        let (_, bound) = self.admits(asks, key)?;
        if !bound.access.has(needs) {
            return Err(AccessError::Rights);
        }
        let inside = address >= bound.start && address <= bound.last && beyond_first <= bound.last - address;
        if inside { Ok(bound.region) } else { Err(AccessError::Bounds) }
    }

    /// Invalidates the key of a window of type 2 at the wish of the queue pair that bound it, or of its peer.
    pub(crate) fn invalidate(&mut self, asks: (Pd, Qpn), key: u32) -> Result<(), AccessError> {
        if self.admits(asks, key)?.0.kind == WindowKind::Type1 {
            return Err(AccessError::Rights);
        }
        // That one and no other has the key, and peers ask for this.
        let window = self.get_mut(index_of(key)).ok_or(AccessError::UnknownKey)?;
        window.is_valid = false;
        Ok(())
    }

    /// Where the octets are that `key` leads to, or led to before it was invalidated: the key of the region, and what is to be added to an
    /// address.
    pub(crate) fn behind(&self, key: u32) -> Option<(u32, u64)> {
        let bound = self.get(index_of(key))?.bound.filter(|bound| bound.key == key)?;
        Some((bound.region, bound.shift))
    }

    /// Whether a key is of a window of type 1.
    pub(crate) fn is_shared(&self, key: u32) -> bool {
        self.get(index_of(key)).is_some_and(|window| window.kind == WindowKind::Type1)
    }

    /// Whether a window is bound to this region.
    pub(crate) fn has_bound_to(&self, region: u32) -> bool {
        self.all().any(|it| it.is_valid && it.bound.is_some_and(|bound| bound.region == region))
    }

    /// The region is gone, and another one may have its key in time.
    pub(crate) fn end_of_region(&mut self, region: u32) {
        for window in self.all_mut() {
            if window.bound.take_if(|bound| bound.region == region).is_some() {
                window.is_valid = false;
            }
        }
    }

    /// The queue pair is gone: what it had bound of type 2 serves no other that has its number.
    pub(crate) fn end_of_queue_pair(&mut self, qpn: Qpn) {
        for window in self.all_mut() {
            let is_its = window.kind == WindowKind::Type2 && window.bound.is_some_and(|it| it.owner == qpn);
            window.is_valid &= !is_its;
        }
    }
}

impl Engine {
    /// What a peer of the queue pair wants invalidated, of a region or a window.
    pub(crate) fn invalidate_for(&mut self, slot: usize, key: u32) -> Result<(), AccessError> {
        let (pd, qpn) = (self.profile(slot).pd, self.qps[slot].common.qpn);
        match self.invalidate(pd, key) {
            Err(AccessError::UnknownKey) => self.invalidate_window(pd, qpn, key),
            other => other,
        }
    }

    /// Makes a memory window, as [`Regions::allocate_window`].
    ///
    /// # Errors
    /// When there are too many.
    pub fn allocate_window(&mut self, pd: Pd, kind: WindowKind) -> Result<u32, RegisterError> {
        self.regions.allocate_window(pd, kind)
    }

    /// Ends a memory window: its key fits no longer, not even in the middle of a message.
    ///
    /// # Errors
    /// When there is none of that key.
    pub fn deallocate_window(&mut self, key: u32) -> Result<(), AccessError> {
        self.regions.deallocate_window(key)?;
        self.keys_ended = self.keys_ended.wrapping_add(1);
        Ok(())
    }

    /// Binds a memory window at the wish of queue pair `qpn` of domain `pd`. When that is done is the caller's to say, who keeps the order
    /// of its send queue.
    ///
    /// # Errors
    /// [`BindError`]; nothing has changed then.
    pub fn bind(&mut self, pd: Pd, qpn: Qpn, binding: &Binding) -> Result<(), BindError> {
        self.regions.bind(pd, qpn, binding)?;
        self.keys_ended = self.keys_ended.wrapping_add(1);
        Ok(())
    }

    /// Invalidates the key of a memory window, as [`Regions::invalidate_window`].
    ///
    /// # Errors
    /// As there.
    pub fn invalidate_window(&mut self, pd: Pd, qpn: Qpn, key: u32) -> Result<(), AccessError> {
        self.regions.invalidate_window(pd, qpn, key)?;
        self.keys_ended = self.keys_ended.wrapping_add(1);
        Ok(())
    }

    /// The regions and windows.
    pub const fn regions(&self) -> &Regions {
        &self.regions
    }
}

#[cfg(test)]
mod tests;
