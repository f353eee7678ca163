//! What a program takes on the cores of a NIC: cycles by kind of event, and the rates that follow.

use super::events::Events;
use super::stream::{Heard, Kind, Stream};
use crate::output::digits::float;
use roci_control::program::{Image, ImageError, Options, Programmed, Side};
use roci_control::{Class, Law, SettingError};
use roci_units::BitsPerSec;
use roci_wire::{Cc, IpVersion, Layout, Opcode, WIRE_OVERHEAD, frame_len};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The sizes of payload for which rates are told.
pub const SIZES: [u16; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
/// The links whose rates are asked for, in Gb/s.
pub const LINKS_GBPS: [u64; 4] = [100, 200, 400, 800];

/// The cycles of a program over a stream of events.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// How often each kind of event took so many cycles: by its class, then by the cycles. A packet that was offered and
    /// not let go is not among them.
    pub kinds: BTreeMap<u32, BTreeMap<u64, u64>>,
    /// How often a packet that was not let go (`LoopBack`) took so many cycles.
    pub refused: BTreeMap<u64, u64>,
    /// Packets that were offered, and those that the program let go.
    pub offered: u64,
    /// See [`Profile::offered`].
    pub sent: u64,
    /// Octets that the program adds to each packet.
    pub header: u32,
}

/// Why a program has no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// It was not taken in.
    Image(ImageError),
    /// Its context does not begin as it is told to.
    Context(SettingError),
    /// It failed with an event.
    Failed(String),
    /// The recording is of a program that hears something else.
    Other(String),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => error.fmt(f),
            Self::Context(error) => write!(f, "context: {error}"),
            Self::Failed(failure) => write!(f, "it fails: {failure}"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ProfileError {}

/// What a number of core pairs sustains with packets of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Octets of payload.
    pub payload: u16,
    /// Octets on the wire, preamble and gap in.
    pub wire: u32,
    /// Packets per second.
    pub packets_per_s: f64,
    /// The link that they fill.
    pub link_bps: f64,
    /// The payload in them.
    pub goodput_bps: f64,
    /// The clock that fills each of [`LINKS_GBPS`], in hertz.
    pub clocks_hz: [f64; LINKS_GBPS.len()],
}

impl Profile {
    fn note(&mut self, Heard { run, refused }: Heard) {
        let histogram = if refused { &mut self.refused } else { self.kinds.entry(run.class.0).or_default() };
        *histogram.entry(run.cycles).or_default() += 1;
    }

    /// The profile of the image `file`, taken in with `options`, over `packets` packets of a stream of this `kind`, drawn from `seed`.
    ///
    /// # Errors
    /// [`ProfileError`]: no such program, or one that fails.
    pub fn of_image(
        file: &[u8],
        options: Options,
        initial: &[(String, String)],
        kind: Kind,
        packets: u64,
        seed: u64,
    ) -> Result<Self, ProfileError> {
        let law = law(file, options, initial)?;
        let mut profile = Self { header: 4 * u32::from(law.image().header_words()), ..Self::default() };
        let mut stream = Stream::new(Law::Program(Box::new(law)), kind, seed);
        for _ in 0..packets {
            let sent = stream.packet(&mut |heard| profile.note(heard));
            profile.offered += 1;
            profile.sent += u64::from(sent);
        }
        stream.failure().map_or(Ok(profile), |failure| Err(ProfileError::Failed(failure)))
    }

    /// The profile of the image `file`, taken in with `options`, over events that a run has recorded.
    ///
    /// # Errors
    /// As [`Profile::of_image`]; also where the program hears what was not recorded.
    pub fn of_events(
        file: &[u8],
        options: Options,
        initial: &[(String, String)],
        events: &Events,
    ) -> Result<Self, ProfileError> {
        let law = law(file, options, initial)?;
        let mut profile = Self { header: 4 * u32::from(law.image().header_words()), ..Self::default() };
        events.suit(law.image()).map_err(ProfileError::Other)?;
        let told = events.tell(&law, &mut |heard| profile.note(heard));
        let told = told.map_err(ProfileError::Failed)?;
        (profile.offered, profile.sent) = (told.offered, told.sent);
        Ok(profile)
    }

