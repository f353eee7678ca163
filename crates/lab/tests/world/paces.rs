//! Rates that laws set, kept where packets wait: for what a NIC needs for a turn, and for others at the port.

use super::{run, star};

#[test]
fn a_rate_is_kept_by_nics_that_fetch_requests_or_wait_for_edges_when_a_packet_is_due() {
    for (model, gbps) in [("srnic", 10.0), ("srnic", 60.0), ("srnic", 99.0), ("tonic", 40.0), ("tonic", 95.0)]
    {
        let rest = format!(
            r#"
            stop = "2ms"
            [nic]
            model = "{model}"
            [transport]
            control = {{ law = "dcqcn", increase_timer = "10s", byte_counter = 0 }}
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h0", dst = "h1", size = "1GB" }}]
            [[at]]
            time = "1us"
            set = {{ "transport.control.rt" = "{gbps}Gb/s" }}
            [[at]]
            time = "1us"
            set = {{ "transport.control.rc" = "{gbps}Gb/s" }}
            "#
        );
        let text = star(2, "100Gb/s", &rest);
        let results = run(&text, &[]);
        // A packet of 1024 octets takes 1106 of the rate, and 1086 of them are its frame's.
        let sent = results.hosts[0].tx_bytes as f64 * 8.0 / 2e-3 / 1e9 * 1106.0 / 1086.0;
        assert!((sent / gbps - 1.0).abs() < 0.01, "{model}: {sent} for {gbps}");
    }
}

/// Each of its packets waits for those of all others that have something to send.
#[test]
fn paced_queue_pairs_keep_their_rates_beside_one_that_fills_the_port() {
    // A turn of SRNIC is 16 KiB, and one may be about to go.
    for (model, turn) in
        [("ideal", 0.0), ("cx6", 0.0), ("swcc", 0.0), ("hdl", 0.0), ("srnic", 16.0), ("tonic", 0.0)]
    {
        let text = format!(
            r#"
            stop = "2ms"
            [topology]
            kind = "star"
            hosts = 3
            rate = "100Gb/s"
            delay = "1us"
            [nic]
            model = "{model}"
            [[traffic]]
            kind = "closed-loop"
            src = "h0"
            dst = "h1"
            qps = 7
            message = "1MB"
            depth = 2
            # It keeps what it begins with.
            control = {{ law = "timely", preset = "sigcomm15", first_rate = 0.1, t_high = "60ms", delta = "1Kb/s", hai = "1Kb/s" }}
            [[traffic]]
            kind = "closed-loop"
            src = "h0"
            dst = "h2"
            message = "1MB"
            depth = 2
            control = "none"
            "#
        );
        let results = run(&text, &[]);
        // A packet takes 1106 octets of the rate.
        let due = 10e9 / 8.0 * 2e-3 / 1106.0;
        for flow in results.flows.iter().take(7) {
            assert!(
                (flow.packets as f64 - due).abs() < 0.003 * due + turn,
                "{model}: {} packets for {due:.0}",
                flow.packets
            );
        }
    }
}

/// The same of many with short messages and rates of their own, which come to 90 of 100 Gb/s, so that turns are short and often wait for
/// others'.
#[test]
fn many_paced_queue_pairs_with_short_messages_keep_unequal_rates() {
    for model in ["srnic", "tonic"] {
        let mut text = format!(
            r#"
            stop = "4ms"
            [topology]
            kind = "star"
            hosts = 3
            rate = "100Gb/s"
            delay = "1us"
            [nic]
            model = "{model}"
            [[traffic]]
            kind = "closed-loop"
            src = "h0"
            dst = "h2"
            message = "1MB"
            depth = 2
            control = "none"
            "#
        );
        // 0.5 to 2.3 Gb/s.
        let rates: Vec<f64> = (0..64).map(|n| (0.5 + 1.8 * f64::from(n * 37 % 64) / 63.0) / 100.0).collect();
        for rate in &rates {
            text += &format!(
                r#"
                [[traffic]]
                kind = "closed-loop"
                src = "h0"
                dst = "h1"
                message = "1000B"
                depth = 8
                control = {{ law = "timely", first_rate = {rate:.6}, t_high = "60ms", delta = "1Kb/s", hai = "1Kb/s" }}
                "#
            );
        }
        let results = run(&text, &[]);
        for (flow, rate) in results.flows[1..].iter().zip(&rates) {
            // A packet of 1000 octets takes 1098 of the rate, with the RETH of its message.
            let due = rate * 100e9 / 8.0 * 4e-3 / 1098.0;
            assert!(
                (flow.packets as f64 - due).abs() < 0.005 * due + 2.0,
                "{model}: {} packets for {due:.0}",
                flow.packets
            );
        }
        assert!(results.flows[0].packets > 3_000, "{model}: who fills the port has what is left");
    }
}
