//! The one clock of the room.

use roci_units::{Instant, Span};

/// Time since it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the real world's time comes from here")]
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    /// Now. It begins above zero, so that there is a time before the first call.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        let passed = self.0.elapsed();
        let ps = passed.as_secs() * 1_000_000_000_000 + u64::from(passed.subsec_nanos()) * 1000;
        Instant::from_ps(ps + 1)
    }
}

/// A span for the system calls, rounded up.
pub(crate) const fn duration(span: Span) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_ps().div_ceil(1000))
}
