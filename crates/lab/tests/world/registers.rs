//! Registers that `[[at]]` writes for one table of traffic.

use super::{run, star};
use roci_lab::results::{FlowResult, Results};
use roci_units::{Instant, Span};

/// Two tables with hosts of their own, whose packets meet nowhere and are marked without chance. Each has two flows to one host that begin
/// with the run, and two after four milliseconds.
fn pairs(control: &str, at: &str) -> Results {
    pairs_with(control, at, &[])
}

fn pairs_with(control: &str, at: &str, overrides: &[(&str, &str)]) -> Results {
    let table = |name: &str, hosts: [u32; 3], control: &str| {
        let [a, b, to] = hosts;
        let flow = |from: u32, start: &str| {
            format!("{{ src = \"h{from}\", dst = \"h{to}\", size = \"1MB\", start = \"{start}\" }}")
        };
        let flows = [flow(a, "0s"), flow(b, "0s"), flow(a, "4ms"), flow(b, "4ms")].join(", ");
        format!("[[traffic]]\nname = \"{name}\"\nkind = \"flows\"\n{control}\nflows = [{flows}]\n")
    };
    let tables = table("storage", [0, 1, 2], control) + &table("video", [3, 4, 5], "");
    let switch = "switch = { buffer = \"64MB\", ecn = { step = \"20KB\" } }";
    let rest = format!("start_jitter = \"0s\"\n{switch}\n{tables}{at}");
    run(&star(6, "10Gb/s", &rest), overrides)
}

fn times(results: &Results) -> [Vec<Span>; 4] {
    let of = |from: usize| {
        results.flows[from..from + 2].iter().map(|flow| flow.fct().expect("it completes")).collect()
    };
    [of(0), of(2), of(4), of(6)]
}

#[test]
fn a_table_is_written_to_by_its_name_though_another_has_the_same_law() {
    let set = "set = { \"transport.control.rai\" = \"2Gb/s\" }";
    let [plain, own, written, late] = [
        pairs("", ""),
        pairs("control = { law = \"dcqcn\", rai = \"2Gb/s\" }", ""),
        pairs("", &format!("[[at]]\ntime = \"500us\"\ntraffic = \"storage\"\n{set}\n")),
        pairs("", &format!("[[at]]\ntime = \"3900us\"\ntraffic = \"0\"\n{set}\n")),
    ]
    .map(|results| times(&results));
    assert_ne!(plain[1], own[1], "the rate that is added matters");
    assert_eq!(written[1], own[1], "flows that start later have it");
    assert_ne!(written[0], plain[0], "and flows that are under way");
    assert_eq!(written[2..], plain[2..], "those of the other table are what they were");
    assert!(late[0] == plain[0] && late[1] == own[1] && late[2..] == plain[2..], "{late:?}");
}

#[test]
fn a_register_of_each_flow_of_a_table_is_written_and_a_flow_with_a_law_of_its_own_is_one_of_them() {
    let at =
        |time: &str, of: &str, set: &str| format!("[[at]]\ntime = \"{time}\"\n{of}\nset = {{ {set} }}\n");
    let slow = "\"transport.control.rt\" = \"100Mb/s\", \"transport.control.rc\" = \"100Mb/s\"";
    let plain = times(&pairs("", ""));
    let results = pairs("", &at("200us", "traffic = \"storage\"", slow));
    assert!(results.warnings.is_empty(), "{:?}", results.warnings);
    let slowed = times(&results);
    assert!(slowed[0].iter().min() > plain[0].iter().max(), "{slowed:?} {plain:?}");
    assert_eq!(slowed[2..], plain[2..]);
    // What one flow was given first is written over with the others'.
    let first = at("100us", "flow = \"0.0\"", "\"transport.control.rai\" = \"1Mb/s\"");
    let rai = |value: &str| {
        at("200us", "traffic = \"storage\"", &format!("\"transport.control.rai\" = \"{value}\""))
    };
    let apart = times(&pairs("", &(first.clone() + &rai("2Gb/s"))));
    let alone = times(&pairs("", &first));
    assert_ne!(apart[0][0], alone[0][0]);
    let none = pairs("", &at("3900us", "traffic = \"storage\"", slow));
    let told = "nobody took what `[[at]]` writes to `transport.control.rt` at 3900us: no flow is under way that it is for: \
                of table `storage`";
    assert!(none.warnings.iter().any(|warning| warning == told), "{:?}", none.warnings);
    assert!(none.simulated > Instant::ZERO + Span::from_micros(4_000));
}

