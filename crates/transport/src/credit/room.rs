//! Room for READ data: how many octets a port's queue pairs may have asked for together.
//!
//! What a queue pair has under way is bounded by its window, and READ data by the requests for it; but nothing says that the port
//! takes what all of them have asked for. Where that comes to a buffer of a given size, requests beyond it wait here.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use roci_control::homa::Params;

/// A READ of more than this part of the room is a long one.
const SHORT: u64 = 64;

/// The rooms of a port, one for long READs and one as large for short ones, which would otherwise wait for all that long ones
/// bring. A READ that is longer than its room goes when nothing else is in it.
///
/// Each queue pair waits in line with one READ, and nobody overtakes it: so all get their turns, whatever their READs' lengths.
/// One that is let in has its room before it is sent, and keeps it until it ends.
///
/// Where READs are let in piece by piece, those from one host have two pieces of a room and its line, and wait in a line of that
/// host's beyond that, until nobody else is in line: if it is busy elsewhere all of them wait, and room is lost that another host would
/// have filled the link from.
#[derive(Debug)]
pub(crate) struct ReadRooms {
    /// The octets of each.
    octets: u64,
    /// The longest that counts as short.
    short: u32,
    /// What a READ is cut into, where it is let in piece by piece; zero where it is not.
    piece: u32,
    /// Whether a READ that is longer than the room is asked for in parts.
    cuts: bool,
    /// Homa's parameters, then.
    params: Option<Params>,
    rooms: [Room; 2],
    /// READs that were let in, and that have ended.
    turns: u32,
    /// By the places of queue pairs.
    guests: Vec<Guest>,
    /// Those who are read from, where READs are let in piece by piece, and the number of the room.
    hosts: BTreeMap<(u64, usize), Room>,
    /// How many wait in hosts' lines for each room.
    held: [usize; 2],
}

