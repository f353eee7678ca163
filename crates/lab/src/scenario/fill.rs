//! Whether laws fit the network's round trip: whether a flow alone can fill its link, by what stands for the round trip in a
//! law and by how long bitmaps are, and whether receivers ask for packets that are on their way.

use super::program::law_of;
use super::reach::Product;
use super::source::ScenarioError;
use super::{Control, Nic, Source, Transport};
use roci_control::telemetry::HOPS;
use roci_control::{Context, Law, Place, Value};
use roci_fabric::graph::Graph;
use roci_nic::Architecture;
use roci_transport::BITMAP_PACKETS_MAX;
use roci_units::{Instant, Span};
use std::fmt::Write as _;

/// The key of laws that count in packets: the octets of a full one, the NIC's MTU unless it is set.
const MSS: &str = "mss";

/// What a law takes for the round trip, or for what the link carries in one.
struct Belief {
    /// The keys that say it.
    keys: &'static str,
    takes: Takes,
}

#[derive(Clone, Copy)]
enum Takes {
    /// A time.
    Time(Span),
    /// The delay that it aims for: flows are slowed down for whatever exceeds it, and for nothing less.
    Target(Span),
    /// The delay beyond which flows are slowed down, whatever the law says else.
    Most(Span),
    Octets(u64),
    Packets(u64),
}

/// From how many round trips on a delay that a law aims for is said to be long: presets are for larger networks than most
/// that are simulated, and a queue of some round trips is what one takes them for.
const FAR: u64 = 10;

const UNFILLED: &str = "A flow alone between these hosts does not fill the link";
const SLOWED: &str = "What the round trip is longer counts as queueing: flows slow down for it";
const UNFAIR: &str =
    "Flows that meet a queue from the beginning take it for the idle network, and give way to nobody";
const UNANSWERED: &str = "Flows slow down for no queue before it makes the round trip that long";

/// What of the network a law is fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    /// The longest idle round trip of a full packet, with what NICs take.
    pub(super) round_trip: Span,
    /// How long a packet waits at most in a NIC that sends several in a turn, behind what is fetched ahead of the port.
    pub(super) ahead: Span,
    /// Whether switches trim.
    pub(super) trims: bool,
}

/// The law that slows down for whatever a round trip is longer, also for what packets of one turn wait for each other.
const IN_TURNS: &str = "theta-powertcp";

impl Control {
    /// Whether its law is fitted to the network.
    pub(super) fn is_fitted(&self) -> bool {
        matches!(self.law.value.as_str(), "nscc" | "powertcp" | "theta-powertcp")
    }

    /// Tells a law that counts in packets how long they are, unless it is set; one in Rust takes any `mtu`, and a program may
    /// have another idea of it.
    pub(super) fn fit_packets(&self, source: &Source, law: &mut Law, mtu: u16) -> Result<(), ScenarioError> {
        let counts_packets = law.registers().iter().any(|it| it.name == MSS && it.place == Place::Law);
        if !counts_packets || self.sets(MSS) || self.sets(&format!("context.{MSS}")) {
            return Ok(());
        }
        law.set(MSS, &format!("{mtu}B")).map_err(|error| {
            let remedy = format!("set `nic.mtu`, or `context.{MSS}` to what the program takes");
            source.error(self.law.origin, format!("the MTU of {mtu} octets: {error}"), remedy)
        })
    }

    /// Gives NSCC and both PowerTCPs the round trip of the network and its NICs, and NSCC a target of as much, or of three quarters where switches trim, as
    /// its reference simulator does; and θ-PowerTCP what packets wait in NICs as well, which it would take for a queue: where a law that keeps the least round trip of each flow is told a longer one, flows that met a queue
    /// from the beginning take it for the idle network, and give way to nobody.
    pub(super) fn fit_network(&self, law: &mut Law) {
        let Some(Network { round_trip, ahead, trims }) = self.network else { return };
        let base_rtt = if self.law.value == IN_TURNS { round_trip + ahead } else { round_trip };
        let target = if trims { Span::from_ps(round_trip.as_ps() / 4 * 3) } else { round_trip };
        for (key, span) in [("base_rtt", base_rtt), ("target", target)] {
            if !self.sets(key) {
                // Beyond its range it stays what it was.
                _ = law.set(key, &Span::from_nanos(span.as_ps().div_ceil(1_000)).to_string());
            }
        }
    }
}

