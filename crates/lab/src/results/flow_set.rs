//! Flows of a run of which figures are asked, all of them or some: what is said of a part is computed as it is of the whole.

use super::statistics::{Sorted, jain};
use super::{FlowName, FlowResult, FlowStatus, Offered, Results};
use roci_units::{Instant, Span};

/// Flows of one run.
#[derive(Clone, Copy, Debug)]
pub struct FlowSet<'a> {
    /// The flows.
    pub flows: &'a [FlowResult],
    /// When they were offered by the clock; `None` where not all were.
    pub offered: Option<Offered>,
    /// The simulated time that passed: until then flows run that have not ended.
    pub simulated: Instant,
}

impl<'a> FlowSet<'a> {
    /// Flows that completed with success.
    pub fn completed(self) -> impl Iterator<Item = &'a FlowResult> {
        self.flows.iter().filter(|flow| flow.fct().is_some())
    }

    /// Flows that ended in an error completion.
    pub fn failed(self) -> impl Iterator<Item = &'a FlowResult> {
        let is_failed = |status| !matches!(status, FlowStatus::OK | FlowStatus::Running | FlowStatus::Lost);
        self.flows.iter().filter(move |flow| is_failed(flow.status))
    }

    /// Flows that had not ended when the run did.
    pub fn running(self) -> impl Iterator<Item = &'a FlowResult> {
        self.flows.iter().filter(|flow| flow.end == Instant::NEVER)
    }

    /// Flows that had no end, as in a closed loop without a count, and ran until the run stopped.
    pub fn endless(self) -> usize {
        self.flows.iter().filter(|flow| flow.ideal.is_none() && flow.status == FlowStatus::Running).count()
    }

    /// The slowdowns of the completed flows.
    pub fn slowdowns(self) -> Sorted {
        Sorted::new(self.completed().filter_map(FlowResult::slowdown).collect())
    }

    /// The completion times of the completed flows, in seconds.
    pub fn completion_times(self) -> Sorted {
        Sorted::new(self.completed().filter_map(|flow| flow.fct().map(|fct| fct.as_secs_f64())).collect())
    }

    /// How long each flow took that has an end, in seconds, those that did not complete as long as the run went on: they take longer.
    pub fn times_at_least(self) -> Sorted {
        Sorted::new(self.at_least().map(|(time, _)| time.as_secs_f64()).collect())
    }

    /// The same as a multiple of what each takes alone.
    pub fn slowdowns_at_least(self) -> Sorted {
        let slowdown = |(time, ideal): (Span, Option<Span>)| Some(time.as_secs_f64() / ideal?.as_secs_f64());
        Sorted::new(self.at_least().filter_map(slowdown).collect())
    }

    /// How long each flow took that has an end, at least, and what it takes alone.
    fn at_least(self) -> impl Iterator<Item = (Span, Option<Span>)> {
        self.flows.iter().filter_map(move |flow| {
            let so_far = || flow.ideal.map(|_| self.simulated.since(flow.start));
            Some((flow.fct().or_else(so_far)?, flow.ideal))
        })
    }

    /// Jain's index of the flows' goodput, where every flow has the same number of octets to move, or is without an end and of
    /// the same table of traffic: else unequal shares are no unfairness. `None` for fewer than two flows.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn fairness(self) -> Option<f64> {
        let alike =
            self.flows.windows(2).all(|pair| pair[0].bytes == pair[1].bytes || both_without_end(pair));
        if self.flows.len() < 2 || !alike {
            return None;
        }
        let shares: Vec<f64> =
            self.flows.iter().map(|flow| flow.goodput_bps(self.simulated) as f64).collect();
        jain(&shares)
    }

    /// Octets of payload that are known to have arrived.
    pub fn delivered(self) -> u64 {
        self.flows.iter().map(|flow| flow.delivered).sum()
    }

    /// Payload delivered by all flows over the time from the first start to the last end, in bits per second.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn goodput_to_the_last_end_bps(self) -> Option<f64> {
        let began = self.flows.iter().map(|flow| flow.start).min()?;
        let until = |flow: &FlowResult| if flow.end == Instant::NEVER { self.simulated } else { flow.end };
        let ended = self.flows.iter().map(until).max()?;
        let seconds = ended.since(began).as_secs_f64();
        (seconds > 0.0).then(|| self.delivered() as f64 * 8.0 / seconds)
    }

    /// Retransmissions of data packets.
    pub fn retransmitted(self) -> u64 {
        self.flows.iter().map(|flow| u64::from(flow.retransmitted)).sum()
    }

    /// Times that local ACK timers expired.
    pub fn timeouts(self) -> u64 {
        self.flows.iter().map(|flow| u64::from(flow.timeouts)).sum()
    }

    /// Data packets that arrived after one with a higher PSN.
    pub fn reordered(self) -> u64 {
        self.flows.iter().map(|flow| u64::from(flow.reordered)).sum()
    }
}

/// Whether two flows are of one closed loop that has no end.
fn both_without_end(pair: &[FlowResult]) -> bool {
    let table = |flow: &FlowResult| match flow.name {
        FlowName::Numbered { traffic, .. } if flow.ideal.is_none() => Some(traffic),
        _ => None,
    };
    table(&pair[0]).is_some() && table(&pair[0]) == table(&pair[1])
}

impl Results {
    /// All flows.
    pub fn all(&self) -> FlowSet<'_> {
        FlowSet { flows: &self.flows, offered: self.offered, simulated: self.simulated }
    }

    /// Flows that completed with success.
    pub fn completed(&self) -> impl Iterator<Item = &FlowResult> {
        self.all().completed()
    }

    /// Flows that ended in an error completion.
    pub fn failed(&self) -> impl Iterator<Item = &FlowResult> {
        self.all().failed()
    }

    /// The slowdowns of the completed flows.
    pub fn slowdowns(&self) -> Sorted {
        self.all().slowdowns()
    }

    /// The completion times of the completed flows, in seconds.
    pub fn completion_times(&self) -> Sorted {
        self.all().completion_times()
    }

    /// [`FlowSet::fairness`] of all flows.
    pub fn fairness(&self) -> Option<f64> {
        self.all().fairness()
    }

    /// [`FlowSet::goodput_to_the_last_end_bps`] of all flows.
    pub fn goodput_to_the_last_end_bps(&self) -> Option<f64> {
        self.all().goodput_to_the_last_end_bps()
    }

    /// [`FlowSet::offered_bps`] of all flows.
    pub fn offered_bps(&self) -> Option<f64> {
        self.all().offered_bps()
    }

    /// [`FlowSet::total_goodput_bps`] of all flows.
    pub fn total_goodput_bps(&self) -> Option<f64> {
        self.all().total_goodput_bps()
    }
}
