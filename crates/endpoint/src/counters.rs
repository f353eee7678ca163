//! What the packets of a queue pair have met, counted beyond the 32 bits that the engine has for each number.
//!
//! The engine counts in the lines that every packet touches, where there is no room for more, and a queue pair that sends ten million
//! packets a second has come round in seven minutes. So a shard adds up what they have gained, before any can have come round.

use crate::numbers::inner;
use crate::shard::{Core, Entry};
use roci_transport::{Counters as Counted, Engine};

/// What a queue pair's packets have met since it was made, also where it was reset meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Octets of payload in them.
    pub octets: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Of those, packets that had been sent again before in the same loss; go-back-N and NDP forget a loss once all is sent again.
    pub repeated: u64,
    /// Local ACK timeouts.
    pub timeouts: u64,
    /// NAKs for a sequence received, selective ones included.
    pub naks: u64,
    /// RNR NAKs received.
    pub rnr: u64,
    /// CNPs received.
    pub cnps: u64,
    /// Data packets received with CE.
    pub ecn_marked: u64,
    /// Events that a deferred law never heard of, because too many waited for it.
    pub unheard: u64,
    /// Messages of an unreliable connection that came in part, or that nothing could take, and were dropped.
    pub dropped: u64,
    /// Messages of an unreliable connection that came whole and were taken, each counted once.
    pub taken: u64,
    /// Those that were taken once more, as the network had doubled them and the first of them lay at most 1024 packets back.
    pub doubled: u64,
    /// Packets acknowledged; where nobody acknowledges, sent.
    pub acknowledged: u64,
}

/// What the engine has of them, in their order.
type Seen = [u32; 13];

/// The packets of a shard, sent and received, after which it looks at the counters of its queue pairs, and what one has to have gained
/// to be added up then: none gains more than one for each packet, so none has gained 2³² before it is looked at again.
const EVERY: u64 = 1 << 30;

/// What was counted until the engine's counters were looked at last, and what they were then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    until: [u64; 13],
    seen: Seen,
}

impl Tally {
    fn add(&mut self, seen: Seen) {
        for ((until, before), now) in self.until.iter_mut().zip(&mut self.seen).zip(seen) {
            *until += u64::from(now.wrapping_sub(*before));
            *before = now;
        }
    }
}

fn look(engine: &Engine, place: u32) -> Seen {
    let qpn = inner(place);
    let Counted {
        packets,
        retransmitted,
        repeated,
        timeouts,
        naks,
        rnr,
        cnps,
        ecn_marked,
        unheard,
        dropped,
        taken,
        doubled,
    } = engine.counters(qpn);
    let acknowledged = engine.query(qpn).map_or(0, |status| status.acknowledged);
    [
        packets,
        retransmitted,
        repeated,
        timeouts,
        naks,
        rnr,
        cnps,
        ecn_marked,
        unheard,
        acknowledged,
        dropped,
        taken,
        doubled,
    ]
}

impl Entry {
    /// What the packets of this queue pair have met, which is at `place`.
    pub(crate) fn counters(&self, engine: &Engine, place: u32) -> Counters {
        let mut tally = self.tally.as_deref().copied().unwrap_or_default();
        tally.add(look(engine, place));
        let [
            packets,
            retransmitted,
            repeated,
            timeouts,
            naks,
            rnr,
            cnps,
            ecn_marked,
            unheard,
            acknowledged,
            dropped,
            taken,
            doubled,
        ] = tally.until;
        Counters {
            packets,
            octets: self.octets,
            retransmitted,
            repeated,
            timeouts,
            naks,
            rnr,
            cnps,
            ecn_marked,
            unheard,
            dropped,
            taken,
            doubled,
            acknowledged,
        }
    }
}

impl Core {
    /// Adds up what queue pairs have counted, where any may have come half round since that was done.
    #[inline]
    pub(crate) fn mind_counters(&mut self) {
        let passed = self.counters.sent + self.counters.unsent + self.counters.received;
        if passed - self.added_up_at >= EVERY {
            self.added_up_at = passed;
            self.add_up();
        }
    }

