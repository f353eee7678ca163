//! A machine: what its NIC writes, and what the work of its threads costs.

use crate::cache::{Cache, Found, Geometry};
use crate::iio::{Iio, IioConfig};
use crate::memory::{Memory, MemoryConfig};
use crate::states::{State, States};
use crate::threads::Threads;
use roci_units::{BitsPerSec, Instant, Ratio, Span};

/// What a machine is like. The default is one socket of the servers of Li et al. (APNet 2025, §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// Cores, at least 1.
    pub cores: u16,
    /// Hardware threads of a core, at least 1.
    pub threads_per_core: u16,
    /// The speed of a thread while another of its core is busy, over that of one alone; above zero, at most 1.
    pub shared_speed: Ratio,
    /// Octets of a cache line, at least 1.
    pub line: u32,
    /// The last-level cache.
    pub cache: Geometry,
    /// How long a core waits for a line from it.
    pub hit: Span,
    /// Lines that a core waits for at once where it knows their addresses (line fill buffers), at least 1.
    pub fill_buffers: u16,
    /// Memory.
    pub memory: MemoryConfig,
    /// The buffer of the I/O controller.
    pub iio: IioConfig,
}

impl Default for MachineConfig {
    /// Intel Xeon Silver 4309Y: 8 cores of 2 threads, 12 MiB in 12 ways of which DDIO has 2 (the paper, §3.1 and §3.2); four of the
    /// server's eight channels, for it has two sockets, at the 2667 MT/s of that processor: 85.3 GB/s. An L1 cache of its generation (Sunny Cove) has 12 fill buffers. The
    /// rest the paper does not tell, and no number was fitted to a figure: 25 ns from the last-level cache and 90 ns from memory are what is customarily
    /// measured on servers of that generation, two threads of a core together do 1.25 times what one does, and hostCC
    /// (SIGCOMM 2023, §3) has a write buffer of 93 lines, which stay for about 65 ns where nothing waits. How the eight channels
    /// are read was settled with figures in view (docs/decisions/0024).
    fn default() -> Self {
        Self {
            cores: 8,
            threads_per_core: 2,
            shared_speed: Ratio::new(5, 8),
            line: 64,
            cache: Geometry { sets: 16_384, ways: 12, io_ways: 2 },
            hit: Span::from_nanos(25),
            fill_buffers: 12,
            memory: MemoryConfig { latency: Span::from_nanos(90), rate: BitsPerSec(682_700_000_000) },
            iio: IioConfig { entries: 93, residence: Span::from_nanos(65) },
        }
    }
}

impl MachineConfig {
    /// Octets of the cache.
    pub const fn cache_octets(&self) -> u64 {
        self.cache.lines() * self.line as u64
    }

    /// Octets of its ways for I/O.
    pub const fn io_octets(&self) -> u64 {
        self.cache.io_lines() * self.line as u64
    }
}

/// What a machine has counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lines that cores read.
    pub reads: u64,
    /// Of those, lines that came from memory.
    pub read_misses: u64,
    /// Lines that cores wrote.
    pub writes: u64,
    /// Of those, lines that were read from memory first.
    pub write_misses: u64,
    /// Lines that a NIC wrote.
    pub dma_writes: u64,
    /// Of those, lines that were in the cache.
    pub dma_hits: u64,
    /// Lines that a NIC had written and no core had read, replaced by what a NIC wrote.
    pub nic_evictions: u64,
    /// And by what a core fetched.
    pub cpu_evictions: u64,
    /// Octets read from memory.
    pub memory_read: u64,
    /// Octets written to memory.
    pub memory_written: u64,
    /// The most that was unconsumed at a time, in octets.
    pub most_unconsumed: u64,
    /// The highest moving average of the I/O controller's lines.
    pub most_iio: u32,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    config: MachineConfig,
    cache: Cache,
    memory: Memory,
    iio: Iio,
    threads: Threads,
    states: States,
    counters: Counters,
    /// The first line that nobody has.
    next_line: u32,
}

