//! Priorities that share a port, of a switch and of a host.

use super::{run, star};
use roci_lab::results::Results;
use roci_wire::{IpVersion, Layout, Opcode, WIRE_OVERHEAD};

/// Two senders of priorities 3 and 0 that fill the link of `h0`, and what each has of it in Gb/s of payload.
fn contend(ets: &str, rest: &str, set: &[(&str, &str)]) -> (Vec<f64>, Results) {
    let rest = format!(
        r#"
        stop = "4ms"
        [switch]
        ecn = false
        classes = {{ pause = [0, 3, 5] }}
        {ets}
        [transport]
        control = "none"
        max_in_flight = 256
        [[traffic]]
        kind = "flows"
        flows = [
          {{ src = "h1", dst = "h0", size = "1GB" }},
          {{ src = "h2", dst = "h0", size = "1GB", priority = 0 }},
          {rest}
        ]
        "#
    );
    let results = run(&star(4, "10Gb/s", &rest), set);
    (goodputs(&results), results)
}

fn goodputs(results: &Results) -> Vec<f64> {
    results.flows.iter().map(|flow| flow.goodput_bps(results.simulated) as f64 / 1e9).collect()
}

/// Payload over octets on the wire in full packets of a long WRITE.
fn payload_share(mtu: u16) -> f64 {
    let frame = roci_wire::frame_len(Opcode::WRITE_MIDDLE, Layout::Standard, IpVersion::V4, mtu);
    f64::from(mtu) / f64::from(frame + WIRE_OVERHEAD)
}

#[test]
fn two_that_fill_a_link_have_its_time_in_the_ratio_of_their_shares_whatever_their_mtu() {
    for (high, low) in [(50, 50), (60, 40), (90, 10)] {
        for mtus in [[1024, 1024], [4096, 4096], [64, 4096], [4096, 64], [256, 1024]] {
            let [of_high, of_low] = mtus.map(|mtu| mtu.to_string());
            let set = [("nic.mtu", "4096"), ("nic.on.0.mtu", &of_high), ("nic.on.1.mtu", &of_low)];
            let ets = format!(
                "ets = {{ 3 = {high}, 0 = {low} }}\n[[nic.on]]\nhosts = [\"h1\"]\n[[nic.on]]\nhosts = [\"h2\"]"
            );
            let (goodput, _) = contend(&ets, "", &set);
            let time = [0, 1].map(|flow| goodput[flow] / payload_share(mtus[flow]));
            let sum = time[0] + time[1];
            assert!(sum > 9.9, "{high} to {low}, {mtus:?}: {time:?}");
            for (time, share) in time.into_iter().zip([high, low]) {
                let off = time / sum * 100.0 / f64::from(share) - 1.0;
                assert!(off.abs() < 0.01, "{high} to {low}, {mtus:?}: {time} of {sum}");
            }
        }
    }
}

#[test]
fn who_has_nothing_to_send_leaves_the_link_to_the_others_and_has_the_share_when_there_is_something() {
    let (alone, _) = contend("ets = { 3 = 20, 0 = 80 }", "", &[("traffic.0.flows.1.start", "\"2ms\"")]);
    let full = 10.0 * payload_share(1024);
    assert!((alone[0] / (full * (1.0 + 0.2) / 2.0) - 1.0).abs() < 0.01, "{alone:?} of {full}");
}

#[test]
fn a_priority_without_a_share_has_what_it_asks_for_even_a_lower_one() {
    for strict in [5, 0] {
        let ets = if strict == 5 { "ets = { 3 = 75, 0 = 25 }" } else { "ets = { 3 = 75, 5 = 25 }" };
        let set = [("traffic.0.flows.1.priority", if strict == 5 { "0" } else { "5" })];
        let last = format!("{{ src = \"h3\", dst = \"h0\", size = \"1GB\", priority = {strict} }},");
        let (goodput, _) = contend(ets, &last, &set);
        assert!(goodput[2] > 9.9 * payload_share(1024), "{goodput:?}");
        // A message of a fifth of the time leaves the rest to the shares.
        let (goodput, _) = contend(ets, &last.replace("1GB", "1MB"), &set);
        assert!((goodput[0] / goodput[1] / 3.0 - 1.0).abs() < 0.01, "{goodput:?}");
    }
}

#[test]
fn a_paused_priority_leaves_its_share_and_has_no_more_than_that_afterwards() {
    let storm =
        "ets = { 3 = 75, 0 = 25 }\n[[faults.on]]\nlink = \"s0>h0\"\npause_storm = true\nuntil = \"2ms\"";
    let (goodput, results) = contend(storm, "", &[]);
    let full = 10.0 * payload_share(1024);
    // Priority 3 has nothing for a half of the time, and three quarters of the other.
    assert!((goodput[0] / (full * 0.75 / 2.0) - 1.0).abs() < 0.01, "{goodput:?} of {full}");
    assert!((goodput[1] / (full * 1.25 / 2.0) - 1.0).abs() < 0.01, "{goodput:?} of {full}");
    assert_eq!(results.switches[0].drops, 0);
}

/// What two flows from one host have, in Gb/s of payload.
fn from_one_host(model: &str, ets: &str, control: &str) -> Vec<f64> {
    let rest = format!(
        r#"
        stop = "4ms"
        [switch]
        classes = {{ pause = [0, 3] }}
        [nic]
        model = "{model}"
        {ets}
        [transport]
        control = "{control}"
        max_in_flight = 64
        [[traffic]]
        kind = "flows"
        flows = [
          {{ src = "h1", dst = "h0", size = "1GB" }},
          {{ src = "h1", dst = "h2", size = "1GB", priority = 0 }},
        ]
        "#
    );
    goodputs(&run(&star(3, "10Gb/s", &rest), &[]))
}

#[test]
fn priorities_share_a_hosts_own_port_whatever_its_nic() {
    for model in ["ideal", "cx5", "srnic", "tonic", "swcc", "bluefield3", "hdl"] {
        let strict = from_one_host(model, "", "none");
        assert!(strict[1] < 0.05, "{model}: {strict:?}");
        for (high, low) in [(50, 50), (80, 20)] {
            let goodput = from_one_host(model, &format!("ets = {{ 3 = {high}, 0 = {low} }}"), "none");
            let (sum, ratio) = (goodput[0] + goodput[1], f64::from(high) / f64::from(low));
            assert!(
                sum > 0.98 * (strict[0] + strict[1]),
                "{model}, {high} to {low}: {goodput:?}, {strict:?}"
            );
            assert!(
                (goodput[0] / goodput[1] / ratio - 1.0).abs() < 0.02,
                "{model}, {high} to {low}: {goodput:?}"
            );
        }
    }
}

#[test]
fn a_host_whose_other_priority_is_silent_loses_nothing_by_shares() {
    for model in ["ideal", "cx5"] {
        let rest = |ets: &str| {
            format!(
                "[nic]\nmodel = \"{model}\"\n{ets}\n[transport]\ncontrol = \"none\"\n[[traffic]]\nkind = \"flows\"\n\
                 flows = [{{ src = \"h1\", dst = \"h0\", size = \"2MB\" }}, {{ src = \"h0\", dst = \"h2\", size = \"1MB\", op = \"read\" }}]\n"
            )
        };
        let ends = |ets: &str| -> Vec<_> {
            run(&star(3, "10Gb/s", &rest(ets)), &[]).flows.iter().map(|flow| flow.end).collect()
        };
        assert_eq!(ends("ets = { 3 = 10, 0 = 90 }"), ends(""), "{model}");
    }
}
