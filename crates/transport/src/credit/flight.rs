//! Room under way: how many packets of requests a port's queue pairs may have on their way to one place together.
//!
//! What a queue pair has under way is bounded by its window, and nothing bounds what all of them have, while the buffer that they
//! meet in, a socket's perhaps, is one. Where that is bounded, queue pairs beyond it wait here in line.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The rooms of a port, one for each place that packets go to.
///
/// Who finds room takes it with the run that it sends, and leaves with the acknowledgements. Where there is none, or others wait
/// already, it stands in line, and nobody overtakes it. A room is full from its last packet on: a run that began before goes whole.
/// Who comes from the line may send a part of what the room holds, so that short messages too are acknowledged several at a time.
///
/// What is not acknowledged does not keep its room for ever: it gives it back when it is taken for lost, and takes room again when it
/// is sent again. Of a tail that is lost nobody hears before the timeout, and as many as have lost theirs by then would fill the room.
/// So it is given up as soon as what others sent a whole room later has been acknowledged. Who was not answered in time sends a packet
/// at a time until it is, and so does everybody of a room from which nobody has been answered since.
#[derive(Debug)]
pub(crate) struct Flights {
    /// The packets of each.
    packets: u32,
    /// What who comes from a line may send, unless it has less.
    turn: u32,
    rooms: Vec<Room>,
    /// Those that are in use, by their paths.
    known: BTreeMap<u64, usize>,
    /// The others.
    vacant: Vec<usize>,
    /// By the places of queue pairs.
    guests: Vec<Guest>,
    /// All rooms that have space and a line, and some that do not any more, in the order of their turns: who is next is found without
    /// going through all that there are.
    open: VecDeque<usize>,
}

#[derive(Debug, Default)]
struct Room {
    path: u64,
    /// Queue pairs that belong to it.
    guests: u32,
    taken: u32,
    /// What those that came from the line may still send.
    promised: u32,
    /// Who is the first in line, and who the last.
    line: Links,
    /// Whether it is among the open ones.
    is_listed: bool,
    /// Packets sent so far, modulo 2³².
    sent: u32,
    /// Somebody was not answered in time, and nobody has been since.
    is_silent: bool,
    /// Of those that have taken room, who has sent nothing for longest, and who has sent last.
    ends: Links,
}

#[derive(Clone, Copy, Debug, Default)]
struct Guest {
    /// Its room's index, from one on; zero before it has sent anything.
    room: u32,
    /// Packets that it has sent and that were not acknowledged.
    outstanding: u32,
    /// Those of them that are under way as far as is known.
    taken: u32,
    /// What it may still send, after it stood in the line.
    promised: u32,
    /// How many packets the room had sent when this one sent its last.
    last: u32,
    /// The same of a packet that it has sent and that was not acknowledged, and how many of its packets, up to that one, are to be
    /// acknowledged before that is known to have arrived; zero where no packet is watched.
    mark: u32,
    until: u32,
    /// Who sent last before it, and who after it.
    links: Links,
    /// Who stands before it in line, and who behind it.
    queued: Links,
    /// Whether it stands in the line.
    waits: bool,
    /// It was not answered in time, and has a single packet under way until it is: nobody may be there.
    doubted: bool,
}

/// Two places of queue pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    older: Option<u32>,
    newer: Option<u32>,
}

/// A room is as many turns: enough of them are under way at once for their acknowledgements to come one after the other.
const TURNS: u32 = 16;

impl Links {
    const fn is_empty(self) -> bool {
        self.older.is_none()
    }
}

impl Flights {
    pub(crate) fn new(packets: u32) -> Self {
        // Distances on the circle of packets sent are less than half of it.
        let packets = if packets > i32::MAX.cast_unsigned() { i32::MAX.cast_unsigned() } else { packets };
        let turn = packets.div_ceil(TURNS);
        Self {
            packets,
            turn,
            rooms: Vec::new(),
            known: BTreeMap::new(),
            vacant: Vec::new(),
            guests: Vec::new(),
            open: VecDeque::new(),
        }
    }

