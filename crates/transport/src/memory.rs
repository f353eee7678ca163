//! Memory regions, their keys, and who may touch what (IBTA Vol 1 §10.6).
//!
//! The engine owns the table, the worlds own the octets: a request that the table refuses never reaches memory.

use crate::config::Pd;
use crate::window::{BindError, Binding, WindowKind, Windows, index_of};
use alloc::vec::Vec;
use core::ops::BitOr;
use roci_units::Qpn;

/// Rights to a memory region besides local reading, which every region grants (IBTA Vol 1 §10.6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access(pub u8);

impl Access {
    /// Local reading only.
    pub const NONE: Self = Self(0);
    /// Our own requests and receives may write.
    pub const LOCAL_WRITE: Self = Self(1);
    /// The peer may READ.
    pub const REMOTE_READ: Self = Self(2);
    /// The peer may WRITE; only together with local writing.
    pub const REMOTE_WRITE: Self = Self(4);
    /// The peer may use atomics; only together with local writing.
    pub const REMOTE_ATOMIC: Self = Self(8);
    /// All rights to octets.
    pub const ALL: Self = Self(15);
    /// Our own requests may bind memory windows to it.
    pub const BIND: Self = Self(16);

    /// Whether all of `other`'s rights are granted.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These rights and `other`'s, as `|` gives them, where constants are made too.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// That what peers may change we may ourselves (IBTA Vol 1 §10.6.3).
    fn judge(self) -> Result<(), RegisterError> {
        let writes = self.has(Self::REMOTE_WRITE) || self.has(Self::REMOTE_ATOMIC);
        if writes && !self.has(Self::LOCAL_WRITE) { Err(RegisterError::Rights) } else { Ok(()) }
    }

    const fn is_remote(self) -> bool {
        self.0 & (Self::REMOTE_READ.0 | Self::REMOTE_WRITE.0 | Self::REMOTE_ATOMIC.0) != 0
    }
}

impl BitOr for Access {
    type Output = Self;

    /// These rights and `other`'s.
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// Why an access was refused. A responder answers all of them alike, with a NAK for a remote access error; the
/// difference is for counters and for the local side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessError {
    /// No region has this key, or no longer.
    UnknownKey,
    /// The key was invalidated.
    Invalidated,
    /// The region belongs to another protection domain.
    ProtectionDomain,
    /// Another queue pair bound the window.
    QueuePair,
    /// The region does not grant this right.
    Rights,
    /// Not all octets lie within the region.
    Bounds,
}

/// Why a region was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterError {
    /// It has no octets.
    Empty,
    /// It runs past the end of the address space.
    Bounds,
    /// Remote writing or atomics without local writing (IBTA Vol 1 §10.6.3).
    Rights,
    /// There are [`Regions::MAX`] regions.
    Full,
    /// No region has the key under which one was to be another.
    Unknown,
}

/// The memory regions of one engine.
///
/// A region has one key, local and remote. Keys are a seeded permutation of place and generation: who does not know
/// the seed sees numbers without order, and guessing one is a draw from 2³². It is a scrambler, not a cipher; what
/// protects a region are the checks behind it. A key that was given back fits again only after the same place has
/// been registered 4096 times more, and places are used again in the order in which they became free.
#[derive(Clone, Debug)]
pub struct Regions {
    regions: Vec<Region>,
    /// The free places, linked by `next_free`, oldest first.
    oldest_free: u32,
    newest_free: u32,
    scramble: Scramble,
    windows: Windows,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    /// The last octet: inclusive, so that a region may hold the whole address space.
    last: u64,
    pd: Pd,
    next_free: u32,
    generation: u16,
    access: Access,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Valid,
    Invalidated,
}

const NIL: u32 = u32::MAX;
const GENERATION_BITS: u32 = 12;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

impl Regions {
    /// The most regions at once.
    pub const MAX: u32 = 1 << (u32::BITS - GENERATION_BITS);

