use super::*;
use crate::sizes::Sizes;
use proptest::prelude::*;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{FatTree, Form, Star, Topology};
use roci_units::{BitsPerSec, Bytes, Instant, Ratio, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const PACKET: u64 = 4200;

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: RATE, delay: Span::from_micros(1) }.build().unwrap()
}

fn setting(topology: &Topology) -> Setting<'_> {
    Setting { topology, seed: 1, stop: None, packet: PACKET, start_jitter: Some(Span::ZERO) }
}

fn generate(traffic: Vec<Traffic>, setting: &Setting<'_>) -> Result<Vec<Job>, TrafficError> {
    Ok(Jobs::new(&traffic.into(), setting)?.collect())
}

fn fault(traffic: Traffic, setting: &Setting<'_>) -> Fault {
    generate(vec![traffic], setting).unwrap_err().fault
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

fn flow(src: u16, dst: u16, start: Instant) -> Flow {
    let common = Common::default();
    Flow { name: None, src: HostId(src), dst: HostId(dst), size: Bytes(1000), start, common }
}

fn exchange() -> Exchange {
    Exchange { size: Bytes(1000), start: at(5), common: Common::default() }
}

fn poisson(sizes: Sizes, load: Ratio, until: Option<Instant>) -> Poisson {
    Poisson { sizes: Arc::new(sizes), load, start: at(0), until, common: Common::default() }
}

fn incast(senders: u32, repeat: Repeat) -> Incast {
    Incast {
        senders,
        size: Bytes(500_000),
        receiver: None,
        start: at(10),
        repeat,
        until: Some(at(1_000_000)),
        common: Common::default(),
    }
}

fn trigger(hosts: &[u16], rate: Ratio) -> Trigger {
    Trigger {
        hosts: hosts.iter().map(|&h| HostId(h)).collect(),
        receiver: HostId(0),
        size: Bytes(10_000),
        rate,
        start: at(0),
        until: Some(at(1_000_000)),
        common: Common::default(),
    }
}

fn closed_loop() -> ClosedLoop {
    ClosedLoop {
        pairs: vec![(HostId(0), HostId(1)), (HostId(2), HostId(3))],
        qps: 2,
        message: Bytes(64),
        depth: 16,
        count: Some(100),
        start: at(1),
        common: Common { op: Op::Read, ..Common::default() },
    }
}

#[test]
fn listed_flows_come_in_the_order_of_time_with_their_own_numbers() {
    let network = star(3);
    let mut named = flow(2, 0, at(1));
    named.name = Some("b".into());
    let traffic = vec![Traffic::Flows(vec![flow(1, 0, at(2)), named, flow(0, 1, at(2))])];
    let jobs = generate(traffic.clone(), &setting(&network)).unwrap();
    let seen: Vec<_> =
        jobs.iter().map(|j| (flow_name(&traffic, j.id).to_string(), j.src.0, j.start)).collect();
    assert_eq!(seen, [("b".into(), 2, at(1)), ("0.0".into(), 1, at(2)), ("0.2".into(), 0, at(2))]);
    assert!(jobs.iter().all(|j| j.messages == Some(1) && j.depth == 1));
}

#[test]
fn tables_are_merged_by_time() {
    let network = star(4);
    let traffic = vec![
        Traffic::Permutation(exchange()),
        Traffic::Flows(vec![flow(1, 0, at(9)), flow(1, 0, at(3))]),
        Traffic::ClosedLoop(closed_loop()),
    ];
    let jobs = generate(traffic, &setting(&network)).unwrap();
    let tables: Vec<u32> = jobs.iter().map(|j| j.id.traffic).collect();
    assert_eq!(tables, [2, 2, 2, 2, 1, 0, 0, 0, 0, 1]);
}

#[test]
fn a_closed_loop_is_a_job_for_each_queue_pair() {
    let network = star(4);
    let jobs = generate(vec![Traffic::ClosedLoop(closed_loop())], &setting(&network)).unwrap();
    let pairs: Vec<_> = jobs.iter().map(|j| (j.src.0, j.dst.0)).collect();
    assert_eq!(pairs, [(0, 1), (0, 1), (2, 3), (2, 3)]);
    assert!(jobs.iter().all(|j| j.messages == Some(100) && j.depth == 16 && j.common.op == Op::Read));
}

#[test]
fn an_incast_once_has_distinct_senders_and_the_first_host_receives() {
    let network = star(9);
    let jobs = generate(vec![Traffic::Incast(incast(8, Repeat::Once))], &setting(&network)).unwrap();
    let senders: BTreeSet<u16> = jobs.iter().map(|j| j.src.0).collect();
    assert_eq!(senders, (1..9).collect());
    assert!(jobs.iter().all(|j| j.dst == HostId(0) && j.start == at(10)));
}

#[test]
fn the_receiver_of_a_burst_posts_its_reads() {
    let network = star(9);
    let reads = Common { op: Op::Read, ..Common::default() };
    let of_incast = Traffic::Incast(Incast { common: reads, ..incast(8, Repeat::Once) });
    let of_trigger = Traffic::Trigger(Trigger { common: reads, ..trigger(&[4, 5, 6], Ratio::new(1_000, 1)) });
    for (traffic, senders) in
        [(of_incast, BTreeSet::from_iter(1..9)), (of_trigger, BTreeSet::from([4, 5, 6]))]
    {
        let jobs = generate(vec![traffic], &setting(&network)).unwrap();
        assert!(jobs.iter().all(|j| j.src == HostId(0)));
        assert_eq!(jobs.iter().map(|j| j.dst.0).collect::<BTreeSet<u16>>(), senders);
    }
}

#[test]
fn an_incast_at_a_period_begins_at_each_until_its_end() {
    let network = star(5);
    let spec = Incast {
        receiver: Some(HostId(3)),
        until: Some(at(310)),
        ..incast(2, Repeat::Every(Span::from_micros(100)))
    };
    let jobs = generate(vec![Traffic::Incast(spec)], &setting(&network)).unwrap();
    let starts: Vec<Instant> = jobs.iter().map(|j| j.start).collect();
    assert_eq!(starts, [at(10), at(10), at(110), at(110), at(210), at(210)]);
    assert!(jobs.chunks(2).all(|pair| pair[0].src != pair[1].src));
    assert!(jobs.iter().all(|j| j.dst == HostId(3) && j.src != HostId(3)));
}

#[test]
fn the_customary_incast_offers_its_load_and_draws_all_hosts() {
    let network = star(64);
    let spec = incast(60, Repeat::Load(Ratio::new(2, 100)));
    let jobs = generate(vec![Traffic::Incast(spec)], &setting(&network)).unwrap();
    // 2 % of 64 × 100 Gb/s for a second is 16 GB: 533 incasts of 30 MB; four standard deviations are 92.
    let incasts = jobs.len() / 60;
    assert!(incasts.abs_diff(533) < 92, "{incasts}");
    let mut receivers = BTreeSet::new();
    for burst in jobs.chunks_exact(60) {
        let senders: BTreeSet<HostId> = burst.iter().map(|j| j.src).collect();
        assert_eq!(senders.len(), 60);
        assert!(!senders.contains(&burst[0].dst));
        assert!(burst.iter().all(|j| j.dst == burst[0].dst && j.start == burst[0].start));
        receivers.insert(burst[0].dst);
    }
    assert_eq!(receivers.len(), 64);
}

#[test]
fn in_an_all_to_all_each_pair_meets_once() {
    let network = star(7);
    let jobs = generate(vec![Traffic::AllToAll(exchange())], &setting(&network)).unwrap();
    let pairs: BTreeSet<_> = jobs.iter().map(|j| (j.src, j.dst)).collect();
    assert_eq!((jobs.len(), pairs.len()), (42, 42));
    assert!(jobs.iter().all(|j| j.src != j.dst));
    // Each round, too, is a permutation.
    let first: BTreeSet<HostId> = jobs[..7].iter().map(|j| j.dst).collect();
    assert_eq!(first.len(), 7);
}

#[test]
fn triggers_make_all_hosts_send_at_once_at_the_given_rate() {
    let network = star(5);
    let spec = trigger(&[1, 2, 4], Ratio::new(1000, 1));
    let jobs = generate(vec![Traffic::Trigger(spec)], &setting(&network)).unwrap();
    // 1000 triggers in a second; four standard deviations are 126.
    assert!((jobs.len() / 3).abs_diff(1000) < 126, "{}", jobs.len());
    for burst in jobs.chunks(3) {
        assert_eq!(burst.iter().map(|j| j.src.0).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(burst.iter().all(|j| j.start == burst[0].start && j.dst == HostId(0)));
    }
}

#[test]
fn poisson_flows_offer_their_load_between_all_pairs() {
    let network = star(16);
    let spec = poisson(Sizes::named("cache-follower").unwrap(), Ratio::new(7, 10), Some(at(200_000)));
    let jobs = generate(vec![Traffic::Poisson(spec)], &setting(&network)).unwrap();
    // 70 % of 1.6 Tb/s for 0.2 s is 28 GB, in 39 294 flows of 712 570 B; four standard deviations are 793.
    assert!(jobs.len().abs_diff(39_294) < 793, "{}", jobs.len());
    let octets: u64 = jobs.iter().map(|j| j.size.0).sum();
    // A size's coefficient of variation is 1.4, so of the sum four standard deviations are 3.5 %.
    assert!(octets.abs_diff(28_000_000_000) < 980_000_000, "{octets}");
    assert!(jobs.is_sorted_by_key(|j| j.start));
    assert!(jobs.iter().all(|j| j.src != j.dst && j.start < at(200_000)));
    let mut pairs = BTreeMap::new();
    for job in &jobs {
        *pairs.entry((job.src, job.dst)).or_insert(0u32) += 1;
    }
    assert_eq!(pairs.len(), 16 * 15);
    // 164 flows a pair; five standard deviations are 64.
    assert!(pairs.values().all(|&n| n.abs_diff(164) < 64));
}

#[test]
fn gaps_are_exponential() {
    let network = star(2);
    // Flows of 25 KB at a load of one on two links of 100 Gb/s: one each microsecond.
    let spec = poisson(Sizes::fixed(Bytes(25_000)), Ratio::ONE, Some(at(100_000)));
    let jobs = generate(vec![Traffic::Poisson(spec)], &setting(&network)).unwrap();
    let gaps: Vec<u64> = jobs.windows(2).map(|w| w[1].start.since(w[0].start).as_ps()).collect();
    // The share of gaps longer than x µs is e⁻ˣ; with 10⁵ gaps four standard deviations are below 0.7 %.
    for (ps, per_mille) in [(100_000, 904.8), (693_147, 500.0), (1_000_000, 367.9), (3_000_000, 49.8)] {
        let longer = u32::try_from(gaps.iter().filter(|&&gap| gap > ps).count()).unwrap();
        let found = f64::from(longer) * 1000.0 / f64::from(u32::try_from(gaps.len()).unwrap());
        assert!((found - per_mille).abs() < 7.0, "{ps}: {found} against {per_mille}");
    }
}

#[test]
fn random_arrivals_are_the_same_on_every_machine() {
    let network = star(4);
    let spec = poisson(Sizes::named("web-search").unwrap(), Ratio::new(1, 2), Some(at(1_000)));
    let jobs = Jobs::new(&vec![Traffic::Poisson(spec)].into(), &setting(&network)).unwrap();
    let first: Vec<_> = jobs.take(3).map(|j| (j.start.as_ps(), j.src.0, j.dst.0, j.size.0)).collect();
    // Worked out from the definitions by a second program, in another language.
    let expected = [(2_979_290, 2, 0, 2_553_977), (14_285_632, 1, 3, 35_688), (125_550_423, 2, 0, 41_147)];
    assert_eq!(first, expected);
}

#[test]
fn half_a_million_flows_are_made_one_at_a_time() {
    let form = Form::Pods { pods: 16, tors_per_pod: 8, aggs_per_pod: 8, cores: 64, hosts_per_tor: 32 };
    let network =
        FatTree { form, rate: RATE, fabric_rate: None, core_rate: None, delay: Span::from_micros(1) };
    let network = network.build().unwrap();
    let spec = poisson(Sizes::named("cache-follower").unwrap(), Ratio::new(7, 10), Some(at(10_000)));
    let mut jobs = Jobs::new(&vec![Traffic::Poisson(spec)].into(), &setting(&network)).unwrap();
    let mut count = 0u32;
    while let Some(job) = jobs.next() {
        assert!(jobs.waiting() <= 1, "only the next is held");
        assert_eq!(job.id.number, count);
        count += 1;
    }
    assert!(count.abs_diff(502_968) < 4 * 710, "{count}");
}

#[test]
fn coinciding_starts_are_set_apart_by_up_to_a_packet() {
    let network = star(65);
    let once = vec![Traffic::Incast(incast(64, Repeat::Once))];
    let jobs = generate(once.clone(), &Setting { start_jitter: None, ..setting(&network) }).unwrap();
    let packet = RATE.time_for(PACKET);
    assert!(jobs.iter().all(|j| j.start >= at(10) && j.start <= at(10) + packet));
    let starts: BTreeSet<Instant> = jobs.iter().map(|j| j.start).collect();
    assert!(starts.len() > 60, "336 000 ps hold 64 starts without many meeting");
    assert!(jobs.is_sorted_by_key(|j| j.start));

    let span = Span::from_nanos(10);
    let jobs = generate(once, &Setting { start_jitter: Some(span), ..setting(&network) }).unwrap();
    assert!(jobs.iter().all(|j| j.start <= at(10) + span));
    assert!(jobs.iter().any(|j| j.start > at(10)));
}

#[test]
fn a_start_alone_is_kept() {
    let network = star(3);
    let traffic = vec![Traffic::Flows(vec![flow(1, 0, at(1)), flow(2, 0, at(2))])];
    let jobs = generate(traffic, &Setting { start_jitter: None, ..setting(&network) }).unwrap();
    assert_eq!(jobs.iter().map(|j| j.start).collect::<Vec<_>>(), [at(1), at(2)]);
}

#[test]
fn another_table_does_not_disturb_the_first() {
    let network = star(16);
    let first = Traffic::Poisson(poisson(Sizes::fixed(Bytes(10_000)), Ratio::new(1, 2), Some(at(1_000))));
    let more = Traffic::Poisson(poisson(Sizes::fixed(Bytes(10_000)), Ratio::new(1, 2), Some(at(1_000))));
    let alone = generate(vec![first.clone()], &setting(&network)).unwrap();
    let both = generate(vec![first, more], &setting(&network)).unwrap();
    let of_first: Vec<Job> = both.iter().copied().filter(|j| j.id.traffic == 0).collect();
    assert_eq!(alone, of_first);
    assert_ne!(both.len(), alone.len());
}

#[test]
fn the_seed_decides() {
    let network = star(16);
    let with = |seed| {
        let traffic = vec![Traffic::Permutation(exchange())];
        generate(traffic, &Setting { seed, start_jitter: None, ..setting(&network) }).unwrap()
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn the_runs_stop_bounds_what_has_no_end() {
    let network = star(4);
    let stop = Some(at(50));
    let bounded = Setting { stop, ..setting(&network) };
    let spec = poisson(Sizes::fixed(Bytes(1000)), Ratio::new(1, 2), None);
    let jobs = generate(vec![Traffic::Poisson(spec)], &bounded).unwrap();
    assert!(!jobs.is_empty() && jobs.iter().all(|j| j.start < at(50)));
    let every = incast(2, Repeat::Every(Span::from_micros(15)));
    assert_eq!(generate(vec![Traffic::Incast(every)], &bounded).unwrap().len(), 6);
    let endless = ClosedLoop { count: None, ..closed_loop() };
    let jobs = generate(vec![Traffic::ClosedLoop(endless)], &bounded).unwrap();
    assert!(jobs.iter().all(|j| j.messages.is_none()));
}

#[test]
fn what_cannot_be_generated_is_refused() {
    let network = star(4);
    let here = setting(&network);
    let refuse = |traffic| fault(traffic, &here);
    let half = Ratio::new(1, 2);
    let kilobyte = || Sizes::fixed(Bytes(1000));
    let atomic = Common { op: Op::FetchAdd, ..Common::default() };
    let urgent = Common { priority: Some(8), ..Common::default() };

    let flows = |flow| refuse(Traffic::Flows(vec![flow]));
    assert_eq!(flows(flow(1, 1, at(0))), Fault::ToItself("h1".into()));
    assert_eq!(flows(flow(1, 4, at(0))), Fault::UnknownHost { host: HostId(4), hosts: 4 });
    assert_eq!(flows(Flow { common: atomic, ..flow(0, 1, at(0)) }), Fault::AtomicSize(Bytes(1000)));
    assert_eq!(flows(Flow { common: urgent, ..flow(0, 1, at(0)) }), Fault::Priority(8));
    let long = Bytes(MESSAGE_MAX.0 + 1);
    assert_eq!(flows(Flow { size: long, ..flow(0, 1, at(0)) }), Fault::TooLong(long));
    assert_eq!(refuse(Traffic::Flows(vec![])), Fault::Empty("flows"));
    let twice = Flow { name: Some("a".into()), ..flow(0, 1, at(0)) };
    let error = generate(vec![Traffic::Flows(vec![twice.clone(), twice])], &here).unwrap_err();
    assert_eq!(error.to_string(), "traffic 0, flow 1: two flows are named \"a\"; give each its own name");

    let named = |name: &str| Flow { name: Some(name.into()), ..flow(0, 1, at(0)) };
    assert_eq!(flows(named("a\nb")), Fault::UnfitName("a\nb".into()));
    assert_eq!(flows(named("0.7")), Fault::NumberedName("0.7".into()));
    assert_eq!(
        generate(vec![Traffic::Flows(vec![named("0.0"), named("v1.0"), named("a>b")])], &here).map(drop),
        Ok(())
    );

    let unending = |load| refuse(Traffic::Poisson(poisson(kilobyte(), load, None)));
    assert_eq!(unending(half), Fault::Unbounded("until"));
    assert_eq!(unending(Ratio::ZERO), Fault::Zero("load"));
    let much = poisson(Sizes::fixed(Bytes(1)), Ratio::new(u32::MAX, 1), Some(at(1)));
    assert_eq!(refuse(Traffic::Poisson(much)), Fault::TooOften("load"));

    assert_eq!(refuse(Traffic::Incast(incast(4, Repeat::Once))), Fault::TooFewHosts { need: 5, have: 4 });
    assert_eq!(refuse(Traffic::Incast(incast(0, Repeat::Once))), Fault::Zero("senders"));
    assert_eq!(refuse(Traffic::Incast(incast(1, Repeat::Every(Span::ZERO)))), Fault::Zero("every"));
    let often = Incast { until: Some(at(1_000)), ..incast(3, Repeat::Every(Span::from_ps(1))) };
    assert_eq!(refuse(Traffic::Incast(often)), Fault::TooManyFlows(2_970_000_000));
    let unending = Incast { until: None, ..incast(1, Repeat::Load(half)) };
    assert_eq!(refuse(Traffic::Incast(unending)), Fault::Unbounded("until"));

    let unending = ClosedLoop { count: None, ..closed_loop() };
    assert_eq!(refuse(Traffic::ClosedLoop(unending)), Fault::Unbounded("a count"));
    let empty = ClosedLoop { depth: 0, ..closed_loop() };
    assert_eq!(refuse(Traffic::ClosedLoop(empty)), Fault::Zero("depth"));

    assert_eq!(refuse(Traffic::Trigger(trigger(&[1, 0], half))), Fault::ToItself("h0".into()));
    assert_eq!(refuse(Traffic::Trigger(trigger(&[], half))), Fault::Empty("hosts"));
    assert_eq!(refuse(Traffic::Trigger(trigger(&[1], Ratio::ZERO))), Fault::Zero("rate"));

    let one = star(1);
    let alone = fault(Traffic::Permutation(exchange()), &setting(&one));
    assert_eq!(alone, Fault::TooFewHosts { need: 2, have: 1 });
}

fn read(text: &str, hosts: u32) -> Result<HpccFlows, FlowFileError> {
    HpccFlows::read(text, star(hosts).hosts(), Common::default())
}

#[test]
fn an_hpcc_flow_file_is_read_as_it_is() {
    let text = "3\n0 2 3 100 5000 2.000000005\n2 1 3 100 70 2\n# late\n1 0 6 100 1 1.5\n";
    let file = read(text, 3).unwrap();
    let network = star(3);
    let jobs = generate(vec![Traffic::Hpcc(file)], &setting(&network)).unwrap();
    let seen: Vec<_> = jobs.iter().map(|j| (j.src.0, j.dst.0, j.size.0, j.start.as_ps())).collect();
    let second = 1_000_000_000_000;
    let expected = [(1, 0, 1, second * 3 / 2), (2, 1, 70, 2 * second), (0, 2, 5000, 2 * second + 5_000)];
    assert_eq!(seen, expected);
    assert_eq!(jobs[0].common.priority, Some(6));
}

#[test]
fn what_follows_the_counted_flows_is_not_read() {
    let explained = "1\n0 2 3 100 5000 2\n\nFirst line: how many\nsrc0 dst0 3 port0 size0 start0\n...\n";
    let file = read(explained, 3).unwrap();
    assert_eq!((file.flows.len(), file.note), (1, None));
    let longer = format!("{explained}1 2 3 100 5000 2\n");
    let file = read(&longer, 3).unwrap();
    assert_eq!(file.flows.len(), 1);
    assert!(file.note.unwrap().contains("counts 1 flows; there are more"));
}

#[test]
fn what_is_wrong_with_a_flow_file_is_said_with_its_line() {
    for (text, message) in [
        ("", "line 1: \"\" is not the number of flows"),
        ("x\n", "line 1: \"x\" is not the number"),
        ("2\n0 1 3 100 5 1.0\n", "counts 2 flows, but 1 follow"),
        ("1\n0 1 3 100 5 5000\n", "line 2: a start at 5000s"),
        ("1\n0 1 3 100 5\n", "line 2: \"0 1 3 100 5\" is not a flow"),
        ("1\n0 1 3 100 5 1.0 9\n", "line 2:"),
        ("1\n0 1 3 100 -5 1.0\n", "line 2:"),
        ("1\n0 1 3 70000 5 1.0\n", "line 2:"),
        ("1\n\n0 1 3 100 5 soon\n", "line 3:"),
        ("1\n0 9 3 100 5 1.0\n", "line 2: node 9 is not a host"),
        ("1\n1 1 3 100 5 1.0\n", "line 2: a flow from node 1 to itself"),
        ("1\n0 1 8 100 5 1.0\n", "line 2: priority group 8"),
        ("1\n0 1 3 100 3000000000 1.0\n", "line 2: a flow of 3GB"),
        ("1\n0 1 3 100 0 1.0\n", "line 2: a flow of 0 bytes"),
    ] {
        let error = read(text, 3).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?} gave {error:?}");
        assert!(error.contains("; "), "{error:?} does not say what to do");
    }
}

#[test]
fn operations_are_read_by_their_names() {
    for op in Op::ALL {
        assert_eq!(op.name().parse(), Ok(op));
    }
    assert!("Write".parse::<Op>().unwrap_err().to_string().contains("use one of send, write"));
}

proptest! {
    #[test]
    fn a_permutation_has_no_fixed_point_and_leaves_none_out(hosts in 2u32..200, seed: u64) {
        let network = star(hosts);
        let traffic = vec![Traffic::Permutation(exchange())];
        let jobs = generate(traffic, &Setting { seed, ..setting(&network) }).unwrap();
        let sources: BTreeSet<HostId> = jobs.iter().map(|j| j.src).collect();
        let destinations: BTreeSet<HostId> = jobs.iter().map(|j| j.dst).collect();
        prop_assert_eq!(sources.len(), hosts as usize);
        prop_assert_eq!(destinations.len(), hosts as usize);
        prop_assert!(jobs.iter().all(|j| j.src != j.dst));
    }

    #[test]
    fn any_mix_comes_in_order_and_loses_nothing(
        starts in prop::collection::vec(0u64..20, 1..40),
        seed: u64,
        jitter in prop::option::of(0u64..5_000),
        period in 1u64..30,
    ) {
        let network = star(6);
        let listed = starts.iter().map(|&us| flow(1, 2, at(us))).collect();
        let every = Incast { until: Some(at(100)), ..incast(3, Repeat::Every(Span::from_micros(period))) };
        let random = poisson(Sizes::fixed(Bytes(100_000)), Ratio::new(1, 2), Some(at(100)));
        let traffic = vec![Traffic::Flows(listed), Traffic::Incast(every), Traffic::Poisson(random)];
        let here = Setting { seed, start_jitter: jitter.map(Span::from_nanos), ..setting(&network) };
        let jobs = generate(traffic, &here).unwrap();
        prop_assert!(jobs.is_sorted_by_key(|j| (j.start, j.id)));
        let of = |table| jobs.iter().filter(move |j: &&Job| j.id.traffic == table).count();
        prop_assert_eq!(of(0), starts.len());
        prop_assert_eq!(of(1) as u64, 90u64.div_ceil(period) * 3);
        let ids: BTreeSet<JobId> = jobs.iter().map(|j| j.id).collect();
        prop_assert_eq!(ids.len(), jobs.len());
    }

    #[test]
    fn no_flow_file_panics(text in "[0-3]{1,2}\n([0-9]{1,2} [0-9] [0-9] [0-9]{0,6} [0-9]{1,12} [0-9.]{1,12}\n){0,3}") {
        let _ = read(&text, 4);
    }
}
