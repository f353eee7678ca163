//! The core of a shard, as its device is set up.

use super::DeviceConfig;
use crate::clock::Clock;
use crate::icrc::Solver;
use crate::io::{Batch, PacketIo};
use crate::numbers::Numbers;
use crate::paths::Paths;
use crate::shard::{Core, IoCounters};
use crate::table::Table;
use crate::telemetry::Rates;
use roci_control::Law;
use roci_transport::{Engine, EngineConfig, Reaction};
use roci_units::{Instant, Span};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Who drives a shard may be late by so much without a paced queue pair losing any of its rate: what a thread waits for its turn on
/// cores that have several others to run, each for some milliseconds. With 2 ms, ten threads on two cores cost 6 to 9 % of 10 Mb/s
/// and a quarter to a third of 1 Gb/s. What leaves at once to make up for it is bounded by the window as well, and one that had nothing to send
/// has saved up nothing.
const PACING_BURST: Span = Span::from_millis(20);

/// The longest run of a paced queue pair: a few packets at 1 Gb/s, and what offload takes at once from 8 Gb/s on.
const PACED_RUN: Span = Span::from_micros(64);

/// Bitmaps for losses on each side of a thread's queue pairs, 6 MiB at most: gaps are as many as peers want.
const BITMAPS_MAX: u32 = 4096;

/// READ data on its way takes this part of the receive buffer, and short READs' as much: the kernel counts a packet of 1024 octets
/// as more than twice that, other packets come as well, and what is read again comes twice.
const READ_PART: u64 = 8;

/// How long a packet that a program refuses waits for what may come unasked: longer than hosts stand still, this one's or the peer's.
const PATIENCE: Span = Span::from_millis(500);

impl Core {
    pub(super) fn new(
        io: &dyn PacketIo,
        config: &DeviceConfig,
        seed: u64,
        (table, number): (Arc<Table>, usize),
        clock: Clock,
    ) -> Self {
        let mut engine = Engine::new(EngineConfig {
            link: config.link,
            seed,
            pacing_burst: PACING_BURST,
            paced_run: PACED_RUN,
            bitmaps_max: BITMAPS_MAX,
            ..EngineConfig::default()
        });
        for law in &config.laws {
            let mut law = law.clone();
            if let Law::Program(program) = &mut law {
                program.set_patience(PATIENCE);
            }
            engine.add_law(law);
        }
        engine.tell_incidents();
        engine.hold_to_link();
        let read_room = config.read_room.map_or(io.receive_buffer() / READ_PART, u64::from);
        if read_room > 0 {
            engine.bound_reads(read_room);
            engine.cut_reads();
        }
        Self {
            engine,
            local: io.local(),
            hop_rates: Rates::new(&config.hop_rates, config.link),
            int_dscp: config.int_dscp,
            numbers: Numbers::new(io.slot()),
            entries: Vec::new(),
            vacant: Vec::new(),
            works: crate::works::Works::default(),
            behind: Vec::new(),
            has_begun: false,
            paths: Paths::default(),
            memories: HashMap::new(),
            held: None,
            placements: Vec::new(),
            batch: Batch::new(io.run_max()),
            replies: VecDeque::new(),
            is_awaited: false,
            urgent: Vec::new(),
            has_cnp: false,
            clock,
            replied_at: Instant::ZERO,
            answered_at: Instant::ZERO,
            habit: crate::habit::Habit::default(),
            company: crate::company::Company::default(),
            has_ended: false,
            has_taken: false,
            unanswered: 0,
            reply_octets: crate::shard::REPLY_OCTETS_MAX,
            reads_stand: None,
            events: None,
            reached: Vec::new(),
            draining: Vec::new(),
            greetings: Vec::new(),
            reaction: Reaction::default(),
            counters: IoCounters::default(),
            added_up_at: 0,
            solver: Solver::default(),
            from: None,
            to: None,
            cnp_dscp: config.cnp_dscp,
            shared_left: Vec::new(),
            shared_numbers: Vec::new(),
            shared_vacant: Vec::new(),
            table,
            number,
        }
    }
}