/// A note for each law among `controls` that takes the round trip for shorter than the network's, and one on bitmaps that are
/// shorter than what is in flight; packets have up to `mtu` octets and cross up to so many `switches`.
pub(super) fn notes<'a>(
    controls: impl Iterator<Item = &'a Control>,
    source: &Source,
    transport: &Transport,
    product: &Product,
    (mtu, switches): (u16, Option<usize>),
) -> Vec<String> {
    let mut notes = Vec::new();
    for control in controls {
        // What it does not take is refused elsewhere.
        let Ok(law) = control.make(source, product.rate, mtu) else { continue };
        let Some(name) = law_of(&law) else { continue };
        // A program's parameters are keys of `context`.
        let of = |key: &str| match control.elf() {
            Some(elf) => format!("`context.{key}` of `{elf}`"),
            None => format!("`{key}` of `{name}`"),
        };
        notes.extend(belief(&law, name, switches).and_then(|it| it.note(name, of, product, mtu)));
        notes.extend(hasty(&law, product));
    }
    let bitmap = transport.bitmap_packets();
    if transport.recovery.keeps_out_of_order() && product.packets > u64::from(bitmap) {
        let mut note = format!(
            "bitmaps of selective repeat are {bitmap} packets long, and no more are in flight; the product of bandwidth and \
             delay is {} packets: {product}. A flow alone between these hosts does not fill the link",
            product.packets
        );
        if !transport.recovery.owns_window() && bitmap < BITMAP_PACKETS_MAX {
            let most = product.packets.min(BITMAP_PACKETS_MAX.into());
            _ = write!(note, ". They are longer where `transport.max_in_flight` is: set it to {most}");
        }
        notes.push(note);
    }
    notes.dedup();
    notes
}

/// What to say of θ-PowerTCP on NICs that send several packets in a turn: each waits for what the NIC has fetched before it, so that a flow alone
/// fills its link with round trips that are longer by that, and as long ones are no queue to the law.
pub(super) fn in_turns<'a>(
    mut controls: impl Iterator<Item = &'a Control>,
    nic: &Nic,
    graph: &Graph,
) -> Option<String> {
    let control = controls.find(|control| control.law.value == IN_TURNS && !control.sets("base_rtt"))?;
    let Network { round_trip, ahead, .. } = control.network?;
    let [ahead, taken] =
        [ahead, round_trip + ahead].map(|span| Span::from_nanos(span.as_ps().div_ceil(1_000)));
    let Architecture { name, send, .. } = nic.longest_turn(graph)?;
    Some(format!(
        "`{name}` sends up to {} in a turn and fetches up to {} ahead of its port, where packets wait for up to {ahead}: `{IN_TURNS}` takes {taken} for \
         the round trip without queues, so that a flow alone is not slowed down for that, and slows down for no queue in the network that is shorter than what \
         its packets do not wait there. With a lesser `base_rtt` queues are shorter, and a flow alone is slower",
        send.burst, send.buffer
    ))
}

