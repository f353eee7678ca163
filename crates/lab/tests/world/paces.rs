//! Rates that laws set, on NICs whose turns wait for what they need.

use super::run;

#[test]
fn a_rate_is_kept_by_nics_that_fetch_requests_or_wait_for_edges_when_a_packet_is_due() {
    for (model, gbps) in [("srnic", 10.0), ("srnic", 60.0), ("srnic", 99.0), ("tonic", 40.0), ("tonic", 95.0)]
    {
        let text = format!(
            r#"
            stop = "2ms"
            [topology]
            kind = "star"
            hosts = 2
            rate = "100Gb/s"
            delay = "1us"
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
        let results = run(&text, &[]);
        // A packet of 1024 octets takes 1106 of the rate, and 1082 of them are its frame's.
        let sent = results.hosts[0].tx_bytes as f64 * 8.0 / 2e-3 / 1e9 * 1106.0 / 1082.0;
        assert!((sent / gbps - 1.0).abs() < 0.01, "{model}: {sent} for {gbps}");
    }
}
