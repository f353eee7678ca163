//! The memory behind the cache: a latency, and a bandwidth that whoever comes later waits for.

use roci_units::{BitsPerSec, Instant, Span};

/// What memory is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// How long a line takes to come from idle memory to a core.
    pub latency: Span,
    /// What all channels carry together.
    pub rate: BitsPerSec,
}

/// Memory, and what waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    config: MemoryConfig,
    /// When all that was asked for will have been carried.
    free: Instant,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl Memory {
    pub(crate) const fn new(config: MemoryConfig) -> Self {
        Self { config, free: Instant::ZERO, read: 0, written: 0 }
    }

    /// How long what is asked for now waits for what was asked for before.
    pub(crate) fn wait(&self, now: Instant) -> Span {
        if self.free > now { self.free.since(now) } else { Span::ZERO }
    }

    /// Octets to be read and written from now on.
    pub(crate) fn load(&mut self, now: Instant, read: u64, written: u64) {
        self.read += read;
        self.written += written;
        self.free = self.free.max(now) + self.config.rate.time_for(read + written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_later_waits_for_what_came_before() {
        let config = MemoryConfig { latency: Span::from_nanos(90), rate: BitsPerSec::from_gbps(8) };
        let mut memory = Memory::new(config);
        let at = |nanos| Instant::ZERO + Span::from_nanos(nanos);
        assert_eq!(memory.wait(at(5)), Span::ZERO);
        memory.load(at(5), 64, 36);
        assert_eq!(memory.wait(at(25)), Span::from_nanos(80));
        memory.load(at(25), 0, 10);
        assert_eq!(memory.wait(at(25)), Span::from_nanos(90));
        assert_eq!(memory.wait(at(200)), Span::ZERO);
        assert_eq!((memory.read, memory.written), (64, 46));
    }
}
