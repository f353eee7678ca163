//! Safe functions that ask the processor to fetch cache lines before they are needed.
//!
//! At a few thousand hosts a simulated packet, its port and its queue pair are seldom in a cache when their
//! event comes up. Asking for them a few events ahead is the largest single gain the event loop knows.
#![no_std]

/// Prefetches the cache line that `place` starts in, for reading and writing soon.
///
/// A hint without effect on results. It is a no-operation where the target offers no such instruction.
#[inline(always)]
pub fn prefetch<T: ?Sized>(place: &T) {
    fetch(core::ptr::from_ref(place).cast());
}

#[inline(always)]
#[allow(unsafe_code, reason = "the intrinsic is unsafe; it has no requirement on the pointer")]
fn fetch(pointer: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching cannot fault, whatever the pointer. SSE is part of x86-64.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(pointer.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = pointer;
}

/// Prefetches the first `LINES` cache lines of `place`, as far as it reaches.
#[inline(always)]
pub fn prefetch_lines<T, const LINES: usize>(place: &T) {
    let first = core::ptr::from_ref(place).cast::<u8>();
    for line in 0..LINES {
        if line * 64 < size_of::<T>() {
            fetch(first.wrapping_add(line * 64));
        }
    }
}

/// Prefetches `slice[index]` if there is such an element.
#[inline(always)]
pub fn prefetch_at<T>(slice: &[T], index: usize) {
    if let Some(place) = slice.get(index) {
        prefetch(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetch_changes_nothing() {
        let values = [1u64, 2, 3];
        prefetch(&values);
        prefetch_at(&values, 1);
        prefetch_at(&values, 99);
        prefetch_lines::<_, 4>(&values);
        assert_eq!(values, [1, 2, 3]);
    }
}
