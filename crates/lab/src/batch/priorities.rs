//! Priorities of several runs side by side.

use super::Group;
use crate::figures::statistics::Estimate;
use crate::results::{PriorityResult, Results};
use roci_units::Span;

/// What befell a priority in one configuration, over its seeds and over all links.
#[derive(Clone, Copy, Debug)]
pub struct PrioritySum<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The priority.
    pub priority: u8,
    /// Payload that the flows on it delivered, in bits per second; `None` where some table of traffic does not know its priority.
    pub goodput_bps: Option<Estimate>,
    /// Packets that switches had no room for.
    pub drops: Option<Estimate>,
    /// Packets that switches marked CE.
    pub ecn_marks: Option<Estimate>,
    /// How often ports were told to stop it.
    pub pauses: Option<Estimate>,
    /// How long they stood paused, in seconds.
    pub paused: Option<Estimate>,
    /// The most octets that waited anywhere.
    pub max_queue_bytes: Option<Estimate>,
}

impl Group {
    /// What befell each priority in each configuration, over its seeds; nothing of one whose runs do not count by priority.
    pub fn sums_of_priorities<'a>(&'a self, results: &'a [Results]) -> Vec<PrioritySum<'a>> {
        let of = |label: &'a str| {
            let alike: Vec<&Results> = self.alike(label, results).collect();
            let sums = Results::priorities_side_by_side(&alike);
            sums.into_iter().map(|(priority, seeds)| sum(label, priority, &alike, &seeds)).collect::<Vec<_>>()
        };
        self.configurations().into_iter().flat_map(of).collect()
    }
}

/// Of what befell `priority` in each of `alike`, in their order.
#[expect(clippy::cast_precision_loss, reason = "a table shows fewer digits than f64 holds")]
fn sum<'a>(
    label: &'a str,
    priority: u8,
    alike: &[&Results],
    seeds: &[Option<PriorityResult>],
) -> PrioritySum<'a> {
    let estimate = |value: &dyn Fn(&PriorityResult) -> Option<f64>| {
        let values = seeds.iter().map(|of| of.as_ref().and_then(value));
        Estimate::of(&values.collect::<Option<Vec<f64>>>()?)
    };
    let goodput = alike.iter().map(|results| results.goodput_of_priority(priority));
    PrioritySum {
        label,
        priority,
        goodput_bps: goodput.collect::<Option<Vec<f64>>>().and_then(|values| Estimate::of(&values)),
        drops: estimate(&|it| Some(it.drops as f64)),
        ecn_marks: estimate(&|it| Some(it.ecn_marks as f64)),
        pauses: estimate(&|it| Some(it.pause_received as f64)),
        paused: estimate(&|it| Some(Span::as_secs_f64(it.paused))),
        max_queue_bytes: estimate(&|it| it.max_queue_bytes.map(|octets| octets as f64)),
    }
}