    /// No regions. The `seed` decides the keys: the run's in a simulation, entropy in the real world.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (scramble, windows) = (Scramble::new(seed), Windows::default());
        Self { regions: Vec::new(), oldest_free: NIL, newest_free: NIL, scramble, windows }
    }

    /// Registers `length` octets from `address` and gives their key, local and remote, which is never zero.
    ///
    /// # Errors
    /// [`RegisterError`] says what is wrong; nothing has changed then.
    pub fn register(
        &mut self,
        pd: Pd,
        address: u64,
        length: u64,
        access: Access,
    ) -> Result<u32, RegisterError> {
        self.insert(pd, address, last_of(address, length)?, access)
    }

    /// Registers the whole address space: for worlds in which any address will do.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_everything(&mut self, pd: Pd, access: Access) -> Result<u32, RegisterError> {
        self.insert(pd, 0, u64::MAX, access)
    }

    /// Ends a region; its key fits no longer.
    ///
    /// # Errors
    /// [`AccessError::UnknownKey`].
    pub fn deregister(&mut self, key: u32) -> Result<(), AccessError> {
        let place = self.place(key).ok_or(AccessError::UnknownKey)?;
        let region = &mut self.regions[place as usize];
        (region.state, region.next_free) = (State::Free, NIL);
        match self.regions.get_mut(self.newest_free as usize) {
            Some(newest) => newest.next_free = place,
            None => self.oldest_free = place,
        }
        self.newest_free = place;
        if !self.windows.is_empty() {
            self.windows.end_of_region(key);
        }
        Ok(())
    }

    /// Has a region be another one under the same key: of another domain, of other octets, with other rights, and valid. Windows that are
    /// bound to it are bound to nothing.
    ///
    /// # Errors
    /// As [`register`](Self::register), and [`RegisterError::Unknown`]; nothing has changed then.
    pub fn reregister(
        &mut self,
        key: u32,
        pd: Pd,
        address: u64,
        length: u64,
        access: Access,
    ) -> Result<(), RegisterError> {
        let last = last_of(address, length)?;
        access.judge()?;
        let place = self.place(key).ok_or(RegisterError::Unknown)?;
        let region = &mut self.regions[place as usize];
        *region = Region { start: address, last, pd, access, state: State::Valid, ..*region };
        self.windows.end_of_region(key);
        Ok(())
    }

    /// Invalidates the key of a region that a peer may access, as SEND with invalidate asks for (IBTA Vol 1 §9.4.1).
    /// The region stays registered, to no use, until it is deregistered.
    ///
    /// # Errors
    /// When the key does not fit, is invalid already, belongs to another domain or to a region without remote rights.
    pub fn invalidate(&mut self, pd: Pd, key: u32) -> Result<(), AccessError> {
        let place = self.place(key).ok_or(AccessError::UnknownKey)?;
        let region = &mut self.regions[place as usize];
        region.admits(pd)?;
        if !region.access.is_remote() {
            return Err(AccessError::Rights);
        }
        region.state = State::Invalidated;
        Ok(())
    }

    /// Whether a request of domain `pd` may touch `length` octets from `address` under `key`, for which it needs the
    /// right `needs` ([`Access::NONE`] to read locally).
    ///
    /// An access of no octets touches nothing: its key and address are not looked at (IBTA Vol 1 §9.4 for
    /// remote, §10.6.3 for local ones).
    ///
    /// # Errors
    /// [`AccessError`] says which check failed, in the order of the checks.
    #[inline]
    pub fn check(
        &self,
        pd: Pd,
        key: u32,
        address: u64,
        length: u64,
        needs: Access,
    ) -> Result<(), AccessError> {
        let Some(beyond_first) = length.checked_sub(1) else { return Ok(()) };
        let place = self.place(key).ok_or(AccessError::UnknownKey)?;
        let region = &self.regions[place as usize];
        region.admits(pd)?;
        if !region.access.has(needs) {
            return Err(AccessError::Rights);
        }
        let inside =
            address >= region.start && address <= region.last && beyond_first <= region.last - address;
        if inside { Ok(()) } else { Err(AccessError::Bounds) }
    }

    /// The same for a peer of queue pair `qpn`, under the key of a region or of a window. Who has no windows pays nothing for them.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[inline]
    pub fn check_for(
        &self,
        (pd, qpn): (Pd, Qpn),
        key: u32,
        address: u64,
        length: u64,
        needs: Access,
    ) -> Result<(), AccessError> {
        let checked = self.check(pd, key, address, length, needs);
        if checked != Err(AccessError::UnknownKey) || self.windows.is_empty() {
            return checked;
        }
        self.check_window((pd, qpn), key, address, length - 1, needs)
    }

    #[cold]
    fn check_window(
        &self,
        asks: (Pd, Qpn),
        key: u32,
        address: u64,
        beyond_first: u64,
        needs: Access,
    ) -> Result<(), AccessError> {
        let region = self.windows.check(asks, key, address, beyond_first, needs)?;
        let place = self.place(region).ok_or(AccessError::UnknownKey)?;
        self.regions[place as usize].admits(asks.0)
    }

    /// Makes a memory window, bound to nothing yet, and gives a key of it: the lower 8 bits are the application's to change with each
    /// binding, no other window and no region has one with the same upper 24.
    ///
    /// # Errors
    /// [`RegisterError::Full`].
    pub fn allocate_window(&mut self, pd: Pd, kind: WindowKind) -> Result<u32, RegisterError> {
        loop {
            let first = self.scramble.forward(self.windows.next()) & !0xff;
            let is_taken =
                self.windows.has(index_of(first)) || (first..=first | 0xff).any(|key| self.is_known(key));
            if first != 0 && !is_taken {
                return self.windows.insert(index_of(first), pd, kind).map(|()| first);
            }
        }
    }

    /// Ends a memory window; its key fits no longer.
    ///
    /// # Errors
    /// [`AccessError::UnknownKey`].
    pub fn deallocate_window(&mut self, key: u32) -> Result<(), AccessError> {
        self.windows.remove(key)
    }

    /// Binds a window at the wish of queue pair `qpn` of domain `pd`: from now on its new key fits, and a former one no longer.
    ///
    /// # Errors
    /// [`BindError`] says what is wrong; nothing has changed then.
    pub fn bind(&mut self, pd: Pd, qpn: Qpn, binding: &Binding) -> Result<(), BindError> {
        let region = self.place(binding.region).ok_or(AccessError::UnknownKey).and_then(|place| {
            let Region { pd, access, start, last, state, .. } = self.regions[place as usize];
            if state == State::Valid { Ok((pd, access, start, last)) } else { Err(AccessError::Invalidated) }
        });
        self.windows.bind((pd, qpn), binding, region)
    }

    /// Invalidates the key of a window of type 2 that queue pair `qpn` bound, at its own wish or its peer's.
    ///
    /// # Errors
    /// When no window has the key, or it is of type 1, not bound, or bound by another queue pair.
    pub fn invalidate_window(&mut self, pd: Pd, qpn: Qpn, key: u32) -> Result<(), AccessError> {
        self.windows.invalidate((pd, qpn), key)
    }

    /// Where a window's key leads to, or did before it was invalidated: the region's key, and what is to be added to an address.
    pub fn behind_window(&self, key: u32) -> Option<(u32, u64)> {
        self.windows.behind(key)
    }

    /// Whether a window of this key serves all queue pairs of its protection domain.
    pub fn is_shared_window(&self, key: u32) -> bool {
        self.windows.is_shared(key)
    }

    /// Whether a window is bound to the region of this key.
    pub fn has_windows(&self, region: u32) -> bool {
        self.windows.has_bound_to(region)
    }

    /// A queue pair is gone, and what it bound of type 2 is invalid.
    pub(crate) fn forget_queue_pair(&mut self, qpn: Qpn) {
        if !self.windows.is_empty() {
            self.windows.end_of_queue_pair(qpn);
        }
    }

    /// Whether a region has this key.
    fn is_known(&self, key: u32) -> bool {
        self.place(key).is_some()
    }

    fn insert(&mut self, pd: Pd, start: u64, last: u64, access: Access) -> Result<u32, RegisterError> {
        access.judge()?;
        let place = self.vacancy()?;
        let region = &mut self.regions[place as usize];
        loop {
            region.generation = region.generation.wrapping_add(1);
            let key = self.scramble.forward(plain(place, region.generation));
            if key != 0 && !self.windows.has(index_of(key)) {
                *region = Region { start, last, pd, access, state: State::Valid, ..*region };
                return Ok(key);
            }
        }
    }

    /// A free place, taken off the list.
    fn vacancy(&mut self) -> Result<u32, RegisterError> {
        if let Some(region) = self.regions.get(self.oldest_free as usize) {
            let place = self.oldest_free;
            self.oldest_free = region.next_free;
            if self.oldest_free == NIL {
                self.newest_free = NIL;
            }
            return Ok(place);
        }
        let place = u32::try_from(self.regions.len()).map_err(|_| RegisterError::Full)?;
        if place >= Self::MAX {
            return Err(RegisterError::Full);
        }
        if self.regions.is_empty() {
            // Many hosts of a simulation have one region and no more.
            self.regions.reserve_exact(1);
        }
        self.regions.push(Region {
            start: 0,
            last: 0,
            pd: Pd(0),
            next_free: NIL,
            generation: 0,
            access: Access::NONE,
            state: State::Free,
        });
        Ok(place)
    }

    /// The place of a registered region.
    #[inline]
    fn place(&self, key: u32) -> Option<u32> {
        let plain = self.scramble.backward(key);
        let place = plain >> GENERATION_BITS;
        let region = self.regions.get(place as usize)?;
        let same = u32::from(region.generation) & GENERATION_MASK == plain & GENERATION_MASK;
        (same && region.state != State::Free && key != 0).then_some(place)
    }
}

