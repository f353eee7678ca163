//! The event queue: what happens next, in a total order that a seed repeats.
//!
//! Most events of a network lie one of very few constant delays ahead of the present: the arrival of a full packet
//! or of an acknowledgement, the end of either's transmission. Pushed in the order of time, the events of one delay
//! are sorted already, so each of the commonest delays has a *lane*, a plain ring; everything else goes to a
//! timing wheel. The next event is the least of the heads. Which delays have lanes is found out
//! while running, and decides nothing but the speed: an event that would not be the last of its lane goes to the
//! wheel.

use crate::wheel::Wheel;

const SERIAL_BITS: u32 = 40;
const KIND_BITS: u32 = 4;
const HANDLE_BITS: u32 = 32;
const TIME_SHIFT: u32 = SERIAL_BITS + KIND_BITS + HANDLE_BITS;

/// The end of time: 2⁵² ps, about 75 minutes. No event lies there or later.
pub const HORIZON_PS: u64 = (1 << (128 - TIME_SHIFT)) - 1;

/// Events that share a time run in the order in which they were pushed, by the serial number.
const SERIALS: u64 = 1 << SERIAL_BITS;

/// An event as one number: time, serial number, kind and handle, so that comparing numbers orders events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

#[expect(clippy::cast_possible_truncation, reason = "the fields of the key are cut out of it")]
impl Key {
    /// After every event.
    const LAST: Self = Self(u128::MAX);

    /// Whether it stands for no event.
    #[inline]
    const fn is_none(self) -> bool {
        self.time() == HORIZON_PS
    }

    #[inline]
    const fn new(time: u64, serial: u64, kind: u8, handle: u32) -> Self {
        let low = (serial << KIND_BITS | kind as u64) as u128;
        Self((time as u128) << TIME_SHIFT | low << HANDLE_BITS | handle as u128)
    }

    /// When it happens, in picoseconds.
    #[inline]
    pub const fn time(self) -> u64 {
        (self.0 >> TIME_SHIFT) as u64
    }

    /// What happens, 0 to 15.
    #[inline]
    pub const fn kind(self) -> u8 {
        (self.0 >> HANDLE_BITS) as u8 & 0xf
    }

    /// To what: a number whose meaning is the kind's, such as a port, a host or a packet.
    #[inline]
    pub const fn handle(self) -> u32 {
        self.0 as u32
    }
}

/// How many delays have a lane of their own.
const LANES: usize = 8;
/// How many of them are looked at for each event. The others' least key is kept, for they change seldom: the commonest
/// delays have the first lanes.
const FIRST: usize = 4;
/// The place of the wheel's least key among the heads.
const WHEEL: usize = LANES;
/// How often a delay must be seen before it is given a lane that is free.
const COMMON: u32 = 64;
/// How many pushes lie between two decisions which delays are the commonest.
const REVIEW: u64 = 1 << 16;

/// How far before its turn a lane's key is fetched, in keys.
const SOON: usize = 32;

/// A ring of keys that only grow.
#[derive(Debug)]
struct Lane {
    /// A power of two of places.
    keys: Vec<Key>,
    head: usize,
    tail: usize,
    /// The last key pushed.
    back: Key,
}

impl Lane {
    fn new() -> Self {
        Self { keys: vec![Key::LAST; 64], head: 0, tail: 0, back: Key(0) }
    }

    #[inline]
    fn push(&mut self, key: Key) {
        if self.tail - self.head == self.keys.len() {
            self.grow();
        }
        let mask = self.keys.len() - 1;
        self.keys[self.tail & mask] = key;
        self.tail += 1;
        self.back = key;
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.keys.len();
        let mut keys = roci_prefetch::with_huge_pages(old * 2);
        keys.resize(old * 2, Key::LAST);
        for place in self.head..self.tail {
            keys[place & (old * 2 - 1)] = self.keys[place & (old - 1)];
        }
        self.keys = keys;
    }

    /// Asks the processor to fetch keys that come up soon: at some thousand hosts a lane is longer than its cache.
    #[inline(always)]
    fn prefetch(&self) {
        roci_prefetch::prefetch_at(&self.keys, (self.head + SOON) & (self.keys.len() - 1));
    }