impl Machine {
    /// A machine that has done nothing.
    ///
    /// # Panics
    /// If `config` is not within the ranges that it says.
    pub fn new(config: MachineConfig) -> Self {
        assert!(config.cores > 0 && config.threads_per_core > 0 && config.line > 0, "no machine");
        assert!(config.fill_buffers > 0 && config.iio.entries > 0, "no buffers");
        assert!(config.shared_speed.numerator() > 0, "threads that stand still");
        Self {
            cache: Cache::new(config.cache),
            memory: Memory::new(config.memory),
            iio: Iio::new(config.iio),
            threads: Threads::new(config.cores, config.threads_per_core, config.shared_speed),
            states: States::new(config.io_octets(), config.cache_octets()),
            counters: Counters::default(),
            next_line: 0,
            config,
        }
    }

    /// What it is like.
    pub const fn config(&self) -> &MachineConfig {
        &self.config
    }

    /// How many hardware threads it has.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Memory that nothing else has: the number of its first line; `None` where there is none left.
    pub fn allocate(&mut self, octets: u64) -> Option<u32> {
        let lines = u32::try_from(octets.div_ceil(self.config.line.into())).ok()?;
        let first = self.next_line;
        self.next_line = first.checked_add(lines).filter(|&next| next < u32::MAX)?;
        Some(first)
    }

    /// Octets that all receive queues have room for: that many unconsumed ones are state [`State::S4`].
    pub const fn set_receive_queues(&mut self, octets: u64) {
        self.states.queues = octets;
    }

    /// Lines that so many octets take.
    pub const fn lines(&self, octets: u32) -> u32 {
        octets.div_ceil(self.config.line)
    }

    /// The NIC writes `octets` from line `first` on; gives when they are in their place and a core may know of them.
    pub fn dma_write(&mut self, now: Instant, first: u32, octets: u32) -> Instant {
        let lines = self.lines(octets);
        let mut to_memory = 0;
        for line in first..first + lines {
            let found = self.cache.dma_write(line);
            self.counters.dma_hits += u64::from(found.hit);
            self.counters.nic_evictions += u64::from(found.evicted.is_some_and(|it| it.unread));
            let bypassed = !found.hit && self.config.cache.io_ways == 0;
            to_memory += u64::from(bypassed || found.evicted.is_some_and(|it| it.dirty));
        }
        self.counters.dma_writes += u64::from(lines);
        let wait = if to_memory > 0 { self.memory.wait(now) } else { Span::ZERO };
        self.memory.load(now, 0, to_memory * u64::from(self.config.line));
        self.states.change(now, octets.into(), 0);
        self.iio.pass(now, lines, wait)
    }

    /// So many octets of what the NIC wrote are consumed: their buffer can be written to anew.
    pub fn consume(&mut self, now: Instant, octets: u32) {
        self.states.change(now, 0, octets.into());
    }

    /// The NIC reads `octets` from line `first` on, to send them.
    pub fn dma_read(&mut self, now: Instant, first: u32, octets: u32) {
        let lines = first..first + self.lines(octets);
        let misses = lines.filter(|&line| !self.cache.dma_read(line)).count() as u64;
        self.memory.load(now, misses * u64::from(self.config.line), 0);
    }

    /// A piece of work of `thread`, which begins at `start`.
    pub fn work(&mut self, start: Instant, thread: usize) -> Work<'_> {
        let wait = self.memory.wait(start);
        let idle = Span::ZERO;
        Work { machine: self, start, thread, wait, waits: false, work: Span::ZERO, idle, traffic: (0, 0) }
    }

    /// Octets that have arrived and nobody has consumed.
    pub const fn unconsumed(&self) -> u64 {
        self.states.unconsumed
    }

    /// The state that this makes.
    pub const fn state(&self) -> State {
        self.states.state()
    }

    /// How long it was in each state, from S1 on, until `now`.
    pub fn spent(&self, now: Instant) -> [Span; 4] {
        self.states.spent(now)
    }

    /// Lines in the I/O controller's buffer, as a moving average.
    pub const fn iio_occupancy(&self) -> u32 {
        self.iio.occupancy()
    }

    /// What [`Machine::iio_occupancy`] would be if something arrived now: it falls where nothing does.
    pub fn iio_occupancy_by(&self, now: Instant) -> u32 {
        self.iio.occupancy_by(now)
    }

    /// How long `thread` has been busy, with all of what it has begun.
    pub fn busy(&self, thread: usize) -> Span {
        self.threads.busy(thread)
    }

    /// What it has counted.
    pub const fn counters(&self) -> Counters {
        Counters {
            memory_read: self.memory.read,
            memory_written: self.memory.written,
            most_unconsumed: self.states.most,
            most_iio: self.iio.most,
            ..self.counters
        }
    }
}

