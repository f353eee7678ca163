//! `summary.json`: what a run found out, for programs. Its fields are a promise; `docs/guide/output.md` lists them.

use super::collectives::CollectiveRecord;
use super::faults::{FaultRecord, RuleRecord};
use super::goals::GoalRecord;
use super::nic::NicRecord;
use super::priorities::PriorityRecord;
use super::rpc::{MachineRecord, RpcRecord};
use super::traffic::TrafficRecord;
use crate::program::class_name;
use crate::results::{
    Deadlock, Depth, Failure, FlowResult, FlowSet, HostResult, ProgramResult, Results, SwitchResult,
};
use roci_units::Instant;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Writes `results` as JSON, one record a line.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    write_one(out, &Summary { told: None, results })
}

/// What is said of one run of several.
#[derive(Clone, Debug)]
pub struct Told {
    /// The label that tells it from the others.
    pub label: String,
    /// How it came out of a search, if there was one.
    pub standing: Option<Standing>,
}

/// How a configuration came out of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is the best.
    pub best: bool,
    /// Whether it is the scenario with its own values.
    pub as_it_is: bool,
}

/// The same of one run of several, with what is `told` of it among them.
///
/// # Errors
/// What `out` answers.
pub fn write_told(out: &mut impl Write, told: &Told, results: &Results) -> io::Result<()> {
    write_one(out, &Summary { told: Some(told), results })
}

fn write_one(out: &mut impl Write, summary: &Summary<'_>) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    summary.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// The whole of `summary.json`, and what is told of one run of several.
struct Summary<'a> {
    told: Option<&'a Told>,
    results: &'a Results,
}

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let results = self.results;
        let mut map = serializer.serialize_map(None)?;
        if let Some(Told { label, standing }) = self.told {
            map.serialize_entry("label", label)?;
            if let Some(Standing { best, as_it_is }) = standing {
                map.serialize_entry("best", best)?;
                map.serialize_entry("as_it_is", as_it_is)?;
            }
        }
        map.serialize_entry("name", &results.name)?;
        map.serialize_entry("seed", &results.seed)?;
        if !results.overrides.is_empty() {
            map.serialize_entry("overrides", &Overrides(&results.overrides))?;
        }
        map.serialize_entry("simulated_s", &results.simulated.as_secs_f64())?;
        map.serialize_entry("events", &results.events)?;
        map.serialize_entry("packets", &results.packets)?;
        map.serialize_entry("packet_hops", &results.packet_hops)?;
        map.serialize_entry("flows", &List(&results.flows, |flow| FlowRecord::new(flow, results)))?;
        map.serialize_entry("switches", &List(&results.switches, SwitchRecord::new))?;
        map.serialize_entry("hosts", &List(&results.hosts, HostRecord::new))?;
        if results.series.interval().is_some() {
            let depths = results.series.depths();
            let deepest = &depths[..depths.len().min(QUEUES)];
            map.serialize_entry("queues", &List(deepest, QueueRecord::new))?;
        }
        if results.priorities().next().is_some() {
            map.serialize_entry("priorities", &List(&results.priority_sums(), PriorityRecord::new))?;
        }
        map.serialize_entry("traffic", &List(&results.traffic, |it| TrafficRecord::new(it, results)))?;
        if !results.collectives.is_empty() {
            let collectives = List(&results.collectives, |it| CollectiveRecord::new(it, results));
            map.serialize_entry("collectives", &collectives)?;
        }
        if !results.goals.is_empty() {
            map.serialize_entry("goals", &List(&results.goals, |it| GoalRecord::new(it, results)))?;
        }
        if !results.rpcs.is_empty() {
            map.serialize_entry("rpcs", &List(&results.rpcs, |it| RpcRecord::new(it, results)))?;
            map.serialize_entry("machines", &List(&results.machines, |it| MachineRecord::new(it, results)))?;
        }
        if !results.programs.is_empty() {
            map.serialize_entry("programs", &List(&results.programs, |it| ProgramRecord::new(it, results)))?;
        }
        if !results.warnings.is_empty() {
            map.serialize_entry("warnings", &results.warnings)?;
        }
        map.serialize_entry("faults", &results.faults.map(FaultRecord::new))?;
        if !results.rules.is_empty() {
            map.serialize_entry("faults_on", &List(&results.rules, RuleRecord::new))?;
        }
        map.serialize_entry("offered", &OfferedRecord::new(results.all()))?;
        map.serialize_entry("deadlock", &results.deadlock.as_ref().map(DeadlockRecord::new))?;
        map.serialize_entry("host", &CostRecord::new(results))?;
        map.end()
    }
}