    /// The key `n` places behind the head.
    #[inline]
    fn get(&self, n: usize) -> Option<Key> {
        let place = self.head + n;
        (place < self.tail).then(|| self.keys[place & (self.keys.len() - 1)])
    }
}

/// What is known of one delay.
#[derive(Clone, Copy, Debug)]
struct Delay {
    ps: u64,
    seen: u32,
    /// Its lane, or [`NO_LANE`].
    lane: u32,
}

const NO_LANE: u32 = 8;
const _: () = assert!(NO_LANE as usize == LANES);

/// Places for delays, by a hash of the delay; a power of two.
const DELAYS: usize = 64;

/// Events in order of time, then of being pushed.
#[derive(Debug)]
pub struct EventQueue {
    /// The least key of each lane, and of the wheel.
    heads: [Key; LANES + 1],
    /// Where the least of the heads of the lanes after the first stands.
    later: usize,
    lanes: [Lane; LANES],
    wheel: Wheel,
    delays: [Delay; DELAYS],
    /// Where the last event came from.
    source: usize,
    now: u64,
    serial: u64,
    /// Events that were not kept because they lie beyond the end of time.
    beyond: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl EventQueue {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self {
            heads: [Key::LAST; LANES + 1],
            later: FIRST,
            lanes: std::array::from_fn(|_| Lane::new()),
            wheel: Wheel::new(),
            delays: [Delay { ps: u64::MAX, seen: 0, lane: NO_LANE }; DELAYS],
            source: WHEEL,
            now: 0,
            serial: 0,
            beyond: 0,
        }
    }

    /// The time of the last event popped, in picoseconds since the start of the run.
    #[inline]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Moves the present on to `time`, before which nothing may be left to happen.
    pub fn advance_to(&mut self, time: u64) {
        debug_assert!(self.next_time().is_none_or(|next| next >= time), "an event would be passed over");
        self.now = self.now.max(time);
    }

    /// How many events were not kept because they lie at [`HORIZON_PS`] or later; those that lie at the end of all
    /// numbers were never meant to happen and do not count.
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    #[cold]
    fn pass_over(&mut self, time: u64) {
        self.beyond += u64::from(time != u64::MAX);
    }

    /// How many events were ever pushed.
    pub const fn pushed(&self) -> u64 {
        self.serial
    }

    /// Adds an event at an arbitrary time, not before now. One at [`HORIZON_PS`] or later never happens and is not
    /// kept.
    #[inline]
    pub fn push_at(&mut self, time: u64, kind: u8, handle: u32) {
        debug_assert!(time >= self.now, "events lie ahead");
        if time < HORIZON_PS {
            let key = self.stamp(time, kind, handle);
            self.set_aside(key);
        } else {
            self.pass_over(time);
        }
    }

    /// Adds an event `delay` ahead, where the same delay is likely to come often.
    #[inline]
    pub fn push_after(&mut self, delay: u64, kind: u8, handle: u32) {
        let time = self.now + delay;
        if time >= HORIZON_PS {
            return self.pass_over(time);
        }
        let key = self.stamp(time, kind, handle);
        let known = &mut self.delays[place_of(delay)];
        let lane = known.lane as usize;
        if known.ps == delay && lane < LANES {
            known.seen = known.seen.wrapping_add(1);
            return self.append(lane, key);
        }
        self.push_uncommon(delay, key);
    }

    /// Adds an event whose delay has no lane.
    #[inline(never)]
    fn push_uncommon(&mut self, delay: u64, key: Key) {
        let place = place_of(delay);
        let known = &mut self.delays[place];
        if known.ps == delay {
            known.seen = known.seen.wrapping_add(1);
            if known.seen == COMMON {
                self.give_lane(place);
            }
        } else if known.seen > 0 {
            known.seen -= 1;
        } else {
            *known = Delay { ps: delay, seen: 1, lane: NO_LANE };
        }
        self.set_aside(key);
    }

