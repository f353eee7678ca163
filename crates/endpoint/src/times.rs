//! When completions were told, for who asks for that.

use crate::completion::CompletionQueue;
use crate::device::Device;
use crate::work::WorkCompletion;
use std::io;
use std::time::{Duration, SystemTime};

impl Device {
    /// Makes a completion queue whose completions say [when](WorkCompletion::time) they were told, which takes a look at the clock for each.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn create_timed_cq(&self) -> io::Result<CompletionQueue> {
        CompletionQueue::new(self.inner.clone(), Some(self.inner.clock))
    }

    /// Time since the device was opened.
    pub fn time(&self) -> Duration {
        self.inner.passed()
    }

    /// What the system's clock said at this [time](Self::time), if nobody has set it since.
    pub fn wall_clock(&self, time: Duration) -> SystemTime {
        self.inner.clock.wall(time)
    }
}

impl WorkCompletion {
    /// When it was told, in the device's [time](Device::time); of queues that were [made to say so](Device::create_timed_cq). In a queue it
    /// never goes back. What has arrived together may be looked at together, and be told later than it came.
    pub fn time(&self) -> Option<Duration> {
        (self.time_ns > 0).then(|| Duration::from_nanos(self.time_ns))
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Progress;
    use crate::io::MemoryWire;
    use crate::pair::pair;
    use crate::work::{RecvWr, SendWr};
    use std::time::{Duration, SystemTime};

    #[test]
    fn completions_say_when_they_were_told_where_that_was_asked_for() {
        const MANY: usize = 3;
        let ends = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
        let [near, far] = &ends;
        // The one that sends is told at its device's first queue, which says no times.
        let timed = far.device.create_timed_cq().unwrap();
        let from = near.pd.create_qp(&near.cq, &near.cq).build().unwrap();
        let to = far.pd.create_qp(&timed, &timed).build().unwrap();
        from.connect(to.info()).unwrap();
        to.connect(from.info()).unwrap();
        let mut times = vec![far.device.time()];
        for sent in 1..=MANY {
            to.post_recv(RecvWr::empty()).unwrap();
            from.post_send(SendWr::send_inline(&[])).unwrap();
            let mut ended = None;
            while ended.is_none() || times.len() == sent {
                ends.iter().for_each(|end| end.device.progress());
                times.extend(timed.poll().map(|it| it.time().expect("it says when")));
                ended = ended.or_else(|| near.cq.poll());
            }
            assert_eq!(ended.and_then(|it| it.time()), None);
        }
        times.push(far.device.time());
        assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the system's clock is held against ours")]
    fn a_time_of_the_device_is_a_time_of_day() {
        const CLOSE: Duration = Duration::from_secs(1);
        let [near, _] = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
        let (day, now) = (SystemTime::now(), near.device.time());
        let apart =
            |one: SystemTime, other| one.duration_since(other).unwrap_or_else(|error| error.duration());
        assert!(apart(near.device.wall_clock(now), day) < CLOSE);
        let earlier = near.device.wall_clock(now / 2);
        assert!(apart(earlier + now / 2, day) < CLOSE && earlier <= SystemTime::now());
    }
}