/// What was overridden, by its path. Of one path the last value holds, and is told.
struct Overrides<'a>(&'a [(String, String)]);

impl Serialize for Overrides<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (place, (path, value)) in self.0.iter().enumerate() {
            if !self.0[place + 1..].iter().any(|(later, _)| later == path) {
                map.serialize_entry(path, value)?;
            }
        }
        map.end()
    }
}

/// Records of `items`, made one at a time: half a million flows are never held twice.
struct List<'a, T, F>(&'a [T], F);

impl<'a, T, R: Serialize, F: Fn(&'a T) -> R> Serialize for List<'a, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            list.serialize_element(&(self.1)(item))?;
        }
        list.end()
    }
}

/// One of `flows`, and one line of `flows.csv`.
#[derive(Serialize)]
pub(crate) struct FlowRecord<'a> {
    pub(crate) name: String,
    pub(crate) src: &'a str,
    pub(crate) dst: &'a str,
    pub(crate) op: &'static str,
    pub(crate) control: &'a str,
    pub(crate) bytes: u64,
    pub(crate) start_s: f64,
    pub(crate) end_s: Option<f64>,
    pub(crate) status: &'static str,
    pub(crate) fct_s: Option<f64>,
    pub(crate) ideal_fct_s: Option<f64>,
    pub(crate) slowdown: Option<f64>,
    pub(crate) goodput_bps: u64,
    pub(crate) packets: u64,
    pub(crate) retransmitted: u32,
    pub(crate) repeated: u32,
    pub(crate) timeouts: u32,
    pub(crate) naks: u32,
    pub(crate) rnr_naks: u32,
    pub(crate) cnps: u32,
    pub(crate) ecn_marked: u32,
    pub(crate) reordered: u32,
    /// Over unreliable connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<u32>,
}

impl<'a> FlowRecord<'a> {
    pub(crate) fn new(flow: &FlowResult, results: &'a Results) -> Self {
        Self {
            name: flow.name.to_string(),
            src: results.host(flow.src),
            dst: results.host(flow.dst),
            op: flow.op.name(),
            control: results.control(flow),
            bytes: flow.bytes,
            start_s: flow.start.as_secs_f64(),
            end_s: (flow.end != Instant::NEVER).then(|| flow.end.as_secs_f64()),
            status: flow.status.name(),
            fct_s: flow.fct().map(|fct| fct.as_secs_f64()),
            ideal_fct_s: flow.ideal.map(|ideal| ideal.as_secs_f64()),
            slowdown: flow.slowdown(),
            goodput_bps: flow.goodput_bps(results.simulated),
            packets: flow.packets,
            retransmitted: flow.retransmitted,
            repeated: flow.repeated,
            timeouts: flow.timeouts,
            naks: if results.is_unreliable { 0 } else { flow.naks },
            rnr_naks: flow.rnr_naks,
            cnps: flow.cnps,
            ecn_marked: flow.ecn_marked,
            reordered: flow.reordered,
            lost: results.is_unreliable.then_some(flow.naks),
        }
    }
}

/// What a program did on all hosts; the first failure in words.
#[derive(Serialize)]
struct ProgramRecord<'a> {
    elf: &'a str,
    control: &'a str,
    rx_events: u64,
    tx_events: u64,
    rx_cycles: u64,
    tx_cycles: u64,
    fallen_back: u64,
    flows_fallen_back: u64,
    traps: u64,
    overruns: u64,
    starved: u64,
    wrong_answers: u64,
    replaced: u32,
    left_out: u64,
    first_failure: Option<String>,
    failures: Vec<FailureRecord<'a>>,
}