    /// Whether queue pair `place` may send a run to `path` now; else it waits in line, or for an answer.
    pub(crate) fn admit(&mut self, place: usize, path: u64) -> bool {
        let index = self.enter(place, path);
        let (room, guest) = (&mut self.rooms[index], &mut self.guests[place]);
        if (guest.doubted || room.is_silent) && guest.taken > 0 {
            return false;
        }
        if guest.promised > 0 {
            return true;
        }
        if room.line.is_empty() && room.taken + room.promised < self.packets {
            return true;
        }
        if !guest.waits {
            self.stand_in_line(place);
        }
        false
    }

    /// So many packets of queue pair `place` have left, for the first time.
    pub(crate) fn sent(&mut self, place: usize, packets: u32) {
        let Some(guest) = self.guests.get_mut(place).filter(|guest| guest.room != 0) else { return };
        guest.outstanding += packets;
        self.take(place, packets);
        let guest = &mut self.guests[place];
        if guest.until == 0 {
            (guest.mark, guest.until) = (guest.last, guest.outstanding);
        }
    }

    /// So many packets of queue pair `place` have left once more. Whether nothing of it was under way before.
    pub(crate) fn sent_again(&mut self, place: usize, packets: u32) -> bool {
        let Some(guest) = self.guests.get(place).filter(|guest| guest.room != 0) else { return false };
        let is_first = guest.taken == 0;
        self.take(place, packets);
        is_first
    }

    /// Whether queue pair `place`, or nobody of its room, was answered in time, and so has a single packet under way until it is: turns
    /// of those whose peer is dead would keep others waiting for as long as their timers take.
    pub(crate) fn doubts(&self, place: usize) -> bool {
        let guest = self.guests.get(place).filter(|guest| guest.room != 0);
        guest.is_some_and(|guest| guest.doubted || self.rooms[guest.room as usize - 1].is_silent)
    }

    /// Whether a run of so many packets of queue pair `place` is to ask for an answer: others may have to wait for what it does not
    /// hear of, or it may itself, as it has no more room behind them.
    pub(crate) fn asks(&self, place: usize, packets: u32) -> bool {
        let Some(guest) = self.guests.get(place).filter(|guest| guest.room != 0) else { return false };
        let room = &self.rooms[guest.room as usize - 1];
        room.guests > 1 || guest.doubted || room.is_silent || room.taken + packets >= self.packets
    }

    /// Whether nothing of queue pair `place` is under way while it stands in line: nobody can answer it.
    pub(crate) fn is_held_up(&self, place: usize) -> bool {
        self.guests.get(place).is_some_and(|guest| guest.waits && guest.taken == 0)
    }

    /// Queue pair `place` was answered, and so many of its packets were acknowledged. Whether it was in doubt before.
    pub(crate) fn acknowledged(&mut self, place: usize, packets: u32) -> bool {
        let Some(guest) = self.guests.get_mut(place).filter(|guest| guest.room != 0) else { return false };
        let was_doubted = core::mem::take(&mut guest.doubted);
        self.rooms[guest.room as usize - 1].is_silent = false;
        // Of what was sent again it is not known which of the two was acknowledged.
        let is_plain = guest.taken == guest.outstanding;
        let (index, last) = (guest.room as usize - 1, guest.last);
        guest.outstanding = guest.outstanding.saturating_sub(packets);
        let is_empty = guest.outstanding == 0;
        // One that always has something under way is never without, and its last packet not known to have arrived.
        let was_watched = guest.until > 0;
        guest.until = guest.until.saturating_sub(packets);
        let marked = (was_watched && guest.until == 0).then_some(guest.mark);
        let arrived = if packets > 0 && is_plain && is_empty { Some(last) } else { marked };
        self.give_back(place, packets);
        if let Some(mark) = arrived {
            self.give_up_before(index, mark);
        }
        was_doubted
    }

    /// So many packets of queue pair `place` are taken for lost.
    pub(crate) fn lost(&mut self, place: usize, packets: u32) {
        if self.guests.get(place).is_some_and(|guest| guest.room != 0) {
            self.give_back(place, packets);
        }
    }