fn belief(law: &Law, name: &str, switches: Option<usize>) -> Option<Belief> {
    let value = |key: &str| law.get(&mut Context::None, key, Instant::ZERO);
    let time = |key: &str| match value(key) {
        Some(Value::Time(span)) => Some(span),
        _ => None,
    };
    let count = |key: &str| match value(key) {
        Some(Value::Count(count)) => Some(u64::from(count)),
        Some(Value::Octets(octets)) => Some(octets.0),
        _ => None,
    };
    let (keys, takes) = match name {
        "hpcc" | "powertcp" => ("base_rtt", Takes::Time(time("base_rtt")?)),
        "nscc" | "theta-powertcp" => ("base_rtt", Takes::Target(time("base_rtt")?)),
        // Else its window grows as far as it is let.
        "dctcp" if value("paced") == Some(Value::Flag(true)) || count("wmax") == Some(0) => {
            ("base_rtt", Takes::Time(time("base_rtt")?))
        }
        "swift" => {
            let untold = count("hops").or_else(|| count("hops_untold"))?;
            let hops = switches.map_or(untold, |hops| hops as u64);
            let target = time("base_target")? + time("per_hop")? * hops;
            ("base_target", Takes::Target(target))
        }
        "timely" => ("t_high", Takes::Most(time("t_high")?)),
        // The program's 0 is as far as `unscheduled`.
        "homa" if count("ahead") == Some(0) || count("ahead") == count("unscheduled") => {
            ("unscheduled", Takes::Octets(count("unscheduled")?))
        }
        "homa" => ("ahead", Takes::Octets(count("ahead")?)),
        "ndp" => ("initial_window", Takes::Packets(count("initial_window")?)),
        _ => return None,
    };
    Some(Belief { keys, takes })
}

/// What to say of a Homa receiver that asks for what has not had the time to come.
fn hasty(law: &Law, product: &Product) -> Option<String> {
    let Law::Homa(homa) = law else { return None };
    let resend = homa.params().resend;
    (resend <= product.time).then(|| {
        format!(
            "`resend` of `homa` is {resend}, which is over before what was granted can come; {}. Receivers ask for packets that are on \
             their way",
            product.trip()
        )
    })
}

/// What to say of HPCC and PowerTCP where paths have more switches than they look at, up to so many `switches`.
pub(super) fn unseen<'a>(
    controls: impl Iterator<Item = &'a Control>,
    source: &Source,
    mtu: u16,
    graph: &Graph,
    switches: Option<usize>,
) -> Vec<String> {
    let rate = graph.host_rates().into_iter().max();
    let (Some(switches), Some(rate)) = (switches.filter(|switches| *switches > HOPS), rate) else {
        return Vec::new();
    };
    let note = |control: &Control| {
        let law = control.make(source, rate, mtu).ok()?;
        let law = law_of(&law).filter(|law| matches!(*law, "hpcc" | "powertcp"))?;
        let name = control.elf().unwrap_or(law);
        Some(format!(
            "`{name}` looks at the first {HOPS} switches of a path, as its header has room for, and paths here have up to {switches}: queues \
             beyond are bounded by its window alone"
        ))
    };
    let mut notes: Vec<String> = controls.filter_map(note).collect();
    notes.dedup();
    notes
}

