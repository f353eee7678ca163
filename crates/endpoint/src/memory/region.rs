//! Regions of memory, registered under a key.
#![expect(unsafe_code, reason = "memory that peers and the transport reach by address")]

use super::buffer::{Buffer, Slice};
use super::lending::Lending;
use crate::device::DeviceInner;
use roci_transport::{Access, Pd, RegisterError};
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// Octets that are copied while a region is held: some microseconds' worth, far less than any peer's patience.
const PIECE: usize = 64 << 10;
/// For how many turns who copies much lets others go first, between two pieces.
const ASIDE: u32 = 200;

/// A region of memory that requests may refer to. Clones are the same region; it is deregistered when the last one and
/// the last buffer from it are gone.
#[derive(Clone, Debug)]
pub struct MemoryRegion {
    pub(crate) handle: Arc<Handle>,
}

/// Where a peer's memory lies: what it has to tell for our WRITEs, READs and atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteMemory {
    /// Virtual address there.
    pub address: u64,
    /// Its remote key.
    pub rkey: u32,
}

impl RemoteMemory {
    /// The place `octets` further on.
    #[must_use]
    pub const fn plus(self, octets: u64) -> Self {
        Self { address: self.address.wrapping_add(octets), ..self }
    }
}

/// Why memory was not registered. It comes back.
#[derive(thiserror::Error)]
#[error("{reason}")]
pub struct RegionError {
    /// What is wrong.
    pub reason: &'static str,
    /// The memory.
    pub memory: Vec<u8>,
}

speaks!(RegionError);

/// Why a part of a region cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LentError {
    /// The part does not lie within the region.
    #[error("octets {0} to {1} do not lie in the region")]
    Bounds(usize, usize),
    /// A part of a region has at least one octet: of none there is nothing to lend. Who sends nothing takes an empty
    /// [`send_inline`](crate::SendWr::send_inline) or a part of a [`Slice`], which may be empty.
    #[error(
        "octets {0} to {0} are none, and a part of a region has at least one: a request without octets needs no part of it"
    )]
    Empty(usize),
    /// Some of it is lent to a buffer or a work request.
    #[error(
        "some of octets {0} to {1} are lent: wait for the completion that brings them back, or lend them once and send clones \
         of that slice"
    )]
    Lent(usize, usize),
    /// The address of what is to be changed at once is no multiple of 8, as that of an atomic is.
    #[error("the eight octets at {0} do not lie at an address that is a multiple of 8")]
    Misaligned(usize),
}

speaks!(LentError);

/// The octets themselves. The transport holds one while the key is registered.
pub(crate) struct Memory {
    start: *mut u8,
    /// By what requests and peers name the first octet.
    address: u64,
    /// Zero once memory that is not ours has been given back: then nothing is copied any more.
    length: AtomicUsize,
    pub(super) is_ours: bool,
    /// Whether peers may reach it: then nobody has a reference, and octets are copied under the lock.
    pub(crate) is_remote: bool,
    pub(crate) access: Access,
    /// Whether somebody touches octets that a peer can reach. Held for a run of packets by a shard, or for one copy.
    busy: AtomicBool,
    /// How many wait for that. It orders nothing: who copies much looks at it to let others go first.
    waiting: AtomicU32,
}

