//! What a law costs per event: `cargo bench -p roci-control --features translate`. Names that end in `.elf` are programs, as
//! host code with that feature and interpreted without it.

use divan::{Bencher, black_box};
use roci_control::program::Options;
use roci_control::{Class, Context, Credit, Event, Hop, Image, Law, Outcome, Programmed, dcqcn::PRESETS};
use roci_units::{BitsPerSec, Instant, Span};

fn main() {
    divan::main();
}

const LINK_KBPS: u32 = 100_000_000;

/// The family's members, and DCQCN in C. Samples are of a thousand events: the first of a program finds nothing in the
/// caches, and by it alone the harness would time each event by itself.
const MEMBERS: [&str; 8] = {
    let mut members = ["dcqcn.elf"; 8];
    let mut place = 0;
    while place < PRESETS.len() {
        members[place] = PRESETS[place];
        place += 1;
    }
    members
};

fn law(preset: &str) -> Law {
    if preset.ends_with(".elf") {
        return program(preset);
    }
    Law::from_settings("dcqcn", &[("preset", preset)], BitsPerSec::from_kbps(u64::from(LINK_KBPS)))
        .expect("a preset")
}

fn program(name: &str) -> Law {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware").join(name);
    let file = std::fs::read(path).expect("an image of the repository");
    let image = Image::new(name, &file, &Options::default()).expect("a program");
    Law::Program(Box::new(Programmed::new(std::sync::Arc::new(image), Law::None).expect("a fallback")))
}

/// Calls the law once for `class`, `gap` after the last time, and gives its answer to the optimiser's keeping.
struct Driver {
    law: Law,
    context: Context,
    credit: Credit,
    wake: Instant,
    now: Instant,
}

impl Driver {
    fn new(preset: &str) -> Self {
        let law = law(preset);
        let (context, credit, wake) = law.connect(LINK_KBPS);
        Self { law, context, credit, wake, now: Instant::ZERO }
    }

    #[inline]
    fn happen(&mut self, class: Class) {
        let mut outcome = Outcome::unchanged(self.credit, self.wake);
        let event = Event { class, now: self.now, length: 4096, ..Event::default() };
        self.law.on_event(black_box(&mut self.context), black_box(&event), &mut outcome);
        self.credit = outcome.credit;
        self.wake = outcome.wake;
        black_box(&outcome);
    }
}

/// A CNP every 50 µs, with the increases and cuts that fall due between.
#[divan::bench(args = MEMBERS, sample_size = 1000)]
fn cnp(bencher: Bencher<'_, '_>, preset: &str) {
    let mut driver = Driver::new(preset);
    bencher.bench_local(|| {
        driver.now += Span::from_micros(50);
        driver.happen(Class::CNP);
    });
}

/// A timer event at the instant that the law asked for, in recovery after a CNP; a CNP where it sleeps.
#[divan::bench(args = MEMBERS, sample_size = 1000)]
fn timer(bencher: Bencher<'_, '_>, preset: &str) {
    let mut driver = Driver::new(preset);
    bencher.bench_local(|| {
        if driver.wake == Instant::NEVER {
            driver.happen(Class::CNP);
        }
        driver.now = driver.wake;
        driver.happen(Class::TIMER);
    });
}

/// A marked packet at the receiver, one in 350 ns: most fall into the gap.
#[divan::bench(args = MEMBERS, sample_size = 1000)]
fn marked(bencher: Bencher<'_, '_>, preset: &str) {
    let mut driver = Driver::new(preset);
    bencher.bench_local(|| {
        driver.now += Span::from_nanos(350);
        driver.happen(Class::CE);
    });
}

/// A packet about to be sent, which a program with a `send` is asked about.
#[divan::bench(sample_size = 1000)]
fn transmit(bencher: Bencher<'_, '_>) {
    let mut driver = Driver::new("dcqcn.elf");
    bencher.bench_local(|| {
        driver.now += Span::from_nanos(100);
        driver.happen(Class::TRANSMIT);
    });
}

/// A CNP and a sample 100 µs after it, which brings alpha up to date: 100 periods with a timer of 1 µs, one
/// to two with the others.
#[divan::bench(args = PRESETS)]
fn cnp_and_sample(bencher: Bencher<'_, '_>, preset: &str) {
    let mut driver = Driver::new(preset);
    bencher.bench_local(|| {
        driver.happen(Class::CNP);
        driver.now += Span::from_micros(100);
        driver.law.sample(black_box(&mut driver.context), &Credit::FREE, driver.now)
    });
}

/// What an ACK costs: the engine asks whether the law traces it, and it does not.
#[divan::bench]
fn untraced_ack(bencher: Bencher<'_, '_>) {
    let law = law("hpcc");
    bencher.bench_local(|| black_box(&law).traces().meets(black_box(Class::ACK)));
}

/// The laws that run on each acknowledgement, with the links of the path where they read telemetry. `none` is the
/// yardstick: what it takes to make an event, with as many links, and to hand over the answer.
const ACKED: [(&str, usize); 20] = [
    ("none", 0),
    ("none", 1),
    ("none", 3),
    ("none", 5),
    ("timely", 0),
    ("dctcp", 0),
    ("swift", 0),
    ("nscc", 0),
    ("hpcc", 1),
    ("hpcc", 3),
    ("hpcc", 5),
    ("powertcp", 1),
    ("powertcp", 3),
    ("powertcp", 5),
    ("theta-powertcp", 0),
    ("timely.elf", 0),
    ("swift.elf", 0),
    ("hpcc.elf", 1),
    ("hpcc.elf", 3),
    ("hpcc.elf", 5),
];

