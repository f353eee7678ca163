//! Registers that `[[at]]` writes for one table of traffic.

use super::{run, star};
use roci_lab::results::Results;
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
