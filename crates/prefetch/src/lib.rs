//! Safe functions that bring memory nearer before it is needed: hints to the processor about cache lines, and to the
//! system about pages.
//!
//! At a few thousand hosts a simulated packet, its port and its queue pair are seldom in a cache when their
//! event comes up. Asking for them a few events ahead is the largest single gain the event loop knows. But where the
//! memory lies on thousands of small pages, each such fetch begins with a walk through the page tables, which the
//! prefetch itself waits for: at 4096 hosts a fifth of the time was spent in the one instruction that asks for packets.
#![no_std]

extern crate alloc;

use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// An empty vector with room for `capacity` elements, on huge pages where the system has them and the room is large
/// enough. Filling it up to its capacity keeps it there; growing it beyond moves it elsewhere.
///
/// A hint without effect on results: where there are no huge pages it is [`Vec::with_capacity`].
#[must_use]
pub fn with_huge_pages<T>(capacity: usize) -> Vec<T> {
    let mut memory = Vec::with_capacity(capacity);
    advise_huge_pages(memory.spare_capacity_mut());
    memory
}

/// Makes room for one more element in a vector from [`with_huge_pages`]: a full one moves to twice its room, on huge
/// pages again. An empty one gets half a mebibyte at once, of which the system gives only what is touched.
#[inline]
pub fn reserve_with_huge_pages<T>(memory: &mut Vec<T>) {
    if memory.len() == memory.capacity() {
        double(memory);
    }
}

#[cold]
fn double<T>(memory: &mut Vec<T>) {
    // Moving has the system give new pages for the old ones: half of the page faults of an incast of 26 ms, which took 4 % of
    // its time.
    let first = FIRST_ROOM / size_of::<T>().max(1);
    let mut larger = with_huge_pages((memory.capacity() * 2).max(first));
    larger.append(memory);
    *memory = larger;
}

/// Octets of the first room of a vector that grows.
const FIRST_ROOM: usize = 1 << 19;

/// The size of a huge page on x86-64, and on others with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// Tells the system to put `memory` on huge pages, as far as whole ones fit into it.
fn advise_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let begin = memory.as_mut_ptr().cast::<u8>();
    let skipped = begin.align_offset(HUGE_PAGE);
    let octets = size_of_val(memory).saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
    if octets > 0 {
        advise(begin.wrapping_add(skipped), octets);
    }
}

#[allow(unsafe_code, reason = "advice in general may discard memory; this one does not")]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "there is no such advice"))]
fn advise(begin: *mut u8, octets: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: MADV_HUGEPAGE changes neither what is mapped nor what it holds, only by which pages (madvise(2)). The range
    // is whole pages of memory that the caller owns. Where the system refuses, everything is as it was.
    let _ = unsafe { rustix::mm::madvise(begin.cast(), octets, rustix::mm::Advice::LinuxHugepage) };
}

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
    fn a_vector_on_huge_pages_is_a_vector() {
        let mut values = with_huge_pages(1 << 20);
        for n in 0..(3u64 << 20) {
            reserve_with_huge_pages(&mut values);
            values.push(n);
        }
        assert!((0..3u64 << 20).eq(values));
        assert_eq!(with_huge_pages::<u8>(3).capacity(), 3);
        assert!(with_huge_pages::<()>(3).is_empty());
    }

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
