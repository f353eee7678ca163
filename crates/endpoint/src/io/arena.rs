//! Octets that stay where they are: headers and copied payload of a batch, of which addresses are given out while more
//! is written behind them.

use std::ptr::NonNull;

/// A piece of memory that fills from its beginning.
///
/// There is never a reference to all of it, only to the part that is being written; so an address that was given out for
/// an earlier part stays good until [`clear`](Self::clear). This is what a slice could not promise: to index it mutably
/// claims the whole of it.
pub(crate) struct Arena {
    start: NonNull<u8>,
    length: usize,
    used: usize,
}

// SAFETY: the memory belongs to this value alone, and nothing about it belongs to a thread.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for Arena {}

impl Arena {
    /// One for `length` octets.
    pub(crate) fn new(length: usize) -> Self {
        let octets: &mut [u8] = Box::leak(vec![0; length].into_boxed_slice());
        Self { start: NonNull::from(octets).cast(), length, used: 0 }
    }

    /// Octets written.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Empties it: addresses that were given out are not to be followed any more.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Appends `length` octets, which `fill` writes; gives their address, and what `fill` gave.
    ///
    /// # Panics
    /// When there is no room, which the caller has asked for.
    #[inline]
    pub(crate) fn append<T>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> T) -> (*mut u8, T) {
        assert!(length <= self.length - self.used, "the batch has room");
        // SAFETY: the part lies within the memory (asserted above), was initialised when it was made, and is referred to by
        // nobody: what was given out lies before it, or was given out before `clear`.
        #[expect(unsafe_code, reason = "see above")]
        let (address, part) = unsafe {
            let address = self.start.as_ptr().add(self.used);
            (address, std::slice::from_raw_parts_mut(address, length))
        };
        let filled = fill(part);
        self.used += length;
        (address, filled)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let octets = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.length);
        // SAFETY: it came from a boxed slice of this length; whoever was given an address has cleared before.
        #[expect(unsafe_code, reason = "see above")]
        drop(unsafe { Box::from_raw(octets) });
    }
}
