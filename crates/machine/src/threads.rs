//! Hardware threads: what one does takes longer while another has the same core.

use roci_units::{Instant, Ratio, Span};

/// The threads of a machine: thread `t` has core `t` modulo the number of cores, so that they share cores once each has one.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    cores: usize,
    /// The speed of a thread while another of its core is busy, over that of one alone.
    shared: Ratio,
    busy_until: Vec<Instant>,
    busy: Vec<Span>,
}

impl Threads {
    pub(crate) fn new(cores: u16, per_core: u16, shared: Ratio) -> Self {
        let threads = usize::from(cores) * usize::from(per_core);
        Self {
            cores: cores.into(),
            shared,
            busy_until: vec![Instant::ZERO; threads],
            busy: vec![Span::ZERO; threads],
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.busy.len()
    }

    /// `thread` begins at `start` what keeps its core busy for `work` without others on it, and has it wait for `idle` besides, which it
    /// does not notice of others; gives when it is done.
    pub(crate) fn occupy(&mut self, start: Instant, thread: usize, work: Span, idle: Span) -> Instant {
        let core = thread % self.cores;
        let others = (core..self.count()).step_by(self.cores).filter(|&other| other != thread);
        let is_shared = others.into_iter().any(|other| self.busy_until[other] > start);
        let takes = idle + if is_shared { stretched(work, self.shared) } else { work };
        self.busy[thread] += takes;
        self.busy_until[thread] = start + takes;
        self.busy_until[thread]
    }

    /// How long `thread` has been busy, with what it has begun.
    pub(crate) fn busy(&self, thread: usize) -> Span {
        self.busy[thread]
    }
}

/// What takes so long at full speed, at `speed`.
fn stretched(span: Span, speed: Ratio) -> Span {
    let ps =
        u128::from(span.as_ps()) * u128::from(speed.denominator()) / u128::from(speed.numerator().max(1));
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_of_a_core_slow_each_other_and_those_of_two_cores_do_not() {
        let mut threads = Threads::new(2, 2, Ratio::new(1, 2));
        let at = |nanos| Instant::ZERO + Span::from_nanos(nanos);
        let work = Span::from_nanos(100);
        let occupy =
            |threads: &mut Threads, start, thread| threads.occupy(at(start), thread, work, Span::ZERO);
        assert_eq!(occupy(&mut threads, 0, 0), at(100));
        assert_eq!(occupy(&mut threads, 10, 1), at(110));
        // Its core has thread 0 until 100.
        assert_eq!(occupy(&mut threads, 50, 2), at(250));
        assert_eq!(occupy(&mut threads, 120, 3), at(220));
        assert_eq!(threads.busy(2), Span::from_nanos(200));
        // Waiting is no slower for another.
        let waits = Span::from_nanos(70);
        assert_eq!(threads.occupy(at(200), 1, work, waits), at(470));
    }
}
