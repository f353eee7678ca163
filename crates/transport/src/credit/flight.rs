//! Room under way: how many packets of requests a port's queue pairs may have on their way to one place together.
//!
//! What a queue pair has under way is bounded by its window, and nothing bounds what all of them have, while the buffer that they
//! meet in, a socket's perhaps, is one. Where that is bounded, queue pairs beyond it wait here in line.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The rooms of a port, one for each place that packets go to.
///
/// Who finds room takes it with the run that it sends, and leaves with the acknowledgements. Where there is none, or others wait
/// already, it stands in line, and nobody overtakes it. A room is full from its last packet on: a run that began before goes whole.
/// Who comes from the line may send a part of what the room holds, so that short messages too are acknowledged several at a time.
#[derive(Debug)]
pub(crate) struct Flights {
    /// The packets of each.
    packets: u32,
    /// What who comes from a line may send, unless it has less.
    turn: u32,
    rooms: Vec<Room>,
    /// By the places of queue pairs.
    guests: Vec<Guest>,
    /// Queue pairs that stand in any line.
    waiting: usize,
}

#[derive(Debug)]
struct Room {
    path: u64,
    /// Queue pairs that belong to it.
    guests: u32,
    taken: u32,
    /// What those that came from the line may still send.
    promised: u32,
    /// The places of queue pairs, in line.
    line: VecDeque<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Guest {
    /// Its room's index, from one on; zero before it has sent anything.
    room: u32,
    taken: u32,
    /// Whether it stands in the line.
    waits: bool,
    /// What it may still send, after it stood there.
    promised: u32,
}

/// A room is as many turns: enough of them are under way at once for their acknowledgements to come one after the other.
const TURNS: u32 = 16;

impl Flights {
    pub(crate) const fn new(packets: u32) -> Self {
        let turn = packets.div_ceil(TURNS);
        Self { packets, turn, rooms: Vec::new(), guests: Vec::new(), waiting: 0 }
    }

    /// Whether queue pair `place` may send a run to `path` now; else it waits in line.
    pub(crate) fn admit(&mut self, place: usize, path: u64) -> bool {
        let index = self.enter(place, path);
        let (room, guest) = (&mut self.rooms[index], &mut self.guests[place]);
        if guest.promised > 0 || room.line.is_empty() && room.taken + room.promised < self.packets {
            return true;
        }
        if !guest.waits {
            guest.waits = true;
            room.line.push_back(place);
            self.waiting += 1;
        }
        false
    }

    /// So many packets of queue pair `place` have left.
    pub(crate) fn sent(&mut self, place: usize, packets: u32) {
        let Some(guest) = self.guests.get_mut(place).filter(|guest| guest.room != 0) else { return };
        let room = &mut self.rooms[guest.room as usize - 1];
        let kept = packets.min(guest.promised);
        guest.promised -= kept;
        room.promised -= kept;
        guest.taken += packets;
        room.taken += packets;
    }

    /// Whether queue pair `place` has its room with others, who may have to wait for what it does not hear of.
    pub(crate) fn shares(&self, place: usize) -> bool {
        let guest = self.guests.get(place).filter(|guest| guest.room != 0);
        guest.is_some_and(|guest| self.rooms[guest.room as usize - 1].guests > 1)
    }

    /// Queue pair `place` has no more than so many packets under way. Gives who is next in line, if there is room now.
    pub(crate) fn left(&mut self, place: usize, under_way: u32) -> Option<usize> {
        let guest = self.guests.get_mut(place).filter(|guest| guest.room != 0)?;
        let index = guest.room as usize - 1;
        self.rooms[index].taken -= guest.taken.saturating_sub(under_way);
        guest.taken = guest.taken.min(under_way);
        if self.waiting == 0 { None } else { self.next_of(index) }
    }

    /// Who is next in any line where there is room.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        (0..self.rooms.len()).find_map(|index| self.next_of(index))
    }

    /// Queue pair `place`, which was next, has its turn.
    pub(crate) fn let_in(&mut self, place: usize) {
        let guest = &mut self.guests[place];
        self.rooms[guest.room as usize - 1].promised += self.turn - guest.promised;
        guest.promised = self.turn;
    }

    /// Queue pair `place` has nothing more to send at present: so its turn is over.
    pub(crate) fn end_turn(&mut self, place: usize) {
        if let Some(guest) = self.guests.get_mut(place).filter(|guest| guest.promised > 0) {
            self.rooms[guest.room as usize - 1].promised -= guest.promised;
            guest.promised = 0;
        }
    }

