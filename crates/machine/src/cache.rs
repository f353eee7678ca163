//! A last-level cache with ways for I/O (Intel DDIO), least recently used lines replaced first.
//!
//! A NIC's write updates a line that is in the cache, in whichever way it stands; one that is not takes the place of the oldest line
//! in the ways for I/O. A core's read or write that misses takes the place of the oldest line of all ways. What is replaced
//! unread is what Li et al. (APNet 2025, §3.1) call *useful data evicted*, by the NIC or by a core.

/// The shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sets, at least 1.
    pub sets: u32,
    /// Lines of a set, 1 to 64.
    pub ways: u8,
    /// Of these, how many a NIC's write may take where its line is not in the cache; 0: it goes to memory.
    pub io_ways: u8,
}

impl Geometry {
    /// Lines in all.
    pub const fn lines(self) -> u64 {
        self.sets as u64 * self.ways as u64
    }

    /// Lines that a NIC may take.
    pub const fn io_lines(self) -> u64 {
        self.sets as u64 * self.io_ways as u64
    }
}

/// A line that had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Its number.
    pub line: u32,
    /// Whether it is to be written to memory.
    pub dirty: bool,
    /// Whether a NIC wrote it and no core has read it since.
    pub unread: bool,
}

/// What came of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether the line was in the cache.
    pub hit: bool,
    /// What made room for it.
    pub evicted: Option<Evicted>,
}

/// No line: numbers of lines are lower.
const EMPTY: u32 = u32::MAX;
const DIRTY: u8 = 1;
const UNREAD: u8 = 2;

