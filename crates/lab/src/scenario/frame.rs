//! The greatest frame of a run: with the links it decides what PFC needs as headroom.

use super::{Nic, Transport};
use crate::traffic::{Op, Traffic};
use roci_fabric::graph::Graph;
use roci_fabric::packets::HOPS;
use roci_wire::layout::int::Hop;
use roci_wire::{IpVersion, Layout, Opcode, frame_len};

/// Octets of the greatest frame as hosts send it, frame check sequence included: a full packet of the traffic's
/// operations, with the words of the layout.
pub(super) fn greatest(graph: &Graph, nic: &Nic, transport: &Transport, traffic: &[Traffic]) -> u32 {
    let mtu = mtu(graph, nic);
    let of_op = |op: Op| of_op(op, transport.layout, mtu);
    traffic.iter().flat_map(Traffic::ops).map(of_op).max().unwrap_or(0)
}

/// Octets that the telemetry of `switches` adds to a frame.
pub(super) fn telemetry(switches: usize) -> u32 {
    (0..HOPS).zip(0..switches).map(|_| u32::from(Hop::OCTETS)).sum()
}

/// The greatest payload: a queue pair takes the lesser of its hosts' MTUs, so that the second greatest decides.
fn mtu(graph: &Graph, nic: &Nic) -> u16 {
    if nic.rules.is_empty() {
        return nic.config.mtu;
    }
    let (mut first, mut second) = (0, 0);
    for name in &graph.hosts {
        let mtu = nic.config_of(name).mtu;
        if mtu > first {
            (first, second) = (mtu, first);
        } else {
            second = second.max(mtu);
        }
    }
    second
}

/// The greatest frame of an operation with payloads of up to `mtu` octets, requests and answers included.
fn of_op(op: Op, layout: Layout, mtu: u16) -> u32 {
    let frame = |&(opcode, payload)| frame_len(opcode, layout, IpVersion::V4, payload);
    let acknowledgement = (Opcode::ACKNOWLEDGE, 0);
    match op {
        Op::Send => [acknowledgement, (Opcode::SEND_ONLY, mtu)],
        // The first packet of a message and a lone one name the place.
        Op::Write => [acknowledgement, (Opcode::WRITE_ONLY, mtu)],
        Op::Read => [(Opcode::READ_REQUEST, 0), (Opcode::READ_RESPONSE_ONLY, mtu)],
        Op::FetchAdd => [(Opcode::FETCH_ADD, 0), (Opcode::ATOMIC_ACKNOWLEDGE, 0)],
        Op::CompareSwap => [(Opcode::COMPARE_SWAP, 0), (Opcode::ATOMIC_ACKNOWLEDGE, 0)],
    }
    .iter()
    .map(frame)
    .max()
    .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use roci_switch::{SwitchConfig, Trim};

    /// The largest frame that the switches of a scenario with these lines are told of.
    fn frame(topology: &str, lines: &str, op: &str) -> u32 {
        let text = format!(
            "[topology]\n{topology}\nrate = \"10Gb/s\"\ndelay = \"1us\"\n{lines}\n\
             [[traffic]]\nkind = \"permutation\"\nop = \"{op}\"\nsize = \"1KB\"\n"
        );
        let text = if op == "fetch-add" { text.replace("1KB", "8B") } else { text };
        let switch =
            Scenario::parse(&text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error:?}")).switch;
        assert!(switch.rules.iter().all(|rule| rule.config.max_frame == switch.config.max_frame));
        switch.config.max_frame
    }

    const STAR: &str = "kind = \"star\"\nhosts = 3";
    /// Ethernet, IPv4, UDP, BTH, ICRC and FCS.
    const PLAIN: u32 = 14 + 20 + 8 + 12 + 4 + 4;

    #[test]
    fn the_greatest_frame_follows_operation_and_mtu() {
        let mtu = "[nic]\nmtu = 4096";
        assert_eq!(frame(STAR, "", "write"), PLAIN + 16 + 1024);
        assert_eq!(frame(STAR, mtu, "write"), PLAIN + 16 + 4096);
        assert_eq!(frame(STAR, mtu, "send"), PLAIN + 4096);
        assert_eq!(frame(STAR, mtu, "read"), PLAIN + 4 + 4096);
        assert_eq!(frame(STAR, mtu, "fetch-add"), PLAIN + 28);
    }

    #[test]
    fn trimming_follows_the_greatest_frame_unless_the_scenario_says_otherwise() {
        let queues = |lines: &str| {
            let text = format!(
                "[topology]\n{STAR}\nrate = \"10Gb/s\"\ndelay = \"1us\"\n{lines}\n\
                 [[traffic]]\nkind = \"permutation\"\nop = \"send\"\nsize = \"1KB\"\n"
            );
            let switch = Scenario::parse(&text, "here.toml", &[]).expect("it is right").switch;
            let of = |config: &SwitchConfig| {
                let trim = config.trim.expect("it is on");
                [trim.threshold(config.max_frame).0, trim.headers(config.max_frame).0]
            };
            (of(&switch.config), switch.rules.iter().map(|rule| of(&rule.config)).collect::<Vec<_>>())
        };
        let full = u64::from(8 * (PLAIN + 1024));
        let large = u64::from(8 * (PLAIN + 4096));
        assert_eq!(queues("[switch]\ntrimming = true").0, [full, Trim::HEADERS]);
        assert_eq!(queues("[nic]\nmtu = 4096\n[switch]\ntrimming = true").0, [large, Trim::HEADERS]);
        assert_eq!(queues("[switch]\ntrimming = { headers = \"400B\" }").0, [full, 400]);
        assert_eq!(queues("[switch]\ntrimming = { threshold = \"5KB\" }").0, [5_000, 5_000]);
        let rule = "[switch]\ntrimming = { threshold = \"5KB\" }\n\
                    [[switch.on]]\nswitches = [\"s0\"]\ntrimming = { headers = \"400B\" }";
        assert_eq!(queues(rule), ([5_000, 5_000], vec![[5_000, 400]]));
    }

    #[test]
    fn a_queue_pair_takes_the_lesser_mtu_of_its_hosts() {
        let one = "[nic]\n[[nic.on]]\nhosts = [\"h1\"]\nmtu = 4096";
        assert_eq!(frame(STAR, one, "send"), PLAIN + 1024);
        let two = "[nic]\n[[nic.on]]\nhosts = [\"h1\", \"h2\"]\nmtu = 4096";
        assert_eq!(frame(STAR, two, "send"), PLAIN + 4096);
    }

    #[test]
    fn words_of_the_layout_and_telemetry_of_the_longest_path_belong_to_it() {
        let words = "[transport]\nlayout = { time = true, words = 3 }\ncontrol = \"none\"";
        assert_eq!(frame(STAR, words, "write"), PLAIN + 16 + 4 * 5 + 1024);
        let irn = "[transport]\nrecovery = \"irn\"";
        assert_eq!(frame(STAR, irn, "send"), PLAIN + 8 + 1024);
        let int = "[switch]\nint = true";
        assert_eq!(frame(STAR, int, "write"), PLAIN + 16 + 8 + 1024);
        let law = "[transport]\ncontrol = \"hpcc\"";
        assert_eq!(frame(STAR, law, "write"), PLAIN + 16 + 8 + 1024);
        let tree = "kind = \"fat-tree\"\nk = 4";
        assert_eq!(frame(tree, int, "write"), PLAIN + 16 + 5 * 8 + 1024);
        assert_eq!(frame(tree, "", "write"), PLAIN + 16 + 1024);
    }
}