    /// Queue pair `place` was not answered in time.
    pub(crate) fn unanswered(&mut self, place: usize) {
        if let Some(guest) = self.guests.get_mut(place).filter(|guest| guest.room != 0) {
            guest.doubted = true;
            self.rooms[guest.room as usize - 1].is_silent = true;
            self.give_back(place, u32::MAX);
        }
    }

    /// Who is next in any line where there is room.
    pub(crate) fn next(&mut self) -> Option<usize> {
        loop {
            let index = self.open.pop_front()?;
            let room = &mut self.rooms[index];
            room.is_listed = false;
            let first = room.line.older.filter(|_| room.taken + room.promised < self.packets);
            if let Some(place) = first {
                self.leave_line(place as usize);
                self.list(index);
                return Some(place as usize);
            }
        }
    }

    /// Queue pair `place`, which was next, has its turn.
    pub(crate) fn let_in(&mut self, place: usize) {
        let turn = if self.doubts(place) { 1 } else { self.turn };
        let guest = &mut self.guests[place];
        let more = turn.saturating_sub(guest.promised);
        self.rooms[guest.room as usize - 1].promised += more;
        guest.promised += more;
    }

    /// Queue pair `place` has no request that may go at present: so its turn is over.
    pub(crate) fn end_turn(&mut self, place: usize) {
        if let Some(guest) = self.guests.get_mut(place).filter(|guest| guest.promised > 0) {
            let index = guest.room as usize - 1;
            self.rooms[index].promised -= core::mem::take(&mut guest.promised);
            self.list(index);
        }
    }

    /// Gives up all that a queue pair has here.
    pub(crate) fn forget(&mut self, place: usize) {
        if self.guests.get(place).is_none_or(|guest| guest.room == 0) {
            return;
        }
        self.give_back(place, u32::MAX);
        self.end_turn(place);
        if self.guests[place].waits {
            self.leave_line(place);
        }
        let index = core::mem::take(&mut self.guests[place]).room as usize - 1;
        let room = &mut self.rooms[index];
        room.guests -= 1;
        if room.guests == 0 {
            self.known.remove(&room.path);
            self.vacant.push(index);
        }
    }

    /// Room `index` may have got space, or a line: whoever looks for the next then finds it.
    fn list(&mut self, index: usize) {
        let room = &mut self.rooms[index];
        if !room.is_listed && !room.line.is_empty() && room.taken + room.promised < self.packets {
            room.is_listed = true;
            self.open.push_back(index);
        }
    }

    /// Queue pair `place`, which stands in no line, is the last of its room's.
    fn stand_in_line(&mut self, place: usize) {
        let guest = &mut self.guests[place];
        guest.waits = true;
        let index = guest.room as usize - 1;
        let line = &mut self.rooms[index].line;
        let of = u32::try_from(place).ok();
        guest.queued = Links { older: line.newer, newer: None };
        match core::mem::replace(&mut line.newer, of) {
            Some(before) => self.guests[before as usize].queued.newer = of,
            None => line.older = of,
        }
        self.list(index);
    }

    /// Queue pair `place` stands in its line no more.
    fn leave_line(&mut self, place: usize) {
        let guest = &mut self.guests[place];
        guest.waits = false;
        let line = &mut self.rooms[guest.room as usize - 1].line;
        let Links { older, newer } = core::mem::take(&mut guest.queued);
        match older {
            Some(older) => self.guests[older as usize].queued.newer = newer,
            None => line.older = newer,
        }
        match newer {
            Some(newer) => self.guests[newer as usize].queued.older = older,
            None => line.newer = older,
        }
    }

    /// Queue pair `place` has sent: what it has under way is never more than what is not acknowledged.
    fn take(&mut self, place: usize, packets: u32) {
        self.unlink(place);
        let guest = &mut self.guests[place];
        let room = &mut self.rooms[guest.room as usize - 1];
        let kept = packets.min(guest.promised);
        guest.promised -= kept;
        room.promised -= kept;
        let more = packets.min(guest.outstanding - guest.taken);
        guest.taken += more;
        room.taken += more;
        room.sent = room.sent.wrapping_add(packets);
        guest.last = room.sent;
        let index = guest.room as usize - 1;
        self.link(place);
        // It may have been promised more than it takes.
        self.list(index);
    }