/// A cache of lines, which it knows by their numbers: an address over the length of a line.
#[derive(Clone, Debug)]
pub struct Cache {
    geometry: Geometry,
    /// Of each way of each set the number of its line.
    tags: Vec<u32>,
    /// How many ways of its set were used after it: 0 is the latest.
    ages: Vec<u8>,
    flags: Vec<u8>,
}

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    /// If there are no sets or ways, more than 64 ways, or more ways for I/O than ways.
    pub fn new(geometry: Geometry) -> Self {
        let Geometry { sets, ways, io_ways } = geometry;
        assert!(sets > 0 && (1..=64).contains(&ways) && io_ways <= ways, "no shape of a cache");
        let lines = sets as usize * usize::from(ways);
        Self {
            geometry,
            tags: vec![EMPTY; lines],
            ages: (0..lines).map(|place| u8::try_from(place % usize::from(ways)).unwrap_or(0)).collect(),
            flags: vec![0; lines],
        }
    }

    /// Its shape.
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether `line` is in it.
    pub fn has(&self, line: u32) -> bool {
        self.find(line).is_some()
    }

    /// A NIC writes the whole of `line`. Where there are no ways for I/O and the line is not here, it goes to memory: neither hit nor evicted.
    #[inline]
    pub fn dma_write(&mut self, line: u32) -> Found {
        self.access(line, self.geometry.io_ways, DIRTY | UNREAD)
    }

    /// A core reads `line`.
    #[inline]
    pub fn read(&mut self, line: u32) -> Found {
        self.access(line, self.geometry.ways, 0)
    }

    /// A core writes to `line`, which it must have read before.
    #[inline]
    pub fn write(&mut self, line: u32) -> Found {
        self.access(line, self.geometry.ways, DIRTY)
    }

    /// A NIC reads `line`: whether it is here. One that is not is read from memory and takes no place.
    pub fn dma_read(&self, line: u32) -> bool {
        self.has(line)
    }

    /// The set of a line. Each run of as many lines as there are sets takes each set once, and begins at another one than the run before:
    /// processors hash addresses, so that buffers at equal places of large queues do not all meet in one set.
    #[inline]
    const fn set(&self, line: u32) -> u32 {
        let sets = self.geometry.sets;
        let (run, within) = (line / sets, line % sets);
        let begin = (run.wrapping_mul(0x9e37_79b1) >> 1) % sets;
        let set = within + begin;
        if set >= sets { set - sets } else { set }
    }

    fn first(&self, line: u32) -> usize {
        self.set(line) as usize * usize::from(self.geometry.ways)
    }

    fn find(&self, line: u32) -> Option<usize> {
        let (first, ways) = (self.first(line), usize::from(self.geometry.ways));
        self.tags[first..first + ways].iter().position(|&tag| tag == line).map(|way| first + way)
    }

    #[inline]
    fn access(&mut self, line: u32, allowed: u8, flags: u8) -> Found {
        debug_assert!(line != EMPTY, "no number of a line");
        let (first, ways) = (self.first(line), usize::from(self.geometry.ways));
        let set = first..first + ways;
        if let Some(way) = self.tags[set].iter().position(|&tag| tag == line) {
            self.touch(first, way);
            let kept = if flags & UNREAD == 0 { self.flags[first + way] & DIRTY } else { 0 };
            self.flags[first + way] = kept | flags;
            return Found { hit: true, evicted: None };
        }
        if allowed == 0 {
            return Found { hit: false, evicted: None };
        }
        // Ways that never were used are the oldest, and stand where they began.
        let candidates = first..first + usize::from(allowed);
        let victim = candidates
            .clone()
            .find(|&place| self.tags[place] == EMPTY)
            .or_else(|| candidates.max_by_key(|&place| self.ages[place]))
            .unwrap_or(first);
        let evicted = (self.tags[victim] != EMPTY).then(|| Evicted {
            line: self.tags[victim],
            dirty: self.flags[victim] & DIRTY != 0,
            unread: self.flags[victim] & UNREAD != 0,
        });
        self.tags[victim] = line;
        self.flags[victim] = flags;
        self.touch(first, victim - first);
        Found { hit: false, evicted }
    }

    /// Makes a way the latest of its set.
    #[inline]
    fn touch(&mut self, first: usize, way: usize) {
        let ages = &mut self.ages[first..first + usize::from(self.geometry.ways)];
        let age = ages[way];
        for other in ages.iter_mut() {
            *other += u8::from(*other < age);
        }
        ages[way] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(cache: &Cache) -> Vec<u32> {
        let mut lines: Vec<u32> = cache.tags.iter().copied().filter(|&tag| tag != EMPTY).collect();
        lines.sort_unstable();
        lines
    }

    fn toy() -> Cache {
        Cache::new(Geometry { sets: 1, ways: 5, io_ways: 2 })
    }

    #[test]
    fn what_a_nic_writes_stays_in_its_ways_and_replaces_the_oldest_there() {
        let mut cache = toy();
        let evicted: Vec<Option<u32>> =
            (0..8).map(|line| cache.dma_write(line).evicted.map(|it| it.line)).collect();
        assert_eq!(evicted, [None, None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)]);
        assert_eq!(lines(&cache), [6, 7]);
    }

    #[test]
    fn what_a_core_misses_may_take_the_place_of_what_a_nic_wrote() {
        let mut cache = toy();
        cache.dma_write(6);
        cache.dma_write(7);
        for line in 0..3 {
            assert_eq!(cache.read(line), Found { hit: false, evicted: None });
        }
        let evicted = Evicted { line: 6, dirty: true, unread: true };
        assert_eq!(cache.read(3), Found { hit: false, evicted: Some(evicted) });
    }

    #[test]
    fn a_nic_updates_a_line_where_it_stands() {
        let mut cache = toy();
        for line in 0..5 {
            cache.read(line);
        }
        for line in 0..5 {
            assert_eq!(cache.dma_write(line), Found { hit: true, evicted: None });
        }
        assert_eq!(lines(&cache), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_line_that_was_read_is_useful_no_more_and_is_dirty_still() {
        let mut cache = toy();
        cache.dma_write(0);
        assert!(cache.read(0).hit);
        cache.dma_write(1);
        assert_eq!(cache.dma_write(2).evicted, Some(Evicted { line: 0, dirty: true, unread: false }));
    }

    #[test]
    fn lines_in_a_row_are_spread_over_all_sets_alike() {
        let cache = Cache::new(Geometry { sets: 100, ways: 2, io_ways: 1 });
        for run in 0..50 {
            let mut seen: Vec<u32> = (0..100).map(|line| cache.set(run * 100 + line)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..100), "run {run}");
        }
        let begins: std::collections::BTreeSet<u32> = (0..50).map(|run| cache.set(run * 100)).collect();
        assert!(begins.len() > 30, "{begins:?}");
    }

    #[test]
    fn without_ways_for_io_a_nic_writes_to_memory() {
        let mut cache = Cache::new(Geometry { sets: 1, ways: 2, io_ways: 0 });
        assert_eq!(cache.dma_write(0), Found { hit: false, evicted: None });
        assert!(!cache.has(0));
        cache.read(0);
        assert!(cache.dma_write(0).hit);
    }

    /// Lists ordered by use: slow, and plainly what the words say.
    struct Plain {
        sets: Vec<Vec<(u32, u8)>>,
        clock: u64,
        used: std::collections::HashMap<u32, u64>,
    }

    impl Plain {
        fn access(&mut self, line: u32, set: u32, allowed: u8) -> (bool, Option<u32>) {
            self.clock += 1;
            let set = &mut self.sets[set as usize];
            let hit = set.iter().any(|&(tag, _)| tag == line);
            let mut evicted = None;
            if !hit {
                let free = (0..allowed).find(|way| set.iter().all(|&(_, other)| other != *way));
                let way = free.unwrap_or_else(|| {
                    let oldest = set.iter().filter(|&&(_, way)| way < allowed);
                    let &(tag, way) = oldest.min_by_key(|(tag, _)| self.used[tag]).unwrap();
                    evicted = Some(tag);
                    set.retain(|&(other, _)| other != tag);
                    way
                });
                set.push((line, way));
            }
            self.used.insert(line, self.clock);
            (hit, evicted)
        }
    }

    proptest! {
        #[test]
        fn it_does_what_lists_ordered_by_use_do(
            steps in proptest::collection::vec((0u32..40, 0u8..3), 1..400),
            ways in 2u8..6,
            sets in 1u32..4,
        ) {
            let geometry = Geometry { sets, ways, io_ways: 2 };
            let mut cache = Cache::new(geometry);
            let mut plain = Plain { sets: vec![Vec::new(); sets as usize], clock: 0, used: Default::default() };
            for (line, kind) in steps {
                let set = cache.set(line);
                let found = match kind {
                    0 => cache.dma_write(line),
                    1 => cache.read(line),
                    _ => cache.write(line),
                };
                let allowed = if kind == 0 { 2 } else { ways };
                prop_assert_eq!((found.hit, found.evicted.map(|it| it.line)), plain.access(line, set, allowed));
            }
        }
    }
}
