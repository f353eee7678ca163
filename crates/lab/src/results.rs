//! What a run found out: the same value becomes `summary.json`, `flows.csv`, `series.parquet` and `report.html`.
//!
//! Two runs of one scenario with one seed give equal [`Results`], except for [`Results::run`].

pub mod collective;
pub mod cores;
pub mod deadlock;
pub mod effect;
pub mod flow_set;
pub mod goal;
pub mod misses;
pub mod offered;
pub mod pairs;
pub mod priorities;
pub mod rpc;
pub mod series;
pub mod statistics;
pub mod together;
pub mod traffic;

pub use collective::{CollectiveResult, Iteration, SlowStep};
pub use cores::CoreArray;
pub use deadlock::Deadlock;
pub use effect::{Effect, Outcome, RuleResult};
pub use flow_set::FlowSet;
pub use goal::{
    CriticalPath, GoalRank, GoalResult, JointKind, JointResult, JointTimes, LinkKind, OperationTimes,
    PathLink, Replays,
};
pub use offered::Offered;
pub use priorities::PriorityResult;
pub use rpc::{IdleTimes, MachineResult, RpcResult, Times};
pub use series::{Depth, FlowSample, MachineSample, QueueSample, Series};
pub use traffic::TrafficResult;

pub use crate::traffic::Op;

use roci_control::program::{Fault, Tally, Why};
use roci_nic::ArchCounters;
use roci_transport::Status;
use roci_units::{BitsPerSec, Instant, Span};
use std::fmt;

/// The results of one run.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The scenario's name.
    pub name: String,
    /// The seed that it ran with.
    pub seed: u64,
    /// The scenario as it was run, overrides included, in TOML; shown in the report. Empty where there is none.
    pub scenario: String,
    /// What was overridden of it: path and value of each override, in their order.
    pub overrides: Vec<(String, String)>,
    /// The simulated time that passed.
    pub simulated: Instant,
    /// Events that the kernel handled.
    pub events: u64,
    /// Packets sent into the network, data and control.
    pub packets: u64,
    /// Link crossings: each packet counts once per link that it crosses; PAUSE frames do not count.
    pub packet_hops: u64,
    /// One record per `[[traffic]]` table of the scenario.
    pub traffic: Vec<TrafficResult>,
    /// One record per table that is a collective.
    pub collectives: Vec<CollectiveResult>,
    /// One record per table that is a GOAL schedule.
    pub goals: Vec<GoalResult>,
    /// One record per table of requests and responses.
    pub rpcs: Vec<RpcResult>,
    /// One record per host that answers requests.
    pub machines: Vec<MachineResult>,
    /// One record per flow, in the order of the scenario: by `[[traffic]]` table, and in each by number.
    pub flows: Vec<FlowResult>,
    /// One record per switch.
    pub switches: Vec<SwitchResult>,
    /// One record per host, or per NIC where hosts have several; [`FlowResult::src`] and [`FlowResult::dst`] are places in this list.
    pub hosts: Vec<HostResult>,
    /// Whether hosts have several NICs.
    pub several_nics: bool,
    /// Whether `timeline.json` is written.
    pub timeline: bool,
    /// One record for each way of each link: those that hosts send into, then those of each switch.
    pub links: Vec<LinkResult>,
    /// The congestion controls of the scenario, such as `dcqcn preset=hpcc`: the common one, then those of single
    /// flows; of a program that was replaced all that were in force, and from when on. [`FlowResult::control`] is a place
    /// in this list.
    pub controls: Vec<String>,
    /// What the programs did that ran as congestion control, one record for each control that is one.
    pub programs: Vec<ProgramResult>,
    /// What the links did to packets; `None` where the scenario has no faults.
    pub faults: Option<FaultResult>,
    /// One record for each table of `[[faults.on]]`, in their order.
    pub rules: Vec<RuleResult>,
    /// What `[[at]]` changed during the run: when, and what, in words.
    pub changes: Vec<(Instant, String)>,
    /// When flows were offered by the clock; `None` where not all were.
    pub offered: Option<Offered>,
    /// The cycle of ports that stood still in a deadlock; `None` where there was none.
    pub deadlock: Option<Deadlock>,
    /// Whether queue pairs were unreliable connections.
    pub is_unreliable: bool,
    /// What the scenario asked for during the run and nothing came of, and laws that let flows send next to nothing, in words.
    pub warnings: Vec<String>,
    /// When the first message was received that takes a receive request (a SEND), its payload in its place.
    pub first_received: Option<Instant>,
    /// Rates, credit and queues over time.
    pub series: Series,
    /// What the run cost: all that may differ between two runs with one seed.
    pub run: HostFigures,
}

