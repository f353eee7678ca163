//! What a run found out of each priority, where its packets travel on several.

use super::{FlowResult, FlowSet, LinkResult, Results};
use roci_units::Span;
use std::collections::BTreeSet;

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
    /// Packets that faults lost on their way over this link,
    pub lost: u64,
    /// and that they damaged there.
    pub corrupted: u64,
    /// The most octets that waited here, the frame that was being sent aside; `None` at a host, in whose NIC they wait.
    pub max_queue_bytes: Option<u64>,
}

impl PriorityResult {
    /// What ranks it among others, the worst the greatest: what was lost, then how long it stood still, then what was marked, and
    /// what waited.
    pub fn trouble(&self) -> impl Ord + use<> {
        (self.drops + self.lost + self.corrupted, self.paused, self.ecn_marks, self.max_queue_bytes)
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
            sum.lost += of.lost;
            sum.corrupted += of.corrupted;
            if of.max_queue_bytes > sum.max_queue_bytes.max(Some(0)) {
                (sum.max_queue_bytes, *deepest) = (of.max_queue_bytes, Some(link));
            }
        }
        sums
    }

    /// Payload that the flows whose data travel on `priority` delivered per second: the sum of the goodput of each table of traffic, of its
    /// flows on that priority. `None` where some table does not know on which its data travel.
    pub fn goodput_of_priority(&self, priority: u8) -> Option<f64> {
        self.traffic.iter().try_fold(0.0, |sum, traffic| {
            let flows = self.flows_of(traffic);
            let of_table = match traffic.priorities.as_slice() {
                [] => return None,
                [one] if *one == priority => flows.total_goodput_bps(),
                [_] => None,
                each => {
                    let its = flows.flows.iter().zip(each).filter(|(_, of)| **of == priority);
                    let its: Vec<FlowResult> = its.map(|(flow, _)| flow.clone()).collect();
                    FlowSet { flows: &its, ..flows }.total_goodput_bps()
                }
            };
            Some(sum + of_table.unwrap_or(0.0))
        })
    }

    /// The sums of each priority that some of `runs` sent on, in their order, and of every run, in theirs: `None` of a run that does not
    /// count by priority, and nothing but zeros where it sent nothing on one.
    pub fn priorities_side_by_side(runs: &[&Self]) -> Vec<(u8, Vec<Option<PriorityResult>>)> {
        let sums: Vec<Vec<PriorityResult>> =
            runs.iter().map(|run| run.priority_sums().into_iter().map(|(sum, _)| sum).collect()).collect();
        let used: BTreeSet<u8> = sums.iter().flatten().map(|sum| sum.priority).collect();
        let of_run = |priority: u8| {
            move |sums: &Vec<PriorityResult>| {
                let none = PriorityResult { priority, ..PriorityResult::default() };
                let its = sums.iter().find(|sum| sum.priority == priority).copied();
                (!sums.is_empty()).then(|| its.unwrap_or(none))
            }
        };
        used.into_iter().map(|priority| (priority, sums.iter().map(of_run(priority)).collect())).collect()
    }
}