    /// Takes the next event out, unless it lies after `until`.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<Key> {
        let source = self.least();
        let key = self.heads[source];
        if key.time() > until || key.is_none() {
            return None;
        }
        self.source = source;
        self.now = key.time();
        self.heads[source] = match self.lanes.get_mut(source) {
            Some(lane) => {
                lane.head += 1;
                lane.prefetch();
                lane.get(0)
            }
            None => self.wheel.pop(),
        }
        .unwrap_or(Key::LAST);
        if (FIRST..LANES).contains(&source) {
            self.later = self.least_of_later();
        }
        Some(key)
    }

    /// Where the least of the heads stands. A tournament, because one comparison after the other would each wait for the
    /// one before: with a 128-bit key and eight lanes that was a tenth of an incast's time.
    #[inline(always)]
    fn least(&self) -> usize {
        let head = |place: usize| (self.heads[place], place);
        let [a, b] = [earlier(head(0), head(1)), earlier(head(2), head(3))];
        earlier(earlier(a, b), earlier(head(self.later), head(WHEEL))).1
    }

    /// Where the least of the heads of the lanes after the first stands.
    #[inline]
    fn least_of_later(&self) -> usize {
        const _: () = assert!(LANES == 2 * FIRST && FIRST == 4);
        earlier(
            earlier((self.heads[4], 4), (self.heads[5], 5)),
            earlier((self.heads[6], 6), (self.heads[7], 7)),
        )
        .1
    }

    /// Events that come soon, each about so many plus one after the last one: a guess for prefetching, which looks no
    /// further than where the last one came from.
    #[inline(always)]
    pub fn ahead<const N: usize>(&self, places: [usize; N]) -> [Option<Key>; N] {
        match self.lanes.get(self.source) {
            Some(lane) => places.map(|n| lane.get(n)),
            None => places.map(|n| self.wheel.ahead(n)),
        }
    }

    /// The time of the next event, in picoseconds since the start of the run; `None` where there is none.
    pub fn next_time(&self) -> Option<u64> {
        let least = self.heads.iter().min().copied().filter(|key| !key.is_none());
        least.map(Key::time)
    }

    #[cfg(test)]
    pub(crate) const fn wheel(&self) -> &Wheel {
        &self.wheel
    }

    #[inline]
    fn stamp(&mut self, time: u64, kind: u8, handle: u32) -> Key {
        let serial = self.serial;
        self.serial += 1;
        if self.serial.is_multiple_of(REVIEW) {
            self.review();
        }
        Key::new(time, serial, kind, handle)
    }

    #[inline]
    fn append(&mut self, lane: usize, key: Key) {
        let ring = &mut self.lanes[lane];
        if ring.head == ring.tail {
            self.heads[lane] = key;
            ring.push(key);
            if lane >= FIRST && key < self.heads[self.later] {
                self.later = lane;
            }
        } else if key > ring.back {
            ring.push(key);
        } else {
            self.set_aside(key);
        }
    }

    #[inline]
    fn set_aside(&mut self, key: Key) {
        let head = self.heads[WHEEL];
        if key < head {
            if !head.is_none() {
                self.wheel.push(head);
            }
            self.heads[WHEEL] = key;
        } else {
            self.wheel.push(key);
        }
    }

    /// Gives a delay that has become common a lane, if one is free.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "there are eight lanes")]
    fn give_lane(&mut self, place: usize) {
        let free = (0..LANES).find(|&lane| self.delays.iter().all(|delay| delay.lane as usize != lane));
        if let Some(lane) = free {
            self.delays[place].lane = lane as u32;
        }
    }

    /// Takes lanes from delays that have become rare, and gives them to commoner ones.
    ///
    /// # Panics
    /// When the serial numbers run out, after 10¹² events: their order would be lost.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "there are eight lanes and 64 places")]
    fn review(&mut self) {
        assert!(self.serial < SERIALS - REVIEW, "a run has at most 2^40 events");
        let mut order: [usize; DELAYS] = std::array::from_fn(|place| place);
        order.sort_unstable_by_key(|&place| (u32::MAX - self.delays[place].seen, place));
        for &place in &order[LANES..] {
            self.delays[place].lane = WHEEL as u32;
        }
        for &place in &order[..LANES] {
            if self.delays[place].lane as usize == WHEEL && self.delays[place].seen >= COMMON {
                self.give_lane(place);
            }
        }
        self.exchange_lanes();
        for delay in &mut self.delays {
            delay.seen /= 2;
        }
    }

    /// Lets the commonest delays have the first lanes: one that is more than twice as common as one of theirs takes its
    /// lane.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "there are eight lanes")]
    fn exchange_lanes(&mut self) {
        for first in 0..FIRST {
            let holder = (0..DELAYS).find(|&place| self.delays[place].lane as usize == first);
            let later = |&place: &usize| (FIRST..LANES).contains(&(self.delays[place].lane as usize));
            let Some(common) = (0..DELAYS).filter(later).max_by_key(|&place| self.delays[place].seen) else {
                return;
            };
            let seen = holder.map_or(0, |place| self.delays[place].seen);
            if self.delays[common].seen / 2 > seen {
                if let Some(holder) = holder {
                    self.delays[holder].lane = self.delays[common].lane;
                }
                self.delays[common].lane = first as u32;
            }
        }
    }
}