// SAFETY: the octets belong to this value alone, or to a program that answers for them. Those that a `Buffer` or `Slice` covers are
// touched by its holder alone where no peer can reach them; all other accesses take the lock.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(memory: Vec<u8>, access: Access) -> Self {
        let octets = Box::leak(memory.into_boxed_slice());
        let start = octets.as_mut_ptr();
        Self::at(start, octets.len(), start.expose_provenance() as u64, true, access)
    }

    /// Memory that belongs to somebody else, whose first octet has this address.
    pub(super) fn foreign(start: *mut u8, length: usize, address: u64, access: Access) -> Self {
        Self::at(start, length, address, false, access)
    }

    fn at(start: *mut u8, length: usize, address: u64, is_ours: bool, access: Access) -> Self {
        // By a window peers may get rights that the region itself does not give.
        let remote = [Access::REMOTE_READ, Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::BIND];
        let is_remote = remote.into_iter().any(|right| access.has(right));
        Self {
            start,
            address,
            length: AtomicUsize::new(length),
            is_ours,
            is_remote,
            access,
            busy: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
        }
    }

    /// Nothing is copied any more by who begins after this.
    pub(super) fn revoke(&self) {
        debug_assert!(!self.is_ours);
        self.length.store(0, Ordering::SeqCst);
    }

    /// Whether references to octets in `range` may be made: no peer can reach them, and they have not been given back.
    #[inline]
    pub(super) fn may_be_referred_to(&self, range: &Range<usize>) -> bool {
        !self.is_remote && range.end <= self.len()
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Waits until nobody else touches what peers can reach, and keeps others out until [`let_go`](Self::let_go).
    ///
    /// It is given back by a plain store, and by a shard only at the end of a run: to wait for each packet's octets to
    /// reach the cache cost as much as copying them.
    #[inline]
    pub(crate) fn hold(&self) {
        if self.busy.swap(true, Ordering::Acquire) {
            self.wait_for_it();
        }
    }

    #[cold]
    fn wait_for_it(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut turns = 0;
        while self.busy.swap(true, Ordering::Acquire) {
            turns = pause(turns);
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets who waits go first, which who takes it again at once seldom does. One whose core is taken is not waited for without end.
    fn step_aside(&self) {
        let mut turns = 0;
        while turns < ASIDE && self.waiting.load(Ordering::Relaxed) > 0 && !self.busy.load(Ordering::Relaxed)
        {
            turns = pause(turns);
        }
    }

    #[inline]
    pub(crate) fn let_go(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Has `copy` copy `length` octets from `offset` on: at once where no peer can reach them, and else under the lock, piece by piece,
    /// for a shard that waits for it stands still with all its queue pairs. No piece ends within eight octets at an address that is a
    /// multiple of 8. `copy` is told where among them a piece lies.
    #[inline]
    fn in_pieces(&self, offset: usize, length: usize, mut copy: impl FnMut(Range<usize>)) {
        if !self.is_remote {
            return copy(0..length);
        }
        let mut at = 0;
        loop {
            // Counted from an address that is a multiple of 8.
            let before = self.start.addr().wrapping_add(offset).wrapping_add(at) % 8;
            let end = length.min(at + PIECE - before);
            self.hold();
            copy(at..end);
            self.let_go();
            if end == length {
                return;
            }
            at = end;
            self.step_aside();
        }
    }

    /// Copies `octets` to `offset`, as far as they fit.
    ///
    /// # Safety
    /// The caller [holds](Self::hold) it.
    #[inline]
    pub(crate) unsafe fn copy_in_held(&self, offset: usize, octets: &[u8]) {
        let length = octets.len().min(self.len().saturating_sub(offset));
        // SAFETY: within the region; exclusive by the caller's word.
        unsafe {
            self.start
                .add(if length > 0 { offset } else { 0 })
                .copy_from_nonoverlapping(octets.as_ptr(), length)
        };
    }

    /// The `length` octets from `offset` on; `None` where they are not all within.
    ///
    /// # Safety
    /// The caller [holds](Self::hold) it, as long as the reference lives.
    #[inline]
    pub(crate) unsafe fn octets_held(&self, offset: usize, length: usize) -> Option<&[u8]> {
        let is_within = offset.checked_add(length).is_some_and(|end| end <= self.len());
        // SAFETY: within the region; not written to by the caller's word.
        is_within.then(|| unsafe { std::slice::from_raw_parts(self.start.add(offset), length) })
    }

    /// Copies octets from `offset` on; zeros where there are none.
    ///
    /// # Safety
    /// The caller [holds](Self::hold) it.
    #[inline]
    pub(crate) unsafe fn copy_out_held(&self, offset: usize, to: &mut [u8]) {
        let length = to.len().min(self.len().saturating_sub(offset));
        // SAFETY: within the region; not written to by the caller's word.
        unsafe {
            self.start
                .add(if length > 0 { offset } else { 0 })
                .copy_to_nonoverlapping(to.as_mut_ptr(), length)
        };
        to[length..].fill(0);
    }

    /// Copies `octets` to `offset`, as far as they fit.
    ///
    /// # Safety
    /// Where no peer can reach the region, nobody else touches these octets meanwhile.
    #[inline]
    pub(crate) unsafe fn copy_in(&self, offset: usize, octets: &[u8]) {
        self.in_pieces(offset, octets.len(), |piece| {
            // SAFETY: exclusive by the lock or by the caller's word.
            unsafe { self.copy_in_held(offset + piece.start, &octets[piece]) };
        });
    }

    /// Copies octets from `offset` on; zeros where there are none.
    ///
    /// # Safety
    /// Where no peer can reach the region, nobody else writes these octets meanwhile.
    #[inline]
    pub(crate) unsafe fn copy_out(&self, offset: usize, to: &mut [u8]) {
        self.in_pieces(offset, to.len(), |piece| {
            // SAFETY: not written to by the lock or by the caller's word.
            unsafe { self.copy_out_held(offset + piece.start, &mut to[piece]) };
        });
    }

    /// The octets in `range`, to be read in place.
    ///
    /// # Safety
    /// No peer can reach the region, and nobody writes these octets while the reference lives.
    #[inline]
    pub(crate) unsafe fn octets(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(self.may_be_referred_to(&range) && range.start <= range.end);
        // SAFETY: within the region; the caller answers for the rest.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }

    /// The octets in `range`, to be written in place.
    ///
    /// # Safety
    /// No peer can reach the region, and nobody else touches these octets while the reference lives.
    #[expect(clippy::mut_from_ref, reason = "the caller's buffer is the exclusive right")]
    pub(crate) unsafe fn octets_mut(&self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(self.may_be_referred_to(&range) && range.start <= range.end);
        // SAFETY: within the region; the caller answers for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Replaces the eight octets at `offset` by what `change` makes of them, in one step as seen by all other accesses;
    /// gives what was there. They are in the host's order, as IBTA leaves it.
    ///
    /// # Safety
    /// The caller [holds](Self::hold) it.
    pub(crate) unsafe fn update_held(&self, offset: usize, change: impl FnOnce(u64) -> u64) -> u64 {
        let mut octets = [0; 8];
        if offset.checked_add(8).is_none_or(|end| end > self.len()) {
            return 0;
        }
        // SAFETY: within the region; exclusive by the caller's word.
        unsafe {
            let place = self.start.add(offset);
            place.copy_to_nonoverlapping(octets.as_mut_ptr(), 8);
            let original = u64::from_ne_bytes(octets);
            place.copy_from_nonoverlapping(change(original).to_ne_bytes().as_ptr(), 8);
            original
        }
    }

    fn into_vec(self) -> Vec<u8> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the octets came from a boxed slice of this length, and `drop` will not run.
        unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(this.start, this.len())) }.into_vec()
    }
}

/// Waits a little, the longer the more turns have been waited; gives how many that were with this one.
fn pause(turns: u32) -> u32 {
    if turns < 100 {
        std::hint::spin_loop()
    } else {
        std::thread::yield_now()
    }
    turns.saturating_add(1)
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_ours {
            // SAFETY: the octets came from a boxed slice of this length; nobody refers to them any more.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.len())) });
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("length", &self.len())
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// A registration, alive while the application or a work request needs it.
pub(crate) struct Handle {
    pub(crate) memory: Option<Arc<Memory>>,
    pub(crate) key: u32,
    pub(crate) pd: Pd,
    device: Arc<DeviceInner>,
    lending: Lending,
    /// The key has been taken back before this ends.
    is_revoked: AtomicBool,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("memory", &self.memory).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Handle {
    /// Registers memory; says what is wrong where that cannot be.
    pub(super) fn register(
        device: &Arc<DeviceInner>,
        pd: Pd,
        memory: &Arc<Memory>,
    ) -> Result<Arc<Self>, &'static str> {
        let key = device.register(pd, memory).map_err(reason_of)?;
        Ok(Arc::new(Self::new(device, pd, memory, key)))
    }

    fn new(device: &Arc<DeviceInner>, pd: Pd, memory: &Arc<Memory>, key: u32) -> Self {
        let (memory, device) = (Some(memory.clone()), device.clone());
        let (lending, is_revoked) = (Lending::default(), AtomicBool::new(false));
        Self { memory, key, pd, device, lending, is_revoked }
    }

    /// Has its key be that of `memory` from now on; gives the handle of that, and this one is revoked.
    pub(super) fn replace(
        &self,
        pd: Pd,
        memory: &Arc<Memory>,
        has_requests: bool,
    ) -> Result<Arc<Self>, &'static str> {
        self.device.reregister(self.key, pd, memory).map_err(reason_of)?;
        // The key is another's.
        self.is_revoked.store(true, Ordering::SeqCst);
        self.revoke(has_requests);
        Ok(Arc::new(Self::new(&self.device, pd, memory, self.key)))
    }

    /// The key fits no longer when this returns, and no shard touches the memory, which belongs to somebody else: requests that
    /// refer to it send what was there, and what they were to place there ends them with an error. `has_requests` where there may be such.
    pub(super) fn revoke(&self, has_requests: bool) {
        if has_requests {
            self.device.part_with(self);
        }
        self.memory().revoke();
        if !self.is_revoked.swap(true, Ordering::SeqCst) {
            self.device.deregister(self.key);
        }
        // Who copies holds the shard's lock, and has looked at the length before.
        self.device.settle();
    }

    /// Whether a memory window is bound to it.
    pub(super) fn has_windows(&self) -> bool {
        self.device.has_windows(self.key)
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        match &self.memory {
            Some(memory) => memory,
            None => unreachable!("only a region that is being deregistered has none"),
        }
    }

    /// Lends a part to nobody but the caller.
    pub(crate) fn lend(&self, range: &Range<usize>) -> Result<(), LentError> {
        self.judge(range)?;
        self.lending.lend(range)
    }

    pub(crate) fn give_back(&self, start: usize) {
        self.lending.give_back(start);
    }

    /// That a part lies within.
    fn judge(&self, &Range { start, end }: &Range<usize>) -> Result<(), LentError> {
        if start == end {
            return Err(LentError::Empty(start));
        }
        if start > end || end > self.memory().len() {
            return Err(LentError::Bounds(start, end));
        }
        Ok(())
    }
}

fn reason_of(error: RegisterError) -> &'static str {
    match error {
        RegisterError::Empty => "it has no octets",
        RegisterError::Bounds => "it runs past the end of the address space",
        RegisterError::Rights => "remote writing and atomics go with local writing alone",
        RegisterError::Full => "there are too many regions",
        RegisterError::Unknown => "there is no such region",
    }
}

/// The octets that `range` names of `length`; what lies beyond stays so, to be refused.
pub(super) fn range_in(range: &impl RangeBounds<usize>, length: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => length,
    };
    start..end
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.memory.is_some() && !*self.is_revoked.get_mut() {
            self.device.deregister(self.key);
        }
    }
}

