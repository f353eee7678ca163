//! A set-associative cache, of which the least recently used goes first, or any.

use super::spec::{Entries, Replacement, Store};
use roci_units::{Instant, Qpn, Random};

/// What is cached by number: contexts by queue pair, translations by page.
///
/// Numbers of queue pairs are dense, and so are the pages of one queue pair: neighbours lie in neighbouring sets, as index
/// bits of an address would have it. The pages of many queue pairs are so many spaces, all of which begin at page 0; each
/// begins at another set, at the golden section of the last gap, so that they cover all sets evenly.
///
/// `V` is what an entry holds besides its number.
#[derive(Clone, Debug)]
pub struct Cache<V> {
    /// Entries of a set; a set's most recently used entry comes first.
    ways: usize,
    sets: usize,
    places: Vec<Vec<(u64, V)>>,
    /// Nothing ever misses.
    whole: bool,
    /// What draws who makes way, where it is not the least recently used.
    random: Option<Random>,
    /// Lookups that found their entry.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Entries that made way for others.
    pub evictions: u64,
}

impl<V: Default> Cache<V> {
    /// A cache of `entries` in sets of `ways`; zero ways: a single set.
    pub fn new(entries: Entries, ways: u32) -> Self {
        let (count, whole) = match entries {
            Entries::All => (0, true),
            Entries::Count(count) => (count as usize, false),
        };
        let ways = if ways == 0 { count } else { (ways as usize).min(count) };
        let sets = count.checked_div(ways).unwrap_or(0);
        let places = std::iter::repeat_with(Vec::new).take(sets).collect();
        Self { ways, sets, places, whole, random: None, hits: 0, misses: 0, evictions: 0 }
    }

    /// The cache of a NIC's `store`, which draws from `random` who makes way, if it draws.
    pub fn of(store: &Store, random: Random) -> Self {
        let draws = store.replacement == Replacement::Random;
        Self { random: draws.then_some(random), ..Self::new(store.entries, store.ways) }
    }

    /// Whether it holds everything, and so never misses.
    pub const fn is_whole(&self) -> bool {
        self.whole
    }

    /// The entry of `number`, if it is there: it is then the most recently used of its set. Counts a hit or a miss.
    pub fn lookup(&mut self, number: u64) -> Option<&mut V> {
        self.lookup_serving(number, |_| true)
    }

