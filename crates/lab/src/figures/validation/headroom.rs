//! The headroom of PFC to the octet.
//!
//! After a port has decided to pause its peer, octets go on arriving: the PAUSE may have to wait for a frame of maximum
//! length that has just begun, takes its own time, travels for the link's delay, finds the peer at the beginning of
//! another maximum frame, and what was sent until then travels as long. That is 2·rate·delay, two maximum frames and
//! the PAUSE frame. With exactly that much nothing is dropped; with one MTU less, something is.

use super::super::bench::{Bench, HEADROOM};
use super::super::trace::{drops, pauses};
use super::super::{FigureError, Measured};
use roci_switch::config::{Headroom, LinkSpec, SwitchConfig};
use roci_units::{BitsPerSec, Span};

/// The scenario's links and MTU.
const LINK: LinkSpec = LinkSpec { rate: BitsPerSec::from_gbps(10), delay: Span::from_ps(10_411_200) };
const MTU: u64 = 4_096;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let exact = bench.run(HEADROOM, &[])?;
    measured.each("exact_drops", &exact, drops);
    measured.each("exact_pauses", &exact, pauses);
    let need = Headroom::Exact.octets(LINK, SwitchConfig::default().max_frame);
    let same = bench.run(HEADROOM, &[("switch.pfc.headroom", &format!("{need}B"))])?;
    measured.each("same_drops", &same, drops);
    let less = bench.run(HEADROOM, &[("switch.pfc.headroom", &format!("{}B", need - MTU))])?;
    measured.each("less_drops", &less, drops);
    measured.remarks.push(format!("The exact need is {need} octets for each port."));
    Ok(measured)
}
