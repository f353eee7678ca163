//! The headroom of PFC to the octet.
//!
//! After a port has decided to pause its peer, octets go on arriving: the PAUSE may have to wait for a frame of maximum
//! length that has just begun, takes its own time, travels for the link's delay, finds the peer at the beginning of
//! another maximum frame, and what was sent until then travels as long. That is 2·rate·delay, two maximum frames and
//! the PAUSE frame. With exactly that much nothing is dropped; with one MTU less, something is.

use super::super::bench::{Bench, HEADROOM};
use super::super::trace::{drops, pauses};
use super::super::{FigureError, Measured};
use roci_switch::config::{Headroom, LinkSpec};
use roci_units::{BitsPerSec, Span};
use roci_wire::{Cc, IpVersion, Layout, Opcode, frame_len};

/// The scenario's links and MTU.
const LINK: LinkSpec = LinkSpec { rate: BitsPerSec::from_gbps(10), delay: Span::from_ps(10_411_200) };
const MTU: u16 = 4_096;
/// The longest header that a law's layout has, in words of four octets.
const WORDS: u8 = 16;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let exact = bench.run(HEADROOM, &[])?;
    measured.each("exact_drops", &exact, drops);
    measured.each("exact_pauses", &exact, pauses);
    let need = need(Layout::Standard);
    let same = bench.run(HEADROOM, &[("switch.pfc.headroom", &format!("{need}B"))])?;
    measured.each("same_drops", &same, drops);
    let less = bench.run(HEADROOM, &[("switch.pfc.headroom", &format!("{}B", need - u64::from(MTU)))])?;
    measured.each("less_drops", &less, drops);
    let layout = ("transport.layout", format!("{{ time = false, words = {WORDS} }}"));
    let layout = (layout.0, layout.1.as_str());
    let long = Cc::new(false, false, WORDS).map_or(Layout::Standard, Layout::Cc);
    let long = self::need(long);
    measured.each("long_drops", &bench.run(HEADROOM, &[layout])?, drops);
    let less = format!("{}B", long - u64::from(MTU));
    let less = bench.run(HEADROOM, &[layout, ("switch.pfc.headroom", &less)])?;
    measured.each("long_less_drops", &less, drops);
    measured.remarks.push(format!(
        "The exact need is {need} octets for each port, and {long} with a header of 64 octets for a law in each packet."
    ));
    Ok(measured)
}

/// Octets of headroom for WRITEs with this layout.
fn need(layout: Layout) -> u64 {
    Headroom::Exact.octets(LINK, frame_len(Opcode::WRITE_ONLY, layout, IpVersion::V4, MTU))
}
