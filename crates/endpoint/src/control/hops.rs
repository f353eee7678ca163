//! What switches have told of the ways between two queue pairs, as the control socket shows it: the word `hops` of a table.
//!
//! A way is `to` the peer, which the answers to our packets tell of, or `from` it, which its own packets do. Its hops are ports of switches, first
//! the one that its packets leave first. What a port has carried between two readings is what it had sent at the later one's telling but not
//! at the earlier one's, by the switch's own clock, so that it is exact however late either was read.

use roci_units::{BitsPerSec, Bytes, Span};
use std::fmt::Write as _;

/// What stands where no switch has told anything.
const NONE: &str = "-";

/// A port of a switch, as the last packet told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// What waited there as the packet began to leave.
    pub queued: Bytes,
    /// Its rate: that of the packet's code, or where it has none the one that this end was told.
    pub rate: BitsPerSec,
    /// What it has sent since its way was met, as far as packets told.
    pub sent: Bytes,
    /// When the packet began to leave, by the switch's clock, of which only differences mean anything.
    pub at_ns: i64,
}

/// The hops of one way of a queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whether it is that of our packets, and not of the peer's.
    pub is_ours: bool,
    /// Which it is: another where other switches tell, or packets came too seldom to know what ports have sent between two of them.
    pub path: u32,
    /// How often it was met anew, the first time among them.
    pub anew: u32,
    /// How long ago that was told.
    pub age: Span,
    /// The hops, first hop first; never none.
    pub hops: Vec<Hop>,
}

impl Way {
    /// What its direction is called.
    pub const fn direction(&self) -> &'static str {
        if self.is_ours { "to" } else { "from" }
    }

    /// What hop `place` has carried since `earlier` told, in bits per second; `None` where nothing was told in between, or of another way.
    pub fn carried(&self, earlier: &Self, place: usize) -> Option<f64> {
        let (now, before) = (self.hops.get(place)?, earlier.hops.get(place)?);
        let nanoseconds = now.at_ns.checked_sub(before.at_ns).filter(|passed| *passed > 0)?;
        let is_same = (self.path, self.anew) == (earlier.path, earlier.anew);
        let octets = now.sent.0.checked_sub(before.sent.0).filter(|_| is_same)?;
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        Some(octets as f64 * 8e9 / nanoseconds as f64)
    }
}

/// The ways in a word.
pub(super) fn word(ways: &[Way]) -> String {
    let mut text = String::new();
    for way in ways {
        let Way { path, anew, age, .. } = way;
        let between = if text.is_empty() { "" } else { "|" };
        // Writing to a String does not fail.
        let _ = write!(text, "{between}{}:{path}:{anew}:{}", way.direction(), age.as_ps() / 1_000);
        for Hop { queued, rate, sent, at_ns } in &way.hops {
            let _ = write!(text, ":{},{},{},{at_ns}", queued.0, rate.0, sent.0);
        }
    }
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// The ways of a word; `None` where it is none.
pub(super) fn ways(word: &str) -> Option<Vec<Way>> {
    if word == NONE { Some(Vec::new()) } else { word.split('|').map(way).collect() }
}

fn way(text: &str) -> Option<Way> {
    let mut words = text.split(':');
    let is_ours = match words.next()? {
        "to" => true,
        "from" => false,
        _ => return None,
    };
    let (path, anew) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let age = Span::from_ps(words.next()?.parse::<u64>().ok()?.checked_mul(1_000)?);
    let hops: Vec<Hop> = words.map(hop).collect::<Option<_>>()?;
    (!hops.is_empty()).then_some(Way { is_ours, path, anew, age, hops })
}

fn hop(text: &str) -> Option<Hop> {
    let mut words = text.split(',');
    let mut next = || words.next();
    let (queued, rate, sent, at_ns) = (next()?, next()?, next()?, next()?);
    Some(Hop {
        queued: Bytes(queued.parse().ok()?),
        rate: BitsPerSec(rate.parse().ok()?),
        sent: Bytes(sent.parse().ok()?),
        at_ns: at_ns.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(at_ns: i64, sent: u64) -> Way {
        let hop = Hop { queued: Bytes(800), rate: BitsPerSec::from_gbps(25), sent: Bytes(sent), at_ns };
        let slow = Hop { rate: BitsPerSec::from_mbps(100), sent: Bytes(sent / 2), ..hop };
        Way { is_ours: true, path: 4103, anew: 1, age: Span::from_micros(12), hops: vec![hop, slow] }
    }

    #[test]
    fn ways_are_read_as_they_were_written() {
        let from = Way { is_ours: false, hops: way(-5, 0).hops[..1].to_vec(), ..way(0, 0) };
        for all in [vec![], vec![way(7_000, 12_800)], vec![way(7_000, 12_800), from]] {
            assert_eq!(ways(&word(&all)), Some(all.clone()), "{}", word(&all));
        }
        assert_eq!(word(&[way(-7, 4)]), "to:4103:1:12000:800,25000000000,4,-7:800,100000000,2,-7");
        for text in ["", "to", "to:1:1:5", "by:1:1:5:1,1,1,1", "to:1:1:5:1,1,1", "to:1:1:-5:1,1,1,1", "-|-"] {
            assert_eq!(ways(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_hop_carried_is_between_two_tellings_of_one_way() {
        let (before, later) = (way(1_000, 5_000), way(2_001_000, 255_000));
        assert_eq!(later.carried(&before, 0), Some(1e9));
        assert_eq!(later.carried(&before, 1), Some(5e8));
        assert_eq!(later.carried(&before, 2), None);
        assert_eq!(before.carried(&later, 0), None, "an overtaken packet's");
        assert_eq!(later.carried(&later, 0), None, "nothing new");
        assert_eq!(later.carried(&Way { path: 1, ..before.clone() }, 0), None);
        assert_eq!(later.carried(&Way { anew: 2, ..before }, 0), None);
    }
}