    /// Mean cycles per packet that was let go, on the cores of `side`, which take `load` more for each event, before the
    /// program sees it. Those of packets that were not let go stand apart ([`Profile::refused`]): how often one is asked
    /// about again depends on what else its core has to do.
    pub fn cycles_per_packet(&self, side: Side, load: f64) -> f64 {
        let sends = |class: u32| Class(class) == Class::TRANSMIT;
        let kinds = self.kinds.iter().filter(|&(&class, _)| sends(class) == (side == Side::Tx));
        let (mut cycles, mut events) = (0, 0);
        for (each, count) in kinds.flat_map(|(_, kind)| kind) {
            (cycles, events) = (cycles + each * count, events + count);
        }
        (float(cycles) + load * float(events)) / float(self.sent.max(1))
    }

    /// So many events for each packet that was let go.
    pub fn per_packet(&self, events: u64) -> f64 {
        float(events) / float(self.sent.max(1))
    }

    /// What `pairs` core pairs with a clock of `clock` hertz sustain. The two cores of a pair work side by side, so the
    /// busier one decides. Each event takes `load` cycles before the program sees it.
    pub fn rates(&self, pairs: u32, clock: u64, load: f64) -> Vec<Rate> {
        let [recv, send] = [Side::Rx, Side::Tx].map(|side| self.cycles_per_packet(side, load));
        let cycles = recv.max(send);
        let per_hertz = f64::from(pairs) / cycles.max(f64::MIN_POSITIVE);
        SIZES.map(|payload| rate(payload, self.header, per_hertz, clock)).into()
    }
}

/// What is sustained of packets with so many octets of payload and `header` octets of the program's own.
pub(super) fn rate(payload: u16, header: u32, packets_per_hertz: f64, clock: u64) -> Rate {
    let words = header.to_le_bytes()[0] / 4;
    let layout = Cc::new(false, false, words).filter(|_| words > 0).map_or(Layout::Standard, Layout::Cc);
    let wire = frame_len(Opcode::WRITE_MIDDLE, layout, IpVersion::V4, payload) + WIRE_OVERHEAD;
    let bits = f64::from(8 * wire);
    let packets_per_s = packets_per_hertz * float(clock);
    Rate {
        payload,
        wire,
        packets_per_s,
        link_bps: packets_per_s * bits,
        goodput_bps: packets_per_s * f64::from(payload) * 8.0,
        clocks_hz: LINKS_GBPS.map(|gbps| float(BitsPerSec::from_gbps(gbps).0) / bits / packets_per_hertz),
    }
}

/// The law of an image that is taken in with `options`, whose contexts begin with `initial`.
pub(crate) fn law(
    file: &[u8],
    options: Options,
    initial: &[(String, String)],
) -> Result<Programmed, ProfileError> {
    let image = Image::new("the program", file, &options).map_err(ProfileError::Image)?;
    let failed = |what: String| ProfileError::Failed(what);
    let law = Programmed::new(Arc::new(image), Law::None);
    let mut law = law.ok_or_else(|| failed("it has no fallback".to_owned()))?;
    let initial: Vec<_> = initial.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    law.set_initial_all(&initial).map_err(|(_, error)| ProfileError::Context(error))?;
    Ok(law)
}

/// What a histogram's numbers come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The least.
    pub least: u64,
    /// Half are at most this.
    pub median: u64,
    /// The mean.
    pub mean: f64,
    /// 99 of 100 are at most this.
    pub p99: u64,
    /// The greatest.
    pub most: u64,
}