/// A queue pair with which a program failed.
#[derive(Serialize)]
struct FailureRecord<'a> {
    elf: &'a str,
    host: &'a str,
    flow: Option<String>,
    qpn: u32,
    at_s: f64,
    function: &'static str,
    event: &'static str,
    event_number: u64,
    place: &'a str,
    reason: String,
}

impl<'a> FailureRecord<'a> {
    fn new(failure: &'a Failure, results: &'a Results) -> Self {
        let fault = &failure.fault;
        Self {
            elf: &fault.image,
            host: results.host(failure.host),
            flow: results.flow_of(failure).map(ToString::to_string),
            qpn: fault.qpn,
            at_s: fault.at.since(Instant::ZERO).as_secs_f64(),
            function: fault.side.function(),
            event: class_name(fault.class),
            event_number: fault.number,
            place: &fault.place,
            reason: fault.why.to_string(),
        }
    }
}

impl<'a> ProgramRecord<'a> {
    fn new(program: &'a ProgramResult, results: &'a Results) -> Self {
        let tally = &program.tally;
        let ([rx_events, tx_events], [rx_cycles, tx_cycles]) = (tally.events, tally.cycles);
        Self {
            elf: &program.elf,
            control: results.controls.get(usize::from(program.control)).map_or("", String::as_str),
            rx_events,
            tx_events,
            rx_cycles,
            tx_cycles,
            fallen_back: tally.fallen(),
            flows_fallen_back: program.flows_fallen,
            traps: tally.traps,
            overruns: tally.overruns,
            starved: tally.starved,
            wrong_answers: tally.wrong,
            replaced: tally.replaced,
            left_out: tally.left_out,
            first_failure: tally.first().map(|fault| format!("{}: {fault}", fault.image)),
            failures: program.failures.iter().map(|failure| FailureRecord::new(failure, results)).collect(),
        }
    }
}

#[derive(Serialize)]
struct SwitchRecord<'a> {
    name: &'a str,
    drops: u64,
    ecn_marks: u64,
    pause_sent: u64,
    pause_received: u64,
    paused_s: f64,
    max_buffer_bytes: u64,
    /// Where packets were trimmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    trimmed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    returned: Option<u64>,
    /// Where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    drops_behind_pause: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_as_it_failed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_without_way: Option<u64>,
    /// Where it sent by ports of equal cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    imbalance: Option<f64>,
}

impl<'a> SwitchRecord<'a> {
    fn new(switch: &'a SwitchResult) -> Self {
        let any = |count: u64| (count > 0).then_some(count);
        Self {
            name: &switch.name,
            drops: switch.drops,
            ecn_marks: switch.ecn_marks,
            pause_sent: switch.pause_sent,
            pause_received: switch.pause_received,
            paused_s: switch.paused.as_secs_f64(),
            max_buffer_bytes: switch.max_buffer_bytes,
            trimmed: (switch.trimmed > 0).then_some(switch.trimmed),
            returned: (switch.trimmed > 0).then_some(switch.returned),
            drops_behind_pause: any(switch.drops_behind_pause),
            lost_as_it_failed: any(switch.lost_as_it_failed),
            lost_without_way: any(switch.lost_without_way),
            imbalance: switch.imbalance,
        }
    }
}

/// As many queues, the deepest.
const QUEUES: usize = 64;

#[derive(Serialize)]
struct QueueRecord<'a> {
    name: &'a str,
    mean_bytes: f64,
    p50_bytes: u64,
    p99_bytes: u64,
    max_bytes: u64,
}