#[test]
fn a_program_is_replaced_for_the_flows_of_one_table() {
    let program = ("transport.control", "{ law = \"program\", elf = \"firmware/dcqcn.elf\" }");
    let at = "[[at]]\ntime = \"500us\"\ntraffic = \"storage\"\nset = { \"transport.control.elf\" = \"firmware/timely.elf\" }\n";
    let plain = pairs_with("", "", &[program]);
    let written = pairs_with("", at, &[program]);
    let control = |flow: usize| written.controls[usize::from(written.flows[flow].control)].as_str();
    let replaced = "program elf=firmware/dcqcn.elf, firmware/timely.elf from 500us";
    assert_eq!([0, 1, 2, 3].map(control), [replaced; 4]);
    assert_eq!([4, 5, 6, 7].map(control), ["program elf=firmware/dcqcn.elf"; 4]);
    let (plain, written) = (times(&plain), times(&written));
    assert!(written[0] != plain[0] && written[1] != plain[1], "{written:?}");
    assert_eq!(written[2..], plain[2..]);
}

/// Two servers of two GPUs: of each table one flow within a server, under the control of that network, and one between servers. What is said is of the run.
fn by_networks(own: &str, at: &str) -> Results {
    by_networks_with(&format!("\"{own}\""), at, &[])
}

fn by_networks_with(own: &str, at: &str, overrides: &[(&str, &str)]) -> Results {
    let table = |name: &str, pairs: [[u32; 2]; 2]| {
        let flow = |[a, b]: [u32; 2]| format!("{{ src = \"h{a}\", dst = \"h{b}\", size = \"1MB\" }}");
        let flows = pairs.map(flow).join(", ");
        format!("[[traffic]]\nname = \"{name}\"\nkind = \"flows\"\nflows = [{flows}]\n")
    };
    let text = format!(
        "start_jitter = \"0s\"\n[topology]\nkind = \"rails\"\nservers = 2\ngpus = 2\nspines = 1\nrate = \"100Gb/s\"\ndelay = \"1us\"\n\
         scale_up = \"900Gb/s\"\nscale_up_delay = \"100ns\"\n[[transport.on]]\nswitches = [\"up*\"]\ncontrol = {own}\n{}{}{at}",
        table("storage", [[0, 1], [0, 2]]),
        table("video", [[3, 2], [3, 1]]),
    );
    run(&text, overrides)
}

/// The time of each flow of [`by_networks`], in the order of the text, and what was told of writes.
fn told_and_times(results: &Results) -> (Vec<Span>, Vec<&str>) {
    let times = results.flows.iter().map(|flow| flow.fct().expect("it completes")).collect();
    let told = results.warnings.iter().map(String::as_str).filter(|warning| warning.contains("`[[at]]`"));
    (times, told.collect())
}

#[test]
fn a_table_is_not_written_to_where_its_flows_have_the_control_of_their_network() {
    let plain = by_networks("dcqcn", "");
    let (plain, _) = told_and_times(&plain);
    let at = |of: &str| {
        format!("[[at]]\ntime = \"3us\"\n{of}\nset = {{ \"transport.control.rc\" = \"5Gb/s\" }}\n")
    };
    // All of each flow, of one table what runs the law of this, and of one flow by name whatever it runs.
    for (of, slower, is_told) in [
        ("", [true, true, true, true], false),
        ("traffic = \"storage\"", [false, true, false, false], true),
        ("flow = \"0.0\"", [true, false, false, false], false),
        ("networks = [\"up*\"]", [true, false, true, false], false),
    ] {
        let written = by_networks("dcqcn", &at(of));
        let (times, told) = told_and_times(&written);
        let longer: Vec<bool> = times.iter().zip(&plain).map(|(time, plain)| time > plain).collect();
        assert_eq!(longer, slower, "{of}: {times:?} {plain:?}");
        let expected = "not all took what `[[at]]` writes to `transport.control.rc` at 3us: \
                        1 of 2 flows run the congestion control of their network, whatever their table has (`0.0`)";
        assert_eq!(told, if is_told { vec![expected] } else { vec![] }, "{of}");
    }
}

