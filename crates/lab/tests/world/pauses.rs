//! What a paused priority holds up, and what it does not.

use super::{run, star};

/// `flows` of 1 GB on 25 Gb/s, priorities 3 and 1 lossless, and 3 paused at `h1` for the first millisecond of two.
fn paused_at_h1(flows: &str, model: &str) -> Vec<f64> {
    let rest = format!(
        r#"
        stop = "2ms"
        [switch]
        classes = {{ pause = [3, 1] }}
        [nic]
        model = "{model}"
        [transport]
        control = "none"
        max_in_flight = 64
        [[faults.on]]
        link = "h1>s0"
        pause_storm = true
        until = "1ms"
        [[traffic]]
        kind = "flows"
        flows = [{flows}]
        "#
    );
    let text = star(3, "25Gb/s", &rest);
    let results = run(&text, &[]);
    results.flows.iter().map(|flow| flow.goodput_bps(results.simulated) as f64 / 1e9).collect()
}

const MODELS: [&str; 7] = ["ideal", "cx5", "srnic", "tonic", "swcc", "bluefield3", "hdl"];

#[test]
fn data_of_another_priority_go_on_from_a_host_that_is_paused() {
    let flows =
        r#"{ src = "h1", dst = "h0", size = "1GB" }, { src = "h1", dst = "h2", size = "1GB", priority = 1 }"#;
    for model in MODELS {
        let goodput = paused_at_h1(flows, model);
        // Priority 1 has the link while 3 is paused, and 3 goes first when it is not.
        assert!(goodput.iter().all(|goodput| (11.3..11.8).contains(goodput)), "{model}: {goodput:?}");
    }
}

#[test]
fn acknowledgements_of_another_priority_go_on_from_a_host_that_is_paused() {
    let flows =
        r#"{ src = "h0", dst = "h1", size = "1GB" }, { src = "h2", dst = "h1", size = "1GB", priority = 1 }"#;
    for model in MODELS {
        let goodput = paused_at_h1(flows, model);
        // 64 packets of priority 3 come until it waits for acknowledgements.
        assert!(goodput[1] > 11.3 && goodput[0] > 10.0, "{model}: {goodput:?}");
    }
}

#[test]
fn data_goes_before_acknowledgements_of_a_lower_priority() {
    for model in MODELS {
        let goodput = |with_it: &str| {
            let text = format!(
                r#"
                stop = "1ms"
                [topology]
                kind = "star"
                hosts = 3
                rate = "25Gb/s"
                delay = "1us"
                [switch]
                classes = {{ pause = [3, 1] }}
                [nic]
                mtu = 256
                model = "{model}"
                [transport]
                control = "none"
                [[traffic]]
                kind = "flows"
                flows = [{{ src = "h1", dst = "h0", size = "1GB" }}{with_it}]
                "#
            );
            let results = run(&text, &[]);
            results.flows[0].goodput_bps(results.simulated) as f64 / 1e9
        };
        let alone = goodput("");
        let beside = goodput(r#", { src = "h2", dst = "h1", size = "1GB", priority = 1 }"#);
        // They would take a fifth of the port.
        assert!(beside > 0.995 * alone, "{model}: {beside} Gb/s beside them, {alone} without");
    }
}