impl<'a> QueueRecord<'a> {
    fn new(depth: &'a Depth) -> Self {
        let Depth { queue, mean_bytes, p50_bytes, p99_bytes, max_bytes } = depth;
        Self {
            name: queue,
            mean_bytes: *mean_bytes,
            p50_bytes: *p50_bytes,
            p99_bytes: *p99_bytes,
            max_bytes: *max_bytes,
        }
    }
}

#[derive(Serialize)]
struct HostRecord<'a> {
    name: &'a str,
    tx_bytes: u64,
    rx_bytes: u64,
    pause_sent: u64,
    pause_received: u64,
    paused_s: f64,
    dropped: u64,
    /// Where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    unheard: Option<u64>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    bitmaps_refused: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nic: Option<NicRecord>,
}

impl<'a> HostRecord<'a> {
    fn new(host: &'a HostResult) -> Self {
        Self {
            name: &host.name,
            tx_bytes: host.tx_bytes,
            rx_bytes: host.rx_bytes,
            pause_sent: host.pause_sent,
            pause_received: host.pause_received,
            paused_s: host.paused.as_secs_f64(),
            dropped: host.dropped,
            unheard: (host.unheard > 0).then_some(host.unheard),
            bitmaps_refused: (host.bitmaps_refused > 0).then_some(host.bitmaps_refused),
            nic: host.nic.as_deref().map(NicRecord::new),
        }
    }
}

/// What was offered by the clock, and what was delivered meanwhile.
#[derive(Serialize)]
pub(super) struct OfferedRecord {
    from_s: f64,
    until_s: f64,
    offered_bps: f64,
    goodput_bps: f64,
}

impl OfferedRecord {
    pub(super) fn new(flows: FlowSet<'_>) -> Option<Self> {
        Some(Self {
            from_s: flows.offered?.from.as_secs_f64(),
            until_s: flows.offered?.until.as_secs_f64(),
            offered_bps: flows.offered_bps()?,
            goodput_bps: flows.goodput_while_offered_bps()?,
        })
    }
}

/// The cycle of ports that ended the run.
#[derive(Serialize)]
struct DeadlockRecord<'a> {
    at_s: f64,
    priority: u8,
    cycle: Vec<PortRecord<'a>>,
}

/// A port: its node, and the neighbour that it may not send to.
#[derive(Serialize)]
struct PortRecord<'a> {
    from: &'a str,
    to: &'a str,
}

impl<'a> DeadlockRecord<'a> {
    fn new(deadlock: &'a Deadlock) -> Self {
        let ports = deadlock.cycle.iter().map(|(from, to)| PortRecord { from, to });
        Self { at_s: deadlock.at.as_secs_f64(), priority: deadlock.priority, cycle: ports.collect() }
    }
}

/// What may differ between two runs with one seed.
#[derive(Serialize)]
struct CostRecord {
    wall_s: f64,
    cpu_s: f64,
    packet_hops_per_s: f64,
    peak_rss_bytes: u64,
    setup_s: f64,
    output_s: f64,
}

impl CostRecord {
    fn new(results: &Results) -> Self {
        let run = results.run;
        Self {
            wall_s: run.wall_s,
            cpu_s: run.cpu_s,
            packet_hops_per_s: results.packet_hops_per_s(),
            peak_rss_bytes: run.peak_rss_bytes,
            setup_s: run.setup_s,
            output_s: run.output_s,
        }
    }
}

/// JSON with a line for each key of the outermost object and for each record of its lists, so that `diff`, `grep` and
/// `less` are of use on it.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// Whether the innermost list has an element yet.
    filled: bool,
}

impl Lines {
    fn separate(&mut self, out: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        match self.depth {
            1 => out.write_all(b"\n  "),
            2 => out.write_all(b"\n    "),
            _ if first => Ok(()),
            _ => out.write_all(b" "),
        }
    }
}