    /// Gives up all that a queue pair has here. Gives who is next in its line, if there is room now.
    pub(crate) fn forget(&mut self, place: usize) -> Option<usize> {
        let guest = core::mem::take(self.guests.get_mut(place).filter(|guest| guest.room != 0)?);
        let index = guest.room as usize - 1;
        let room = &mut self.rooms[index];
        room.guests -= 1;
        room.taken -= guest.taken;
        room.promised -= guest.promised;
        if guest.waits {
            room.line.retain(|&waiting| waiting != place);
            self.waiting -= 1;
        }
        self.next_of(index)
    }

    fn next_of(&mut self, index: usize) -> Option<usize> {
        let room = &mut self.rooms[index];
        if room.taken + room.promised >= self.packets {
            return None;
        }
        let place = room.line.pop_front()?;
        self.guests[place].waits = false;
        self.waiting -= 1;
        Some(place)
    }

    /// The index of the queue pair's room. It keeps it until it is forgotten, as its path does not change before.
    fn enter(&mut self, place: usize, path: u64) -> usize {
        if self.guests.len() <= place {
            self.guests.resize(place + 1, Guest::default());
        }
        if self.guests[place].room == 0 {
            let known = self.rooms.iter().position(|room| room.guests > 0 && room.path == path);
            let empty = || self.rooms.iter().position(|room| room.guests == 0);
            let index = known.or_else(empty).unwrap_or_else(|| {
                self.rooms.push(Room { path, guests: 0, taken: 0, promised: 0, line: VecDeque::new() });
                self.rooms.len() - 1
            });
            self.rooms[index].path = path;
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
        assert_eq!(flights.left(0, 12), None);
        assert_eq!(flights.left(0, 9), Some(1));
        flights.let_in(1);
        assert!(flights.admit(1, 7) && !flights.admit(0, 7), "nobody overtakes who stands in line");
        flights.sent(1, 1);
        assert_eq!((flights.left(1, 1), flights.forget(0)), (None, Some(2)));
        assert!(flights.shares(1) && !flights.shares(3));
    }

    #[test]
    fn who_comes_from_the_line_sends_some_short_messages_and_keeps_no_room_that_it_does_not_need() {
        let mut flights = Flights::new(32);
        assert!(flights.admit(0, 7));
        flights.sent(0, 32);
        assert!(!flights.admit(1, 7) && !flights.admit(2, 7));
        assert_eq!(flights.left(0, 30), Some(1));
        flights.let_in(1);
        assert_eq!(flights.next(), None, "it may send what there is room for");
        flights.sent(1, 1);
        assert!(flights.admit(1, 7));
        flights.end_turn(1);
        assert_eq!(flights.next(), Some(2));
    }

    proptest! {
        #[test]
        fn everybody_gets_on_and_the_rooms_are_empty_when_all_has_come(
            packets in 1u32..40,
            steps in proptest::collection::vec((0usize..6, 1u32..20, 0u8..8), 1..200),
        ) {
            let mut flights = Flights::new(packets);
            let (mut wanted, mut under_way) = ([0u32; 6], [0u32; 6]);
            let mut run = |flights: &mut Flights, place: usize, amount: u32, what: u8| {
                let mut next = None;
                match what {
                    0..=3 => wanted[place] += amount,
                    4..=6 => {
                        under_way[place] = under_way[place].saturating_sub(amount);
                        next = flights.left(place, under_way[place]);
                    }
                    _ => {
                        (wanted[place], under_way[place]) = (0, 0);
                        next = flights.forget(place);
                    }
                }
                let mut turns: VecDeque<usize> = (0..6).collect();
                loop {
                    if let Some(next) = next.take().or_else(|| flights.next()) {
                        flights.let_in(next);
                        turns.push_front(next);
                    }
                    let Some(place) = turns.pop_front() else { break };
                    if wanted[place] > 0 && flights.admit(place, place as u64 % 2) {
                        let run = wanted[place].min(15);
                        flights.sent(place, run);
                        wanted[place] -= run;
                        under_way[place] += run;
                        turns.push_front(place);
                    } else {
                        flights.end_turn(place);
                    }
                }
                for path in 0..2 {
                    let of = |sum: u32, place: &usize| sum + under_way[*place];
                    let taken = (0..6).filter(|place| place % 2 == path).fold(0, |sum, place| of(sum, &place));
                    assert!(taken < packets + 15, "{taken} of {packets}");
                }
                (wanted.iter().sum::<u32>(), under_way.iter().sum::<u32>())
            };
            for (place, amount, what) in steps {
                run(&mut flights, place, amount, what);
            }
            for _ in 0..2000 {
                for place in 0..6 {
                    run(&mut flights, place, 20, 4);
                }
            }
            prop_assert_eq!(run(&mut flights, 0, 20, 4), (0, 0));
            let is_empty = |room: &Room| (room.taken, room.promised, room.line.len()) == (0, 0, 0);
            prop_assert!(flights.rooms.iter().all(is_empty));
            prop_assert_eq!(flights.waiting, 0);
        }
    }
}