/// A room, or a host's part of one.
#[derive(Debug, Default)]
struct Room {
    taken: u64,
    /// The places of queue pairs, each with the length of its READ, in line.
    line: VecDeque<(usize, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Guest {
    /// Octets that it has in each room.
    taken: [u64; 2],
    /// Whether it stands in a line.
    waits: bool,
    /// Whether its next READ is in.
    admitted: bool,
    /// Whom it reads from.
    host: u64,
}

impl ReadRooms {
    pub(crate) fn new(octets: u64) -> Self {
        let short = u32::try_from(octets / SHORT).unwrap_or(u32::MAX);
        Self {
            octets,
            short,
            piece: 0,
            cuts: false,
            params: None,
            rooms: Default::default(),
            turns: 0,
            guests: Vec::new(),
            hosts: BTreeMap::new(),
            held: [0; 2],
        }
    }

    /// Rooms for READs that are granted as messages are: in pieces of a round trip's octets, of which each queue pair has
    /// about two at most, one on its way and one asked for, and of all together about as many as messages have grants at once,
    /// but two at least. Those from one host have two while others are in line.
    pub(crate) fn granted(params: &Params) -> Self {
        let piece = params.ahead.unwrap_or(params.unscheduled);
        Self {
            piece,
            params: Some(*params),
            ..Self::new(u64::from(params.overcommit.max(2)) * u64::from(piece))
        }
    }

    /// The priority of READ data, `length` octets that were asked for at once, where they are granted as messages are.
    pub(crate) fn priority(&self, length: u32) -> Option<u8> {
        Some(self.params.as_ref()?.read_priority(length))
    }

    /// The priority of a packet of a message or of READ data of `length` octets that goes again after a timeout, where those are granted:
    /// it would wait once more where it has waited too long. That of unscheduled octets, and a level more after each timeout that
    /// nothing was heard since, of which there were `before` this one.
    pub(crate) fn priority_after_timeout(&self, length: u32, before: u8) -> Option<u8> {
        Some(self.params.as_ref()?.unscheduled_priority(length).saturating_add(before).min(7))
    }

    /// What a READ is cut into, if it is.
    pub(crate) fn piece(&self) -> Option<u32> {
        (self.piece > 0).then_some(self.piece)
    }

    /// Has READs that are longer than the room asked for in parts.
    pub(crate) fn cut(&mut self) {
        self.cuts = true;
    }

    /// What a READ of `length` octets is asked for in, if not at once: half a room, so that the next part is asked for while one is on
    /// its way.
    pub(crate) fn part(&self, length: u32) -> Option<u32> {
        (self.cuts && u64::from(length) > self.octets)
            .then(|| u32::try_from(self.octets / 2).unwrap_or(u32::MAX))
    }

    /// Makes the rooms larger, if they are not as large.
    pub(crate) fn widen(&mut self, octets: u64) {
        self.octets = self.octets.max(octets);
    }

    /// How many READs have been let in or have ended, where any waits: while that number stands, none gets on.
    pub(crate) fn waiting(&self) -> Option<u32> {
        self.someone_waits().then_some(self.turns)
    }

    /// Lets the next READ of queue pair `place` in, of `length` octets from `host`, or has it wait in line.
    pub(crate) fn admit(&mut self, place: usize, host: u64, length: u32) -> bool {
        let class = self.class(length);
        if self.guests.len() <= place {
            self.guests.resize(place + 1, Guest::default());
        }
        if self.guests[place].admitted {
            return true;
        }
        if self.guests[place].waits {
            return false;
        }
        if self.piece > 0 {
            let guest = &mut self.guests[place];
            // It comes again when one of its own has ended.
            let own: u64 = guest.taken.iter().sum();
            if own >= 2 * u64::from(self.piece) {
                return false;
            }
            if own == 0 {
                guest.host = host;
            }
            let host = guest.host;
            let is_free =
                self.rooms[class].line.is_empty() && self.held[class] == 0 && self.fits(class, length);
            let of_host = self.hosts.entry((host, class)).or_default();
            let has_its_part = !of_host.line.is_empty() || of_host.taken >= 2 * u64::from(self.piece);
            if has_its_part && !is_free {
                self.guests[place].waits = true;
                of_host.line.push_back((place, length));
                self.held[class] += 1;
                return false;
            }
            of_host.taken += u64::from(length);
        }
        if self.rooms[class].line.is_empty() && self.fits(class, length) {
            self.take(place, length);
            return true;
        }
        self.guests[place].waits = true;
        self.rooms[class].line.push_back((place, length));
        false
    }

    /// The READ that was let in has been sent.
    pub(crate) fn sent(&mut self, place: usize) {
        if let Some(guest) = self.guests.get_mut(place) {
            guest.admitted = false;
        }
    }

    /// A READ of `length` octets has ended. Whether anybody waits for what it leaves.
    pub(crate) fn leave(&mut self, place: usize, length: u32) -> bool {
        let class = self.class(length);
        let Some(guest) = self.guests.get_mut(place) else { return false };
        self.turns = self.turns.wrapping_add(1);
        let octets = u64::from(length).min(guest.taken[class]);
        guest.taken[class] -= octets;
        self.rooms[class].taken -= octets;
        let host = guest.host;
        self.leave_host(host, class, octets);
        !self.rooms[class].line.is_empty() || self.held != [0; 2]
    }

    /// Gives up all that a queue pair has here, its place in a line included. Whether anybody waits.
    pub(crate) fn forget(&mut self, place: usize) -> bool {
        let Some(guest) = self.guests.get_mut(place) else { return false };
        let Guest { taken, waits, host, .. } = core::mem::take(guest);
        for (class, mut left) in taken.into_iter().enumerate() {
            let room = &mut self.rooms[class];
            room.taken -= left;
            if waits && let Some(at) = room.line.iter().position(|&(waiting, _)| waiting == place) {
                left += room.line.remove(at).map_or(0, |(_, length)| length.into());
            }
            if let Some(of_host) = self.hosts.get_mut(&(host, class)).filter(|_| waits) {
                let before = of_host.line.len();
                of_host.line.retain(|&(waiting, _)| waiting != place);
                self.held[class] -= before - of_host.line.len();
            }
            self.leave_host(host, class, left);
            let is_empty = |of_host: &Room| of_host.taken == 0 && of_host.line.is_empty();
            if self.hosts.get(&(host, class)).is_some_and(is_empty) {
                self.hosts.remove(&(host, class));
            }
        }
        self.someone_waits()
    }

    fn someone_waits(&self) -> bool {
        self.held != [0; 2] || self.rooms.iter().any(|room| !room.line.is_empty())
    }

    /// What is read from `host` has so many octets less in a room: who waits for that goes on to the room's line.
    fn leave_host(&mut self, host: u64, class: usize, octets: u64) {
        let Some(of_host) = self.hosts.get_mut(&(host, class)) else { return };
        of_host.taken -= octets;
        while of_host.taken < 2 * u64::from(self.piece)
            && let Some((place, length)) = of_host.line.pop_front()
        {
            of_host.taken += u64::from(length);
            self.held[class] -= 1;
            self.rooms[class].line.push_back((place, length));
        }
    }

    /// Lets in the first in a line for whom there is room, or `extra` octets more than that, if he is `ready` to send; who is not
    /// comes again when he is. Gives his place, and what of `extra` is left.
    pub(crate) fn next(&mut self, extra: u64, mut ready: impl FnMut(usize) -> bool) -> Option<(usize, u64)> {
        for class in 0..self.rooms.len() {
            while let Some((place, length)) = self.front(class) {
                let fits = self.fits(class, length);
                if !fits && extra == 0 {
                    break;
                }
                self.rooms[class].line.pop_front();
                self.guests[place].waits = false;
                if ready(place) {
                    self.take(place, length);
                    return Some((place, if fits { extra } else { extra.saturating_sub(length.into()) }));
                }
                let host = self.guests[place].host;
                self.leave_host(host, class, length.into());
            }
        }
        None
    }

    /// Who is first in line for a room: where nobody is and it has room, the first who waits for the host from which the least is read.
    fn front(&mut self, class: usize) -> Option<(usize, u32)> {
        if self.rooms[class].line.is_empty() && self.held[class] > 0 && self.fits(class, 0) {
            let waits =
                self.hosts.iter_mut().filter(|(key, of_host)| key.1 == class && !of_host.line.is_empty());
            let (_, of_host) = waits.min_by_key(|(_, of_host)| of_host.taken)?;
            let (place, length) = of_host.line.pop_front()?;
            of_host.taken += u64::from(length);
            self.held[class] -= 1;
            self.rooms[class].line.push_back((place, length));
        }
        self.rooms[class].line.front().copied()
    }

    /// Whether it is for the room of short ones.
    fn class(&self, length: u32) -> usize {
        usize::from(length <= self.short)
    }

    fn fits(&self, class: usize, length: u32) -> bool {
        let taken = self.rooms[class].taken;
        if self.piece > 0 {
            // Pieces are whole packets, and may be a little longer than what the room is a multiple of.
            return taken < self.octets;
        }
        taken == 0 || taken + u64::from(length) <= self.octets
    }

    fn take(&mut self, place: usize, length: u32) {
        let class = self.class(length);
        self.turns = self.turns.wrapping_add(1);
        let guest = &mut self.guests[place];
        guest.admitted = true;
        guest.taken[class] += u64::from(length);
        self.rooms[class].taken += u64::from(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use roci_control::Homa;

    fn admitted(rooms: &mut ReadRooms, wanted: &[(usize, u32)]) -> Vec<usize> {
        wanted
            .iter()
            .filter(|&&(place, length)| rooms.admit(place, 0, length))
            .map(|&(place, _)| place)
            .collect()
    }

    #[test]
    fn short_reads_do_not_wait_for_long_ones_nor_a_longer_one_than_the_room_for_ever() {
        let mut rooms = ReadRooms::new(6400);
        assert_eq!(admitted(&mut rooms, &[(0, 10_000), (1, 101), (2, 100), (3, 8), (4, 200)]), [0, 2, 3]);
        assert!(rooms.leave(0, 10_000));
        let mut all = Vec::new();
        while let Some((place, _)) = rooms.next(0, |_| true) {
            all.push(place);
        }
        assert_eq!(all, [1, 4]);
    }

    #[test]
    fn nobody_overtakes_who_stands_in_line_and_who_is_not_ready_comes_again() {
        let mut rooms = ReadRooms::new(1000);
        assert_eq!(admitted(&mut rooms, &[(0, 600), (1, 500), (2, 300), (1, 500), (0, 600)]), [0, 0]);
        assert!(!rooms.admit(3, 0, 100), "it would fit, but others are before it");
        assert!(rooms.leave(0, 600));
        assert_eq!(rooms.next(0, |place| place != 1), Some((2, 0)));
        assert!(!rooms.admit(1, 0, 500), "it has lost its place");
        assert_eq!(rooms.next(0, |_| true), Some((3, 0)));
        assert_eq!(rooms.next(0, |_| true), Some((1, 0)));
        assert_eq!(rooms.next(0, |_| true), None);
    }

    #[test]
    fn what_is_beyond_the_room_is_let_in_by_its_octets() {
        let mut rooms = ReadRooms::new(1000);
        assert_eq!(admitted(&mut rooms, &[(0, 900), (1, 400), (2, 400), (3, 400)]), [0]);
        let before = rooms.waiting();
        assert_eq!(rooms.next(500, |_| true), Some((1, 100)));
        assert_eq!(rooms.next(100, |_| true), Some((2, 0)));
        assert_eq!(rooms.next(0, |_| true), None);
        assert!(before.is_some() && rooms.waiting() != before);
    }

    /// Rooms of pieces of 1000 octets, of which all together have `pieces`.
    fn in_pieces(pieces: u8) -> ReadRooms {
        let params = Params { overcommit: pieces, ahead: Some(1000), ..*Homa::default().params() };
        ReadRooms::granted(&params)
    }

    #[test]
    fn what_is_read_from_a_busy_host_makes_room_for_others_beyond_two_pieces() {
        let mut rooms = in_pieces(4);
        let asks = |rooms: &mut ReadRooms, place, host| rooms.admit(place, host, 1000);
        let alone = [1, 2, 3, 4, 5].map(|place| asks(&mut rooms, place, 7));
        assert_eq!(alone, [true, true, true, true, false], "nobody else needs it");
        assert!(!asks(&mut rooms, 6, 8) && !asks(&mut rooms, 9, 8));
        for (left, next) in [(1, 6), (2, 9)] {
            assert!(rooms.leave(left, 1000));
            assert_eq!(rooms.next(0, |_| true), Some((next, 0)), "two are left, and two may stay");
        }
        assert!(!asks(&mut rooms, 10, 8), "it has its two");
        assert!(rooms.leave(3, 1000));
        assert_eq!(rooms.next(0, |_| true), Some((5, 0)));
        assert!(rooms.leave(6, 1000));
        assert_eq!(rooms.next(0, |_| true), Some((10, 0)));
        assert!(rooms.admit(11, 7, 15), "a short one does not wait for long ones");
    }

    proptest! {
        /// Two queue pairs read from each of three hosts.
        #[test]
        fn who_is_read_from_has_room_in_turn_and_everybody_is_let_in(
            pieces in 1u8..8,
            steps in proptest::collection::vec((0usize..6, 0u32..1100, 0u8..9), 1..200),
        ) {
            let mut rooms = in_pieces(pieces);
            let (mut wanted, mut under_way) = ([None; 6], [const { VecDeque::new() }; 6]);
            let mut held = [false; 6];
            let mut run = |rooms: &mut ReadRooms, place: usize, length: u32, what: u8| {
                match what {
                    0..=3 => {
                        wanted[place].get_or_insert(length);
                    }
                    4..=6 => {
                        if let Some(length) = under_way[place].pop_front() {
                            rooms.leave(place, length);
                        }
                    }
                    // Something else holds it back, it may be while it stands in a line; or does no longer.
                    7 => held[place] = !held[place],
                    9 => held[place] = false,
                    _ => {
                        rooms.forget(place);
                        (wanted[place], under_way[place]) = (None, VecDeque::new());
                    }
                }
                while let Some((place, _)) = rooms.next(0, |place| wanted[place].is_some() && !held[place]) {
                    assert!(rooms.guests[place].admitted);
                }
                for place in 0..6 {
                    if let Some(length) = wanted[place] && !held[place] && rooms.admit(place, place as u64 / 2, length) {
                        rooms.sent(place);
                        under_way[place].push_back(length);
                        wanted[place] = None;
                    }
                }
                let counted: u64 = under_way.iter().flatten().map(|&length| u64::from(length)).sum();
                let mut taken = [0; 2];
                let mut held = [0; 2];
                for (&(_, class), of_host) in &rooms.hosts {
                    taken[class] += of_host.taken;
                    held[class] += of_host.line.len();
                }
                for (class, room) in rooms.rooms.iter().enumerate() {
                    let in_line: u64 = room.line.iter().map(|&(_, length)| u64::from(length)).sum();
                    assert_eq!(taken[class], room.taken + in_line);
                    assert!(room.taken < rooms.octets + 1100);
                }
                assert_eq!(rooms.held, held);
                (counted, wanted.iter().flatten().count())
            };
            for (place, length, what) in steps {
                run(&mut rooms, place, length, what);
            }
            // By now none is held back.
            for place in 0..6 {
                run(&mut rooms, place, 0, 9);
            }
            for _ in 0..200 {
                for place in 0..6 {
                    run(&mut rooms, place, 0, 4);
                }
            }
            prop_assert_eq!(run(&mut rooms, 0, 0, 4), (0, 0));
            prop_assert_eq!(rooms.waiting(), None);
            prop_assert!(rooms.hosts.values().all(|of_host| of_host.taken == 0));
        }

        #[test]
        fn everybody_is_let_in_and_the_rooms_are_empty_when_all_have_left(
            octets in 1u64..3000,
            steps in proptest::collection::vec((0usize..6, 0u32..2000, 0u8..8), 1..200),
        ) {
            let mut rooms = ReadRooms::new(octets);
            // What each waits to send, and what each has sent.
            let (mut wanted, mut under_way) = ([None; 6], [const { VecDeque::new() }; 6]);
            let mut run = |rooms: &mut ReadRooms, place: usize, length: u32, what: u8| {
                match what {
                    0..=3 => {
                        wanted[place].get_or_insert(length);
                    }
                    4..=6 => {
                        if let Some(length) = under_way[place].pop_front() {
                            rooms.leave(place, length);
                        }
                    }
                    _ => {
                        rooms.forget(place);
                        (wanted[place], under_way[place]) = (None, VecDeque::new());
                    }
                }
                while rooms.next(0, |place| wanted[place].is_some()).is_some() {}
                for place in 0..6 {
                    if let Some(length) = wanted[place] && rooms.admit(place, 0, length) {
                        rooms.sent(place);
                        under_way[place].push_back(length);
                        wanted[place] = None;
                    }
                }
                let counted: u64 = under_way.iter().flatten().map(|&length| u64::from(length)).sum();
                let taken: u64 = rooms.rooms.iter().map(|room| room.taken).sum();
                assert_eq!(taken, counted);
                let is_one = |class| {
                    let of = |length: &&u32| usize::from(**length <= rooms.short) == class;
                    under_way.iter().flatten().filter(of).filter(|length| **length > 0).count() <= 1
                };
                for class in 0..2 {
                    assert!(rooms.rooms[class].taken <= octets || is_one(class));
                }
                (counted, wanted.iter().flatten().count())
            };
            for (place, length, what) in steps {
                run(&mut rooms, place, length, what);
            }
            for _ in 0..200 {
                for place in 0..6 {
                    run(&mut rooms, place, 0, 4);
                }
            }
            prop_assert_eq!(run(&mut rooms, 0, 0, 4), (0, 0));
            prop_assert_eq!(rooms.waiting(), None);
        }
    }
}
