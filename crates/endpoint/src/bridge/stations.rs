//! Which station is behind which port: learned from what they send (IEEE 802.1Q §8.7, §8.8).

use roci_units::{Instant, Span};
use roci_wire::ethernet::Mac;
use std::collections::HashMap;

/// How long a station is remembered that sends nothing: the standard's default.
const AGE: Span = Span::from_millis(300_000);
/// Stations that are remembered. Frames to others go to all ports.
const STATIONS_MAX: usize = 8_192;

/// Stations and the ports that they were heard at.
#[derive(Clone, Debug, Default)]
pub(super) struct Stations(HashMap<Mac, (u32, Instant)>);

impl Stations {
    /// `source` was heard at `port`.
    pub(super) fn learn(&mut self, source: Mac, port: u32, now: Instant) {
        if is_group(source) {
            return;
        }
        if self.0.len() >= STATIONS_MAX && !self.0.contains_key(&source) {
            self.0.retain(|_, (_, heard)| now.since(*heard) < AGE);
            if self.0.len() >= STATIONS_MAX {
                return;
            }
        }
        self.0.insert(source, (port, now));
    }

    /// The port of `destination`; `None`: all but the one that the frame came in by.
    pub(super) fn port(&self, destination: Mac, now: Instant) -> Option<u32> {
        let &(port, heard) = self.0.get(&destination)?;
        (now.since(heard) < AGE).then_some(port)
    }
}

/// Whether it stands for several stations.
const fn is_group(mac: Mac) -> bool {
    mac.0[0] & 1 != 0
}

/// Whether frames to it end at the next bridge: PAUSE, spanning trees, LLDP (IEEE 802.1Q table 8-1).
pub(super) fn is_reserved(mac: Mac) -> bool {
    mac.0[..5] == [0x01, 0x80, 0xc2, 0, 0] && mac.0[5] < 16
}
