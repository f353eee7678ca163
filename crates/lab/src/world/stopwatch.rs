//! The only clock in the house: what a run costs, which no result depends on.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Measures wall-clock time and the thread's CPU time.
pub(super) struct Stopwatch {
    wall: std::time::Instant,
    cpu: Duration,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "what a run costs is no part of its results")]
    pub(super) fn start() -> Self {
        Self { wall: std::time::Instant::now(), cpu: thread_cpu() }
    }

    /// Seconds of wall-clock time since the start.
    pub(super) fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    /// Seconds of this thread's CPU time since the start.
    pub(super) fn cpu_s(&self) -> f64 {
        thread_cpu().saturating_sub(self.cpu).as_secs_f64()
    }
}

/// The CPU time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = time.tv_nsec.try_into().unwrap_or(0);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), nanos)
}

/// The largest resident set of the process so far, in octets; zero where the system does not tell.
pub(super) fn peak_rss_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
