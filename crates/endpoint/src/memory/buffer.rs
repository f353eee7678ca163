//! Parts of regions that belong to one holder at a time.
#![expect(unsafe_code, reason = "a buffer is the right to touch its octets")]

use super::region::{Handle, LentError, range_in};
use roci_transport::{Access, Pd};
use std::ops::{Range, RangeBounds};
use std::sync::Arc;

/// A part of a memory region that nobody else can touch by local means. Posting moves it into the work request; the
/// completion brings it back.
#[derive(Debug)]
pub struct Buffer {
    lease: Lease,
    /// How much of it takes part, from its start.
    length: usize,
}

/// A part of a memory region that nobody writes by local means: it can be sent, several times at once.
#[derive(Clone, Debug)]
pub struct Slice {
    lease: Arc<Lease>,
    range: Range<usize>,
}

#[derive(Debug)]
struct Lease {
    handle: Arc<Handle>,
    range: Range<usize>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Nothing is lent of memory that is not ours.
        if self.handle.memory().is_ours {
            self.handle.give_back(self.range.start);
        }
    }
}

impl Buffer {
    /// The part has been lent to the caller.
    pub(crate) fn new(handle: Arc<Handle>, range: Range<usize>) -> Self {
        Self { length: range.len(), lease: Lease { handle, range } }
    }

    /// Octets that take part.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether its memory is there, which a [`ForeignRegion`](super::ForeignRegion) may have taken away.
    pub fn is_there(&self) -> bool {
        self.lease.range.end <= self.lease.handle.memory().len()
    }

    /// Octets that it could have.
    pub fn capacity(&self) -> usize {
        self.lease.range.len()
    }

    /// Lets only the first `length` octets take part, or more of them again, up to its capacity.
    pub fn set_len(&mut self, length: usize) {
        self.length = length.min(self.capacity());
    }

    /// Where it begins in its region.
    pub fn offset(&self) -> usize {
        self.lease.range.start
    }

    /// The octets, where no peer can reach the region; `None` where one can.
    pub fn as_slice(&self) -> Option<&[u8]> {
        let memory = self.lease.handle.memory();
        // SAFETY: no peer reaches them, and we are their only holder.
        memory.may_be_referred_to(&self.span()).then(|| unsafe { memory.octets(self.span()) })
    }

    /// The octets, where no peer can reach the region; `None` where one can.
    pub fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        let memory = self.lease.handle.memory();
        // SAFETY: no peer reaches them, and we are their only holder.
        memory.may_be_referred_to(&self.span()).then(|| unsafe { memory.octets_mut(self.span()) })
    }

    /// Copies octets from `offset` of the buffer on.
    ///
    /// # Errors
    /// [`LentError::Bounds`].
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), LentError> {
        let at = within(self.length, offset, to.len())?;
        // SAFETY: we are the only holder.
        unsafe { self.lease.handle.memory().copy_out(self.lease.range.start + at, to) };
        Ok(())
    }

    /// Copies `octets` to `offset` of the buffer.
    ///
    /// # Errors
    /// [`LentError::Bounds`].
    pub fn write(&mut self, offset: usize, octets: &[u8]) -> Result<(), LentError> {
        let at = within(self.length, offset, octets.len())?;
        // SAFETY: we are the only holder.
        unsafe { self.lease.handle.memory().copy_in(self.lease.range.start + at, octets) };
        Ok(())
    }

    /// A copy of the octets.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut octets = vec![0; self.length];
        // SAFETY: we are the only holder.
        unsafe { self.lease.handle.memory().copy_out(self.lease.range.start, &mut octets) };
        octets
    }

    /// Makes it readable only, so that it can be sent several times at once.
    pub fn freeze(self) -> Slice {
        let range = self.span();
        Slice { range, lease: Arc::new(self.lease) }
    }

    fn span(&self) -> Range<usize> {
        self.lease.range.start..self.lease.range.start + self.length
    }

    pub(crate) fn pd(&self) -> Pd {
        self.lease.handle.pd
    }

    /// Places what has arrived; what does not fit is left out, as the engine has checked that all does.
    #[inline]
    pub(crate) fn place(&self, offset: usize, octets: &[u8]) {
        let offset = offset.min(self.length);
        let length = octets.len().min(self.length - offset);
        // SAFETY: it was lent to the transport, which is its only holder.
        unsafe { self.lease.handle.memory().copy_in(self.lease.range.start + offset, &octets[..length]) };
    }

    pub(crate) fn is_of(&self, handle: &Handle) -> bool {
        std::ptr::eq(&raw const *self.lease.handle, handle)
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.lease.handle.memory().access.has(Access::LOCAL_WRITE)
    }
}

impl Slice {
    /// Octets.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The octets, where no peer can reach the region; `None` where one can.
    pub fn as_slice(&self) -> Option<&[u8]> {
        let memory = self.lease.handle.memory();
        // SAFETY: no peer reaches them, and holders of slices only read.
        memory.may_be_referred_to(&self.range).then(|| unsafe { memory.octets(self.range.clone()) })
    }

    /// A part of it, which may be empty, and overlap others: nothing is lent by it that the whole has not been lent.
    ///
    /// # Errors
    /// [`LentError::Bounds`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self, LentError> {
        let range = range_in(&range, self.len());
        if range.start > range.end || range.end > self.len() {
            return Err(LentError::Bounds(range.start, range.end));
        }
        let start = self.range.start;
        Ok(Self { lease: self.lease.clone(), range: start + range.start..start + range.end })
    }

    /// A copy of the octets.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut octets = vec![0; self.len()];
        // SAFETY: holders of slices only read.
        unsafe { self.lease.handle.memory().copy_out(self.range.start, &mut octets) };
        octets
    }

    /// The buffer that it was, all of it, where nobody else holds a part.
    ///
    /// # Errors
    /// The slice, where someone does.
    pub fn try_into_buffer(self) -> Result<Buffer, Self> {
        let Self { lease, range } = self;
        match Arc::try_unwrap(lease) {
            Ok(lease) => Ok(Buffer { length: lease.range.len(), lease }),
            Err(lease) => Err(Self { lease, range }),
        }
    }

    pub(crate) fn is_of(&self, handle: &Handle) -> bool {
        std::ptr::eq(&raw const *self.lease.handle, handle)
    }

    /// Copies octets for sending; zeros where there are none.
    pub(crate) fn gather(&self, offset: usize, to: &mut [u8]) {
        let offset = offset.min(self.len());
        let (there, beyond) = to.split_at_mut(to.len().min(self.len() - offset));
        // SAFETY: holders of slices only read.
        unsafe { self.lease.handle.memory().copy_out(self.range.start + offset, there) };
        beyond.fill(0);
    }

    pub(crate) fn pd(&self) -> Pd {
        self.lease.handle.pd
    }
}

impl From<Buffer> for Slice {
    fn from(buffer: Buffer) -> Self {
        buffer.freeze()
    }
}

fn within(length: usize, offset: usize, wanted: usize) -> Result<usize, LentError> {
    let end = offset.saturating_add(wanted);
    if end > length { Err(LentError::Bounds(offset, end)) } else { Ok(offset) }
}