/// What a program did on all hosts together.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramResult {
    /// Its congestion control's place in [`Results::controls`].
    pub control: u16,
    /// The image that ran last.
    pub elf: String,
    /// Events, cycles and failures.
    pub tally: Tally,
    /// Flows that had a queue pair with which a program failed, at whichever end, and that ended under its fallback law or
    /// were still under way.
    pub flows_fallen: u64,
    /// The first failures, in the order of time.
    pub failures: Vec<Failure>,
    /// The events that were recorded, as text ([`crate::program::events`]); empty where none were.
    pub events: String,
}

/// A failure of a program in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The host, a place in [`Results::hosts`].
    pub host: u16,
    /// The flow that the queue pair belonged to, a place in [`Results::flows`].
    pub flow: Option<u32>,
    /// What happened.
    pub fault: Fault,
}

/// What a run cost on the machine that it ran on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostFigures {
    /// Seconds of wall-clock time in the event loop.
    pub wall_s: f64,
    /// Seconds of CPU time in the event loop, by the thread's clock.
    pub cpu_s: f64,
    /// The process's largest resident set so far, in octets.
    pub peak_rss_bytes: u64,
    /// Seconds spent before the event loop: reading, building, connecting.
    pub setup_s: f64,
    /// Seconds spent on writing the results, `summary.json` itself apart.
    pub output_s: f64,
}

impl Results {
    /// The mean, and the 99th percentile, in octets, of the queue that was deepest in the mean over the samples: zero where
    /// none held anything when one was taken, and `None` where none was.
    pub fn deepest(&self) -> Option<(f64, u64)> {
        match self.series.depths().into_iter().next() {
            Some(depth) => Some((depth.mean_bytes, depth.p99_bytes)),
            None => (!self.series.times().is_empty()).then_some((0.0, 0)),
        }
    }

    /// Link crossings per CPU second of the event loop; zero where the clock saw no time pass.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn packet_hops_per_s(&self) -> f64 {
        if self.run.cpu_s > 0.0 { self.packet_hops as f64 / self.run.cpu_s } else { 0.0 }
    }

    /// Where a program failed: its host's name and the flow's.
    pub fn place_of(&self, failure: &Failure) -> String {
        let host = self.host(failure.host);
        self.flow_of(failure).map_or_else(|| host.to_owned(), |flow| format!("{host}, flow {flow}"))
    }

    /// The flow whose queue pair a program failed with.
    pub fn flow_of(&self, failure: &Failure) -> Option<&FlowName> {
        self.flows.get(failure.flow? as usize).map(|flow| &flow.name)
    }

    /// Whether a program was stopped because it let nothing be sent again, and its flow failed all the same because nothing
    /// was answered: the fallback law has sent in all its retries, so it is not the program alone that held the flow up.
    pub fn was_in_vain(&self, failure: &Failure) -> bool {
        let flow = failure.flow.and_then(|place| self.flows.get(place as usize));
        matches!(failure.fault.why, Why::Starved { .. })
            && flow.is_some_and(|flow| {
                flow.status == FlowStatus::Completed(Status::TransportRetryCounterExceeded)
            })
    }

    /// A host's name.
    pub fn host(&self, place: u16) -> &str {
        &self.hosts[usize::from(place)].name
    }

    /// The name of a flow's congestion control; empty where the results name none.
    pub fn control(&self, flow: &FlowResult) -> &str {
        self.controls.get(usize::from(flow.control)).map_or("", String::as_str)
    }

    /// Events that laws never heard of, on all hosts.
    pub fn unheard(&self) -> u64 {
        self.hosts.iter().map(|host| host.unheard).sum()
    }

    /// Times that local ACK timers expired, of all flows.
    pub fn timeouts(&self) -> u64 {
        self.all().timeouts()
    }

    /// Packets that faults lost or damaged on links.
    pub fn lost(&self) -> u64 {
        self.faults.map_or(0, |faults| faults.dropped + faults.corrupted)
    }

    /// How long ports of switches and hosts stood paused, summed over ports and priorities.
    pub fn paused(&self) -> Span {
        let hosts = self.hosts.iter().map(|host| host.paused);
        self.switches.iter().map(|switch| switch.paused).chain(hosts).fold(Span::ZERO, |sum, of| sum + of)
    }

    /// How unevenly its switches used their ports of equal cost: the mean over those that sent by any, since the most uneven of many is so
    /// by chance. `None` where none did.
    pub fn imbalance(&self) -> Option<f64> {
        let of: Vec<f64> = self.switches.iter().filter_map(|switch| switch.imbalance).collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    }

    /// Flows that had no end, as in a closed loop without a count, and ran until the run stopped.
    pub fn endless(&self) -> usize {
        self.all().endless()
    }

    /// Packets that were sent again after timeouts though none was lost anywhere, and the timeouts; `None` where that is not what
    /// happened. What was asked for by NAKs, as packets out of order draw them, cannot be told from it.
    pub fn resent_in_vain(&self) -> Option<(u64, u64)> {
        let resent = self.all().retransmitted();
        let switches: u64 = self.switches.iter().map(|switch| switch.drops + switch.trimmed).sum();
        let hosts: u64 = self.hosts.iter().map(|host| host.dropped).sum();
        let asked = self.flows.iter().any(|flow| flow.naks > 0 || flow.rnr_naks > 0);
        let timeouts = self.timeouts();
        let vain = resent > 0 && timeouts > 0 && !asked && self.lost() + switches + hosts == 0;
        vain.then_some((resent, timeouts))
    }

    /// Queue pairs with which programs failed and which went over to a fallback law.
    pub fn fallen(&self) -> u64 {
        self.programs.iter().map(|program| program.tally.fallen()).sum()
    }

    /// Whether flows ran under more than one congestion control, side by side or one after the other.
    pub fn controls_differ(&self) -> bool {
        self.flows.windows(2).any(|pair| pair[0].control != pair[1].control)
            || self.programs.iter().any(|program| program.tally.replaced > 0)
    }
}

