//! Arbitrary frames at the ports of the emulated switch: nothing panics, each is counted once, what is delivered is what was sent but
//! for its mark, and nothing stays behind.
//!
//! The input is a first octet that chooses the switch, and a list of frames: port, time since the one before, length, octets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_endpoint::bridge::{Bridge, BridgeConfig, Link};
use roci_switch::Shares;
use roci_units::{BitsPerSec, Instant, Ratio, Span};
use std::collections::HashSet;

const PORTS: usize = 3;

/// A frame without what a switch may change: two bits of the IP header's class, and the checksum of IPv4.
fn essence(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let tag = if frame.get(12..14) == Some(&[0x81, 0]) { 4 } else { 0 };
    let kind = frame.get(12 + tag..14 + tag).map(<[u8]>::to_vec);
    let at = 14 + tag;
    match kind.as_deref() {
        Some([0x08, 0]) if frame.len() >= at + 12 => {
            frame[at + 1] |= 3;
            frame[at + 10..at + 12].fill(0);
        }
        Some([0x86, 0xdd]) if frame.len() >= at + 2 => frame[at + 1] |= 0x30,
        _ => {}
    }
    frame
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, mut rest)) = input.split_first() else { return };
    let mut config = BridgeConfig { loss: Ratio::new(u32::from(kind & 1), 4), ..BridgeConfig::default() };
    if kind & 2 != 0 {
        config.classes = None;
    }
    if kind & 4 != 0 {
        config.switch.pfc = None;
        config.switch.buffer.0 = 4_000;
    }
    if kind & 16 != 0 {
        config.nic_ets = Shares::new([30, 0, 0, 70, 0, 0, 0, 0]).ok();
    }
    let link =
        Link { rate: BitsPerSec::from_mbps(10), delay: Span::from_micros(1), pause_frames: kind & 8 != 0 };
    let mut bridge = Bridge::new(&config, &[link; PORTS]).expect("it makes sense");
    let (mut now, mut sent, mut seen, mut delivered) = (Instant::ZERO, 0, HashSet::new(), 0_u64);
    let mut hear = |seen: &HashSet<Vec<u8>>, frame: &[u8]| {
        let is_pause = frame.starts_with(&[0x01, 0x80, 0xc2, 0, 0, 0x01]);
        delivered += u64::from(!is_pause);
        assert!(is_pause || seen.contains(&essence(frame)), "a frame that nobody sent");
    };
    while let [port, gap, length, behind @ ..] = rest {
        let (frame, left) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = left;
        now = now + Span::from_micros(u64::from(*gap));
        bridge.advance(now, |_, frame, _| hear(&seen, frame));
        seen.insert(essence(frame));
        sent += 1;
        bridge.send(u32::from(*port) % PORTS as u32, frame, now);
    }
    bridge.advance(Instant::NEVER, |_, frame, _| hear(&seen, frame));
    assert_eq!(bridge.next_event(), None);
    let report = bridge.report(Instant::NEVER);
    assert_eq!(report.ports.iter().map(|port| port.received + port.refused).sum::<u64>(), sent);
    assert_eq!(report.ports.iter().map(|port| port.sent).sum::<u64>(), delivered);
    assert!(report.ports.iter().all(|port| port.queued == 0));
});