impl Formatter for Lines {
    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        match self.depth {
            0 => out.write_all(b"\n}"),
            1 => out.write_all(b"\n  }"),
            _ => out.write_all(b"}"),
        }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.filled { b"\n  ]" } else { b"]" })
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, two_tables};
    use crate::results::Offered;
    use roci_nic::ArchCounters;
    use serde_json::Value;

    fn text(results: &Results) -> String {
        let mut out = Vec::new();
        write(&mut out, results).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_fields_are_the_promised_ones() {
        let json: Value = serde_json::from_str(&text(&sample())).unwrap();
        let sorted = |names: &[&'static str]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        #[rustfmt::skip]
        let expected = [
            (&json, vec!["name", "seed", "simulated_s", "events", "packets", "packet_hops", "flows", "switches", "hosts", "queues", "traffic", "faults", "offered", "deadlock", "host"]),
            (&json["traffic"][0], vec![
                "name", "kind", "flows", "completed", "failed", "running", "delivered_bytes", "goodput_bps", "offered", "fairness",
                "fct_mean_s", "fct_p50_s", "fct_p95_s", "fct_p99_s", "fct_max_s",
                "slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99", "slowdown_max", "retransmitted", "timeouts",
            ]),
            (&json["flows"][0], vec![
                "name", "src", "dst", "op", "control", "bytes", "start_s", "end_s", "status", "fct_s", "ideal_fct_s", "slowdown",
                "goodput_bps", "packets", "retransmitted", "repeated", "timeouts", "naks", "rnr_naks", "cnps", "ecn_marked",
                "reordered",
            ]),
            (&json["switches"][0], vec![
                "name", "drops", "ecn_marks", "pause_sent", "pause_received", "paused_s", "max_buffer_bytes",
            ]),
            (&json["queues"][0], vec!["name", "mean_bytes", "p50_bytes", "p99_bytes", "max_bytes"]),
            (&json["hosts"][0], vec![
                "name", "tx_bytes", "rx_bytes", "pause_sent", "pause_received", "paused_s", "dropped",
            ]),
            (&serde_json::to_value(NicRecord::new(&ArchCounters::default())).unwrap(), vec![
                "pcie_bytes", "context", "wqe", "receive_wqe", "mtt", "units_waited_s", "turns", "dropped_wqes", "halts", "recoveries", "overflowed",
            ]),
            (&json["faults"], vec!["dropped", "corrupted", "duplicated", "reordered", "forged_cnps"]),
            (&json["host"], vec!["wall_s", "cpu_s", "packet_hops_per_s", "peak_rss_bytes", "setup_s", "output_s"]),
        ];
        for (value, names) in expected {
            assert_eq!(
                sorted(
                    &keys(value)
                        .into_iter()
                        .map(|k| *names.iter().find(|n| **n == k).unwrap_or(&"?"))
                        .collect::<Vec<_>>()
                ),
                sorted(&names)
            );
        }
    }

    #[test]
    fn a_running_flow_has_no_end_and_a_record_takes_a_line() {
        let results = sample();
        let text = text(&results);
        let json: Value = serde_json::from_str(&text).unwrap();
        let running = results.flows.iter().position(|flow| flow.end == Instant::NEVER).unwrap();
        for key in ["end_s", "fct_s", "slowdown"] {
            assert!(json["flows"][running][key].is_null(), "{key}");
        }
        assert_eq!(json["flows"][running]["status"], "running");
        let records = text.lines().filter(|line| line.starts_with("    {")).count();
        let lists = [results.traffic.len(), results.flows.len(), results.switches.len(), results.hosts.len()];
        assert_eq!(records, lists.iter().sum::<usize>() + results.series.depths().len());
    }

    #[test]
    fn a_table_of_traffic_has_the_figures_of_its_flows_alone() {
        let mut results = sample();
        results.traffic = two_tables();
        let json: Value = serde_json::from_str(&text(&results)).unwrap();
        let both = &json["traffic"];
        assert_eq!((&both[0]["name"], &both[0]["kind"]), (&"0".into(), &"incast".into()));
        assert_eq!((&both[1]["name"], &both[1]["kind"]), (&"background".into(), &"flows".into()));
        // Of the four flows the last one runs on; one packet more of each was sent again than of the one before.
        for (place, counts) in [[1, 1, 0, 0, 0], [3, 2, 0, 1, 1 + 2 + 3]].into_iter().enumerate() {
            let keys = ["flows", "completed", "failed", "running", "retransmitted"];
            assert_eq!(keys.map(|key| both[place][key].as_u64().unwrap()), counts);
        }
        let parts = [0, 1]
            .map(|place| Results { flows: results.flows[[0..1, 1..4][place].clone()].to_vec(), ..sample() });
        for (part, told) in parts.iter().zip(both.as_array().unwrap()) {
            let (times, slowdowns) = (part.completion_times(), part.slowdowns());
            let alone = [
                ("goodput_bps", part.total_goodput_bps()),
                ("fairness", part.fairness()),
                ("fct_p99_s", times.percentile(99)),
                ("slowdown_mean", slowdowns.mean()),
                ("slowdown_p50", slowdowns.percentile(50)),
            ];
            for (key, alone) in alone {
                assert_eq!(told[key].as_f64(), alone, "{key}, as of a run with these flows and no others");
            }
        }
        assert!(both[0]["fairness"].is_null() && both[0]["offered"].is_null());
    }

    #[test]
    fn a_load_by_the_clock_is_told_with_what_was_delivered_meanwhile() {
        let whole = Offered { from: Instant::ZERO, until: sample().simulated };
        let json: Value = serde_json::from_str(&text(&Results { offered: Some(whole), ..sample() })).unwrap();
        assert_eq!(keys(&json["offered"]), ["from_s", "goodput_bps", "offered_bps", "until_s"]);
        let both = ["goodput_bps", "offered_bps"].map(|key| json["offered"][key].as_f64().unwrap());
        assert!(0.0 < both[0] && both[0] <= both[1], "{both:?}");
    }

    #[test]
    fn a_deadlock_is_told_with_the_ports_of_its_cycle() {
        let ring = [("s0", "s1"), ("s1", "s0")].map(|(from, to)| (from.to_owned(), to.to_owned()));
        let deadlock = Deadlock { at: Instant::from_ps(2_000_000_000), priority: 4, cycle: ring.to_vec() };
        let results = Results { deadlock: Some(deadlock), ..sample() };
        let json: Value = serde_json::from_str(&text(&results)).unwrap();
        let cycle = serde_json::json!([{ "from": "s0", "to": "s1" }, { "from": "s1", "to": "s0" }]);
        assert_eq!(json["deadlock"], serde_json::json!({ "at_s": 0.002, "priority": 4, "cycle": cycle }));
        assert!(serde_json::from_str::<Value>(&text(&sample())).unwrap()["deadlock"].is_null());
    }

    #[test]
    fn a_variant_says_what_was_overridden_and_one_of_several_what_it_is_called() {
        let plain: Value = serde_json::from_str(&text(&sample())).unwrap();
        assert!(plain.get("overrides").is_none() && plain.get("label").is_none());
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        let overrides = vec![pair("nic.mtu", "1024"), pair("switch.ecn", "false"), pair("nic.mtu", "4096")];
        let mut out = Vec::new();
        let standing = Some(Standing { best: true, as_it_is: false });
        let told = Told { label: "nic.mtu=4096".to_owned(), standing };
        write_told(&mut out, &told, &Results { overrides, ..sample() }).unwrap();
        let mut one: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(one["label"], "nic.mtu=4096");
        assert_eq!((&one["best"], &one["as_it_is"]), (&true.into(), &false.into()));
        assert_eq!(one["overrides"], serde_json::json!({ "switch.ecn": "false", "nic.mtu": "4096" }));
        for added in ["label", "best", "as_it_is", "overrides"] {
            one.as_object_mut().unwrap().remove(added);
        }
        assert_eq!(one, plain, "the rest is what it is without");
    }

    #[test]
    fn empty_results_are_valid_json() {
        let json: Value = serde_json::from_str(&text(&Results::default())).unwrap();
        assert_eq!(json["flows"], Value::Array(Vec::new()));
    }
}