impl Region {
    /// Whether requests of domain `pd` may use it at all.
    #[inline]
    fn admits(&self, pd: Pd) -> Result<(), AccessError> {
        if self.pd != pd {
            return Err(AccessError::ProtectionDomain);
        }
        if self.state == State::Invalidated { Err(AccessError::Invalidated) } else { Ok(()) }
    }
}

/// The last of `length` octets from `address` on.
fn last_of(address: u64, length: u64) -> Result<u64, RegisterError> {
    let beyond_first = length.checked_sub(1).ok_or(RegisterError::Empty)?;
    address.checked_add(beyond_first).ok_or(RegisterError::Bounds)
}

fn plain(place: u32, generation: u16) -> u32 {
    place << GENERATION_BITS | u32::from(generation) & GENERATION_MASK
}

/// A seeded permutation of the 32-bit numbers: four Feistel rounds over SplitMix64's finaliser.
#[derive(Clone, Copy, Debug)]
struct Scramble([u64; 4]);

impl Scramble {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(core::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        }))
    }

    #[inline]
    fn forward(&self, value: u32) -> u32 {
        let (mut left, mut right) = (value >> 16, value & 0xffff);
        for key in self.0 {
            (left, right) = (right, left ^ round(key, right));
        }
        left << 16 | right
    }

    #[inline]
    fn backward(&self, value: u32) -> u32 {
        let (mut left, mut right) = (value >> 16, value & 0xffff);
        for key in self.0.into_iter().rev() {
            (left, right) = (right ^ round(key, left), left);
        }
        left << 16 | right
    }
}

