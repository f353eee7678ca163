//! Made-up results for tests of the outputs: a fan-in of four flows that converge, one of which is not done.

use crate::results::series::{FlowSample, QueueSample, Series};
use crate::results::{
    CollectiveResult, CriticalPath, Effect, FaultResult, FlowName, FlowResult, FlowStatus, GoalRank,
    GoalResult, HostFigures, HostResult, IdleTimes, Iteration, JointResult, JointTimes, LinkKind, LinkResult,
    MachineResult, MachineSample, Op, Outcome, PathLink, PriorityResult, Replays, Results, RpcResult,
    RuleResult, SlowStep, SwitchResult, Times, TrafficResult,
};
use crate::traffic::goal::Does;
use crate::traffic::{Algorithm, Operation};
use roci_machine::Counters;
use roci_units::{Instant, Span};
use std::ops::Range;
use std::sync::Arc;

const STEP: Span = Span::from_micros(100);

/// Results with all kinds of records.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small made-up numbers")]
pub(crate) fn sample() -> Results {
    let mut series = Series::new(STEP, vec!["root>rx:3".into(), "leaf2>root:3".into()]);
    let mut wire = [0u64; 4];
    let (mut marks, mut pauses) = (0, 0);
    for step in 1..=300u64 {
        series.begin(Instant::ZERO + STEP * step);
        for flow in 0..4u32 {
            let swing = (step * (7 + u64::from(flow)) % 29) as u32 * 20_000;
            let rate_kbps = 2_200_000 + swing / (1 + step as u32 / 60) * (1 + flow % 2);
            wire[flow as usize] += u64::from(rate_kbps) * 100 / 8_000;
            series.flow(
                flow,
                FlowSample {
                    wire: wire[flow as usize],
                    payload: wire[flow as usize] * 93 / 100,
                    rate_kbps: Some(rate_kbps),
                    target_kbps: Some(rate_kbps + 300_000),
                    alpha: Some(1.0 / (1.0 + step as f32 / 30.0)),
                    window: None,
                    rtt_ns: None,
                    cnps: step as u32 / 3,
                },
            );
        }
        marks += step % 5;
        pauses += u64::from(step < 40);
        let bytes = 20_000 + (step * 37 % 83) * 900;
        series.queue(0, QueueSample { bytes, marks, pauses: 0, paused: Span::ZERO });
        let paused = Span::from_micros(30 * pauses);
        series.queue(1, QueueSample { bytes: bytes / 3 * u64::from(step < 200), marks: 0, pauses, paused });
    }
    let flow = |n: u32| FlowResult {
        name: if n == 0 { FlowName::Given("a".into()) } else { FlowName::Numbered { traffic: 0, n } },
        src: 1 + n as u16,
        dst: 0,
        op: Op::Write,
        control: 0,
        status: if n == 3 { FlowStatus::Running } else { FlowStatus::OK },
        bytes: 7_000_000,
        delivered: if n == 3 { 6_500_000 } else { 7_000_000 },
        start: Instant::from_ps(u64::from(n) * 300_000),
        end: if n == 3 {
            Instant::NEVER
        } else {
            Instant::ZERO + Span::from_micros(26_000 + 900 * u64::from(n))
        },
        ideal: Some(Span::from_micros(6_050)),
        packets: 6_836,
        retransmitted: n,
        repeated: n,
        timeouts: 0,
        naks: n,
        rnr_naks: n,
        cnps: 40 + n,
        ecn_marked: 130 + n,
        reordered: 3 * n,
    };
    Results {
        name: "made-up fan-in".into(),
        seed: 7,
        scenario: "name = \"made-up fan-in\"\n".into(),
        overrides: Vec::new(),
        simulated: Instant::ZERO + STEP * 300,
        events: 500_000,
        packets: 54_000,
        packet_hops: 164_000,
        traffic: vec![table("0", "incast", 0..4)],
        collectives: Vec::new(),
        goals: Vec::new(),
        rpcs: Vec::new(),
        machines: Vec::new(),
        flows: (0..4).map(flow).collect(),
        switches: ["root", "leaf2"].map(switch).into(),
        several_nics: false,
        timeline: false,
        hosts: ["rx", "s0", "s1", "s2", "s3"].map(host).into(),
        links: Vec::new(),
        controls: vec!["dcqcn preset=sigcomm15".into()],
        programs: Vec::new(),
        is_unreliable: false,
        warnings: Vec::new(),
        first_received: None,
        offered: None,
        rules: Vec::new(),
        changes: Vec::new(),
        deadlock: None,
        faults: Some(FaultResult { dropped: 3, corrupted: 2, duplicated: 1, ..FaultResult::default() }),
        series,
        run: HostFigures {
            wall_s: 0.021,
            cpu_s: 0.02,
            peak_rss_bytes: 9_000_000,
            setup_s: 0.001,
            output_s: 0.0,
        },
    }
}

