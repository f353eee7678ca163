//! What an event of DCQCN takes on the cores of different NICs (Figure 11b).

use super::super::bench::Bench;
use super::super::{FigureError, Measured};
use super::event;
use super::rate::number;
use crate::nic::load;
use roci_control::Class;
use roci_control::program::csr::Side;

/// A link of 100 Gb/s.
const LINK_KBPS: u32 = 100_000_000;

/// Cycles of events on the cores of the preset `name`: the two that each packet makes, before it is sent and where it
/// arrives, and that of a CNP, which like those of timers is rare.
fn events(name: &str) -> [f64; 3] {
    let cores = load(name).expect("a preset").cores;
    let core = |side| event::Bench::new(event::PACED, side, &cores).open(LINK_KBPS);
    let mut receiving = core(Side::Rx);
    let send = event::Bench::new(event::PACED, Side::Tx, &cores).cycles(Class::TRANSMIT, 1024);
    [send, receiving.cycles(Class::WRITE, 1024), receiving.cycles(Class::CNP, 0)].map(number)
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut add = |key, value: f64| measured.add(key, vec![value; bench.seeds().len()]);
    let [send, data, notification] = events("swcc");
    add("send", send);
    add("data", data);
    add("cnp", notification);
    let mean = |name| {
        let [send, data, _] = events(name);
        f64::midpoint(send, data)
    };
    add("swcc", mean("swcc"));
    add("naive", mean("swcc-naive") / mean("swcc"));
    add("soft", mean("soft-roce") / mean("swcc"));
    add("bf3", mean("bluefield3") / mean("swcc"));
    Ok(measured)
}