/// What became of one flow. Half a million of them may be kept, so it is small.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Its name.
    pub name: FlowName,
    /// The requester's place in [`Results::hosts`].
    pub src: u16,
    /// The responder's place in [`Results::hosts`].
    pub dst: u16,
    /// What it does.
    pub op: Op,
    /// Its congestion control's place in [`Results::controls`].
    pub control: u16,
    /// Whether it is done, and how.
    pub status: FlowStatus,
    /// Octets of its messages, payload only.
    pub bytes: u64,
    /// Octets of payload that are known to have arrived: all of them when it is done.
    pub delivered: u64,
    /// When it was posted.
    pub start: Instant,
    /// When its completion arrived; [`Instant::NEVER`] while it runs. Over an unreliable connection, when its last message arrived, or of one
    /// that lost some, when its last packet was sent if that was later.
    pub end: Instant,
    /// How long it takes alone on an idle path, by formula; `None` for a flow without an end.
    pub ideal: Option<Span>,
    /// Data packets that its sender sent, retransmissions included.
    pub packets: u64,
    /// Of those, retransmissions.
    pub retransmitted: u32,
    /// Of those, packets that had been sent again before in the same loss; go-back-N and NDP forget a loss once all is sent again.
    pub repeated: u32,
    /// Times that its local ACK timer expired.
    pub timeouts: u32,
    /// NAKs that it was answered with. Over an unreliable connection, which has none, messages that were sent and did not come whole; of a
    /// flow that runs, those on their way are among them.
    pub naks: u32,
    /// RNR NAKs that it was answered with.
    pub rnr_naks: u32,
    /// CNPs that its sender received.
    pub cnps: u32,
    /// Its packets that arrived with CE.
    pub ecn_marked: u32,
    /// Its packets, but for those sent again, that arrived after one with a higher PSN (RFC 4737).
    pub reordered: u32,
}

const _: () = assert!(size_of::<FlowResult>() <= 112, "half a million of them may be kept");

impl FlowResult {
    /// Flow completion time: from the post to the sender's completion. `None` while it runs or when it failed.
    pub fn fct(&self) -> Option<Span> {
        (self.status == FlowStatus::OK).then(|| self.end.since(self.start))
    }

    /// Completion time over ideal completion time, at least 1 unless routes change meanwhile; `None` without a completion.
    pub fn slowdown(&self) -> Option<f64> {
        Some(self.fct()?.as_secs_f64() / self.ideal?.as_secs_f64())
    }

