//! What a scenario sets of a program, before a run and during it, and reads.

use super::{PAIR, at, control, run, text};
use roci_units::Span;

#[test]
fn parameters_are_set_by_name() {
    let finished = |more: &str| {
        let control =
            format!(r#"{{ law = "program", elf = "firmware/timely.elf", context = {{ {more} }} }}"#);
        let results = run(&text(PAIR, &[("transport.control", &control)]).unwrap());
        assert_eq!(results.programs[0].tally.fallen(), 0);
        results.flows.iter().map(|flow| flow.fct().unwrap()).max().unwrap()
    };
    let usual = finished("");
    assert_eq!(usual, finished("t_low = \"50us\", delta = \"10Mb/s\""), "these are the values anyway");
    // A target that no path can meet cuts the rate again and again.
    let slow = finished("t_low = \"1us\", t_high = \"2us\", min_rtt = \"1us\"");
    assert!(slow > usual * 2, "{slow} {usual}");
}

#[test]
fn a_name_that_is_none_is_refused_with_the_nearest() {
    let refused = |set: &str| {
        let control = format!(r#"{{ law = "program", elf = "firmware/dcqcn.elf", context = {{ {set} }} }}"#);
        text(PAIR, &[("transport.control", &control)]).unwrap_err()
    };
    let told = refused("alfa = 1");
    assert!(told.contains("neither a word of its context nor a parameter is called `alfa`"), "{told}");
    assert!(
        told.contains("did you mean `alpha`? its context and its parameters are `link`, `rate`"),
        "{told}"
    );
    // A key of an override ends at each dot, but within quotes.
    let written = format!("{PAIR}{}", at("1ms", "rate", "1Gb/s"));
    let told = text(&written, &[("at.0.set.transport.control.rate", "2Gb/s")]).unwrap_err();
    assert!(told.contains("quotes: `'at.0.set.\"transport.control.rate\"=\"2Gb/s\"'`"), "{told}");
    for set in [
        ("at.0.set.\"transport.control.rate\"", "2Gb/s"),
        ("at.0.set", "{ \"transport.control.rate\" = \"2Gb/s\" }"),
    ] {
        assert_eq!(text(&written, &[set]).unwrap().writes[0].text.value, "2Gb/s");
    }
}

#[test]
fn a_parameter_is_written_during_the_run() {
    let rates = |flow: &str| {
        // Rates rise by a hundredth of what they did, after a cut.
        let written = format!(
            "{PAIR}\n[[at]]\ntime = \"200us\"\n{flow}set = {{ \"transport.control.rmin\" = \"3Gb/s\", \
             \"transport.control.g\" = \"1\" }}\n"
        );
        let results = run(&text(&written, &[]).unwrap());
        assert_eq!(results.programs[0].tally.fallen(), 0);
        let mut least = [i64::MAX; 2];
        results.series.words(|at, flow, name, value| {
            if name == "rate" && at.as_ps() > 1_000_000_000 {
                let least = &mut least[flow as usize];
                *least = value.min(*least);
            }
        });
        (least, results.programs[0].tally.events)
    };
    let (both, events) = rates("");
    assert!(both.iter().all(|least| *least >= 3_000_000), "no cut goes below the new minimum: {both:?}");
    let (one, other_events) = rates("flow = \"a\"\n");
    assert!(one[0] >= 3_000_000 && one[1] < 3_000_000, "{one:?}");
    // A flow with a parameter of its own is counted with the others, and once.
    assert!(other_events[1].abs_diff(events[1]) < events[1] / 10, "{other_events:?} {events:?}");
    let wrong = format!("{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.g\" = 2 }}\n");
    let refused = text(&wrong, &[]).unwrap_err();
    assert!(refused.contains("the program refuses g = \"2\"") && refused.contains("dcqcn.c:60"), "{refused}");
    assert!(refused.contains("it requires within(g, 1, ONE), with g = 2"), "{refused}");
}

#[test]
fn a_rate_that_is_written_is_paced_at_though_no_event_comes() {
    // Nothing is marked, so the program hears of nothing that would have it set the rate.
    let slowest = |more: &str| {
        let text = text(&format!("{PAIR}{more}"), &[("switch.ecn", "false")]).unwrap();
        run(&text).flows.iter().map(|flow| flow.fct().unwrap()).max().unwrap()
    };
    let usual = slowest("");
    assert!(usual < Span::from_millis(8), "{usual}");
    let paced = slowest(&at("1ms", "rate", "1Gb/s"));
    assert!(paced > Span::from_millis(25), "4 MB at 1 Gb/s are 32 ms: {paced}");
    // A word that is no rate of the pacer's says nothing to it.
    assert_eq!(slowest(&at("1ms", "target", "1Gb/s")), usual);
}

#[test]
fn a_write_that_is_lost_is_told() {
    // The program is stopped at the flows' first answers: they run the fallback law.
    let credit = r#"{ law = "program", elf = "tests/programs/store_outside.elf", check = false }"#;
    let times = ["1ms", "900ms", "1950ms"].map(|time| at(time, "first", "5")).concat();
    let set =
        [("transport.control", credit), ("transport.timeout", "500us"), ("traffic.0.flows.1.start", "1s")];
    let results = run(&text(&format!("{PAIR}{times}"), &set).unwrap());
    let whys = [
        "1 of 1 flows run the fallback law of a program that failed (`a`)",
        "no flow is under way",
        "the run was over after ",
    ];
    assert_eq!(results.warnings.len(), whys.len(), "{:?}", results.warnings);
    let mut summary = Vec::new();
    roci_lab::output::summary::write(&mut summary, &results).unwrap();
    let summary = String::from_utf8(summary).unwrap();
    for (warning, why) in results.warnings.iter().zip(whys) {
        assert!(warning.contains("transport.control.first") && warning.contains(why), "{warning}");
        assert!(summary.contains(warning), "{summary}");
    }
    let told = run(&text(PAIR, &[("transport.control", credit)]).unwrap());
    assert!(told.warnings.is_empty(), "{:?}", told.warnings);
}

#[test]
fn flows_whose_program_lacks_the_word_that_is_written_are_named() {
    // `a` runs DCQCN's program, which has a word of this name, and `b` another.
    let written = format!("{PAIR}{}", at("1ms", "rate", "1Gb/s"));
    let other = r#"{ law = "program", elf = "../../control/tests/images/other.elf" }"#;
    let warnings = run(&text(&written, &[("traffic.0.flows.1.control", other)]).unwrap()).warnings;
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.starts_with("not all took"), "{warning}");
    assert!(warning.ends_with("1 of 2 flows run a law that has no such register (`b`)"), "{warning}");
}

#[test]
fn contexts_of_receivers_are_in_the_series_where_they_are_asked_for() {
    let stamps = r#"{ law = "program", elf = "../../control/tests/images/stamps.elf" }"#;
    let words = |receivers: &str| {
        let over = [
            ("transport.control", stamps),
            ("transport.layout", "{ words = 1, time = true }"),
            ("measure.receivers", receivers),
        ];
        let results = run(&text(PAIR, &over).unwrap());
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        results.series.words(|_, flow, name, value| sent.push((flow, name, value)));
        results.series.receiver_words(|_, flow, name, value| received.push((flow, name, value)));
        (sent, received)
    };
    let (sent, received) = words("true");
    assert_eq!(words("false"), (sent.clone(), Vec::new()));
    // Both ends run the program, and what they have heard is not the same.
    let most = |words: &[(u32, &str, i64)], flow| {
        words.iter().filter(|(of, name, _)| (*of, *name) == (flow, "heard")).map(|word| word.2).max()
    };
    for flow in 0..2 {
        assert_eq!(
            sent.iter().filter(|word| word.0 == flow).count(),
            received.iter().filter(|word| word.0 == flow).count()
        );
        assert!(most(&received, flow).is_some() && most(&received, flow) != most(&sent, flow), "{flow}");
    }
}

#[test]
fn a_context_is_read_in_the_series_and_written_during_the_run() {
    let written =
        format!("{PAIR}\n[[at]]\ntime = \"400us\"\nset = {{ \"transport.control.rate\" = \"1Gb/s\" }}\n");
    let results = run(&text(&written, &[]).unwrap());
    let mut rates = Vec::new();
    results.series.words(|at, flow, name, value| {
        if flow == 0 && name == "rate" {
            rates.push((at.as_ps() / 100_000_000, value));
        }
    });
    assert_eq!(&rates[..4], [(1, rates[0].1), (2, rates[1].1), (3, rates[2].1), (4, 1_000_000)]);
    assert!(rates[2].1 > 1_500_000 && rates[4].1 > 1_000_000, "{rates:?}");
}

#[test]
fn the_priorities_that_a_program_sets_are_counted_where_they_are_asked_for() {
    let priorities = |asked: &[(&str, &str)]| {
        let ranked = control("tests/programs/ranked.elf");
        let over = [&[("transport.control", ranked.as_str())], asked].concat();
        let results = run(&text(PAIR, &over).unwrap());
        results.priority_sums().iter().map(|(sum, _)| (sum.priority, sum.packets > 1_000)).collect::<Vec<_>>()
    };
    assert_eq!(priorities(&[]), [], "nobody knows before the run");
    let asked = ("measure.priorities", "true");
    // The data; what acknowledges them, and what went first, has the class of data.
    assert_eq!(priorities(&[asked]), [(1, true), (3, true), (4, true)]);
    let own = ("traffic.0.flows.1.priority", "0");
    assert!(!priorities(&[own]).is_empty(), "two are named");
    assert_eq!(priorities(&[own, ("measure.priorities", "false")]), []);
}