impl MemoryRegion {
    pub(crate) fn register(
        device: &Arc<DeviceInner>,
        pd: Pd,
        memory: Vec<u8>,
        access: Access,
    ) -> Result<Self, RegionError> {
        let memory = Arc::new(Memory::new(memory, access));
        match Handle::register(device, pd, &memory) {
            Ok(handle) => Ok(Self { handle }),
            Err(reason) => {
                let memory = Arc::into_inner(memory).map(Memory::into_vec).unwrap_or_default();
                Err(RegionError { reason, memory })
            }
        }
    }

    /// Octets.
    pub fn len(&self) -> usize {
        self.handle.memory().len()
    }

    /// Always false: a region has at least one octet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key that a peer names to reach it; as unpredictable as the device's seed.
    pub fn rkey(&self) -> u32 {
        self.handle.key
    }

    /// The key of local requests, the same number. Buffers carry it; it is never asked for.
    pub fn lkey(&self) -> u32 {
        self.handle.key
    }

    /// The virtual address of its first octet.
    pub fn addr(&self) -> u64 {
        self.handle.memory().address()
    }

    /// The rights that it was registered with.
    pub fn access(&self) -> Access {
        self.handle.memory().access
    }

    /// What a peer has to know to reach it from its first octet on.
    pub fn remote(&self) -> RemoteMemory {
        RemoteMemory { address: self.addr(), rkey: self.rkey() }
    }

