//! Which laws a NIC can run where a program sets a rate for each flow and nothing else, as NVIDIA's PCC lets it, and which
//! SwCC's interface can (Figure 2).

use super::super::bench::{Bench, SWCC_INCAST};
use super::super::{FigureError, Measured};
use crate::output::digits::float;
use crate::program::profile::law;
use crate::program::stream::{Kind, Limits, Stream};
use crate::program::{BARE, Options, machine, shipped};
use crate::results::{FlowStatus, Results};
use roci_control::Law;
use roci_units::BitsPerSec;

/// A law: its image or its name in Rust, what its run needs besides, and the keys of its rows.
type Kept = (&'static str, &'static [(&'static str, &'static str)], [&'static str; 2]);

const NDP: [(&str, &str); 4] = [
    ("transport.recovery", "ndp"),
    ("switch.trimming", "{ threshold = \"36KB\", priority = 7 }"),
    ("switch.pfc", "false"),
    ("switch.ecn", "false"),
];

const LAWS: [Kept; 9] = [
    ("firmware/dcqcn.elf", &[], ["dcqcn", "dcqcn_done"]),
    ("firmware/timely.elf", &[], ["timely", "timely_done"]),
    ("firmware/hpcc.elf", &[], ["hpcc", "hpcc_done"]),
    ("firmware/swift.elf", &[], ["swift", "swift_done"]),
    ("firmware/homa.elf", &[], ["homa", "homa_done"]),
    ("firmware/credit.elf", &[], ["credit", "credit_done"]),
    ("dctcp", &[], ["dctcp", "dctcp_done"]),
    ("nscc", &[], ["nscc", "nscc_done"]),
    ("ndp", &NDP, ["ndp", "ndp_done"]),
];

/// Packets for which a law is watched.
const WATCHED: u64 = 2_000;

/// What the credit program's contexts begin with.
fn initial(name: &str) -> Vec<(String, String)> {
    let credit = name.ends_with("credit.elf");
    credit.then(|| ("total_credit".to_owned(), "64KiB".to_owned())).into_iter().collect()
}

/// Whether a rate is all that a law sets, and all that it needs of packets is what any has.
fn by_rate_alone(name: &str) -> bool {
    let (law, needs) = match shipped(name) {
        Some(file) => {
            let machine = machine(BARE).expect("it has cores");
            let law = law(file, Options { machine, ..Options::default() }, &initial(name))
                .expect("an image of ours");
            let needs = law.image().header_words() > 0 || law.image().reads_telemetry();
            (Law::Program(Box::new(law)), needs)
        }
        None => {
            let law = Law::from_settings(name, &[], BitsPerSec::from_gbps(100)).expect("a law of ours");
            let needs = law.wants_telemetry();
            (law, needs)
        }
    };
    let mut stream = Stream::new(law, Kind::Wild, 1);
    for _ in 0..WATCHED {
        stream.packet(&mut |_| {});
    }
    !needs && stream.limits() == Limits { rate: true, ..Limits::default() }
}

/// Flows that a run has brought to their end under the law that it began with.
fn done(results: &Results) -> f64 {
    let fallen: u64 = results.programs.iter().map(|program| program.tally.fallen()).sum();
    let done = results.flows.iter().filter(|flow| flow.status == FlowStatus::OK).count();
    if fallen > 0 { 0.0 } else { float(done as u64) }
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    for (name, more, [rate, ends]) in LAWS {
        let control = match shipped(name) {
            Some(_) => {
                let context: Vec<_> =
                    initial(name).iter().map(|(name, value)| format!("{name} = \"{value}\"")).collect();
                format!("{{ law = \"program\", elf = \"{name}\", context = {{ {} }} }}", context.join(", "))
            }
            None => format!("{{ law = \"{name}\" }}"),
        };
        let set = [("transport.control", control.as_str()), ("traffic.0.count", "100")];
        let runs = bench.run(SWCC_INCAST, &[&set[..], more].concat())?;
        measured.add(rate, vec![f64::from(u8::from(by_rate_alone(name))); runs.len()]);
        measured.each(ends, &runs, done);
    }
    Ok(measured)
}
