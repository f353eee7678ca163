//! Programs that are laws in C: what they give is what the laws in Rust give.

use super::{ADVCAM, PAIR, flows, run, scenario, text};
use roci_lab::results::FlowStatus;

/// The flows of `advcam-incast`, smaller, under a law and under its program.
fn twins(law: &str, program: &str, more: &[(&str, &str)]) {
    let sizes: Vec<_> =
        (0..8).map(|flow| (format!("traffic.0.flows.{flow}.size"), "8MB".to_owned())).collect();
    let flows_under = |control: &str| {
        let sizes = sizes.iter().map(|(key, size)| (key.as_str(), size.as_str()));
        let overrides: Vec<_> =
            sizes.chain(more.iter().copied()).chain([("transport.control", control)]).collect();
        let results = run(&scenario(ADVCAM, &overrides));
        let programs = results.programs.clone();
        (flows(results), programs)
    };
    let (native, none) = flows_under(law);
    let (coded, programs) = flows_under(&format!("{{ law = \"program\", elf = \"{program}\" }}"));
    assert!(native.lines().count() == 9 && native.contains(",ok,"));
    assert_eq!(native, coded, "{law}");
    assert!(none.is_empty());
    let [program] = &programs[..] else { panic!("{programs:?}") };
    assert!(program.tally.events.iter().all(|&events| events > 100), "{program:?}");
    assert_eq!(program.tally.fallen(), 0);
}

#[test]
fn dcqcn_in_c_gives_the_flows_of_dcqcn_in_rust() {
    twins(r#"{ law = "dcqcn", preset = "sigcomm15" }"#, "../firmware/dcqcn.elf", &[]);
}

#[test]
fn timely_in_c_gives_the_flows_of_timely_in_rust() {
    twins(r#"{ law = "timely", preset = "sigcomm15" }"#, "firmware/timely.elf", &[]);
}

#[test]
fn words_of_signed_types_are_shown_below_zero_and_others_are_not() {
    let timely = r#"{ law = "program", elf = "firmware/timely.elf" }"#;
    let results = run(&text(PAIR, &[("transport.control", timely)]).unwrap());
    let mut least = std::collections::BTreeMap::new();
    results.series.words(|_, _, name, value| {
        least.entry(name).and_modify(|least: &mut i64| *least = value.min(*least)).or_insert(value);
    });
    let below: Vec<_> = least.iter().filter(|(_, value)| **value < 0).map(|(name, _)| *name).collect();
    assert_eq!(below, ["rtt_diff"], "the one word of TIMELY's context that is an int32_t: {least:?}");
}

#[test]
fn hpcc_in_c_gives_the_flows_of_hpcc_in_rust() {
    twins(r#"{ law = "hpcc", preset = "sigcomm19" }"#, "firmware/hpcc.elf", &[]);
}

#[test]
fn swift_in_c_gives_the_flows_of_swift_in_rust() {
    twins(r#"{ law = "swift", preset = "htsim" }"#, "firmware/swift.elf", &[]);
}

#[test]
fn homa_in_c_gives_the_flows_of_homa_in_rust() {
    twins(r#"{ law = "homa" }"#, "firmware/homa.elf", &[]);
}

#[test]
fn homas_program_says_how_far_messages_are_granted() {
    let run_with = |control: &str| {
        let results =
            run(&text(PAIR, &[("transport.control", control), ("transport.timeout", "20ms")]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        let queue = results.switches.iter().map(|switch| switch.max_buffer_bytes).max().unwrap();
        (flows(results), queue)
    };
    let coded = |ahead: &str| {
        run_with(&format!(
            r#"{{ law = "program", elf = "firmware/homa.elf", context = {{ ahead = "{ahead}" }} }}"#
        ))
    };
    let native = |ahead: &str| run_with(&format!(r#"{{ law = "homa", ahead = "{ahead}" }}"#));
    let (little, much) = (coded("10KB"), coded("400KB"));
    assert_eq!((&little, &much), (&native("10KB"), &native("400KB")), "the law in Rust says the same");
    // The queue takes in twice what it lets out: half of what both may send at once lies there, 40 KB each at the begin.
    assert!(
        (40_000..60_000).contains(&little.1) && (400_000..600_000).contains(&much.1),
        "{little:?} {much:?}"
    );
}

#[test]
fn executors_agree_to_the_cycle() {
    let tally = |executor: &str| {
        let control =
            format!(r#"{{ law = "program", elf = "firmware/dcqcn.elf", executor = "{executor}" }}"#);
        let results = run(&text(PAIR, &[("transport.control", &control)]).unwrap());
        (results.programs[0].tally.clone(), results.events, results.simulated)
    };
    assert_eq!(tally("translated"), tally("interpreted"));
}