/// The earlier of two heads.
#[inline(always)]
fn earlier(a: (Key, usize), b: (Key, usize)) -> (Key, usize) {
    let less = b.0 < a.0;
    (if less { b.0 } else { a.0 }, if less { b.1 } else { a.1 })
}

/// The place of a delay among [`EventQueue::delays`].
#[inline(always)]
const fn place_of(delay: u64) -> usize {
    (delay.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// Pushes and pops at random in the queue and in a heap, which must agree on every event.
    fn agrees_with_a_heap(delays: &[u64], steps: &[(u8, u16, u64)]) -> Result<(), TestCaseError> {
        let mut queue = EventQueue::new();
        let mut heap = BinaryHeap::new();
        let mut serial = 0u64;
        for &(action, pick, far) in steps {
            let handle = u32::from(pick);
            match action {
                0..6 => {
                    let delay = delays[usize::from(pick) % delays.len()];
                    queue.push_after(delay, 3, handle);
                    heap.push(Reverse((queue.now() + delay, serial, handle)));
                    serial += 1;
                }
                6 => {
                    queue.push_at(queue.now() + far, 3, handle);
                    heap.push(Reverse((queue.now() + far, serial, handle)));
                    serial += 1;
                }
                _ => {
                    let expected = heap.pop().map(|Reverse((time, _, handle))| (time, handle));
                    let got = queue.pop(HORIZON_PS).map(|key| (key.time(), key.handle()));
                    prop_assert_eq!(got, expected);
                }
            }
        }
        while let Some(Reverse((time, _, handle))) = heap.pop() {
            prop_assert_eq!(queue.next_time(), Some(time));
            let key = queue.pop(HORIZON_PS);
            prop_assert_eq!(key.map(|key| (key.time(), key.kind(), key.handle())), Some((time, 3, handle)));
        }
        prop_assert_eq!(queue.pop(HORIZON_PS), None);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn events_come_in_the_order_of_a_heap(
            delays in prop::collection::vec(prop_oneof![Just(0u64), 1u64..2_000_000, 1u64..100_000_000], 1..12),
            steps in prop::collection::vec((0u8..12, any::<u16>(), 0u64..1 << 40), 1..3_000),
        ) {
            agrees_with_a_heap(&delays, &steps)?;
        }
    }

    #[test]
    fn common_delays_get_lanes_and_rare_ones_lose_them() {
        let mut queue = EventQueue::new();
        let mut run = |delay: u64| {
            for _ in 0..2 * REVIEW {
                queue.push_after(delay, 0, 0);
                queue.pop(HORIZON_PS);
            }
            let place = queue.delays.iter().find(|known| known.ps == delay).map(|known| known.lane as usize);
            place.is_some_and(|lane| lane < LANES)
        };
        // Three times as many delays as lanes, one after the other: each is the commonest in its turn.
        for n in 0..24 {
            assert!(run(1_000_000 + n * 4_096), "delay number {n} has no lane");
        }
    }

    #[test]
    fn nothing_is_popped_after_the_limit() {
        let mut queue = EventQueue::new();
        queue.push_at(10, 0, 1);
        queue.push_at(20, 0, 2);
        assert_eq!(queue.pop(9), None);
        assert_eq!(queue.pop(10).map(Key::handle), Some(1));
        assert_eq!(queue.pop(19), None);
        assert_eq!(queue.pop(20).map(Key::handle), Some(2));
    }

    #[test]
    fn an_event_beyond_the_horizon_never_happens() {
        let mut queue = EventQueue::new();
        queue.push_at(u64::MAX, 0, 1);
        assert_eq!(queue.pop(u64::MAX), None);
    }
}