/// An acknowledgement every 100 ns of a window of about 100 packets; one in 16 echoes a mark, and the round trip and the
/// queues swing, so that each law takes all of its ways.
#[divan::bench(args = ACKED, sample_size = 1000)]
fn ack(bencher: Bencher<'_, '_>, (name, links): (&str, usize)) {
    let mut law = if name.ends_with(".elf") {
        program(name)
    } else {
        Law::from_settings(name, &[], BitsPerSec::from_kbps(u64::from(LINK_KBPS))).expect("a law")
    };
    let (mut context, mut credit, wake) = law.connect(LINK_KBPS);
    let mut hops = [Hop::NONE; 5];
    let (mut now, mut sequence) = (Instant::ZERO + Span::from_millis(1), 0u32);
    bencher.bench_local(|| {
        now += Span::from_nanos(100);
        sequence = sequence.wrapping_add(1);
        let swing = u64::from(sequence & 0x3ff);
        hops[..links].fill(Hop::new(now, u64::from(sequence) * 1_100, (sequence & 0xfff) * 8, LINK_KBPS));
        let mut outcome = Outcome::unchanged(credit, wake);
        let event = Event {
            class: Class::ACK,
            now,
            sent: Instant::from_ps(now.as_ps() - 12_000_000 - swing * 50_000),
            ecn: sequence & 15 == 0,
            acked: 1_024,
            acked_sequence: sequence,
            next_sequence: sequence.wrapping_add(100),
            in_flight: 100 * 1_024,
            hops: &hops[..links],
            ..Event::default()
        };
        law.on_event(black_box(&mut context), black_box(&event), &mut outcome);
        credit = outcome.credit;
        black_box(&outcome);
    });
}

/// Laws by name or image, what they hear of packets that arrive, and the switches on the way.
const MIXED: [(&str, Class, usize); 13] = [
    ("none", Class::ACK, 0),
    ("dcqcn", Class::ACK, 0),
    ("dcqcn.elf", Class::ACK, 0),
    ("timely", Class::ACK, 0),
    ("timely.elf", Class::ACK, 0),
    ("swift", Class::ACK, 0),
    ("swift.elf", Class::ACK, 0),
    ("hpcc", Class::ACK, 1),
    ("hpcc.elf", Class::ACK, 1),
    ("hpcc", Class::ACK, 5),
    ("hpcc.elf", Class::ACK, 5),
    ("homa", Class::GRANT, 0),
    ("homa.elf", Class::GRANT, 0),
];

/// Queue pairs that take turns by chance.
const QPS: usize = 64;

/// The mix of a busy NIC: 49 % packets to be sent, 49 % acknowledgements or grants, 2 % CNPs, over 64 queue pairs. The law
/// is told of what it traces, as the engine does it. What draws and writes the event is in the time, which is that of
/// "none": the rest is the law's.
#[divan::bench(args = MIXED, sample_size = 1000)]
fn mix(bencher: Bencher<'_, '_>, (name, class, links): (&str, Class, usize)) {
    let mut law = if name.ends_with(".elf") {
        program(name)
    } else {
        Law::from_settings(name, &[], BitsPerSec::from_kbps(u64::from(LINK_KBPS))).expect("a law")
    };
    let traces = law.traces();
    let mut pairs: Vec<_> = (0..QPS).map(|_| law.connect(LINK_KBPS)).collect();
    let mut hops = [Hop::NONE; 5];
    let (mut now, mut random) = (Instant::ZERO + Span::from_millis(1), 1u32);
    bencher.bench_local(|| {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        now += Span::from_nanos(40);
        let (context, credit, wake) = &mut pairs[random as usize % QPS];
        let class = match (random >> 8) % 100 {
            0..49 => Class::TRANSMIT,
            49..98 => class,
            _ => Class::CNP,
        };
        let mut outcome = Outcome::unchanged(*credit, *wake);
        if *wake <= now && traces.meets(Class::TIMER) {
            let event = Event { class: Class::TIMER, now, ..Event::default() };
            law.on_event(black_box(context), black_box(&event), &mut outcome);
        }
        hops[..links].fill(Hop::new(now, now.as_ps() / 80, random >> 20, LINK_KBPS));
        let sequence = now.as_ps().to_le_bytes();
        let sequence = u32::from_le_bytes([sequence[2], sequence[3], sequence[4], sequence[5]]);
        let event = Event {
            class,
            now,
            length: 1_024,
            sent: Instant::from_ps(now.as_ps() - 12_000_000 - u64::from(random >> 4)),
            acked: 1_024,
            acked_sequence: sequence,
            next_sequence: sequence.wrapping_add(100),
            in_flight: 100 * 1_024,
            hops: if class == Class::TRANSMIT { &[] } else { &hops[..links] },
            ..Event::default()
        };
        let event = black_box(&event);
        if traces.meets(class) {
            law.on_event(black_box(context), event, &mut outcome);
        }
        (*credit, *wake) = (outcome.credit, outcome.wake);
        black_box(&outcome);
    });
}
