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
pub(super) struct Stations {
    heard: HashMap<Mac, (u32, Instant)>,
    /// Before this none is forgotten, as far as the last look at all of them told.
    kept_until: Instant,
}

impl Stations {
    /// `source` was heard at `port`.
    pub(super) fn learn(&mut self, source: Mac, port: u32, now: Instant) {
        if is_group(source) {
            return;
        }
        if self.heard.len() >= STATIONS_MAX && !self.heard.contains_key(&source) {
            // Who sends from ever new addresses is not to have all of them looked through for each frame.
            if now < self.kept_until {
                return;
            }
            self.heard.retain(|_, (_, heard)| now.since(*heard) < AGE);
            self.kept_until = self.heard.values().map(|(_, heard)| *heard + AGE).min().unwrap_or(now);
            if self.heard.len() >= STATIONS_MAX {
                return;
            }
        }
        self.heard.insert(source, (port, now));
    }

    /// The port of `destination`; `None`: all but the one that the frame came in by.
    pub(super) fn port(&self, destination: Mac, now: Instant) -> Option<u32> {
        let &(port, heard) = self.heard.get(&destination)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u32) -> Mac {
        let [a, b, c, d] = number.to_be_bytes();
        Mac([2, 0, a, b, c, d])
    }

    #[test]
    fn who_sends_from_ever_new_addresses_displaces_nobody_and_costs_no_search_each_time() {
        let mut stations = Stations::default();
        let at = |second: u64| Instant::ZERO + Span::from_millis(second * 1_000);
        for number in 0..20_000 {
            stations.learn(numbered(number), 1, at(1));
        }
        assert_eq!(stations.heard.len(), STATIONS_MAX);
        assert_eq!(
            [stations.port(numbered(0), at(2)), stations.port(numbered(19_999), at(2))],
            [Some(1), None]
        );
        // Nothing can be forgotten before then, so nothing is looked for.
        assert_eq!(stations.kept_until, at(301));
        stations.learn(numbered(0), 2, at(200));
        stations.learn(numbered(30_000), 3, at(300));
        assert_eq!(stations.port(numbered(30_000), at(300)), None);
        stations.learn(numbered(30_000), 3, at(301));
        assert_eq!(stations.port(numbered(30_000), at(301)), Some(3));
        assert_eq!(
            [stations.port(numbered(0), at(301)), stations.heard.len().try_into().ok()],
            [Some(2), Some(2)]
        );
    }
}