impl Belief {
    /// What to say of it, where it is short by more than a quarter, at all where flows are slowed down for that, or longer
    /// than [`FAR`] round trips, or by more than a quarter where flows believe it.
    fn note(&self, law: &str, of: impl Fn(&str) -> String, product: &Product, mtu: u16) -> Option<String> {
        let is_short = |has: u64, needs: u64| has.saturating_mul(5) < needs.saturating_mul(4);
        let key = of(self.keys);
        let (octets, packets) = (product.packets * u64::from(mtu), product.packets);
        let (short, what, text) = match self.takes {
            Takes::Time(span) | Takes::Target(span) | Takes::Most(span) => {
                let (has, needs) = (span.as_ps(), product.time.as_ps());
                let (short, what) = match self.takes {
                    Takes::Time(_) => (is_short(has, needs), UNFILLED),
                    Takes::Target(_) if law == "nscc" && is_short(needs, has) => (true, UNFAIR),
                    Takes::Target(_) if has / FAR > needs => (true, UNANSWERED),
                    _ => (if law == "nscc" { is_short(has, needs) } else { has < needs }, SLOWED),
                };
                let is = if law == "swift" { "and what its hops add are" } else { "is" };
                (short, what, format!("{is} {span}; {}", product.trip()))
            }
            Takes::Octets(has) => {
                let text =
                    format!("is {has} octets, and the product of bandwidth and delay {octets}: {product}");
                (is_short(has, octets), UNFILLED, text)
            }
            Takes::Packets(has) => {
                let text =
                    format!("is {has}, and the product of bandwidth and delay {packets} packets: {product}");
                (is_short(has, packets), UNFILLED, text)
            }
        };
        short.then(|| format!("{key} {text}. {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;
    use roci_units::BitsPerSec;

    fn told(delay: &str, lines: &str) -> String {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"{delay}\"\n[switch]\nbuffer = \"100MB\"\ntrimming = true\npfc = true\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[transport]\n{lines}\n"
        );
        let scenario = parse(&text).unwrap();
        let notes: Vec<&str> = scenario.notes().filter(|note| !note.contains("`switch.trimming`")).collect();
        notes.join(" ")
    }

    #[test]
    fn a_law_made_for_a_shorter_round_trip_is_named_with_its_key() {
        // Four links of 25 us, a full packet and its acknowledgement: 100.4 us, which is 1135 packets.
        for (control, said) in [
            ("\"hpcc\"", "`base_rtt` of `hpcc` is 13us; the idle round trip of a full packet between"),
            ("{ law = \"dctcp\", preset = \"hpcc\" }", "`base_rtt` of `dctcp` is 13us"),
            ("{ law = \"nscc\", base_rtt = \"12us\" }", "counts as queueing: flows slow down for it"),
            ("\"swift\"", "`base_target` of `swift` and what its hops add are 23053ns"),
            ("\"homa\"", "`unscheduled` of `homa` is 40000 octets, and the product of bandwidth and delay 1"),
            ("{ law = \"homa\", ahead = \"90KB\" }", "`ahead` of `homa` is 90000 octets"),
        ] {
            let note = told("25us", &format!("control = {control}"));
            assert!(note.contains(said), "{control}: {note}");
            let short = control.replace("12us", "4us");
            assert_eq!(told("1us", &format!("control = {short}")), "", "{control}");
        }
        let ndp = told("1us", "recovery = \"ndp\"");
        assert!(
            ndp.contains(
                "`initial_window` of `ndp` is 15, and the product of bandwidth and delay 47 packets"
            ),
            "{ndp}"
        );
        assert_eq!(told("1us", "recovery = \"ndp\"\ncontrol = { law = \"ndp\", initial_window = 47 }"), "");
        assert_eq!(told("25us", "control = \"dctcp\""), "", "its window grows as far as it is let");
        assert_eq!(told("25us", "control = { law = \"swift\", base_target = \"120us\" }"), "");
        assert_eq!(told("25us", "control = { law = \"hpcc\", base_rtt = \"101us\" }"), "");
    }

    #[test]
    fn a_law_that_no_queue_slows_down_or_that_every_packet_slows_down_is_named() {
        for (control, said) in [
            ("{ law = \"swift\", base_target = \"1ms\" }", "Flows slow down for no queue before"),
            ("{ law = \"nscc\", base_rtt = \"6us\" }", "give way to nobody"),
            ("{ law = \"homa\", resend = \"4us\" }", "`resend` of `homa` is 4us, which is over before"),
            ("{ law = \"timely\", t_low = \"2us\", t_high = \"4us\" }", "`t_high` of `timely` is 4us"),
        ] {
            // 100 Gb/s over four links of 1 us: a round trip of 4.4 us.
            let note = told("1us", &format!("control = {control}"));
            assert!(note.contains(said), "{control}: {note}");
        }
        for control in [
            "{ law = \"swift\", base_target = \"36us\" }",
            "{ law = \"nscc\", base_rtt = \"5us\" }",
            "\"nscc\"",
            "{ law = \"homa\", resend = \"5us\" }",
            "{ law = \"timely\", preset = \"hpcc\", t_low = \"2us\", t_high = \"5us\" }",
        ] {
            assert_eq!(told("1us", &format!("control = {control}")), "", "{control}");
        }
    }

    #[test]
    fn a_program_of_ours_is_judged_as_the_law_that_it_is_the_twin_of() {
        let program = |name: &str, rest: &str| {
            format!("control = {{ law = \"program\", elf = \"firmware/{name}.elf\"{rest} }}")
        };
        for (name, said) in [
            ("hpcc", "`context.base_rtt` of `firmware/hpcc.elf` is 13us; the idle round trip"),
            ("swift", "`context.base_target` of `firmware/swift.elf` and what its hops add are 23053ns"),
            ("homa", "`context.unscheduled` of `firmware/homa.elf` is 40000 octets, and the product"),
        ] {
            let note = told("25us", &program(name, ""));
            assert!(note.contains(said), "{name}: {note}");
            assert_eq!(told("1us", &program(name, "")), "", "{name}");
        }
        let fitted = [
            ("hpcc", "base_rtt = \"101us\""),
            ("swift", "base_target = \"120us\""),
            ("homa", "unscheduled = \"1.2MB\""),
        ];
        for (name, context) in fitted {
            let lines = program(name, &format!(", context = {{ {context} }}"));
            assert_eq!(told("25us", &lines), "", "{name}");
        }
        let far = program("swift", ", context = { base_target = \"1ms\" }");
        assert!(told("1us", &far).contains("Flows slow down for no queue before"));
    }

    #[test]
    fn a_program_has_the_mtu_for_its_packets_unless_context_says_otherwise() {
        let mss = |context: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[nic]\nmtu = 2048\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[transport]\n\
                 control = {{ law = \"program\", elf = \"firmware/swift.elf\"{context} }}\n"
            );
            let scenario = parse(&text).unwrap();
            let control = &scenario.transport.control;
            let law = control.make(&scenario.source, BitsPerSec::from_gbps(100), 2048).unwrap();
            law.get(&mut Context::None, "mss", Instant::ZERO).unwrap().to_string()
        };
        assert_eq!([mss(""), mss(", context = { mss = 512 }")], ["2KiB", "512B"]);
    }

    #[test]
    fn switches_that_hpcc_does_not_look_at_are_told_of() {
        let told = |switches: usize| {
            let names: Vec<String> = (0..switches).map(|n| format!("s{n}")).collect();
            let link = |a: &str, b: &str| {
                format!("{{ a = \"{a}\", b = \"{b}\", rate = \"100Gb/s\", delay = \"500ns\" }}")
            };
            let chain = names.windows(2).map(|pair| link(&pair[0], &pair[1]));
            let ends = [link("h0", "s0"), link("h1", &names[switches - 1])];
            let links: Vec<String> = ends.into_iter().chain(chain).collect();
            let text = format!(
                "[topology]\nkind = \"graph\"\nhosts = [\"h0\", \"h1\"]\nswitches = {names:?}\nlinks = [{}]\n[transport]\n\
                 control = {{ law = \"hpcc\", base_rtt = \"20us\" }}\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n",
                links.join(", ")
            );
            parse(&text).unwrap().notes().any(|note| note.contains("paths here have up to"))
        };
        assert_eq!([told(5), told(6)], [false, true]);
    }

    #[test]
    fn nscc_is_fitted_to_the_network_unless_it_is_told_otherwise() {
        let made = |control: &str, trimming: bool| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[switch]\ntrimming = {trimming}\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[transport]\ncontrol = {control}\n"
            );
            let scenario = parse(&text).unwrap();
            let law =
                scenario.transport.control.make(&scenario.source, BitsPerSec::from_gbps(100), 1024).unwrap();
            ["base_rtt", "target"]
                .map(|key| law.get(&mut Context::None, key, Instant::ZERO).unwrap().to_string())
        };
        assert_eq!(made("\"nscc\"", false), ["4194ns", "4194ns"]);
        assert_eq!(made("\"nscc\"", true), ["4194ns", "3145ns"]);
        assert_eq!(made("{ law = \"nscc\", base_rtt = \"9us\", target = \"5us\" }", true), ["9us", "5us"]);
    }