/// Sixteen bits that depend on all of `key` and `half`.
#[inline]
fn round(key: u64, half: u32) -> u32 {
    (mix(key ^ u64::from(half)) >> 48) as u32
}

#[inline]
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PD: Pd = Pd(7);
    const WRITE: Access = Access::REMOTE_WRITE;
    const OPEN: Access = Access::ALL;

    #[test]
    fn an_access_inside_is_granted_and_one_octet_beyond_is_not() {
        let mut regions = Regions::new(1);
        let key = regions.register(PD, 0x1000, 0x100, OPEN).unwrap();
        assert_eq!(regions.check(PD, key, 0x1000, 0x100, WRITE), Ok(()));
        assert_eq!(regions.check(PD, key, 0x10ff, 1, WRITE), Ok(()));
        for (address, length) in
            [(0xfff, 1), (0xfff, 2), (0x1100, 1), (0x1000, 0x101), (0x10ff, 2), (0x1001, u64::MAX)]
        {
            assert_eq!(regions.check(PD, key, address, length, WRITE), Err(AccessError::Bounds));
        }
    }

    #[test]
    fn bounds_hold_at_the_end_of_the_address_space() {
        let mut regions = Regions::new(1);
        let key = regions.register(PD, u64::MAX - 9, 10, OPEN).unwrap();
        assert_eq!(regions.check(PD, key, u64::MAX, 1, WRITE), Ok(()));
        assert_eq!(regions.check(PD, key, u64::MAX, 2, WRITE), Err(AccessError::Bounds));
        assert_eq!(regions.register(PD, u64::MAX - 9, 11, OPEN), Err(RegisterError::Bounds));
        let all = regions.register_everything(PD, OPEN).unwrap();
        assert_eq!(regions.check(PD, all, 0, u64::MAX, WRITE), Ok(()));
        assert_eq!(regions.check(PD, all, u64::MAX, 1, WRITE), Ok(()));
        assert_eq!(regions.check(PD, all, 2, u64::MAX, WRITE), Err(AccessError::Bounds));
    }

    #[test]
    fn each_right_is_asked_for_by_itself() {
        let mut regions = Regions::new(1);
        let key = regions.register(PD, 0, 8, Access::REMOTE_READ).unwrap();
        assert_eq!(regions.check(PD, key, 0, 8, Access::NONE), Ok(()), "reading locally needs no right");
        assert_eq!(regions.check(PD, key, 0, 8, Access::REMOTE_READ), Ok(()));
        for needs in [Access::LOCAL_WRITE, Access::REMOTE_WRITE, Access::REMOTE_ATOMIC] {
            assert_eq!(regions.check(PD, key, 0, 8, needs), Err(AccessError::Rights));
        }
        for remote in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC] {
            assert_eq!(regions.register(PD, 0, 8, remote), Err(RegisterError::Rights));
            assert!(regions.register(PD, 0, 8, remote | Access::LOCAL_WRITE).is_ok());
        }
    }

    #[test]
    fn another_domain_is_refused() {
        let mut regions = Regions::new(1);
        let key = regions.register(PD, 0, 8, OPEN).unwrap();
        assert_eq!(regions.check(Pd(8), key, 0, 8, WRITE), Err(AccessError::ProtectionDomain));
        assert_eq!(regions.invalidate(Pd(8), key), Err(AccessError::ProtectionDomain));
    }

    #[test]
    fn an_access_of_no_octets_needs_no_key_and_a_region_of_none_is_refused() {
        let mut regions = Regions::new(1);
        assert_eq!(regions.check(PD, 0xdead_beef, 1, 0, WRITE), Ok(()));
        assert_eq!(regions.register(PD, 1, 0, OPEN), Err(RegisterError::Empty));
    }

    #[test]
    fn an_invalidated_key_fails_until_its_region_is_registered_anew() {
        let mut regions = Regions::new(1);
        let key = regions.register(PD, 0, 8, OPEN).unwrap();
        assert_eq!(regions.invalidate(PD, key), Ok(()));
        assert_eq!(regions.check(PD, key, 0, 8, WRITE), Err(AccessError::Invalidated));
        assert_eq!(regions.invalidate(PD, key), Err(AccessError::Invalidated));
        assert_eq!(regions.deregister(key), Ok(()));
        let private = regions.register(PD, 0, 8, Access::LOCAL_WRITE).unwrap();
        assert_eq!(regions.invalidate(PD, private), Err(AccessError::Rights));
        assert_eq!(regions.check(PD, key, 0, 8, WRITE), Err(AccessError::UnknownKey));
    }

    #[test]
    fn a_region_that_becomes_another_keeps_its_key_and_one_that_cannot_is_as_it_was() {
        let mut regions = Regions::new(1);
        let key = regions.register(PD, 0x1000, 0x100, Access::REMOTE_READ).unwrap();
        for (address, length, access, error) in [
            (0, 0, OPEN, RegisterError::Empty),
            (u64::MAX, 2, OPEN, RegisterError::Bounds),
            (0, 1, WRITE, RegisterError::Rights),
        ] {
            assert_eq!(regions.reregister(key, PD, address, length, access), Err(error));
        }
        assert_eq!(regions.check(PD, key, 0x10ff, 1, Access::REMOTE_READ), Ok(()));
        regions.invalidate(PD, key).unwrap();
        assert_eq!(regions.reregister(key, Pd(8), 0x5000, 8, OPEN), Ok(()));
        assert_eq!(regions.check(Pd(8), key, 0x5000, 8, WRITE), Ok(()));
        assert_eq!(regions.check(PD, key, 0x5000, 8, WRITE), Err(AccessError::ProtectionDomain));
        assert_eq!(regions.check(Pd(8), key, 0x1000, 8, WRITE), Err(AccessError::Bounds));
        regions.deregister(key).unwrap();
        assert_eq!(regions.reregister(key, PD, 0, 8, OPEN), Err(RegisterError::Unknown));
    }

    #[test]
    fn a_stale_key_fails_for_4095_registrations_of_its_place() {
        let mut regions = Regions::new(1);
        let stale = regions.register(PD, 0, 8, OPEN).unwrap();
        regions.deregister(stale).unwrap();
        for _ in 0..GENERATION_MASK - 1 {
            let key = regions.register(PD, 0, 8, OPEN).unwrap();
            assert_ne!(key, stale);
            assert_eq!(regions.check(PD, stale, 0, 8, WRITE), Err(AccessError::UnknownKey));
            assert_eq!(regions.deregister(stale), Err(AccessError::UnknownKey));
            regions.deregister(key).unwrap();
        }
        assert_eq!(regions.regions.len(), 1, "the place is used again");
    }

    #[test]
    fn free_places_are_used_again_oldest_first() {
        let mut regions = Regions::new(1);
        let keys: [u32; 3] = core::array::from_fn(|_| regions.register(PD, 0, 8, OPEN).unwrap());
        for key in [keys[1], keys[0]] {
            regions.deregister(key).unwrap();
        }
        let again: [u32; 3] = core::array::from_fn(|_| regions.register(PD, 0, 8, OPEN).unwrap());
        assert_eq!(again.map(|key| regions.place(key).unwrap()), [1, 0, 3]);
    }

    #[test]
    fn the_table_has_an_end() {
        let mut regions = Regions::new(3);
        for _ in 0..Regions::MAX {
            assert_ne!(regions.register(PD, 0, 1, OPEN), Ok(0));
        }
        assert_eq!(regions.register(PD, 0, 1, OPEN), Err(RegisterError::Full));
    }

    proptest! {
        #[test]
        fn the_scramble_is_undone(seed: u64, value: u32) {
            let scramble = Scramble::new(seed);
            prop_assert_eq!(scramble.backward(scramble.forward(value)), value);
        }

        #[test]
        fn a_guessed_key_opens_nothing(seed: u64, guess: u32) {
            let mut regions = Regions::new(seed);
            let keys: [u32; 16] = core::array::from_fn(|_| regions.register_everything(PD, OPEN).unwrap());
            prop_assume!(!keys.contains(&guess));
            prop_assert_eq!(regions.check(PD, guess, 0, 1, WRITE), Err(AccessError::UnknownKey));
        }

        #[test]
        fn bounds_are_those_of_wide_arithmetic(
            start: u64, size: u64, early in -2i64..=2, late in -2i128..=2, length in 1u64.., near: bool,
        ) {
            let mut regions = Regions::new(1);
            let size = 1 + size % (u64::MAX - start).max(1);
            let key = regions.register(PD, start, size, OPEN).unwrap();
            let (from, to) = (i128::from(start), i128::from(start) + i128::from(size));
            // Most faults are at the edges: half of the ranges begin and end there.
            let address = start.wrapping_add_signed(early);
            let to_edge = u64::try_from(to + late - i128::from(address)).unwrap_or(0).max(1);
            let length = if near { to_edge } else { length };
            let (a, b) = (i128::from(address), i128::from(address) + i128::from(length));
            prop_assert_eq!(regions.check(PD, key, address, length, WRITE).is_ok(), from <= a && b <= to);
        }
    }
}
