//! Cores that run the law beside the engine, as SwCC's do (SwCC §4.2).

use super::clock::Clock;
use super::counters::CoreCounters;
use super::spec::{Architecture, Entries, Time};
use super::table::Table;
use roci_units::{Instant, Qpn, Span};
use std::collections::VecDeque;

/// Which function of the law an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A packet is about to be sent.
    Send,
    /// Anything else.
    Receive,
}

/// How an event went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When it stood in line for its core.
    pub arrived: Instant,
    /// When its turn came.
    pub begun: Instant,
    /// When its context was on the chip.
    pub reached: Instant,
    /// When its context and header stood in the core's registers.
    pub loaded: Instant,
    /// When the core had done with it.
    pub done: Instant,
}

/// One core.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    /// When its first event's turn came.
    since: Option<Instant>,
    /// When it is done with its last one.
    free: Instant,
    /// How long its events have taken it, summed.
    busy: Span,
}

/// The cores of a NIC and the contexts that they work on.
///
/// Events of one core run in the order in which they came, each to its end. That no two events of one queue pair run at
/// once is the engine's promise, which hands the next one out when the last was answered (the lock bit of SwCC §4.2.2);
/// events of others go meanwhile.
#[derive(Clone, Debug)]
pub struct Cores {
    clock: Clock,
    pairs: u32,
    /// Of each pair the core that sends, then the other.
    cores: Vec<[Core; 2]>,
    shared: bool,
    load: Span,
    /// Packets that a pair has still to hear of before further ones are held up.
    limit: u32,
    /// When each pair will have heard of the packets that are in line for it.
    in_line: Vec<VecDeque<Instant>>,
    /// The contexts.
    pub table: Table,
    counters: CoreCounters,
    /// Every turn, in order.
    #[cfg(test)]
    pub(crate) turns: Vec<(Side, Qpn, Turn)>,
}

impl Cores {
    /// The cores of `architecture`; `None` where it has none.
    pub fn new(architecture: &Architecture) -> Option<Self> {
        let cores = architecture.cores;
        if cores.pairs == 0 {
            return None;
        }
        Some(Self {
            clock: architecture.core_clock()?,
            pairs: cores.pairs,
            cores: vec![[Core::default(); 2]; cores.pairs as usize],
            shared: cores.shared,
            load: match cores.load {
                Time::Cycles(cycles) => architecture.core_clock()?.cycles(cycles),
                Time::Span(span) => span,
            },
            limit: match cores.queue {
                Entries::All => u32::MAX,
                Entries::Count(count) => count,
            },
            in_line: vec![VecDeque::new(); cores.pairs as usize],
            table: Table::new(architecture.table),
            counters: CoreCounters::default(),
            #[cfg(test)]
            turns: Vec::new(),
        })
    }

    /// An event of `qpn` that takes `cycles` of its program comes in line at `now`. For events of one side that never goes
    /// back to an earlier cycle of the NIC's clock: what is decided within a cycle comes in line at its end, and may find
    /// itself before what is fetched within it. The core is busy as long in either order.
    pub fn run(&mut self, now: Instant, side: Side, qpn: Qpn, cycles: u32) -> Turn {
        self.run_late(now, side, qpn, cycles, 0)
    }

    /// The same where `late` of the cycles are those of timers that ran out before and are told with this event: the core has
    /// spent them in time that it had nothing to do, if it had so much.
    pub(crate) fn run_late(&mut self, now: Instant, side: Side, qpn: Qpn, cycles: u32, late: u32) -> Turn {
        let pair = self.pair_of(qpn);
        let core = &mut self.cores[pair][usize::from(side == Side::Receive && !self.shared)];
        let begun = self.clock.edge(now.max(core.free));
        let reached = self.table.reach(begun, qpn);
        let loaded = self.clock.edge(reached) + self.load;
        let since = *core.since.get_or_insert(begun);
        let idle = begun.since(since).saturating_sub(core.busy);
        let before = if self.clock.cycles(late) <= idle { late } else { 0 };
        let done = loaded + self.clock.cycles(cycles - before);
        let busy = done.since(begun) + self.clock.cycles(before);
        core.free = done;
        core.busy += busy;
        self.counters.note(side, cycles, begun.since(now), reached.since(begun), busy);
        let turn = Turn { arrived: now, begun, reached, loaded, done };
        #[cfg(test)]
        self.turns.push((side, qpn, turn));
        turn
    }