    /// So many packets of queue pair `place`, at most, are under way no more.
    fn give_back(&mut self, place: usize, packets: u32) {
        let guest = &mut self.guests[place];
        let less = packets.min(guest.taken);
        guest.taken -= less;
        let (index, is_empty) = (guest.room as usize - 1, guest.taken == 0);
        self.rooms[index].taken -= less;
        if is_empty && less > 0 {
            self.unlink(place);
        }
        self.list(index);
    }

    /// What was sent when room `index` had sent `mark` packets has arrived. What was sent a whole room before and is not acknowledged
    /// has had its time: not even a peer that takes its queue pairs on several cores is as far behind with one of them.
    fn give_up_before(&mut self, index: usize, mark: u32) {
        while let Some(oldest) = self.rooms[index].ends.older
            && mark.wrapping_sub(self.guests[oldest as usize].last).cast_signed() > self.packets.cast_signed()
        {
            self.give_back(oldest as usize, u32::MAX);
        }
    }

    /// Queue pair `place`, which stands nowhere in the order of who sent when, has sent last.
    fn link(&mut self, place: usize) {
        let guest = &mut self.guests[place];
        if guest.taken == 0 {
            return;
        }
        let ends = &mut self.rooms[guest.room as usize - 1].ends;
        let of = u32::try_from(place).ok();
        guest.links = Links { older: ends.newer, newer: None };
        match core::mem::replace(&mut ends.newer, of) {
            Some(before) => self.guests[before as usize].links.newer = of,
            None => ends.older = of,
        }
    }

    /// Takes queue pair `place` out of that order, if it stands there.
    fn unlink(&mut self, place: usize) {
        let guest = &mut self.guests[place];
        let ends = &mut self.rooms[guest.room as usize - 1].ends;
        let of = u32::try_from(place).ok();
        let Links { older, newer } = core::mem::take(&mut guest.links);
        if older.is_none() && ends.older != of {
            return;
        }
        match older {
            Some(older) => self.guests[older as usize].links.newer = newer,
            None => ends.older = newer,
        }
        match newer {
            Some(newer) => self.guests[newer as usize].links.older = older,
            None => ends.newer = older,
        }
    }