/// The same flows as those of two tables: the first one alone, and the others.
pub(crate) fn two_tables() -> Vec<TrafficResult> {
    vec![table("0", "incast", 0..1), table("background", "flows", 1..4)]
}

/// The same with a collective, of which two iterations of 100 µs are done, and which then failed.
pub(crate) fn with_collective() -> Results {
    let at = |micros| Instant::ZERO + Span::from_micros(micros);
    let iteration = |start, end, slowest| Iteration {
        start: at(start),
        first_end: at(end - 10),
        end: at(end),
        last: 2,
        slowest,
    };
    let slow = SlowStep { step: 3, time: Span::from_micros(40), host: 1 };
    let one = CollectiveResult {
        table: 0,
        operation: Operation::AllReduce,
        algorithm: Algorithm::Ring,
        ranks: 4,
        root: None,
        bytes: 1_000_000,
        busiest: None,
        channels: 1,
        chunks: 2,
        asked: 3,
        iterations: vec![iteration(0, 100, Some(slow)), iteration(100, 200, None)],
        ideal: Some(Span::from_micros(80)),
        failed: true,
    };
    Results { collectives: vec![one], ..sample() }
}

/// The same with a schedule of two ranks: 20 us of calculation, 10 us for a message that was 40 us on its way, and 30 us of calculation.
pub(crate) fn with_goal() -> Results {
    let at = |micros| Some(Instant::ZERO + Span::from_micros(micros));
    let sender = GoalRank {
        host: 1,
        operations: 3,
        end: at(40),
        computed: Span::from_micros(30),
        sent: 1,
        sent_bytes: 1000,
        ..GoalRank::default()
    };
    let receiver = GoalRank {
        host: 2,
        operations: 2,
        end: at(100),
        computed: Span::from_micros(20),
        received: 1,
        received_bytes: 1000,
        ..GoalRank::default()
    };
    let link = |kind: LinkKind, rank, operation, [from, to]: [u64; 2]| PathLink {
        kind,
        from: Instant::ZERO + Span::from_micros(from),
        to: Instant::ZERO + Span::from_micros(to),
        rank,
        to_rank: if kind.is_message() { 1 } else { rank },
        operation,
        does: match kind {
            LinkKind::Calculation => Does::Calc((to - from) * 1000),
            _ => Does::Send { to: 1, tag: 7, size: 1000 },
        },
        line: kind.is_message().then_some(0),
        ideal: Span::from_micros(if kind.is_message() { 20 } else { 0 }),
    };
    let path = CriticalPath {
        time: Span::from_micros(100),
        late: Span::ZERO,
        computed: Span::from_micros(50),
        overhead: Span::from_micros(10),
        messages: Span::from_micros(40),
        collectives: Span::ZERO,
        ideal: Span::from_micros(20),
        links: vec![
            link(LinkKind::Calculation, 0, 0, [0, 20]),
            link(LinkKind::Overhead, 0, 1, [20, 30]),
            link(LinkKind::Message, 0, 1, [30, 70]),
            link(LinkKind::Calculation, 1, 1, [70, 100]),
        ],
    };
    let ranks = vec![sender, receiver];
    let replays = Replays {
        links: Some(Span::from_micros(80)),
        alone: Some(Span::from_micros(70)),
        no_network: Some(Span::from_micros(60)),
    };
    let one = GoalResult {
        table: 0,
        start: Instant::ZERO,
        schedule: Arc::default(),
        ranks,
        path: Some(path),
        replays: Some(replays),
        joint: Vec::new(),
        times: Vec::new(),
        failed: false,
    };
    Results { goals: vec![one], ..sample() }
}

