//! Laws on cores that cannot hear of all that one flow has to tell.

use super::Control;
use super::nic::{Nic, NicModel};
use super::source::Source;
use super::transport::Transport;
use roci_control::Class;
use roci_fabric::graph::Graph;
use roci_units::{BitsPerSec, Span};
use std::collections::BTreeMap;

/// A note for each law in Rust and each NIC with cores on which an event of that law takes longer than the packets that an acknowledgement
/// answers are on the link: the law of a queue pair has one core. A packet has `overhead` octets on the link besides its payload.
pub(super) fn notes<'a>(
    controls: impl Iterator<Item = &'a Control>,
    source: &Source,
    transport: &Transport,
    nic: &Nic,
    graph: &Graph,
    overhead: u64,
) -> Vec<String> {
    let mut notes = BTreeMap::new();
    for control in controls.filter(|control| !control.is_program()) {
        for (host, rate) in graph.hosts.iter().zip(graph.host_rates()).filter(|(_, rate)| rate.0 > 0) {
            let config = nic.config_of(host);
            let NicModel::Parts(parts) = &config.model else { continue };
            let Some(event) = parts.native_event() else { continue };
            let Ok(law) = control.make(source, rate, config.mtu) else { continue };
            let packet = rate.time_for(u64::from(config.mtu) + overhead);
            let apart = packet * u64::from(transport.ack_every);
            if !law.traces().meets(Class::ACK) || event <= apart {
                continue;
            }
            let name = control.law.value.as_str();
            notes.entry((name, &parts.name)).or_insert_with(|| {
                let most = payload_rate(u64::from(config.mtu) * u64::from(transport.ack_every), event);
                // What it takes for them to be as far apart as events are long.
                let every = event.as_ps().div_ceil(packet.as_ps().max(1));
                let queueing = match law.wants_times() {
                    true => format!(
                        " What acknowledgements wait there is in the round trips that `{name}` slows down for, as if it were a queue in the network."
                    ),
                    false => String::new(),
                };
                format!(
                    "`{}` has one core for the law of a queue pair, which takes {} for an event of `{name}`, and packets of {} octets that are acknowledged \
                     {} bring one each {}: a flow alone has {most} at most.{queueing} Set `transport.ack_every` to {every}, or a greater `nic.mtu`",
                    parts.name,
                    rounded(event),
                    config.mtu,
                    match transport.ack_every {
                        1 => "one by one".to_owned(),
                        more => format!("{more} at a time"),
                    },
                    rounded(apart),
                )
            });
        }
    }
    notes.into_values().collect()
}

/// In whole nanoseconds.
fn rounded(span: Span) -> Span {
    Span::from_nanos(span.as_ps().div_ceil(1_000))
}

/// So many octets in each of such times, in whole Mb/s.
fn payload_rate(octets: u64, each: Span) -> BitsPerSec {
    let mbps = octets.saturating_mul(8_000_000) / each.as_ps().max(1);
    BitsPerSec::from_mbps(mbps)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;

    fn told(model: &str, law: &str, rest: &str) -> Vec<String> {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[nic]\nmodel = \"{model}\"\n{rest}\
             control = \"{law}\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
        );
        let scenario = parse(&text).unwrap();
        scenario.notes().filter(|note| note.contains("one core for the law")).map(str::to_owned).collect()
    }

    #[test]
    fn a_law_that_hears_of_more_than_a_core_has_time_for_is_told_of_with_what_helps() {
        let transport = "mtu = 1024\n[transport]\n";
        let [note] = &told("swcc-naive", "timely", transport)[..] else { panic!("one note") };
        // 6 cycles to load and 69 of 4 ns; 1024 octets and what is around them at 100 Gb/s.
        for part in [
            "takes 300ns for an event of `timely`",
            "bring one each 89ns",
            "a flow alone has 27306Mb/s at most",
            "as if it were a queue in the network",
            "Set `transport.ack_every` to 4",
        ] {
            assert!(note.contains(part), "{part} in {note}");
        }
        let [other] = &told("swcc-naive", "dctcp", transport)[..] else { panic!("one note") };
        assert!(!other.contains("round trips"), "{other}");
        for (model, law, rest) in [
            ("swcc-naive", "timely", "mtu = 1024\n[transport]\nack_every = 4\n"),
            ("swcc-naive", "timely", "mtu = 4096\n[transport]\n"),
            ("swcc-naive", "dcqcn", transport),
            ("srnic", "timely", transport),
        ] {
            assert_eq!(told(model, law, rest), [""; 0], "{model} {law} {rest}");
        }
        assert_eq!(told("swcc-naive", "timely", "mtu = 1024\n[transport]\nack_every = 2\n").len(), 1);
    }
}