    #[test]
    fn what_idle_nics_take_counts_in_the_round_trip() {
        let on = |model: &str, control: &str| {
            parse(&format!(
                "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[nic]\nmodel = \"{model}\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[transport]\ncontrol = {control}\n"
            ))
            .unwrap()
        };
        let fitted = |model: &str| {
            let network = on(model, "\"theta-powertcp\"").transport.control.network;
            network.expect("it is fitted").round_trip
        };
        let taken = |model: &str| fitted(model).saturating_sub(fitted("ideal")).as_ps() / 1_000;
        // A read of 1100 ns and 71 ns for its octets; 160 ns to send and twice 60 ns to receive; three edges of 250 MHz.
        assert_eq!(taken("swcc"), 1_463);
        // A read of 550 ns; 50 ns to send, and twice 78 ns of a unit with 50 ns behind them.
        assert_eq!(taken("cx6"), 927);
        let said = |model: &str, control: &str, part: &str| {
            on(model, control).notes().any(|note| note.contains(part))
        };
        let hpcc = "{ law = \"hpcc\", base_rtt = \"4us\" }";
        assert!(
            said("srnic", hpcc, "and `h1` with what NICs take, 66"),
            "{:?}",
            on("srnic", hpcc).notes().collect::<Vec<_>>()
        );
        let waits = "`srnic` sends up to 16KiB in a turn and fetches up to 64KiB ahead of its port";
        assert!(said("srnic", "\"theta-powertcp\"", waits));
        assert!(!said("srnic", "{ law = \"theta-powertcp\", base_rtt = \"9us\" }", waits));
        assert!(!said("srnic", "\"nscc\"", waits) && !said("swcc", "\"theta-powertcp\"", "in a turn"));
    }