/// The same with collectives: two sums of four ranks, of which one is done, and one that a rank does by itself.
pub(crate) fn with_joint() -> Results {
    let at = |micros| Instant::ZERO + Span::from_micros(micros);
    let mut times = JointTimes::default();
    for (begin, end) in [(10, 50), (20, 60), (30, 80), (40, 140)] {
        times.begin(at(begin));
        times.end(at(end));
    }
    let done = JointResult {
        operation: Operation::AllReduce,
        algorithm: Some(Algorithm::Ring),
        group: 1,
        ranks: 4,
        root: None,
        size: 1_000_000,
        busiest: None,
        parts: (2, 4),
        first: (0, 1),
        times,
        ideal: Some(Span::from_micros(80)),
    };
    let mut begun = JointTimes::default();
    begun.begin(at(130));
    let mut alone = JointTimes::default();
    alone.begin(at(5));
    alone.end(at(5));
    let mut results = with_goal();
    results.goals[0].joint = vec![
        done,
        JointResult { times: begun, ..done },
        JointResult { group: 0, ranks: 1, algorithm: None, times: alone, ideal: None, ..done },
    ];
    results
}

/// The same with a table of `[[faults.on]]`.
pub(crate) fn with_rule() -> Results {
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    let effect = Effect {
        before_bps: Some(8e9),
        least_bps: Some(1e9),
        below: Span::from_micros(900),
        outcome: Outcome::Back(Span::from_millis(1)),
    };
    let rule = RuleResult {
        name: "leaf2-root".into(),
        what: "down".into(),
        from: at(2),
        until: Some(at(6)),
        lost: 12,
        lost_octets: 12_480,
        effect,
    };
    Results { rules: vec![rule], ..sample() }
}

/// The same with two ways of links on which packets of two priorities travel.
pub(crate) fn with_priorities() -> Results {
    let of = |priority, packets| PriorityResult {
        priority,
        packets,
        tx_bytes: 1_000 * packets,
        ..PriorityResult::default()
    };
    let paused = Span::from_micros(90);
    let at_host =
        [of(0, 100), PriorityResult { pause_received: 4, paused, lost: 4, corrupted: 2, ..of(3, 300) }];
    let at_switch = [
        PriorityResult { drops: 7, max_queue_bytes: Some(50_000), ..of(0, 100) },
        PriorityResult { ecn_marks: 25, max_queue_bytes: Some(40_000), ..of(3, 300) },
    ];
    let link = |name: &str, priorities: [PriorityResult; 2]| LinkResult {
        name: name.into(),
        priorities: priorities.into(),
        ..LinkResult::default()
    };
    Results { links: vec![link("s0>leaf2", at_host), link("leaf2>root", at_switch)], ..sample() }
}

/// The same with a table of requests.
pub(crate) fn with_rpc() -> Results {
    let mut times = Times::default();
    [100, 200, 300].map(Span::from_micros).into_iter().for_each(|time| times.add(time));
    let one = RpcResult {
        table: 0,
        server: 0,
        threads: 4,
        connections: 8,
        request: 256,
        response: 32,
        measured: Span::from_millis(1),
        answered: 3,
        times,
        reads: 100,
        read_misses: 25,
        blocked: Span::from_micros(50),
        share: Some(192),
        delta_mean: Some(-20),
        idle: IdleTimes { count: 2, sum: Span::from_millis(2), longest: Span::from_micros(1500) },
    };
    let machine = MachineResult {
        host: 0,
        counters: Counters { reads: 100, read_misses: 25, ..Counters::default() },
        states: [600, 300, 100, 0].map(Span::from_micros),
        busy: vec![Span::from_micros(500); 4],
    };
    let mut results = Results { rpcs: vec![one], machines: vec![machine], ..sample() };
    let mut series = Series::new(STEP, Vec::new());
    for step in 1..=300u32 {
        series.begin(Instant::ZERO + STEP * u64::from(step));
        let (unconsumed, reads) = (u64::from(step % 40) * 10_000, u64::from(step) * 50);
        series.machine(0, MachineSample { unconsumed, reads, read_misses: reads / 5, iio: step % 70 });
        series.answered(0, u64::from(step) * 10);
    }
    results.series = series;
    results
}

fn table(name: &str, kind: &'static str, flows: Range<usize>) -> TrafficResult {
    TrafficResult { name: name.into(), kind, flows, offered: None, pattern: Vec::new(), priorities: vec![3] }
}

fn switch(name: &str) -> SwitchResult {
    SwitchResult {
        name: name.into(),
        drops: 0,
        ecn_marks: 600,
        pause_sent: 39,
        pause_received: 0,
        paused: Span::from_micros(1_170),
        max_buffer_bytes: 94_700,
        ..SwitchResult::default()
    }
}

fn host(name: &str) -> HostResult {
    HostResult { name: name.into(), tx_bytes: 7_400_000, rx_bytes: 400_000, ..HostResult::default() }
}
