//! What a run found out of each priority, where its packets travel on several.

use super::{LinkResult, Results};
use roci_units::Span;

/// What one end of a link sent into it on one priority, or all ends of all links together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityResult {
    /// The priority.
    pub priority: u8,
    /// Packets sent.
    pub packets: u64,
    /// Octets of their frames.
    pub tx_bytes: u64,
    /// Packets that a switch had no room for on their way here, or, where they are lossless, from there.
    pub drops: u64,
    /// Packets that a switch marked CE on their way here.
    pub ecn_marks: u64,
    /// How often the other end told it to stop.
    pub pause_received: u64,
    /// How long it stood paused.
    pub paused: Span,
    /// The most octets that waited here, the frame that was being sent aside; `None` at a host, in whose NIC they wait.
    pub max_queue_bytes: Option<u64>,
}

impl PriorityResult {
    /// What ranks it among others, the worst the greatest: what was lost, then how long it stood still, then what was marked, and
    /// what waited.
    pub fn trouble(&self) -> impl Ord + use<> {
        (self.drops, self.paused, self.ecn_marks, self.max_queue_bytes)
    }
}

impl Results {
    /// Every priority of every way of a link, in the order of the links; nothing where there are not several priorities.
    pub fn priorities(&self) -> impl Iterator<Item = (&LinkResult, &PriorityResult)> {
        self.links.iter().flat_map(|link| link.priorities.iter().map(move |of| (link, of)))
    }

    /// The sums of each priority over all ways of links, and the deepest queue of it with its link.
    pub fn priority_sums(&self) -> Vec<(PriorityResult, Option<&LinkResult>)> {
        let mut sums: Vec<(PriorityResult, Option<&LinkResult>)> = Vec::new();
        for (link, of) in self.priorities() {
            let place = sums.iter().position(|(sum, _)| sum.priority == of.priority).unwrap_or_else(|| {
                sums.push((PriorityResult { priority: of.priority, ..PriorityResult::default() }, None));
                sums.len() - 1
            });
            let (sum, deepest) = &mut sums[place];
            sum.packets += of.packets;
            sum.tx_bytes += of.tx_bytes;
            sum.drops += of.drops;
            sum.ecn_marks += of.ecn_marks;
            sum.pause_received += of.pause_received;
            sum.paused += of.paused;
            if of.max_queue_bytes > sum.max_queue_bytes.max(Some(0)) {
                (sum.max_queue_bytes, *deepest) = (of.max_queue_bytes, Some(link));
            }
        }
        sums
    }
}