#[test]
fn of_two_networks_one_may_be_written_to_by_itself() {
    let first = "[[transport.on]]\nswitches = [\"up0\"]\ncontrol = \"dcqcn\"\n";
    let plain = by_networks("dcqcn", first);
    let (plain, _) = told_and_times(&plain);
    for (networks, slower) in [("up0", [true, false, false, false]), ("up*", [true, false, true, false])] {
        let at = format!(
            "{first}[[at]]\ntime = \"3us\"\nnetworks = [\"{networks}\"]\nset = {{ \"transport.control.rc\" = \"5Gb/s\" }}\n"
        );
        let written = by_networks("dcqcn", &at);
        let (times, told) = told_and_times(&written);
        assert!(told.is_empty(), "{networks}: {told:?}");
        let longer: Vec<bool> = times.iter().zip(&plain).map(|(time, plain)| time > plain).collect();
        assert_eq!(longer, slower, "{networks}: {times:?} {plain:?}");
    }
}

#[test]
fn a_parameter_of_a_table_is_told_of_where_the_law_of_a_network_has_it_too() {
    let at =
        "[[at]]\ntime = \"3us\"\ntraffic = \"storage\"\nset = { \"transport.control.rai\" = \"1Mb/s\" }\n";
    for (own, is_told) in [("dcqcn", true), ("none", false), ("swift", false)] {
        let results = by_networks(own, at);
        let (_, told) = told_and_times(&results);
        assert_eq!(
            told.iter().filter(|told| told.contains("(`0.0`)")).count(),
            usize::from(is_told),
            "{own}: {told:?}"
        );
    }
}

#[test]
fn programs_of_networks_are_replaced_with_all_and_by_flow_but_not_with_a_table() {
    let program = "{ law = \"program\", elf = \"firmware/dcqcn.elf\" }";
    let at = |of: &str| {
        format!(
            "[[at]]\ntime = \"3us\"\n{of}\nset = {{ \"transport.control.elf\" = \"firmware/timely.elf\" }}\n"
        )
    };
    for (of, expected) in [
        ("", [true, true, true, true]),
        ("traffic = \"storage\"", [false, true, false, false]),
        ("flow = \"0.0\"", [true, false, false, false]),
        ("flow = \"0.1\"", [false, true, false, false]),
        ("networks = [\"up*\"]", [true, false, true, false]),
    ] {
        let results = by_networks_with(program, &at(of), &[("transport.control", program)]);
        let replaced = |flow: &FlowResult| {
            let control = results.controls[usize::from(flow.control)].as_str();
            assert!(control.starts_with("program elf=firmware/dcqcn.elf"), "{control}");
            control.ends_with(", firmware/timely.elf from 3us")
        };
        assert_eq!(results.flows.iter().map(replaced).collect::<Vec<_>>(), expected, "{of}");
        let (_, told) = told_and_times(&results);
        let spared = "not all took the program that `[[at]]` writes at 3us: 1 of 2 flows run that of their network, whatever their table has (`0.0`)";
        assert_eq!(told.len(), usize::from(of.starts_with("traffic")), "{of}: {told:?}");
        assert!(told.iter().all(|told| told.starts_with(spared)), "{told:?}");
    }
}

#[test]
fn what_a_write_does_is_the_same_whether_or_not_flows_are_sampled() {
    // Alpha decays by itself. It goes by the old g until the write, also where nobody looked at it meanwhile.
    for at in ["flow = \"0.0\", ", "traffic = \"storage\", ", ""] {
        let at = format!(
            "[[at]]\ntime = \"1.3ms\"\n{}set = {{ \"transport.control.g\" = \"1/2\" }}\n",
            at.replace(", ", "\n")
        );
        let seldom = pairs_with("", &at, &[("measure.sample", "0s")]);
        let often = pairs_with("", &at, &[("measure.sample", "1us")]);
        assert_eq!(times(&seldom), times(&often), "{at}");
        assert_ne!(times(&seldom), times(&pairs("", "")), "it does something: {at}");
    }
}