    /// The index of the queue pair's room. It keeps it until it is forgotten, as its path does not change before.
    fn enter(&mut self, place: usize, path: u64) -> usize {
        if self.guests.len() <= place {
            self.guests.resize(place + 1, Guest::default());
        }
        if self.guests[place].room == 0 {
            let (rooms, vacant) = (&mut self.rooms, &mut self.vacant);
            let index = *self.known.entry(path).or_insert_with(|| {
                vacant.pop().unwrap_or_else(|| {
                    rooms.push(Room::default());
                    rooms.len() - 1
                })
            });
            self.rooms[index].path = path;
            self.rooms[index].is_silent &= self.rooms[index].guests > 0;
            self.rooms[index].guests += 1;
            self.guests[place].room = u32::try_from(index + 1).unwrap_or(u32::MAX);
        }
        self.guests[place].room as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn who_comes_to_a_full_room_waits_in_line_and_other_paths_have_rooms_of_their_own() {
        let mut flights = Flights::new(10);
        assert!(flights.admit(0, 7));
        flights.sent(0, 15);
        assert!(!flights.admit(1, 7) && !flights.admit(2, 7) && flights.admit(3, 8));
        flights.acknowledged(0, 3);
        assert_eq!(flights.next(), None);
        flights.acknowledged(0, 3);
        assert_eq!(flights.next(), Some(1));
        flights.let_in(1);
        assert!(flights.admit(1, 7) && !flights.admit(0, 7), "nobody overtakes who stands in line");
        flights.sent(1, 1);
        assert_eq!(flights.next(), None);
        flights.forget(0);
        assert_eq!(flights.next(), Some(2));
        assert!(
            flights.asks(1, 1) && !flights.asks(3, 1) && flights.asks(3, 10),
            "nothing follows for which to wait"
        );
    }

    #[test]
    fn rooms_take_turns_and_one_that_is_left_by_all_is_found_again_by_another_path() {
        let mut flights = Flights::new(10);
        for (place, path) in [(0, 7), (1, 8)] {
            assert!(flights.admit(place, path));
            flights.sent(place, 10);
        }
        for (place, path) in [(2, 7), (3, 7), (4, 8), (5, 8)] {
            assert!(!flights.admit(place, path));
        }
        assert_eq!(flights.next(), None);
        flights.acknowledged(0, 10);
        flights.acknowledged(1, 10);
        assert_eq!([(); 5].map(|()| flights.next()), [Some(2), Some(4), Some(3), Some(5), None]);
        [0, 2, 3].into_iter().for_each(|place| flights.forget(place));
        assert!(flights.admit(6, 9) && flights.admit(7, 7));
        assert_eq!(flights.rooms.len(), 3, "path 9 has the room that path 7 had");
    }

    #[test]
    fn who_leaves_the_middle_of_a_line_leaves_it_to_the_others() {
        let mut flights = Flights::new(10);
        assert!(flights.admit(0, 7));
        flights.sent(0, 10);
        assert!((1..=4).all(|place| !flights.admit(place, 7)));
        [2, 1, 4].into_iter().for_each(|place| flights.forget(place));
        assert!(!flights.admit(2, 7));
        flights.acknowledged(0, 10);
        assert_eq!([(); 3].map(|()| flights.next()), [Some(3), Some(2), None]);
    }

    #[test]
    fn who_comes_from_the_line_sends_some_short_messages_and_keeps_no_room_that_it_does_not_need() {
        let mut flights = Flights::new(32);
        assert!(flights.admit(0, 7));
        flights.sent(0, 32);
        assert!(!flights.admit(1, 7) && !flights.admit(2, 7));
        flights.acknowledged(0, 2);
        assert_eq!(flights.next(), Some(1));
        flights.let_in(1);
        assert_eq!(flights.next(), None, "it may send what there is room for");
        flights.sent(1, 1);
        assert!(flights.admit(1, 7));
        flights.end_turn(1);
        assert_eq!(flights.next(), Some(2));
    }

    #[test]
    fn who_was_not_answered_in_time_has_a_packet_under_way_and_no_more_until_it_is() {
        let mut flights = Flights::new(32);
        assert!(flights.admit(0, 7));
        flights.sent(0, 32);
        assert!(!flights.admit(1, 7));
        flights.unanswered(0);
        assert_eq!(flights.next(), Some(1));
        assert!(flights.admit(0, 7) && flights.doubts(0) && flights.sent_again(0, 1));
        assert!(!flights.admit(0, 7) && !flights.is_held_up(0));
        assert_eq!(flights.next(), None, "nor does it wait in line");
        assert!(flights.doubts(1), "nobody else was answered either");
        assert!(!flights.acknowledged(1, 0) && !flights.doubts(1) && flights.doubts(0));
        assert!(flights.acknowledged(0, 1) && flights.admit(0, 7) && !flights.doubts(0));
    }

    #[test]
    fn a_tail_that_nobody_hears_of_gives_its_room_back_when_what_was_sent_a_room_later_is_acknowledged() {
        let mut flights = Flights::new(10);
        assert!(flights.admit(0, 7) && flights.admit(1, 7));
        flights.sent(0, 6);
        for round in 0..4 {
            assert_eq!(flights.rooms[0].taken, 6, "{round}");
            flights.sent(1, 3);
            flights.acknowledged(1, 3);
        }
        assert_eq!(flights.rooms[0].taken, 0, "the twelfth packet after it was acknowledged");
        flights.acknowledged(0, 6);
        assert!(flights.sent_again(1, 3), "what comes late after all is nobody else's");
        assert_eq!(flights.rooms[0].taken, 0, "nothing is to be sent again");
    }

    #[test]
    fn a_tail_gives_its_room_back_though_who_sends_after_it_always_has_something_under_way() {
        let mut flights = Flights::new(10);
        assert!(flights.admit(0, 7) && flights.admit(1, 7));
        flights.sent(0, 6);
        flights.sent(1, 1);
        for _ in 0..6 {
            flights.sent(1, 3);
            flights.acknowledged(1, 3);
        }
        assert_eq!(flights.rooms[0].taken, 1, "only the last packet is under way");
    }

    #[test]
    fn a_room_without_a_bound_to_speak_of_takes_nothing_for_lost() {
        let mut flights = Flights::new(u32::MAX);
        assert!(flights.admit(0, 7) && flights.admit(1, 7));
        flights.sent(0, 1);
        flights.sent(1, 1);
        flights.acknowledged(1, 1);
        assert_eq!(flights.rooms[0].taken, 1);
    }

    proptest! {
        #[test]
        fn everybody_gets_on_and_the_rooms_are_empty_when_all_has_come(
            packets in 1u32..40,
            steps in proptest::collection::vec((0usize..6, 1u32..20, 0u8..10), 1..200),
        ) {
            let mut flights = Flights::new(packets);
            // What each has to send, has not had acknowledged, and has to send again of that.
            let (mut wanted, mut outstanding, mut again) = ([0u32; 6], [0u32; 6], [0u32; 6]);
            let mut run = |flights: &mut Flights, place: usize, amount: u32, what: u8| {
                match what {
                    0..=3 => wanted[place] += amount,
                    4..=6 => {
                        let came = amount.min(outstanding[place] - again[place]);
                        outstanding[place] -= came;
                        flights.acknowledged(place, came);
                    }
                    7 => {
                        again[place] = outstanding[place];
                        flights.lost(place, outstanding[place]);
                    }
                    8 => {
                        again[place] = outstanding[place];
                        flights.unanswered(place);
                    }
                    _ => {
                        (wanted[place], outstanding[place], again[place]) = (0, 0, 0);
                        flights.forget(place);
                    }
                }
                let mut turns: VecDeque<usize> = (0..6).collect();
                loop {
                    if let Some(next) = flights.next() {
                        flights.let_in(next);
                        turns.push_front(next);
                    }
                    let Some(place) = turns.pop_front() else { break };
                    if wanted[place] + again[place] > 0 && flights.admit(place, place as u64 % 2) {
                        let repeated = again[place].min(15);
                        let new = wanted[place].min(15 - repeated);
                        flights.sent_again(place, repeated);
                        flights.sent(place, new);
                        again[place] -= repeated;
                        wanted[place] -= new;
                        outstanding[place] += new;
                        turns.push_front(place);
                    } else {
                        flights.end_turn(place);
                    }
                }
                for (index, room) in flights.rooms.iter().enumerate() {
                    let of = flights.guests.iter().filter(|guest| guest.room as usize == index + 1);
                    assert_eq!(room.taken, of.clone().map(|guest| guest.taken).sum::<u32>());
                    assert!(room.taken < packets + 15, "{} of {packets}", room.taken);
                    let (mut linked, mut next) = (0, room.ends.older);
                    while let Some(place) = next {
                        (linked, next) = (linked + 1, flights.guests[place as usize].links.newer);
                    }
                    assert_eq!(linked, of.clone().filter(|guest| guest.taken > 0).count());
                    let (mut queued, mut next) = (0, room.line.older);
                    while let Some(place) = next {
                        (queued, next) = (queued + 1, flights.guests[place as usize].queued.newer);
                    }
                    assert_eq!(queued, of.filter(|guest| guest.waits).count());
                    let is_open = queued > 0 && room.taken + room.promised < packets;
                    assert!(room.is_listed || !is_open, "it would not be found");
                    assert_eq!(flights.open.iter().filter(|&&open| open == index).count(), room.is_listed.into());
                }
                wanted.iter().sum::<u32>() + outstanding.iter().sum::<u32>()
            };
            for (place, amount, what) in steps {
                run(&mut flights, place, amount, what);
            }
            for _ in 0..2000 {
                for place in 0..6 {
                    run(&mut flights, place, 20, 4);
                }
            }
            prop_assert_eq!(run(&mut flights, 0, 20, 4), 0);
            let is_empty = |room: &Room| (room.taken, room.promised) == (0, 0) && room.line.is_empty();
            prop_assert!(flights.rooms.iter().all(is_empty));
            prop_assert!(flights.guests.iter().all(|guest| !guest.waits));
        }
    }
}
