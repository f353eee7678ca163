//! What an event of DCQCN takes on the cores of different NICs (Figure 11b).

use super::super::bench::Bench;
use super::super::{FigureError, Measured};
use super::event;
use crate::nic::load;
use crate::output::digits::float;
use roci_control::Class;
use roci_control::program::csr::Side;

/// A link of 100 Gb/s.
const LINK_KBPS: u32 = 100_000_000;

/// Cycles of events of DCQCN on some cores.
pub(super) struct Events {
    /// Before a packet of a queue pair is sent that has heard of no congestion.
    pub(super) send: f64,
    /// The same of one that DCQCN holds back, when its packet is due, and when it is asked about too early.
    pub(super) paced: f64,
    early: f64,
    /// A packet arrived.
    pub(super) data: f64,
    /// A CNP arrived, which like a timer is rare.
    notification: f64,
}

impl Events {
    /// On the cores of the preset `name`.
    pub(super) fn on(name: &str) -> Self {
        let cores = load(name).expect("a preset").cores;
        let core = |side| event::Bench::new(event::PACED, side, &cores);
        let mut receiving = core(Side::Rx).open(LINK_KBPS);
        let data = receiving.cycles(Class::WRITE, 1024);
        let send = core(Side::Tx).beside(&receiving).cycles(Class::TRANSMIT, 1024);
        let notification = receiving.cycles(Class::CNP, 0);
        let mut paced = core(Side::Tx).beside(&receiving);
        let [due, early] = [(); 2].map(|()| paced.cycles(Class::TRANSMIT, 1024));
        let [send, paced, early, data, notification] = [send, due, early, data, notification].map(float);
        Self { send, paced, early, data, notification }
    }

    /// The mean of the two that each packet makes, where nothing is congested.
    fn mean(&self) -> f64 {
        f64::midpoint(self.send, self.data)
    }

    /// The same where DCQCN holds a queue pair back.
    fn mean_paced(&self) -> f64 {
        f64::midpoint(self.paced, self.data)
    }
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut add = |key, value: f64| measured.add(key, vec![value; bench.seeds().len()]);
    let swcc = Events::on("swcc");
    add("send", swcc.send);
    add("data", swcc.data);
    add("swcc", swcc.mean());
    add("send_paced", swcc.paced);
    add("send_early", swcc.early);
    add("swcc_paced", swcc.mean_paced());
    add("cnp", swcc.notification);
    for (name, key, paced) in [
        ("swcc-naive", "naive", "naive_paced"),
        ("soft-roce", "soft", "soft_paced"),
        ("bluefield3", "bf3", "bf3_paced"),
    ] {
        let other = Events::on(name);
        add(key, other.mean() / swcc.mean());
        add(paced, other.mean_paced() / swcc.mean_paced());
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_is_paced_takes_more_than_one_that_is_not_and_one_that_is_early_less() {
        for name in ["swcc", "swcc-naive", "soft-roce", "bluefield3"] {
            let Events { send, paced, early, .. } = Events::on(name);
            assert!(early < paced && send < paced, "{name}: {send}, paced {paced}, too early {early}");
        }
    }
}