    /// Takes a part for the caller alone: to fill and send it, or to receive or READ into it. Nobody else can touch it
    /// by local means until the buffer is gone.
    ///
    /// It waits for a copy of some of it that another thread is at.
    ///
    /// # Errors
    /// [`LentError`] where the part is out of bounds, empty or lent already.
    pub fn buffer(&self, range: impl RangeBounds<usize>) -> Result<Buffer, LentError> {
        let range = range_in(&range, self.len());
        self.handle.lend(&range)?;
        Ok(Buffer::new(self.handle.clone(), range))
    }

    /// As [`buffer`](Self::buffer), to be sent only, any number of times at once.
    ///
    /// # Errors
    /// As [`buffer`](Self::buffer).
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice, LentError> {
        Ok(self.buffer(range)?.freeze())
    }

    /// Copies octets from `offset` on. Any number of threads may at once.
    ///
    /// Where no peer can reach the region, it waits for a [`write`](Self::write) of some of them that another thread is at. Where one
    /// can, what is written meanwhile, by peers or by us, may be among them in part; only eight octets at an address that is a
    /// multiple of 8 are always read at once.
    ///
    /// # Errors
    /// [`LentError`] where they are out of bounds or lent.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), LentError> {
        if to.is_empty() {
            return Ok(());
        }
        let range = offset..offset.saturating_add(to.len());
        self.handle.judge(&range)?;
        let _turn = self.handle.lending.copy(&range, true)?;
        // SAFETY: where no peer can reach them, nobody writes them during our turn: they are not lent, and writers do not share.
        unsafe { self.handle.memory().copy_out(offset, to) };
        Ok(())
    }

    /// Copies `octets` to `offset`. A peer may see some of them before others, but always all eight at an address that is a multiple
    /// of 8.
    ///
    /// Where no peer can reach the region, it waits for other threads that read or write some of those there. Where one can, threads
    /// that write to the same place at once may leave some octets of each.
    ///
    /// # Errors
    /// [`LentError`] where they are out of bounds or lent.
    pub fn write(&self, offset: usize, octets: &[u8]) -> Result<(), LentError> {
        if octets.is_empty() {
            return Ok(());
        }
        let range = offset..offset.saturating_add(octets.len());
        self.handle.judge(&range)?;
        let memory = self.handle.memory();
        // Where peers can reach them, the region's lock keeps copies apart, and a short one waits for no long one.
        let _turn = self.handle.lending.copy(&range, memory.is_remote)?;
        // SAFETY: where no peer can reach them, nobody else touches them during our turn: they are not lent, and we do not share.
        unsafe { memory.copy_in(offset, octets) };
        Ok(())
    }

    /// The eight octets at `offset` as a number in this host's order, as atomics see it.
    ///
    /// At an address that is a multiple of 8 it is a number that was there at some moment, whatever peers and other threads write
    /// meanwhile. Who looks until a peer has written something there finds what it sent before by the same queue pair as well, but for
    /// recovery programs that place what comes out of order. A thread runs the device meanwhile; with
    /// [`Progress::Caller`](crate::Progress::Caller) it is to be [made to go on](crate::Device::progress) between two looks.
    ///
    /// # Errors
    /// [`LentError`] where they are out of bounds or lent.
    pub fn load(&self, offset: usize) -> Result<u64, LentError> {
        let mut octets = [0; 8];
        self.read(offset, &mut octets)?;
        Ok(u64::from_ne_bytes(octets))
    }

    /// Replaces the eight octets at `offset` by `value`, in this host's order, all at once for peers and other threads.
    ///
    /// # Errors
    /// [`LentError`] where they are out of bounds or lent, or do not lie at an address that is a multiple of 8.
    pub fn store(&self, offset: usize, value: u64) -> Result<(), LentError> {
        self.update(offset, |_| value).map(drop)
    }

    /// Adds to the eight octets at `offset`, in one step for peers and other threads, as a peer's
    /// [`fetch_add`](crate::SendWr::fetch_add) does; gives what was there.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn fetch_add(&self, offset: usize, add: u64) -> Result<u64, LentError> {
        self.update(offset, |original| original.wrapping_add(add))
    }

    /// Replaces the eight octets at `offset` by `swap` if they equal `compare`, in one step for peers and other threads, as a peer's
    /// [`compare_swap`](crate::SendWr::compare_swap) does; gives what was there.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn compare_swap(&self, offset: usize, compare: u64, swap: u64) -> Result<u64, LentError> {
        self.update(offset, |original| if original == compare { swap } else { original })
    }

    fn update(&self, offset: usize, change: impl FnOnce(u64) -> u64) -> Result<u64, LentError> {
        let range = offset..offset.saturating_add(8);
        self.handle.judge(&range)?;
        let memory = self.handle.memory();
        if !memory.start.addr().wrapping_add(offset).is_multiple_of(8) {
            return Err(LentError::Misaligned(offset));
        }
        let _turn = self.handle.lending.copy(&range, memory.is_remote)?;
        memory.hold();
        // SAFETY: it is held. Where no peer can reach them, nobody else touches them during our turn.
        let original = unsafe { memory.update_held(offset, change) };
        memory.let_go();
        Ok(original)
    }

    /// Deregisters it and gives the memory back: from now on the key fits no longer.
    ///
    /// # Errors
    /// The region, where a buffer, a work request or a clone still needs it, or a memory window is bound to it.
    pub fn deregister(self) -> Result<Vec<u8>, Self> {
        if self.access().has(Access::BIND) && self.handle.has_windows() {
            return Err(self);
        }
        match Arc::try_unwrap(self.handle) {
            Ok(mut handle) => {
                handle.device.deregister(handle.key);
                handle.device.settle();
                let memory = handle.memory.take().unwrap_or_else(|| unreachable!("taken once"));
                let copy = |memory: Arc<Memory>| {
                    let mut octets = vec![0; memory.len()];
                    // SAFETY: no buffer refers to the region, and its key is gone.
                    unsafe { memory.copy_out(0, &mut octets) };
                    octets
                };
                Ok(Arc::try_unwrap(memory).map_or_else(copy, Memory::into_vec))
            }
            Err(handle) => Err(Self { handle }),
        }
    }
}

#[cfg(test)]
mod tests;