    /// The same where only an entry that `serves` is of use: another one counts as a miss, and is given as none.
    pub fn lookup_serving(&mut self, number: u64, serves: impl FnOnce(&V) -> bool) -> Option<&mut V> {
        let found = self.set_of(number).and_then(|set| {
            let places = &mut self.places[set];
            let place = places.iter().position(|(other, _)| *other == number)?;
            places[..=place].rotate_right(1);
            serves(&places[0].1).then_some(set)
        });
        match found {
            Some(set) => {
                self.hits += 1;
                self.places[set].first_mut().map(|(_, value)| value)
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Has `number` in the cache with `value`, as the most recently used of its set, and gives the number of the entry
    /// that made way for it. A cache without entries keeps nothing.
    pub fn insert(&mut self, number: u64, value: V) -> Option<u64> {
        let set = self.set_of(number)?;
        let places = &mut self.places[set];
        if let Some(place) = places.iter().position(|(other, _)| *other == number) {
            places.remove(place);
        }
        let evicted = match &mut self.random {
            _ if places.len() < self.ways => None,
            None => places.pop(),
            Some(random) => {
                let place = random.below(places.len() as u64);
                usize::try_from(place).ok().map(|place| places.swap_remove(place))
            }
        };
        places.insert(0, (number, value));
        self.evictions += u64::from(evicted.is_some());
        evicted.map(|(number, _)| number)
    }

    /// Looks `number` up and has it in the cache from now on. True: it was there.
    pub fn touch(&mut self, number: u64) -> bool {
        if self.whole {
            self.hits += 1;
            return true;
        }
        let hit = self.lookup(number).is_some();
        if !hit {
            self.insert(number, V::default());
        }
        hit
    }

    /// Whether it can keep anything.
    pub const fn keeps(&self) -> bool {
        self.sets > 0
    }

    /// What the entry of `number` holds, if it is there. This is no use of it, and counts nothing.
    pub fn peek_mut(&mut self, number: u64) -> Option<&mut V> {
        let set = self.set_of(number)?;
        self.places[set].iter_mut().find(|(other, _)| *other == number).map(|(_, value)| value)
    }

    fn set_of(&self, number: u64) -> Option<usize> {
        match self.sets {
            0 => None,
            sets => {
                let (space, within) = (number >> SPACE & PLACES, number % (1 << SPACE));
                let turned = u128::from(space.wrapping_mul(GOLDEN)) * sets as u128;
                let from = (turned >> 64) as u64;
                usize::try_from((from + within) % sets as u64).ok()
            }
        }
    }
}

impl Cache<Instant> {
    /// When what `number` stands for is there, at `now` or later, where its entry says when it has come. What is still on its way
    /// counts as a hit.
    pub fn there(&mut self, now: Instant, number: u64) -> Option<Instant> {
        if self.whole {
            self.hits += 1;
            return Some(now);
        }
        self.lookup(number).map(|ready| now.max(*ready))
    }
}

/// Bits of a number within its space.
const SPACE: u32 = 40;
/// The number of a space, above them: the place of a queue pair, the lower 20 of its 24 bits. The upper ones stand above
/// that again, for they are drawn at random, tell queue pairs of one place apart, and choose no set.
const PLACES: u64 = (1 << 20) - 1;

/// The number of what there is one of for each queue pair.
pub(crate) const fn of(qpn: Qpn) -> u64 {
    let qpn = qpn.get() as u64;
    (qpn & !PLACES) << SPACE | qpn & PLACES
}

/// The number of a page of a queue pair.
pub(crate) const fn of_page(qpn: Qpn, page: u64) -> u64 {
    (qpn.get() as u64) << SPACE | page & ((1 << SPACE) - 1)
}

/// The golden section of 2⁶⁴. Of its multiples on a circle no two come close, however many there are (Knuth, vol. 3, §6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_recently_used_entry_of_a_set_makes_way() {
        let mut cache: Cache<()> = Cache::new(Entries::Count(4), 2);
        // Two sets: even and odd numbers.
        assert!([0, 2, 1].iter().all(|number| !cache.touch(*number)));
        assert!(cache.touch(0), "0 is now more recent than 2");
        assert!(!cache.touch(4), "4 takes the place of 2");
        assert!(cache.touch(0));
        assert!(!cache.touch(2));
        assert!(cache.touch(1), "the other set was left alone");
        assert_eq!((cache.hits, cache.misses, cache.evictions), (3, 5, 2));
    }

    #[test]
    fn an_entry_that_does_not_serve_is_a_miss() {
        let mut cache = Cache::new(Entries::Count(4), 2);
        assert!(cache.lookup_serving(1, |left| *left > 0).is_none());
        cache.insert(1, 1);
        *cache.lookup_serving(1, |left| *left > 0).unwrap() = 0;
        assert!(cache.lookup_serving(1, |left| *left > 0).is_none());
        assert_eq!((cache.hits, cache.misses), (1, 2));
    }

    #[test]
    fn what_is_on_its_way_is_there_when_it_has_come_and_not_before() {
        let (now, ready, late) = (Instant::from_ps(5), Instant::from_ps(9), Instant::from_ps(20));
        let mut cache = Cache::new(Entries::Count(4), 2);
        assert_eq!(cache.there(now, 1), None);
        cache.insert(1, ready);
        assert_eq!([cache.there(now, 1), cache.there(late, 1)], [Some(ready), Some(late)]);
        assert_eq!((cache.hits, cache.misses), (2, 1));
        assert_eq!(Cache::new(Entries::All, 0).there(now, 1), Some(now));
    }

    #[test]
    fn a_cache_without_entries_always_misses_and_a_whole_one_never() {
        let mut none: Cache<()> = Cache::new(Entries::Count(0), 4);
        let mut all: Cache<()> = Cache::new(Entries::All, 4);
        for number in [7, 7, 8] {
            assert!(!none.touch(number));
            assert!(all.touch(number));
        }
        assert_eq!((none.misses, all.hits), (3, 3));
    }

    /// A queue pair's number as engines draw them: its place, and above that four bits by chance.
    fn drawn(place: u64) -> Qpn {
        let above = place.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 60;
        Qpn::new(u32::try_from(above << 20 | place).expect("24 bits"))
    }

    #[test]
    fn what_is_drawn_of_a_queue_pairs_number_takes_no_room_away() {
        // 250 sets, which do not divide a power of two.
        let mut cache: Cache<()> = Cache::new(Entries::Count(1_000), 4);
        for _ in 0..3 {
            (0x10..0x10 + 1_000).for_each(|place| {
                cache.touch(of(drawn(place)));
            });
        }
        assert_eq!((cache.misses, cache.hits), (1_000, 2_000));
        let other = Qpn::new(drawn(0x10).get() ^ 0xf0_0000);
        assert!(!cache.touch(of(other)), "another queue pair of that place");
    }

    #[test]
    fn no_preset_misses_twice_what_is_half_of_its_cache_however_many_queue_pairs_share_it() {
        let mut caches = 0;
        for preset in super::super::presets::all() {
            let table = Store { entries: preset.table.lines, ways: preset.table.ways, ..Store::default() };
            let stores = [
                ("context", preset.context),
                ("wqe", preset.wqe),
                ("receive_wqe", preset.receive_wqe),
                ("table", table),
                ("mtt", preset.mtt.store),
            ];
            for (name, store) in stores {
                let Entries::Count(entries @ 1..) = store.entries else { continue };
                caches += 1;
                let half = u64::from(entries / 2);
                let queue_pairs: &[u64] =
                    if name == "mtt" { &[1, 10, 100, 1_000, 10_000, half] } else { &[half] };
                for &queue_pairs in queue_pairs {
                    let pages = half / queue_pairs;
                    let mut cache: Cache<()> = Cache::new(store.entries, store.ways);
                    for _ in 0..3 {
                        for qpn in (0x10..0x10 + queue_pairs).map(drawn) {
                            // A message goes from the first octet of its queue pair's buffer to its last.
                            (0..pages).for_each(|page| {
                                cache.touch(if name == "mtt" { of_page(qpn, page) } else { of(qpn) });
                            });
                        }
                    }
                    let distinct = queue_pairs * pages;
                    assert_eq!(
                        (cache.misses, cache.hits),
                        (distinct, 2 * distinct),
                        "{}: {name} with {queue_pairs} queue pairs",
                        preset.name
                    );
                }
            }
        }
        assert!(caches > 8, "{caches} caches");
    }

    #[test]
    fn going_round_one_entry_more_than_there_are_misses_every_time() {
        let mut cache: Cache<()> = Cache::new(Entries::Count(256), 0);
        for round in 0..3 {
            let hits = (0..257).filter(|number| cache.touch(*number)).count();
            assert_eq!(hits, 0, "round {round}");
        }
    }

    #[test]
    fn going_round_more_entries_than_there_are_finds_some_where_any_makes_way() {
        let store =
            Store { entries: Entries::Count(256), replacement: Replacement::Random, ..Store::default() };
        let entries = 256.0;
        for numbers in [256u32, 320, 512, 1024, 2048] {
            let mut cache: Cache<()> = Cache::of(&store, Random::new(1, 0));
            let mut go_round = |rounds| {
                let before = cache.hits;
                (0..rounds * numbers).for_each(|n| _ = cache.touch(u64::from(n % numbers)));
                (cache.hits - before) as f64 / f64::from(rounds * numbers)
            };
            go_round(20);
            let share = go_round(200);
            // Of an entry a share is still there after a round, in which each of the misses may have hit it: h = e^(-n (1 - h) / entries).
            let around = f64::from(numbers) / entries;
            let expected = (0..1_000).fold(0.0, |h: f64, _| (-around * (1.0 - h)).exp());
            let expected = if numbers == 256 { 1.0 } else { expected };
            assert!((share - expected).abs() < 0.01, "{numbers}: {share}, {expected}");
        }
    }

    proptest! {
        /// A fully associative cache holds the most recently used numbers, as a plain list of them says.
        #[test]
        fn it_behaves_as_a_plain_list_of_the_last_used(
            numbers in proptest::collection::vec(0u64..12, 0..200), entries in 1u32..8,
        ) {
            let mut cache: Cache<()> = Cache::new(Entries::Count(entries), 0);
            let mut last: Vec<u64> = Vec::new();
            for number in numbers {
                prop_assert_eq!(cache.touch(number), last.contains(&number));
                last.retain(|other| *other != number);
                last.insert(0, number);
                last.truncate(entries as usize);
            }
        }
    }
}