    /// Whether the packets that a pair may have still to hear of are limited.
    pub const fn is_limited(&self) -> bool {
        self.limit < u32::MAX
    }

    /// A packet for `qpn` is in line for its core, which will have heard of it at `done`.
    pub(crate) fn stand_in_line(&mut self, qpn: Qpn, done: Instant) {
        if self.is_limited() {
            let pair = self.pair_of(qpn);
            self.in_line[pair].push_back(done);
        }
    }

    /// Whether a packet for `qpn` may come to its core at `now`, where of the pair's queue pairs so many wait to come
    /// in line.
    pub(crate) fn has_room(&mut self, now: Instant, qpn: Qpn, waiting: u32) -> bool {
        let pair = self.pair_of(qpn);
        let line = &mut self.in_line[pair];
        while line.front().is_some_and(|done| *done <= now) {
            line.pop_front();
        }
        line.len() + (waiting as usize) < self.limit as usize
    }

    #[inline]
    const fn pair_of(&self, qpn: Qpn) -> usize {
        (qpn.get() % self.pairs) as usize
    }

    /// A packet waited in the FIFO for `span` until its core, or that of a packet before it, had room.
    pub(crate) fn held_up(&mut self, span: Span) {
        self.counters.held_up += 1;
        self.counters.held_up_for += span;
    }

    /// An event waited in the engine for `span`, behind an earlier one of its queue pair.
    pub(crate) fn stood_behind(&mut self, span: Span) {
        self.counters.behind += span;
    }

    /// A refusal was counted (LoopBack).
    pub(crate) const fn looped_back(&mut self) {
        self.counters.loop_backs += 1;
    }