    /// Delivered payload in bits per second, from the start to the end, or to `now` while it runs; rounded down.
    pub fn goodput_bps(&self, now: Instant) -> u64 {
        let until = if self.end == Instant::NEVER { now } else { self.end };
        let span = u128::from(until.since(self.start).as_ps());
        if span == 0 {
            return 0;
        }
        u64::try_from(u128::from(self.delivered) * 8_000_000_000_000 / span).unwrap_or(u64::MAX)
    }
}

/// A flow's name: given in the scenario, or its place there. Numbered names take no allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowName {
    /// `<traffic index>.<n>`.
    Numbered {
        /// Place of the `[[traffic]]` table in the scenario.
        traffic: u16,
        /// Count within that table.
        n: u32,
    },
    /// A name from the scenario.
    Given(Box<str>),
}

impl fmt::Display for FlowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbered { traffic, n } => write!(f, "{traffic}.{n}"),
            Self::Given(name) => f.write_str(name),
        }
    }
}

/// Whether a flow is done, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStatus {
    /// It was not done when the run ended.
    Running,
    /// It completed, with or without success.
    Completed(Status),
    /// All of it was sent over an unreliable connection, and some of it was lost.
    Lost,
}

impl FlowStatus {
    /// It completed with success.
    pub const OK: Self = Self::Completed(Status::Success);

    /// `ok`, `running`, `lost`, or the completion error's name in IBTA Vol 1 §11.6.2.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Lost => "lost",
            Self::Completed(Status::Success) => "ok",
            Self::Completed(status) => status.name(),
        }
    }
}

/// What a switch did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwitchResult {
    /// Its name.
    pub name: String,
    /// Packets that it had no room for.
    pub drops: u64,
    /// Packets that it marked CE.
    pub ecn_marks: u64,
    /// How often it told its neighbours to stop a priority; that they may go on is not counted. One PAUSE frame may tell
    /// of several.
    pub pause_sent: u64,
    /// The same, received.
    pub pause_received: u64,
    /// How long its ports stood paused, summed over ports and priorities.
    pub paused: Span,
    /// The most octets that its buffer held.
    pub max_buffer_bytes: u64,
    /// Packets that it trimmed to their headers.
    pub trimmed: u64,
    /// Headers that it sent back to their senders.
    pub returned: u64,
    /// Of the drops, lossless packets that came after PAUSE and found the headroom full.
    pub drops_behind_pause: u64,
    /// Packets that it held as it failed, and lost.
    pub lost_as_it_failed: u64,
    /// Packets that it lost because it knew no way on for them.
    pub lost_without_way: u64,
    /// How unevenly it used its ports of equal cost, as [`imbalance`] has it; `None` where it sent nothing by any.
    pub imbalance: Option<f64>,
}

/// How unevenly ports of equal cost were used that sent so many octets at these rates: the difference of the greatest and the least
/// throughput over the mean, (MAX − MIN) / AVG (CONGA, Alizadeh et al., SIGCOMM 2014, figure 12), each as a share of the port's rate. Zero
/// where all were used alike, and their number where one was used alone. `None` where nothing was sent.
pub fn imbalance(ports: &[(u64, BitsPerSec)]) -> Option<f64> {
    let used: Vec<f64> = ports.iter().map(|(octets, rate)| *octets as f64 / rate.0 as f64).collect();
    let sum: f64 = used.iter().sum();
    let (most, least) = used.iter().fold((0.0, f64::MAX), |(most, least), &it| (it.max(most), it.min(least)));
    (sum > 0.0).then(|| (most - least) * used.len() as f64 / sum)
}

/// What one end of a link sent into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkResult {
    /// The names of the two ends, `s>t`; of parallel links with their number.
    pub name: String,
    /// Its rate.
    pub rate: BitsPerSec,
    /// Octets of frames sent.
    pub tx_bytes: u64,
    /// Packets that a switch had no room for on their way here, or, where they are lossless, from there.
    pub drops: u64,
    /// Packets that a switch marked CE on their way here.
    pub ecn_marks: u64,
    /// Packets that a switch trimmed on their way here.
    pub trimmed: u64,
    /// How often the other end told it to stop a priority.
    pub pause_received: u64,
    /// How long it stood paused, summed over priorities.
    pub paused: Span,
    /// Packets that faults lost on their way over it.
    pub lost: u64,
    /// Packets that faults damaged on their way over it; who received them dropped them.
    pub corrupted: u64,
    /// The same of each priority, in their order; empty where there are not several.
    pub priorities: Vec<PriorityResult>,
}

