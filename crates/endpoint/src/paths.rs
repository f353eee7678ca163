//! Peers' addresses as the engine's opaque numbers.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 addresses are their own numbers; IPv6 addresses are numbered as they become known.
///
/// A connected queue pair keeps its peer's. All others are guests, who come and go with datagrams: of those the
/// [`GUESTS_MAX`] that were met last are known, and a number that was another's before is never the same again.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    places: Vec<Place>,
    numbers: HashMap<Ipv6Addr, u32>,
    /// Those that nobody keeps, who came first in front; and some that are kept, until they stand in front.
    guests: VecDeque<u32>,
}

#[derive(Debug)]
struct Place {
    address: Ipv6Addr,
    /// How many addresses have had it before.
    generation: u16,
    /// Queue pairs that are connected to it.
    kept: u32,
    /// Whether it is in the queue of guests.
    is_guest: bool,
    /// Met again since it stood in front there.
    is_fresh: bool,
}

const V6: u64 = 1 << 40;
/// Bits of a number that say the place; the generation stands above them.
const PLACE_BITS: u32 = 24;
/// No queue pair has this path.
const NOBODY: u64 = u64::MAX;
/// Strangers who send datagrams must not fill the memory.
const GUESTS_MAX: usize = 4096;
/// Above these bits stands the code point with which packets go there: several paths lead to one address.
const CLASS_SHIFT: u32 = 56;
const ADDRESS: u64 = (1 << CLASS_SHIFT) - 1;

/// The path to the same address whose packets have this code point.
pub(crate) const fn classed(path: u64, dscp: u8) -> u64 {
    path & ADDRESS | (dscp as u64) << CLASS_SHIFT
}

/// What of a path is not its address.
pub(crate) const fn class_of(path: u64) -> u64 {
    path & !ADDRESS
}

/// The code point that packets of a path have.
pub(crate) const fn dscp_of(path: u64) -> u8 {
    (path >> CLASS_SHIFT) as u8
}

impl Paths {
    /// The number of an address, if it is known.
    pub(crate) fn find(&self, address: IpAddr) -> u64 {
        match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => self.numbers.get(&address).map_or(NOBODY, |place| self.number(*place)),
        }
    }

    /// The number of an address, which is known from now on, as long as it is kept or not too many others are met.
    pub(crate) fn learn(&mut self, address: IpAddr) -> Option<u64> {
        let IpAddr::V6(new) = address else { return Some(self.find(address)) };
        if let Some(&place) = self.numbers.get(&new) {
            self.places[place as usize].is_fresh = true;
            return Some(self.number(place));
        }
        let place = match self.vacate() {
            Some(place) => {
                self.places[place as usize].address = new;
                place
            }
            None => {
                let place = u32::try_from(self.places.len()).ok().filter(|place| *place < 1 << PLACE_BITS)?;
                let (generation, kept) = (0, 0);
                self.places.push(Place { address: new, generation, kept, is_guest: true, is_fresh: false });
                place
            }
        };
        self.numbers.insert(new, place);
        self.guests.push_back(place);
        Some(self.number(place))
    }

    /// Takes its place from a guest who was not met for long, if there are too many.
    fn vacate(&mut self) -> Option<u32> {
        if self.guests.len() < GUESTS_MAX {
            return None;
        }
        while let Some(place) = self.guests.pop_front() {
            let it = &mut self.places[place as usize];
            if it.kept > 0 {
                it.is_guest = false;
            } else if it.is_fresh {
                it.is_fresh = false;
                self.guests.push_back(place);
            } else {
                self.numbers.remove(&it.address);
                it.generation = it.generation.wrapping_add(1);
                return Some(place);
            }
        }
        None
    }

    /// A queue pair is connected to this address from now on: its number stays.
    pub(crate) fn keep(&mut self, path: u64) {
        if let Some(place) = self.place(path) {
            self.places[place as usize].kept += 1;
        }
    }

    /// The queue pair is so no longer.
    pub(crate) fn release(&mut self, path: u64) {
        let Some(place) = self.place(path) else { return };
        let it = &mut self.places[place as usize];
        it.kept = it.kept.saturating_sub(1);
        if it.kept == 0 && !it.is_guest {
            it.is_guest = true;
            self.guests.push_back(place);
        }
    }

    /// The address with this number, whatever its code point is.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    pub(crate) fn address(&self, path: u64) -> Option<IpAddr> {
        let path = path & ADDRESS;
        if path < V6 {
            return Some(Ipv4Addr::from_bits(path as u32).into());
        }
        self.place(path).map(|place| self.places[place as usize].address.into())
    }

    fn number(&self, place: u32) -> u64 {
        V6 | u64::from(self.places[place as usize].generation) << PLACE_BITS | u64::from(place)
    }

    /// The place that a number names, if it still does.
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]
    fn place(&self, path: u64) -> Option<u32> {
        let path = path & ADDRESS;
        let place = path as u32 & ((1 << PLACE_BITS) - 1);
        (self.places.len() > place as usize && self.number(place) == path).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(number: u32) -> IpAddr {
        Ipv6Addr::from_bits(0xfd << 120 | u128::from(number)).into()
    }

    #[test]
    fn an_address_comes_back_from_its_number_and_a_stranger_has_none() {
        let mut paths = Paths::default();
        for text in ["10.0.0.1", "255.255.255.255", "fd00::1", "fd00::2"] {
            let address: IpAddr = text.parse().unwrap();
            let path = paths.learn(address).unwrap();
            assert_eq!((paths.address(path), paths.find(address)), (Some(address), path));
        }
        assert_eq!(paths.address(paths.find("fd00::3".parse().unwrap())), None);
    }

    #[test]
    fn paths_of_several_code_points_lead_to_one_address() {
        let mut paths = Paths::default();
        for text in ["10.0.0.1", "fd00::1"] {
            let address: IpAddr = text.parse().unwrap();
            let path = paths.learn(address).unwrap();
            let [urgent, usual] = [46, 0].map(|dscp| classed(path, dscp));
            assert_eq!((usual, dscp_of(urgent), class_of(urgent) | path), (path, 46, urgent));
            assert_eq!((paths.address(urgent), classed(urgent, 0)), (Some(address), path));
        }
        assert_eq!(paths.address(NOBODY), None);
        assert_eq!(paths.address(NOBODY | class_of(classed(0, 63))), None, "a stranger is nobody's peer");
    }

    #[test]
    fn guests_come_and_go_and_those_who_are_kept_stay() {
        let mut paths = Paths::default();
        let max = u32::try_from(GUESTS_MAX).unwrap();
        let [peer, old, friend] = [0, 1, 2].map(|number| paths.learn(stranger(number)).unwrap());
        paths.keep(peer);
        for number in 3..10 * max {
            paths.learn(stranger(number)).unwrap();
            assert_eq!(paths.learn(stranger(2)), Some(friend), "who is met again and again stays");
        }
        assert!(paths.places.len() <= GUESTS_MAX + 1 && paths.numbers.len() == paths.places.len());
        assert_eq!((paths.address(peer), paths.find(stranger(0))), (Some(stranger(0)), peer));
        assert_eq!((paths.address(old), paths.find(stranger(1))), (None, NOBODY));
        let again = paths.learn(stranger(1)).unwrap();
        assert!(again != old && paths.address(old).is_none(), "nobody gets another's number");
        paths.release(peer);
        for number in 0..2 * max {
            paths.learn(stranger(1000 + number)).unwrap();
        }
        assert_eq!(paths.address(peer), None, "and goes when its queue pair does");
        assert!(paths.places.len() <= GUESTS_MAX + 1);
    }
}