/// A piece of a thread's work, whose accesses to the cache all happen when it begins: keep it short, a packet's at most.
#[derive(Debug)]
#[must_use = "a piece of work takes no time until it is done"]
pub struct Work<'a> {
    machine: &'a mut Machine,
    start: Instant,
    thread: usize,
    /// What the first line from memory waits for.
    wait: Span,
    /// Whether one came from there.
    waits: bool,
    /// What keeps its core busy, and what it waits for single lines, while the core is another thread's.
    work: Span,
    idle: Span,
    /// Lines read from memory, and written to it.
    traffic: (u64, u64),
}

impl Work<'_> {
    /// Instructions that take so long.
    pub fn compute(&mut self, span: Span) {
        self.work += span;
    }

    /// Reads one line before it is known what to do next, such as a header: its whole latency passes, in which the core is free for
    /// another of its threads. Whether it missed.
    pub fn read_first(&mut self, line: u32) -> bool {
        let found = self.machine.cache.read(line);
        self.note(found);
        self.machine.counters.reads += 1;
        self.machine.counters.read_misses += u64::from(!found.hit);
        self.idle += if found.hit { self.machine.config.hit } else { self.machine.config.memory.latency };
        !found.hit
    }

    /// Reads `lines` from `first` on, as many at once as there are fill buffers; gives how many missed.
    pub fn read(&mut self, first: u32, lines: u32) -> u32 {
        let misses = self.stream(first, lines, Cache::read);
        self.machine.counters.reads += u64::from(lines);
        self.machine.counters.read_misses += u64::from(misses);
        misses
    }

    /// Writes `lines` from `first` on, which are read for ownership; gives how many missed.
    pub fn write(&mut self, first: u32, lines: u32) -> u32 {
        let misses = self.stream(first, lines, Cache::write);
        self.machine.counters.writes += u64::from(lines);
        self.machine.counters.write_misses += u64::from(misses);
        misses
    }

    /// How long it takes up to here, alone on its core.
    pub fn takes(&self) -> Span {
        self.work + self.idle + if self.waits { self.wait } else { Span::ZERO }
    }

    /// When it is done.
    pub fn done(self) -> Instant {
        let idle = self.takes().saturating_sub(self.work);
        let Self { machine, start, thread, work, traffic: (read, written), .. } = self;
        let line = u64::from(machine.config.line);
        machine.memory.load(start, read * line, written * line);
        machine.threads.occupy(start, thread, work, idle)
    }

    fn stream(&mut self, first: u32, lines: u32, access: impl Fn(&mut Cache, u32) -> Found) -> u32 {
        let mut misses = 0;
        for line in first..first + lines {
            let found = access(&mut self.machine.cache, line);
            misses += u32::from(!found.hit);
            self.note(found);
        }
        let config = &self.machine.config;
        let ps = u64::from(lines - misses) * config.hit.as_ps()
            + u64::from(misses) * config.memory.latency.as_ps();
        self.work += Span::from_ps(ps / u64::from(config.fill_buffers));
        misses
    }

    fn note(&mut self, found: Found) {
        self.waits |= !found.hit;
        self.traffic.0 += u64::from(!found.hit);
        if let Some(evicted) = found.evicted {
            self.traffic.1 += u64::from(evicted.dirty);
            self.machine.counters.cpu_evictions += u64::from(evicted.unread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::ZERO + Span::from_nanos(nanos)
    }

    #[test]
    fn its_socket_has_the_cache_that_the_paper_says() {
        let config = MachineConfig::default();
        assert_eq!((config.cache_octets(), config.io_octets()), (12 << 20, 2 << 20));
        assert_eq!(Machine::new(config).threads(), 16);
    }

    /// Figure 3 of the paper: eight buffers, two lines for I/O and three others. Step by step what hits and what misses.
    #[test]
    fn the_papers_toy_hits_and_misses_where_its_figure_does() {
        let cache = Geometry { sets: 1, ways: 5, io_ways: 2 };
        let mut machine = Machine::new(MachineConfig { cache, ..MachineConfig::default() });
        let first = machine.allocate(8 * 64).unwrap();
        let dma = |machine: &mut Machine, buffers: std::ops::Range<u32>| {
            for buffer in buffers {
                machine.dma_write(at(0), first + buffer, 64);
            }
        };
        let read = |machine: &mut Machine, buffers: std::ops::Range<u32>| -> Vec<bool> {
            buffers
                .map(|buffer| {
                    let mut work = machine.work(at(0), 0);
                    let missed = work.read_first(first + buffer);
                    work.done();
                    machine.consume(at(0), 64);
                    missed
                })
                .collect()
        };
        // Step 1: eight messages arrive, and the ways for I/O hold the last two.
        dma(&mut machine, 0..8);
        assert_eq!((machine.counters().nic_evictions, machine.state()), (6, State::S3));
        assert!(machine.cache.has(6) && machine.cache.has(7));
        // Step 2: four are processed, all from memory, and the last of these costs buffer 6 its place.
        assert_eq!(read(&mut machine, 0..4), [true; 4]);
        assert!(!machine.cache.has(6) && machine.cache.has(7));
        assert_eq!(machine.counters().cpu_evictions, 1);
        // Step 3: the next messages come to the same buffers, which are in the cache.
        dma(&mut machine, 0..4);
        assert_eq!((machine.counters().dma_hits, machine.counters().nic_evictions), (4, 6));
        // Step 4: what was left of the first round misses again, and costs what came last its place.
        assert_eq!(read(&mut machine, 4..8), [true, true, true, true]);
        let counters = machine.counters();
        assert_eq!((counters.reads, counters.read_misses, counters.cpu_evictions), (8, 8, 5));
        assert_eq!(machine.unconsumed(), 4 * 64);
    }

    #[test]
    fn a_stream_takes_its_latency_over_the_fill_buffers_and_a_lone_line_all_of_it() {
        let mut machine = Machine::new(MachineConfig::default());
        let first = machine.allocate(24 * 64).unwrap();
        let mut work = machine.work(at(0), 0);
        assert_eq!(work.read(first, 24), 24);
        assert_eq!(work.takes(), Span::from_nanos(180));
        assert_eq!(work.read(first, 24), 0);
        assert_eq!(work.takes(), Span::from_nanos(230));
        assert!(!work.read_first(first));
        work.compute(Span::from_nanos(45));
        assert_eq!(work.done(), at(300));
        assert_eq!(machine.counters().memory_read, 24 * 64);
    }

    #[test]
    fn work_waits_for_what_others_have_of_the_memorys_bandwidth() {
        let memory = MemoryConfig { latency: Span::from_nanos(90), rate: BitsPerSec::from_gbps(64) };
        let mut machine = Machine::new(MachineConfig { memory, ..MachineConfig::default() });
        let first = machine.allocate(200 * 64).unwrap();
        let mut one = machine.work(at(0), 0);
        one.read(first, 100);
        one.done();
        // 6 400 octets at 8 GB/s.
        let mut other = machine.work(at(100), 1);
        assert!(other.read_first(first + 150));
        assert_eq!(other.takes(), Span::from_nanos(700 + 90));
        other.done();
    }

    #[test]
    fn a_machine_is_out_of_lines_before_their_numbers_are() {
        let mut machine = Machine::new(MachineConfig::default());
        assert!(machine.allocate(64 << 31).is_some());
        assert_eq!(machine.allocate(64 << 31), None);
    }
}