    #[test]
    fn what_faults_delay_counts_in_the_round_trip() {
        let delayed = |least| format!("[faults]\ndelay = {{ min = \"{least}\", max = \"30us\" }}");
        // The least of what four links add makes 100.4 us of it.
        let note = told("1us", &format!("control = \"hpcc\"\n{}", delayed("24us")));
        let said = "idle round trip of a full packet between `h0` and `h1` with `faults.delay`, 100";
        assert!(note.contains(said), "{note}");
        assert_eq!(told("1us", &format!("control = \"hpcc\"\n{}", delayed("1us"))), "");
        // The most of it makes 124.4 us, which the shortest timeout must outlast.
        let timed = |timeout, recovery| {
            let lines = format!("control = \"dctcp\"\ntimeout = \"{timeout}\"\nrecovery = \"{recovery}\"\n");
            told("1us", &(lines + &delayed("1us")))
        };
        assert!(
            timed("110us", "go-back-n")
                .contains("the timeout of 110us is shorter than the longest round trip with")
        );
        assert_eq!(timed("130us", "go-back-n"), "");
        assert!(
            timed("300us", "irn").contains("and 120us more with `faults.delay`"),
            "{}",
            timed("300us", "irn")
        );
        assert!(!timed("500us", "irn").contains("gives them up"));
    }

    #[test]
    fn a_path_that_holds_more_packets_than_bitmaps_are_long_is_told() {
        for recovery in ["irn", "srnic", "sack", "newreno"] {
            let note = told("100us", &format!("recovery = \"{recovery}\"\ncontrol = \"none\""));
            assert!(note.contains("bitmaps of selective repeat are 2048 packets long"), "{recovery}: {note}");
            assert_eq!(told("25us", &format!("recovery = \"{recovery}\"\ncontrol = \"none\"")), "");
        }
        for (recovery, asked) in [("irn", true), ("srnic", true), ("sack", false)] {
            let lines = format!("recovery = \"{recovery}\"\ncontrol = \"none\"\ntimeout = \"2ms\"\n");
            let needs = "longer where `transport.max_in_flight` is: set it to 4";
            assert_eq!(told("100us", &lines).contains(needs), asked, "{recovery}");
            assert_eq!(told("100us", &(lines + "max_in_flight = 4600")).is_empty(), asked, "{recovery}");
        }
        assert_eq!(told("100us", "recovery = \"go-back-n\"\ncontrol = \"none\""), "");
    }
}