/// The numbers of a histogram: how often each occurred.
pub fn spread(histogram: &BTreeMap<u64, u64>) -> Spread {
    let count: u64 = histogram.values().sum();
    let at = |rank: u64| {
        let mut before = 0;
        let found = histogram.iter().find(|&(_, many)| {
            before += many;
            before >= rank
        });
        found.map_or(0, |(&cycles, _)| cycles)
    };
    let sum: u64 = histogram.iter().map(|(cycles, many)| cycles * many).sum();
    Spread {
        count,
        least: at(1),
        median: at(count.div_ceil(2)),
        mean: float(sum) / float(count.max(1)),
        p99: at((99 * count).div_ceil(100)),
        most: at(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::check::{CYCLES_MAX, Check, Held};
    use crate::program::{BARE, class_name, machine};
    use roci_control::program::csr;
    use roci_control::{Event, Outcome};
    use roci_units::{Instant, Span};

    /// Our programs, and how their contexts begin.
    const OURS: [(&str, &[u8]); 7] = [
        ("paced", include_bytes!("../../../../firmware/paced.elf")),
        ("credit", include_bytes!("../../../../firmware/credit.elf")),
        ("dcqcn", include_bytes!("../../../../firmware/dcqcn.elf")),
        ("timely", include_bytes!("../../../../firmware/timely.elf")),
        ("hpcc", include_bytes!("../../../../firmware/hpcc.elf")),
        ("swift", include_bytes!("../../../../firmware/swift.elf")),
        ("homa", include_bytes!("../../../../firmware/homa.elf")),
    ];

    fn on(machine: roci_hart::Machine) -> Options {
        Options { machine, ..Options::default() }
    }

    fn initial(name: &str) -> Vec<(String, String)> {
        if name == "credit" { vec![("total_credit".to_owned(), "64KiB".to_owned())] } else { Vec::new() }
    }

    fn assert_bounds_hold(packets: u64, nic: &str) {
        let machine = machine(nic).expect("it has cores");
        for (name, file) in OURS {
            let check = Check::of_image(file, machine.clone(), CYCLES_MAX).expect("our program");
            let profile =
                Profile::of_image(file, on(machine.clone()), &initial(name), Kind::Wild, packets, 7);
            let profile = profile.unwrap_or_else(|error| panic!("{name}: {error}"));
            let events: u64 = profile.kinds.values().flat_map(BTreeMap::values).sum();
            assert!(events >= packets, "{name}: {events} events");
            // A queue pair is opened before the stream begins, which has one class of data; not each program has timers.
            let data = Class::SEND.with(Class::WRITE).with(Class::READ_RESPONSE);
            let unmet = data.with(csr::OPEN).with(Class::TIMER);
            let kinds = check.sides.iter().flat_map(|side| &side.kinds).map(|(class, _)| *class);
            for class in kinds.filter(|class| !class.meets(unmet)) {
                assert!(profile.kinds.contains_key(&class.0), "{name}: no {}", class_name(class));
            }
            for Held { side, what, measured, proved } in check.hold(&profile) {
                let side = side.function();
                assert!(measured <= proved, "{name}, {side}, {what}: {measured} measured, {proved} proved");
                assert!(
                    proved <= 2 * measured,
                    "{name}, {side}, {what}: {measured} measured, {proved} proved"
                );
            }
        }
    }

    #[test]
    fn of_a_million_packets_no_event_outlasts_its_bound_and_every_class_comes_near_it() {
        for nic in ["swcc", BARE] {
            assert_bounds_hold(1_000_000, nic);
        }
    }

    #[test]
    fn of_the_even_stream_49_of_100_are_packets_49_what_arrives_for_them_and_two_notifications() {
        let data = [Class::ACK, Class::SEND, Class::WRITE, Class::READ_RESPONSE, Class::CE, Class::GRANT];
        let data = data.into_iter().fold(Class::NONE, Class::with);
        // What is rare, and in a thousand the timers and messages that come beside: for who paces itself, time passes.
        let rare = [
            ("paced", Class::CNP, 150),
            ("credit", Class::RNR, 0),
            ("dcqcn", Class::CNP, 10),
            ("timely", Class::NONE, 0),
            ("swift", Class::LOSS, 0),
            ("homa", Class::RESEND, 2),
        ];
        for (name, rare, beside_most) in rare {
            let (_, file) = OURS.iter().find(|(one, _)| *one == name).expect("one of ours");
            let machine = machine("swcc").expect("it has cores");
            let profile = Profile::of_image(file, on(machine), &initial(name), Kind::Even, 100_000, 7);
            let profile = profile.unwrap_or_else(|error| panic!("{name}: {error}"));
            let count = |wanted: Class| -> u64 {
                let kinds = profile.kinds.iter().filter(|&(&class, _)| Class(class).meets(wanted));
                kinds.flat_map(|(_, kind)| kind.values()).sum()
            };
            let asked = count(Class::TRANSMIT) + profile.refused.values().sum::<u64>();
            assert_eq!((asked, count(data)), (100_000, 100_000), "{name}");
            let per_49 = 49.0 * float(count(rare)) / 100_000.0;
            let expected = if rare == Class::NONE { 0.0 } else { 2.0 };
            assert!((per_49 - expected).abs() < 0.1, "{name}: {per_49}");
            let all: u64 = profile.kinds.values().flat_map(BTreeMap::values).sum();
            let beside = all + profile.refused.values().sum::<u64>() - 200_000 - count(rare);
            assert!(1_000 * beside <= beside_most * all, "{name}: {beside} of {all}");
        }
    }

    #[test]
    fn a_spread_is_read_off_its_histogram() {
        let histogram = BTreeMap::from([(10, 98), (20, 1), (70, 1)]);
        let expected = Spread { count: 100, least: 10, median: 10, mean: 10.7, p99: 20, most: 70 };
        assert_eq!(spread(&histogram), expected);
    }

    #[test]
    fn timers_that_run_out_at_once_are_counted_apart() {
        let file = include_bytes!("../../../../firmware/dcqcn.elf");
        let mut law = law(file, on(machine("swcc").expect("it has cores")), &[]).expect("our program");
        law.note_runs();
        let (mut state, mut outcome) = law.open(100_000_000, 1, Instant::ZERO);
        // A notification arms the timers of alpha and of the rate, which run out together.
        for (class, us) in [(Class::CNP, 1), (Class::TIMER, 200)] {
            let now = Instant::ZERO + Span::from_micros(us);
            outcome = Outcome::unchanged(outcome.credit, outcome.wake);
            law.on_event(&mut state, &Event { class, now, ..Event::default() }, &mut outcome);
        }
        let runs = law.take_runs();
        let classes: Vec<_> = runs.iter().map(|run| run.class).collect();
        assert!(classes.len() > 3 && classes[0] == Class::CNP, "{runs:?}");
        assert!(classes[1..].iter().all(|class| *class == Class::TIMER));
        assert!(runs[1..].iter().any(|run| run.cycles != runs[1].cycles), "they do not share: {runs:?}");
        let sum: u64 = runs[1..].iter().map(|run| run.cycles).sum();
        assert_eq!(sum, u64::from(outcome.cycles));
    }

    #[test]
    fn rates_follow_from_the_busier_core() {
        let kinds = [(Class::TRANSMIT, 10), (Class::ACK, 25)];
        let kinds = kinds.map(|(class, cycles)| (class.0, BTreeMap::from([(cycles, 4)])));
        let profile = Profile { kinds: kinds.into(), offered: 4, sent: 4, ..Profile::default() };
        let rates = profile.rates(2, 270_000_000, 2.0);
        let at_1024 = rates.iter().find(|rate| rate.payload == 1024).expect("a size");
        assert_eq!((at_1024.wire, at_1024.packets_per_s), (1_106, 2e7), "27 cycles, two of them to load");
        let rates = profile.rates(2, 250_000_000, 0.0);
        let at_1024 = rates.iter().find(|rate| rate.payload == 1024).expect("a size");
        assert_eq!((at_1024.wire, at_1024.packets_per_s), (1_106, 2e7));
        assert!((at_1024.clocks_hz[0] - 100e9 / 8.0 / 1_106.0 * 12.5).abs() < 1.0);
    }
}