    /// What they counted.
    pub fn counters(&self) -> CoreCounters {
        let (hinted, wanted) = (self.table.hinted, self.table.wanted);
        let worked =
            self.cores.iter().flatten().filter_map(|core| Some((core.busy, core.free.since(core.since?))));
        let (busiest, busiest_over) = worked.max_by_key(|(busy, _)| *busy).unwrap_or_default();
        CoreCounters { hinted, wanted, busiest, busiest_over, ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets;
    use super::*;

    fn cores(pairs: u32, shared: bool) -> Cores {
        let mut architecture = presets::find("swcc").expect("it exists");
        (architecture.cores.pairs, architecture.cores.shared) = (pairs, shared);
        Cores::new(&architecture).expect("it has some")
    }

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Span::from_nanos(ns)
    }

    /// When the event begins and ends, in ns, without what its context takes the first time.
    fn span(turn: Turn) -> (u64, u64) {
        let ns = |at: Instant| at.as_ps() / 1_000;
        (ns(turn.begun), ns(turn.done))
    }

    #[test]
    fn a_core_runs_one_event_after_the_other_and_cores_run_side_by_side() {
        let mut cores = cores(2, false);
        let ready = |number| Qpn::new(number);
        for number in 0..4 {
            cores.table.reach(at(0), ready(number));
        }
        let first = cores.run(at(1_000), Side::Receive, ready(0), 50);
        assert_eq!(span(first), (1_000, 1_208), "two cycles of 4 ns to load, fifty to run");
        assert_eq!(span(cores.run(at(1_010), Side::Receive, ready(2), 50)), (1_208, 1_416), "the same core");
        assert_eq!(span(cores.run(at(1_010), Side::Receive, ready(1), 50)), (1_012, 1_220), "the other pair");
        assert_eq!(span(cores.run(at(1_010), Side::Send, ready(0), 50)), (1_012, 1_220), "its partner");
    }

    #[test]
    fn the_busiest_core_is_told_from_the_sum_of_all() {
        let mut cores = cores(2, false);
        assert_eq!(cores.counters(), CoreCounters::default());
        for number in 0..2 {
            cores.table.reach(at(0), Qpn::new(number));
        }
        // The first pair's is done with two events at 1,416 ns; the second's waits between its own.
        for (ns, number) in [(1_000, 0), (1_000, 0), (1_200, 1)] {
            cores.run(at(ns), Side::Receive, Qpn::new(number), 50);
        }
        let CoreCounters { busy, busiest, busiest_over, .. } = cores.counters();
        let ns = [busy, busiest, busiest_over].map(|span| span.as_ps() / 1_000);
        assert_eq!(ns, [3 * 208, 2 * 208, 416]);
        cores.run(at(1_832), Side::Receive, Qpn::new(0), 50);
        assert_eq!(cores.counters().busiest_over, Span::from_nanos(1_040), "it was idle meanwhile");
    }

    #[test]
    fn what_a_core_had_time_for_before_an_event_does_not_delay_it() {
        let mut cores = cores(1, false);
        let qpn = Qpn::new(0);
        cores.table.reach(at(0), qpn);
        cores.run(at(1_000), Side::Receive, qpn, 50);
        let mut late = |ns| span(cores.run_late(at(ns), Side::Receive, qpn, 150, 100));
        assert_eq!(late(2_000), (2_000, 2_208), "of 792 ns it takes 400");
        assert_eq!(late(2_208), (2_208, 2_816), "and the 392 that are left do not suffice");
        let CoreCounters { cycles, busiest, busiest_over, .. } = cores.counters();
        assert_eq!((cycles[1], busiest), (350, Span::from_nanos(208 + 608 + 608)));
        assert_eq!(busiest_over, Span::from_nanos(1_816));
    }

    #[test]
    fn one_core_for_both_functions_does_them_in_turn() {
        let mut cores = cores(1, true);
        cores.table.reach(at(0), Qpn::new(0));
        cores.run(at(1_000), Side::Receive, Qpn::new(0), 50);
        assert_eq!(
            span(cores.run(at(1_000), Side::Send, Qpn::new(1), 50)),
            (1_208, 1_516),
            "and misses its context"
        );
    }

    #[test]
    fn a_pair_has_room_until_so_many_are_in_line_or_wait_to_be() {
        let mut architecture = presets::find("swcc").expect("it exists");
        (architecture.cores.pairs, architecture.cores.queue) = (2, Entries::Count(3));
        let mut cores = Cores::new(&architecture).expect("it has some");
        let qpn = Qpn::new(4);
        cores.stand_in_line(qpn, at(100));
        cores.stand_in_line(qpn, at(200));
        let room = |cores: &mut Cores, ns, waiting| cores.has_room(at(ns), qpn, waiting);
        assert!(room(&mut cores, 0, 0) && !room(&mut cores, 0, 1));
        assert!(cores.has_room(at(0), Qpn::new(5), 2), "the other pair");
        assert!(!room(&mut cores, 99, 1) && room(&mut cores, 100, 1), "one has been heard of");
        architecture.cores.queue = Entries::All;
        let mut cores = Cores::new(&architecture).expect("it has some");
        cores.stand_in_line(qpn, at(100));
        assert!(!cores.is_limited() && cores.has_room(at(0), qpn, 1_000_000));
    }

    #[test]
    fn a_hint_hides_a_miss_behind_the_logic_before_the_core() {
        let stall = |hinted: bool| {
            let mut cores = cores(1, false);
            if hinted {
                cores.table.hint(at(0), Qpn::new(0));
            }
            let turn = cores.run(at(60), Side::Receive, Qpn::new(0), 50);
            turn.reached.since(turn.begun)
        };
        assert_eq!((stall(false), stall(true)), (Span::from_nanos(100), Span::from_nanos(40)));
    }

    #[test]
    fn events_of_one_cycle_keep_a_core_busy_as_long_in_any_order() {
        // One was decided and stands in line at the cycle's end; the others were fetched within it.
        let ps = |ps: u64| Instant::ZERO + Span::from_nanos(1_000) + Span::from_ps(ps);
        let events = [(ps(4_000), 30), (ps(1), 50), (ps(3_999), 70)];
        let free = |order: [usize; 3]| {
            let mut cores = cores(1, false);
            for number in 0..3 {
                cores.table.reach(at(0), Qpn::new(number));
            }
            let turns = order.map(|event| {
                let (now, cycles) = events[event];
                cores.run(now, Side::Send, Qpn::new(u32::try_from(event).expect("three")), cycles)
            });
            assert_eq!(span(turns[0]).0, 1_004, "the first begins at the cycle's end, whichever it is");
            assert!(turns.windows(2).all(|pair| pair[0].done == pair[1].begun), "and none waits for a clock");
            turns[2].done
        };
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let last = free(orders[0]);
        assert!(orders.iter().all(|order| free(*order) == last));
    }
}
