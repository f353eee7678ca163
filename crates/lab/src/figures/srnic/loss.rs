//! Goodput against loss (Figure 11).

use super::super::bench::{Bench, LOSS};
use super::super::plot::Plot;
use super::super::{FigureError, Measured};
use super::{counters, slow_path_cpu, wire_gbps};
use crate::results::Results;
use roci_nic::arch::counters::Cause;

/// Loss rates, in percent, with the keys of SRNIC's and the commodity NIC's goodput.
const RATES: [(&str, f64, &str, &str); 6] = [
    ("0.00001", 0.001, "srnic_0001", "cx6_0001"),
    ("0.0001", 0.01, "srnic_001", "cx6_001"),
    ("0.001", 0.1, "srnic_01", "cx6_01"),
    ("0.005", 0.5, "srnic_05", "cx6_05"),
    ("0.01", 1.0, "srnic_1", "cx6_1"),
    ("0.05", 5.0, "srnic_5", "cx6_5"),
];

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut lines = [const { Vec::new() }; 4];
    for (rate, percent, srnic_key, cx6_key) in RATES {
        let run = |nic, recovery| {
            bench.run(
                LOSS,
                &[("nic.model", nic), ("transport.recovery", recovery), ("faults.on.0.loss", rate)],
            )
        };
        let srnic = run("srnic", "srnic")?;
        let cx6 = run("cx6", "go-back-n")?;
        let ideal = [run("ideal", "srnic")?, run("ideal", "go-back-n")?];
        measured.each(srnic_key, &srnic, goodput);
        measured.each(cx6_key, &cx6, goodput);
        if rate == "0.01" {
            measured.each("ideal_selective", &ideal[0], goodput);
            measured.each("ideal_go_back_n", &ideal[1], goodput);
            measured.each("cx6_wire", &cx6, wire_gbps);
            measured.each("slow_path", &srnic, slow_path);
            measured.each("cpu", &srnic, slow_path_cpu);
            measured.add("ratio", srnic.iter().zip(&cx6).map(|(a, b)| goodput(a) / goodput(b)).collect());
            for (key, software) in
                [("software_0", "0ns"), ("software_100", "100ns"), ("software_200", "200ns")]
            {
                let set = [
                    ("nic.model", "srnic"),
                    ("nic.with.recovery.software", software),
                    ("transport.recovery", "srnic"),
                    ("faults.on.0.loss", rate),
                ];
                measured.each(key, &bench.run(LOSS, &set)?, goodput);
            }
        }
        for (line, runs) in lines.iter_mut().zip([&srnic, &cx6, &ideal[0], &ideal[1]]) {
            line.push((percent, goodput(&runs[0])));
        }
    }
    let mut plot = Plot::new("Goodput against loss", "packets lost (%)", "goodput (Gb/s)");
    let names = ["srnic", "cx6", "ideal NIC, selective repeat", "ideal NIC, go-back-N"];
    for (name, line) in names.into_iter().zip(lines) {
        plot = plot.line(name, line);
    }
    measured.plots.push(plot);
    Ok(measured)
}

#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn goodput(results: &Results) -> f64 {
    results.flows[0].delivered as f64 * 8e-9 / results.simulated.as_secs_f64()
}

/// PCIe traffic of the slow path at the sender, as a share of that of its payload, in percent.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn slow_path(results: &Results) -> f64 {
    let counters = counters(results);
    100.0 * counters.pcie_of(Cause::Recovery) as f64 / counters.pcie_of(Cause::Payload) as f64
}