/// What passed a host's port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostResult {
    /// Its name.
    pub name: String,
    /// Octets of frames sent.
    pub tx_bytes: u64,
    /// Octets of frames received.
    pub rx_bytes: u64,
    /// How often it told its neighbours to stop a priority; that they may go on is not counted. One PAUSE frame may tell
    /// of several.
    pub pause_sent: u64,
    /// The same, received.
    pub pause_received: u64,
    /// How long its port stood paused, summed over priorities.
    pub paused: Span,
    /// Frames that the receive buffer of its NIC had no room for.
    pub dropped: u64,
    /// Events that its laws never heard of, because too many of one queue pair waited.
    pub unheard: u64,
    /// Times that one of its queue pairs found no bitmap left for what came out of order, or was to be sent again.
    pub bitmaps_refused: u64,
    /// What the parts of its NIC counted; `None` where it is made of none.
    pub nic: Option<Box<ArchCounters>>,
    /// Its cores; `None` where it has none.
    pub cores: Option<Box<CoreArray>>,
}

/// What faults did to packets, over all links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultResult {
    /// Packets lost.
    pub dropped: u64,
    /// Of those, packets lost in switches: in one that failed, or for want of a way on.
    pub dropped_in_switches: u64,
    /// Packets that came out damaged; who received them dropped them.
    pub corrupted: u64,
    /// Copies added.
    pub duplicated: u64,
    /// Packets held back, which others may have overtaken.
    pub reordered: u64,
    /// CNPs forged.
    pub forged_cnps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowResult {
        FlowResult {
            name: FlowName::Numbered { traffic: 0, n: 7 },
            src: 0,
            dst: 1,
            op: Op::Write,
            control: 0,
            status: FlowStatus::OK,
            bytes: 1_000,
            delivered: 1_000,
            start: Instant::from_ps(1_000_000),
            end: Instant::from_ps(3_000_000),
            ideal: Some(Span::from_micros(1)),
            packets: 1,
            retransmitted: 0,
            repeated: 0,
            timeouts: 0,
            naks: 0,
            rnr_naks: 0,
            cnps: 0,
            ecn_marked: 0,
            reordered: 0,
        }
    }

    #[test]
    fn flows_without_an_end_are_compared_within_their_closed_loop() {
        let endless = |traffic, delivered| FlowResult {
            name: FlowName::Numbered { traffic, n: 0 },
            status: FlowStatus::Running,
            ideal: None,
            bytes: delivered + 500,
            delivered,
            end: Instant::NEVER,
            ..flow()
        };
        let simulated = Instant::from_ps(5_000_000);
        let fairness = |flows: &[FlowResult]| FlowSet { flows, offered: None, simulated }.fairness();
        let even = fairness(&[endless(0, 1_000), endless(0, 1_010)]);
        assert!(even.is_some_and(|jain| jain > 0.999), "{even:?}");
        let uneven = fairness(&[endless(0, 1_000), endless(0, 0)]);
        assert!(uneven.is_some_and(|jain| (jain - 0.5).abs() < 1e-9), "{uneven:?}");
        assert_eq!(fairness(&[endless(0, 1_000), endless(1, 900)]), None);
        assert_eq!(
            fairness(&[endless(0, 1_000), FlowResult { ideal: flow().ideal, ..endless(0, 900) }]),
            None
        );
    }

    #[test]
    fn goodput_counts_payload_from_the_post_to_the_completion() {
        assert_eq!(flow().goodput_bps(Instant::from_ps(9_000_000)), 4_000_000_000);
        assert_eq!(flow().slowdown(), Some(2.0));
    }

    #[test]
    fn a_running_flow_has_goodput_until_now_but_no_completion_time() {
        let running =
            FlowResult { status: FlowStatus::Running, end: Instant::NEVER, delivered: 500, ..flow() };
        assert_eq!(running.goodput_bps(Instant::from_ps(2_000_000)), 4_000_000_000);
        assert_eq!((running.fct(), running.slowdown()), (None, None));
    }

    #[test]
    fn a_failed_flow_has_an_end_but_no_completion_time() {
        let failed = FlowResult {
            status: FlowStatus::Completed(Status::TransportRetryCounterExceeded),
            delivered: 0,
            ..flow()
        };
        assert_eq!(failed.fct(), None);
        assert_eq!(failed.goodput_bps(Instant::from_ps(9_000_000)), 0);
    }
}
