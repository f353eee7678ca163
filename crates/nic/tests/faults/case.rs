//! A case: every choice of a run as a small number, so that it shrinks well and fits on a line.

use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Declares the choices with their ranges; the lowest number is the plainest choice, towards which a case shrinks.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident: $range:expr,)*) => {
        /// A run.
        #[derive(Clone, PartialEq, Eq, Default)]
        pub(crate) struct Case {
            $($(#[$doc])* pub(crate) $name: u32,)*
            /// Faults on links.
            pub(crate) faults: Vec<FaultChoice>,
            /// The seed of everything that is drawn during the run.
            pub(crate) seed: u64,
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];

        fn ranges() -> Vec<RangeInclusive<u32>> {
            vec![$($range),*]
        }

        impl Case {
            fn values_mut(&mut self) -> Vec<&mut u32> {
                vec![$(&mut self.$name),*]
            }

            fn values(&self) -> Vec<u32> {
                vec![$(self.$name),*]
            }
        }
    };
}

choices! {
    /// Star, dumbbell, tree, leaf-spine, any graph, or a ring of five switches across which hosts send two further on.
    shape: 0..=5,
    hosts: 2..=8,
    /// Pairs of queue pairs.
    pairs: 1..=6,
    /// Whether all of them lead to one host.
    incast: 0..=1,
    /// Requests on each side that sends.
    messages: 1..=16,
    /// Requests outstanding on each.
    depth: 1..=6,
    /// Octets of the longest message: 0, 1, 64, 1 000, 5 000, 20 000, 60 000 or 100 000.
    size: 0..=7,
    /// The operations that occur, one bit each.
    operations: 1..=127,
    /// Whether both sides of a pair send.
    both: 0..=1,
    /// 1024, 4096, 256 or 1000 octets of payload in a full packet.
    mtu: 0..=3,
    /// Go-back-N, IRN, SRNIC, Reno, NewReno, SACK, or NDP with its law.
    recovery: 0..=6,
    /// No law, DCQCN (a rate), Homa (tokens), Swift (a window and a rate) or DCTCP (a window).
    law: 0..=4,
    /// Whether priority 3 may drop or is paused.
    pfc: 0..=1,
    /// Whether the switches' buffers are small.
    small: 0..=1,
    /// 100 Gb/s or 10 Gb/s, or 25 Gb/s for hosts.
    rate: 0..=2,
    /// How switches choose among equal ways: by a hash, in turn, by what waits, or by flowlets.
    spray: 0..=3,
    /// Whether hosts receive at half their link's rate.
    slow_receivers: 0..=1,
    /// Packets between acknowledgements.
    ack_every: 1..=4,
    /// Segments generated ahead.
    ring: 1..=8,
    /// READs and atomics outstanding.
    reads: 1..=4,
    /// The local ACK timeout: 4 ms, 500 µs, 200 µs or 60 µs.
    timeout: 0..=3,
    /// How many of the seven retries there are not.
    no_retries: 0..=7,
    /// How many of six receive requests there are not.
    few_receives: 0..=5,
    /// Whether the receive queue is filled late one time in ten.
    late_receives: 0..=1,
    /// RNR retries for ever, or three.
    rnr_limited: 0..=1,
    /// Whether some requests complete without a word.
    silent: 0..=1,
    /// Whether some requests wait for READs and atomics before them.
    fences: 0..=1,
    /// Whether the queue pairs of a host share one receive queue.
    shared: 0..=1,
    /// Datagrams, each from any host to any other.
    datagrams: 0..=12,
}

/// A fault on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultChoice {
    /// Which: see `network::fault`.
    pub(crate) kind: u32,
    /// The share of packets that it concerns, in thousandths.
    pub(crate) permille: u32,
    /// The link, modulo their number.
    pub(crate) link: u32,
    /// One way, the other, or both.
    pub(crate) way: u32,
}

/// Any case.
pub(crate) fn any_case() -> impl Strategy<Value = Case> {
    let fault = (0..=6u32, 1..=100u32, 0..=31u32, 0..=2u32)
        .prop_map(|(kind, permille, link, way)| FaultChoice { kind, permille, link, way });
    (ranges(), vec(fault, 0..=4), any::<u64>()).prop_map(|(values, faults, seed)| {
        let mut case = Case { faults, seed, ..Case::default() };
        case.values_mut().into_iter().zip(values).for_each(|(place, value)| *place = value);
        case
    })
}

/// The line that replays the case.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ROCI_CASE='{self}' cargo test -p roci-nic --test faults replay")
    }
}

/// Choices that differ from the plainest, by name.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, value), range) in NAMES.iter().zip(self.values()).zip(ranges()) {
            if value != *range.start() {
                write!(f, "{name}={value} ")?;
            }
        }
        for FaultChoice { kind, permille, link, way } in &self.faults {
            write!(f, "fault={kind}:{permille}:{link}:{way} ")?;
        }
        write!(f, "seed={}", self.seed)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut case = Self::default();
        case.values_mut().into_iter().zip(ranges()).for_each(|(place, range)| *place = *range.start());
        for word in line.split_whitespace() {
            let (name, text) = word.split_once('=').ok_or_else(|| format!("`{word}` is no choice"))?;
            let number = |text: &str| text.parse::<u64>().map_err(|error| format!("`{word}`: {error}"));
            let small = |text: &str| text.parse::<u32>().map_err(|error| format!("`{word}`: {error}"));
            if name == "seed" {
                case.seed = number(text)?;
            } else if name == "fault" {
                let parts = text.split(':').map(small).collect::<Result<Vec<_>, _>>()?;
                let [kind, permille, link, way] = parts[..] else { return Err(format!("`{word}`")) };
                case.faults.push(FaultChoice { kind, permille, link, way });
            } else {
                let place = NAMES.iter().position(|&known| known == name);
                let place = place.ok_or_else(|| format!("there is no choice `{name}`"))?;
                *case.values_mut()[place] = small(text)?;
            }
        }
        Ok(case)
    }
}