    #[cold]
    fn add_up(&mut self) {
        for (place, entry) in (0..).zip(&mut self.entries) {
            let Some(entry) = entry else { continue };
            let seen = look(&self.engine, place);
            let before = entry.tally.as_ref().map_or(Seen::default(), |tally| tally.seen);
            if seen.into_iter().zip(before).any(|(now, before)| u64::from(now.wrapping_sub(before)) >= EVERY)
            {
                entry.tally.get_or_insert_default().add(seen);
            }
        }
    }

    /// Changes a queue pair by `change`, which may have the engine count anew, and keeps what has been counted.
    pub(crate) fn counting_on<T>(&mut self, place: u32, change: impl FnOnce(&mut Engine) -> T) -> T {
        let before = look(&self.engine, place);
        let changed = change(&mut self.engine);
        let after = look(&self.engine, place);
        if before != after
            && let Some(Some(entry)) = self.entries.get_mut(place as usize)
        {
            let tally = entry.tally.get_or_insert_default();
            tally.add(before);
            tally.seen = after;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Progress;
    use crate::io::{Faults, MemoryWire};
    use crate::pair::{End, pair};
    use crate::work::SendWr;
    use crate::{Change, RemoteMemory, Transition};

    const NOWHERE: RemoteMemory = RemoteMemory { address: 0, rkey: 0 };

    /// A queue pair that has had so many messages of a packet acknowledged, with its peer.
    fn talked(messages: u64, loss: u32) -> [End; 2] {
        let wire = MemoryWire::new(1);
        let ends = pair(&wire, Progress::Caller, |qp| qp.timeout(8));
        let [near, far] = &ends;
        wire.set_faults(Faults { loss, ..Faults::default() });
        for _ in 0..messages {
            near.qp.post_send(SendWr::write_inline(&[], NOWHERE)).unwrap();
            while near.cq.poll().is_none_or(|done| !done.is_ok()) {
                far.device.progress();
            }
        }
        ends
    }

    #[test]
    fn what_has_come_round_in_the_engine_is_counted_on() {
        let [End { device, qp, .. }, _far] = talked(7, 0);
        let round = Counters { packets: 7, acknowledged: 7, ..Counters::default() };
        assert_eq!(qp.counters(), round);
        let mut shard = device.inner.cells[0].lock();
        let core = &mut shard.core;
        // As if the packets before had brought the engine's counters close to their end.
        let mut seen = Seen::default();
        (seen[0], seen[9]) = (u32::MAX - 4, u32::MAX - 4);
        let until = seen.map(u64::from);
        core.entries[0].as_mut().unwrap().tally = Some(Box::new(Tally { until, seen }));
        drop(shard);
        let beyond = (1 << 32) + 7;
        let counted = Counters { packets: beyond, acknowledged: beyond, ..Counters::default() };
        assert_eq!(qp.counters(), counted);
    }

    #[test]
    fn a_shard_adds_up_before_anything_has_come_round_and_only_what_may() {
        let [End { device, qp, .. }, _far] = talked(3, 0);
        let tally = |seen: u32| {
            let mut shard = device.inner.cells[0].lock();
            let core = &mut shard.core;
            let mut before = Seen::default();
            before[0] = seen;
            let until = before.map(u64::from);
            core.entries[0].as_mut().unwrap().tally = Some(Box::new(Tally { until, seen: before }));
            core.counters.received = core.added_up_at + EVERY - core.counters.sent;
            drop(shard);
            let counted = qp.counters();
            device.progress();
            assert_eq!(qp.counters(), counted, "whenever it is added up");
            device.inner.cells[0].lock().core.entries[0].as_ref().unwrap().tally.as_ref().unwrap().seen[0]
        };
        // The engine has three packets: as many as this since what it had before.
        let quarter = 3u32.wrapping_sub(1 << 30);
        assert_eq!(tally(quarter + 1), quarter + 1, "so few that they have time");
        assert_eq!(tally(quarter), 3);
    }

    #[test]
    fn a_queue_pair_that_is_reset_counts_on() {
        let [End { qp, .. }, _far] = talked(40, 300);
        let before = qp.counters();
        assert!(before.retransmitted > 0 && before.timeouts > 0 && before.acknowledged >= 40, "{before:?}");
        let reset = Change { transition: Some(Transition::Reset), ..Change::default() };
        for _ in 0..2 {
            qp.modify(&reset).unwrap();
            assert_eq!(qp.counters(), before);
        }
    }
}
