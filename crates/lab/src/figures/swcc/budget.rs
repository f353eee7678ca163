//! The time between packets at line rate (Figure 3): what a law has for each of them.

use super::super::bench::Bench;
use super::super::plot::Plot;
use super::super::statistics::count;
use super::super::{FigureError, Measured};
use roci_units::{BitsPerSec, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Layout, Opcode, frame_len};

const SIZES: [u16; 7] = [64, 128, 256, 512, 1024, 2048, 4096];
const RATES: [u64; 4] = [100, 200, 400, 800];

/// How long a packet of a WRITE with so much payload takes on a link: preamble, headers, payload, checksums, gap.
pub(super) fn packet_time(gbps: u64, payload: u16) -> Span {
    let octets = frame_len(Opcode::WRITE_ONLY, Layout::Standard, IpVersion::V4, payload) + WIRE_OVERHEAD;
    BitsPerSec::from_gbps(gbps).time_for(octets.into())
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let seeds = bench.seeds().len();
    let ns = |gbps, payload| packet_time(gbps, payload).as_secs_f64() * 1e9;
    for (key, gbps, payload) in [
        ("g100_64", 100, 64),
        ("g100_1k", 100, 1024),
        ("g200_1k", 200, 1024),
        ("g400_1k", 400, 1024),
        ("g800_1k", 800, 1024),
        ("g800_4k", 800, 4096),
    ] {
        measured.add(key, vec![ns(gbps, payload); seeds]);
    }
    let mut plot = Plot::new("Time for a packet", "octets of payload", "ns");
    for gbps in RATES {
        let line = SIZES.iter().map(|&payload| (count(payload.into()), ns(gbps, payload)));
        plot = plot.line(&format!("{gbps} Gb/s"), line.collect());
    }
    measured.plots.push(plot);
    Ok(measured)
}
