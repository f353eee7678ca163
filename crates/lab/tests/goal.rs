//! GOAL schedules: how long they take on an idle network, what their time goes into, and that each ends in words where it cannot in time.

use roci_lab::results::goal::LinkKind;
use roci_lab::results::{FlowStatus, GoalResult, Results};
use roci_lab::run::{Go, Progress, RunError, World};
use roci_lab::scenario::Scenario;
use roci_lab::scenario::source::Source;
use roci_lab::world::SimulatedWorld;
use roci_units::Span;

/// Acknowledgements share links with data, at moments that depend on all else: what a few of them take.
const ACKS: f64 = 30e-9;

const FILES: &[(&str, &str)] = &[
    // Five microseconds of calculation, and then a message that goes round.
    (
        "ring.goal",
        "num_ranks 3\n\
         rank 0 {\nc: calc 5000\ns: send 100000b to 1 tag 1\ns requires c\nr: recv 100000b from 2 tag 1\ne: calc 1000\ne requires r\n}\n\
         rank 1 {\nr: recv 100000b from 0 tag 1\ns: send 100000b to 2 tag 1\ns requires r\n}\n\
         rank 2 {\nr: recv 100000b from 1 tag 1\ns: send 100000b to 0 tag 1\ns requires r\n}\n",
    ),
    ("alone.goal", "num_ranks 2\nrank 0 {\na: calc 700\nb: calc 300\nb requires a\n}\n"),
    (
        "circle.goal",
        "num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 4\ns: send 8b to 1 tag 4\ns requires r\n}\n\
         rank 1 {\nr: recv 8b from 0 tag 4\ns: send 8b to 0 tag 4\ns requires r\n}\n",
    ),
    ("untaken.goal", "num_ranks 2\nrank 0 {\nc: calc 9000\ns: send 8b to 1 tag 1\ns requires c\n}\n"),
    // The first is shorter than the receive says, and the others are longer.
    (
        "longer.goal",
        "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\nsend 900b to 1 tag 2\nsend 700b to 1 tag 2\n}\n\
         rank 1 {\nrecv 64b from 0 tag 1\nrecv 800b from 0 tag 2\nrecv 600b from 0 tag 2\n}\n",
    ),
    // A packet and a half each, and such a one behind a longer one.
    (
        "halves.goal",
        "num_ranks 2\nrank 0 {\nsend 1500b to 1 tag 1\nsend 1500b to 1 tag 2\n}\n\
         rank 1 {\nrecv 1500b from 0 tag 1\nrecv 1500b from 0 tag 2\n}\n",
    ),
    (
        "mixed.goal",
        "num_ranks 2\nrank 0 {\nsend 2000b to 1 tag 1\nsend 1100b to 1 tag 2\n}\n\
         rank 1 {\nrecv 2000b from 0 tag 1\nrecv 1100b from 0 tag 2\n}\n",
    ),
    // Of four shards one is longer by an octet than a packet, and a rank begins when the others have sent theirs.
    (
        "astride.goal",
        "num_ranks 4\nrank 0 {\nall-to-all 4097b\n}\nrank 1 {\nall-to-all 4097b\n}\nrank 3 {\nall-to-all 4097b\n}\n\
         rank 2 {\nc: calc 18000\na: all-to-all 4097b\na requires c\n}\n",
    ),
    ("nobody.goal", "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\n}\nrank 1 {\nrecv 8b from -1 tag 2\n}\n"),
    // Messages of all lengths, none too, one after the other and back.
    (
        "lengths.goal",
        "num_ranks 2\n\
         rank 0 {\nsend 0b to 1 tag 0\nsend 1b to 1 tag 1\nsend 300000b to 1 tag 2\nsend 4096b to 1 tag 3\na: recv 0b from 1 tag 4\nb: recv 0b from 1 tag 5\nb requires a\n}\n\
         rank 1 {\nr0: recv 0b from 0 tag 0\nr1: recv 1b from 0 tag 1\nr2: recv 300000b from 0 tag 2\nr3: recv 4096b from 0 tag 3\n\
         s: send 0b to 0 tag 4\nt: send 0b to 0 tag 5\ns requires r2\ns requires r0\nt requires r3\nt requires r1\n}\n",
    ),
    // Three send to one at once.
    (
        "incast.goal",
        "num_ranks 4\nrank 0 {\nrecv 300000b from 1\nrecv 300000b from 2\nrecv 300000b from 3\n}\n\
         rank 1 {\nsend 300000b to 0\n}\nrank 2 {\nsend 300000b to 0\n}\nrank 3 {\nsend 300000b to 0\n}\n",
    ),
    // In one server and to the other.
    (
        "servers.goal",
        "num_ranks 4\n\
         rank 0 {\nsend 1000000b to 1 tag 1\nsend 1000000b to 2 tag 2\n}\nrank 1 {\nrecv 1000000b from 0 tag 1\n}\n\
         rank 2 {\nrecv 1000000b from 0 tag 2\n}\n",
    ),
    // Two pairs sum up apart, and then all together, after calculations of different lengths.
    (
        "sums.goal",
        "num_ranks 4\ngroup 0: 0 1\ngroup 1: 2 3\n\
         rank 0 {\nc: calc 1000\na: all-reduce 100000b group 0\na requires c\nb: all-reduce 400000b\nb requires a\n}\n\
         rank 1 {\nc: calc 3000\na: all-reduce 100000b group 0\na requires c\nb: all-reduce 400000b\nb requires a\n}\n\
         rank 2 {\nc: calc 5000\na: all-reduce 100000b group 1\na requires c\nb: all-reduce 400000b\nb requires a\n}\n\
         rank 3 {\nc: calc 9000\na: all-reduce 100000b group 1\na requires c\nb: all-reduce 400000b\nb requires a\n}\n",
    ),
    // Three send on what the first has, and the third begins a millisecond after the others; then the same while it sends something else.
    (
        "late.goal",
        "num_ranks 4\nrank 0 {\nbroadcast 400000b\n}\nrank 1 {\nbroadcast 400000b\n}\nrank 3 {\nbroadcast 400000b\n}\n\
         rank 2 {\nc: calc 1000000\na: broadcast 400000b\na requires c\n}\n",
    ),
    (
        "disturbed.goal",
        "num_ranks 4\nrank 0 {\nbroadcast 400000b\nrecv 200000b from 2 cpu 1\n}\nrank 1 {\nbroadcast 400000b\n}\n\
         rank 3 {\nbroadcast 400000b\n}\nrank 2 {\nc: calc 1000000\na: broadcast 400000b\na requires c\n\
         c1: calc 1000000 cpu 1\ns: send 200000b to 0 cpu 1\ns requires c1\n}\n",
    ),
    // Rank 0 sends when all have begun what rank 1 does not begin before it has the message.
    (
        "behind.goal",
        "num_ranks 2\nrank 0 {\na: all-reduce 8b\ns: send 8b to 1\ns requires a\n}\n\
         rank 1 {\nr: recv 8b from 0\na: all-reduce 8b\na requires r\n}\n",
    ),
];

/// A collective of all of `ranks`.
fn one_for_all(operation: &str, ranks: u32, size: u64) -> String {
    let blocks: String =
        (0..ranks).map(|rank| format!("rank {rank} {{\n{operation} {size}b\n}}\n")).collect();
    format!("num_ranks {ranks}\n{blocks}")
}

fn scenario(text: &str, set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let source = Source::new("here.toml", text, &set).with_files(FILES);
    Scenario::read(source).unwrap_or_else(|error| panic!("{error}"))
}

fn try_run(text: &str, set: &[(&str, &str)]) -> Result<Results, RunError> {
    SimulatedWorld.run(&scenario(text, set), 1, None, &mut |_| Go::On)
}

fn run(text: &str, set: &[(&str, &str)]) -> Results {
    try_run(text, set).unwrap_or_else(|error| panic!("{error}"))
}

/// The schedule `file` around one switch, with nothing in its way; `rest` are other tables.
fn of(file: &str, rest: &str) -> String {
    format!(
        "start_jitter = \"0s\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[nic]\nmtu = 4096\n\
         [transport]\ncontrol = \"none\"\n{rest}\n[[traffic]]\nkind = \"goal\"\nfile = \"{file}\"\n"
    )
}

fn only(results: &Results) -> &GoalResult {
    let [one] = &results.goals[..] else { panic!("one schedule") };
    one
}

#[test]
fn a_schedule_alone_takes_its_calculation_and_its_messages_on_an_idle_network() {
    let results = run(&of("ring.goal", ""), &[("traffic.0.eager", "1MB")]);
    let one = only(&results);
    let path = one.path.as_ref().expect("it is done");
    assert_eq!((path.late, path.computed, path.overhead), (Span::ZERO, Span::from_micros(6), Span::ZERO));
    assert_eq!(path.count(), 3);
    assert_eq!(path.computed + path.messages, path.time);
    let over = path.over_ideal().expect("there are messages");
    assert!((1.0..1.01).contains(&over), "{over} of what they take alone");
    assert_eq!(one.last().expect("a rank").0, 0);
    let totals = one.totals();
    assert_eq!((totals.operations, totals.undone, totals.sent, totals.received_bytes), (8, 0, 3, 300_000));
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK && flow.bytes == 100_000));
    // Without calculation only the messages are left, and with overhead each takes it twice.
    let bare = run(&of("ring.goal", ""), &[("traffic.0.eager", "1MB"), ("traffic.0.calc_unit", "0s")]);
    let time = |results: &Results| only(results).seconds().expect("it is done");
    let alike = |one: f64, other: f64| (one - other).abs() <= ACKS;
    assert!(alike(time(&bare), path.messages.as_secs_f64()), "{} and {}", time(&bare), path.messages);
    let busy = run(&of("ring.goal", ""), &[("traffic.0.eager", "1MB"), ("traffic.0.overhead", "200ns")]);
    assert!(alike(time(&busy), path.time.as_secs_f64() + 1.2e-6), "{} and {}", time(&busy), path.time);
}

#[test]
fn calculation_needs_no_network() {
    let results = run(&of("alone.goal", ""), &[("traffic.0.start", "2us")]);
    let one = only(&results);
    assert_eq!((one.seconds(), results.flows.len()), (Some(1e-6), 0));
    assert_eq!(results.simulated.as_secs_f64(), 3e-6);
}

#[test]
fn messages_of_all_lengths_come_even_of_none() {
    for (key, value) in
        [("traffic.0.queue_pairs", "pair"), ("traffic.0.queue_pairs", "tag"), ("traffic.0.eager", "0B")]
    {
        let results = run(&of("lengths.goal", ""), &[(key, value)]);
        let one = only(&results);
        assert!(
            one.path.is_some() && results.flows.iter().all(|flow| flow.status == FlowStatus::OK),
            "{value}"
        );
        assert_eq!(results.flows.len(), if value == "tag" { 6 } else { 2 });
        assert_eq!(results.flows.iter().map(|flow| flow.delivered).sum::<u64>(), 304_097);
    }
}

#[test]
fn messages_that_fill_no_packet_are_no_faster_than_alone() {
    let results = run(&of("longer.goal", ""), &[]);
    let flow = &results.flows[0];
    let (took, ideal) = (flow.fct().expect("it is done"), flow.ideal.expect("it has one"));
    // The one of 8 octets may go first or last for all that is known: a packet on a link and a header.
    assert!(took >= ideal && took < ideal + Span::from_nanos(100), "{took} {ideal}");
}

#[test]
fn nothing_is_faster_than_alone_for_a_last_packet_that_is_shorter_than_others() {
    // Of messages of several lengths nobody knows which goes first or last, and how short its packets are.
    for (file, most) in [("halves.goal", 100), ("mixed.goal", 700)] {
        let text = of(file, "").replace(
            "kind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"",
            "kind = \"tree\"\nleaves = [1, 1]\nrate = \"25Gb/s\"\nuplink = \"10Gb/s\"\ndelay = \"300ns\"",
        );
        let results = run(&text, &[("nic.mtu", "1024"), ("traffic.0.eager", "1MB")]);
        let flow = &results.flows[0];
        let (took, ideal) = (flow.fct().expect("it is done"), flow.ideal.expect("it has one"));
        assert!(took >= ideal && took < ideal + Span::from_nanos(most), "{file}: {took} {ideal}");
    }
    let results = run(&of("astride.goal", ""), &[("nic.mtu", "1024"), ("traffic.0.eager", "1MB")]);
    let joint = &only(&results).joint[0];
    let (took, ideal) = (joint.time().expect("it is done"), joint.ideal.expect("it has one"));
    assert!(took >= ideal && took < ideal + Span::from_nanos(200), "{took} {ideal}");
}

#[test]
fn lost_packets_hold_a_schedule_up_and_no_more() {
    let alone = run(&of("lengths.goal", ""), &[]);
    for recovery in ["go-back-n", "irn", "srnic"] {
        let set = [("faults.loss", "0.02"), ("transport.recovery", recovery)];
        let results = run(&of("lengths.goal", ""), &set);
        assert!(only(&results).seconds() >= only(&alone).seconds(), "{recovery}");
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK));
    }
}

#[test]
fn ranks_that_wait_for_one_another_are_named_and_have_results_up_to_a_stop() {
    let error = try_run(&of("circle.goal", ""), &[]).expect_err("nobody sends").to_string();
    for part in [
        "rank 0 of traffic 0, on h0, waits in `r: recv 8b from 1 tag 4`",
        "rank 1 of traffic 0, on h1",
        "mend the schedule",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let results = run(&of("circle.goal", ""), &[("stop", "1ms")]);
    let one = only(&results);
    assert_eq!((one.path.as_ref(), one.totals().undone), (None, 4));
    assert!(
        results.warnings.iter().any(|it| it.contains("rank 0 of traffic 0, on h0, waits in")),
        "{:?}",
        results.warnings
    );
}

#[test]
fn a_rank_that_waits_for_what_nobody_sends_ends_the_run_in_words() {
    let told = "rank 1 of traffic 0, on h1, waits in `recv 8b from -1 tag 2`";
    let error = try_run(&of("nobody.goal", ""), &[]).expect_err("nobody sends").to_string();
    assert!(error.contains("a schedule is not done") && error.contains(told), "{error}");
    let results = run(&of("nobody.goal", ""), &[("stop", "1ms")]);
    assert_eq!((only(&results).totals().undone, only(&results).seconds()), (1, None));
    assert!(results.warnings.iter().any(|it| it.contains(told)), "{:?}", results.warnings);
}

#[test]
fn a_calculation_beyond_the_end_of_time_is_refused_and_one_under_way_at_a_stop_is_no_deadlock() {
    // The second is beyond what any number of picoseconds has.
    for unit in ["10s", "4000s"] {
        let error =
            try_run(&of("alone.goal", ""), &[("traffic.0.calc_unit", unit)]).expect_err(unit).to_string();
        assert!(error.contains("a rank of a schedule calculates for longer than"), "{error}");
    }
    let results = run(&of("alone.goal", ""), &[("stop", "800ns")]);
    assert_eq!((only(&results).totals().undone, results.warnings.len()), (1, 0), "{:?}", results.warnings);
}

#[test]
fn a_message_that_no_receive_takes_is_told_of_and_a_flow_begins_with_its_first() {
    let results = run(&of("untaken.goal", ""), &[]);
    let one = only(&results);
    assert_eq!((one.seconds(), one.totals().untaken), (Some(9e-6), 1));
    assert!(
        results.warnings.iter().any(|it| it.contains("no receive took 1 of the messages of traffic 0")),
        "{:?}",
        results.warnings
    );
    assert_eq!(results.flows[0].start.as_secs_f64(), 9e-6);
}

#[test]
fn messages_that_are_longer_than_their_receives_are_told_of_once_with_the_first() {
    let results = run(&of("longer.goal", ""), &[]);
    let totals = only(&results).totals();
    assert_eq!((totals.longer, totals.shorter, totals.undone), (2, 1, 0));
    let [told] = &results.warnings[..] else { panic!("one warning: {:?}", results.warnings) };
    for part in [
        "2 of the messages of traffic 0 were longer",
        "rank 0, operation 1, `send 900b to 1 tag 2`, taken by rank 1, operation 1, `recv 800b from 0 tag 2`",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn a_schedule_ends_with_the_first_of_its_queue_pairs_that_fails() {
    let down = "[[faults.on]]\nlink = \"h1-s0\"\ndown = true\nfrom = \"8us\"";
    let results = run(
        &of("ring.goal", down),
        &[("transport.timeout", "100us"), ("transport.retry", "1"), ("stop", "1s")],
    );
    let one = only(&results);
    assert!(one.failed && one.path.is_none() && one.totals().undone > 0);
    assert!(
        results.flows.iter().all(|flow| !matches!(flow.status, FlowStatus::OK | FlowStatus::Running)),
        "all are flushed"
    );
}

#[test]
fn a_collective_of_a_schedule_takes_as_long_as_one_of_its_own() {
    let star = "[topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Gb/s\"\ndelay = \"1us\"\n";
    // Nothing joins the rails, so what does not keep to them is refused.
    let rails = "[topology]\nkind = \"rails\"\nservers = 2\ngpus = 4\nspines = 0\nrate = \"400Gb/s\"\ndelay = \"500ns\"\n\
                 scale_up = \"3.6Tb/s\"\n";
    // There nobody waits for acknowledgements.
    for (network, operation, algorithm, rest) in [
        (star, "all-reduce", "ring", "chunks = 1\nchannels = 1"),
        (star, "all-reduce", "ring", "chunks = 4\nchannels = 2"),
        (star, "all-reduce", "halving-doubling", "chunks = 3"),
        (star, "all-reduce", "tree", "chunks = 5"),
        (star, "reduce-scatter", "ring", "chunks = 1"),
        (star, "all-gather", "halving-doubling", "chunks = 2"),
        (star, "all-gather", "direct", "chunks = 1"),
        (star, "all-to-all", "direct", "chunks = 1"),
        (star, "broadcast", "ring", "chunks = 4"),
        (star, "reduce", "ring", "chunks = 4"),
        (star, "gather", "direct", "chunks = 1"),
        (star, "scatter", "direct", "chunks = 2"),
        (rails, "all-reduce", "ring", "channels = 4"),
        (rails, "all-reduce", "ring", "channels = 1"),
        (rails, "all-reduce", "tree", "channels = 4\nchunks = 2"),
        (rails, "all-to-all", "pxn", "channels = 1"),
    ] {
        let size = 8_000_003;
        let has_root = matches!(operation, "broadcast" | "reduce" | "gather" | "scatter");
        let (root, key) = if has_root { (" root 5", "root = 5\n") } else { ("", "") };
        let schedule = one_for_all(operation, 8, size).replace("b\n", &format!("b{root}\n"));
        let text = |traffic: &str| {
            format!(
                "start_jitter = \"0s\"\n{network}[switch]\nbuffer = \"64MB\"\n[nic]\nmtu = 4096\n[transport]\ncontrol = \"none\"\n[[traffic]]\n\
                 algorithm = \"{algorithm}\"\n{rest}\n{traffic}"
            )
        };
        let run = |traffic: &str| {
            let text = text(traffic);
            // Files are there for as long as the tests.
            let schedule: &'static str = Box::leak(schedule.clone().into_boxed_str());
            let source =
                Source::new("here.toml", &text, &[]).with_files(Box::leak(Box::new([("it.goal", schedule)])));
            let scenario = Scenario::read(source).unwrap_or_else(|error| panic!("{error}"));
            SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"))
        };
        let of_schedule = run("kind = \"goal\"\nfile = \"it.goal\"\neager = \"1GiB\"\n");
        let own = run(&format!("kind = \"collective\"\noperation = \"{operation}\"\nsize = {size}\n{key}"));
        let it = only(&of_schedule).joint[0];
        let (own, own_ideal) = (own.collectives[0].iterations[0], own.collectives[0].ideal);
        let what = format!("{operation} by {algorithm}, {rest}");
        assert_eq!((it.times.last_begin, it.times.last_end), (own.start, own.end), "{what}");
        assert_eq!((it.ideal, it.times.first_end), (own_ideal, own.first_end), "{what}");
        assert_eq!(only(&of_schedule).seconds(), Some(own.time().as_secs_f64()), "{what}");
        // Over the links of the NICs it takes no longer, but for what a message waits there for the whole of another one that it would have taken turns
        // with packet by packet: of chunks of trees, which meet at their parents, that counts.
        let links = only(&of_schedule).replays.and_then(|replays| replays.links).expect("it is done");
        let above = links.as_secs_f64() / own.time().as_secs_f64() - 1.0;
        assert!(above < if algorithm == "tree" { 0.1 } else { 0.002 }, "{what}: {above}");
    }
}

/// What each of eight ranks has for each: most for rank 2, nothing for some, and one that sends to nobody.
fn uneven(from: u32, to: u32) -> u64 {
    match (from, to) {
        (5, _) => 0,
        (_, 2) => 900_001,
        _ if (from + to).is_multiple_of(3) => 0,
        _ => 10_000 * u64::from(1 + from) + u64::from(to),
    }
}

#[test]
fn an_all_to_all_of_which_each_rank_has_a_list_takes_as_long_as_that_of_a_matrix() {
    let star = "[topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Gb/s\"\ndelay = \"1us\"\n";
    let rails = "[topology]\nkind = \"rails\"\nservers = 2\ngpus = 4\nspines = 0\nrate = \"400Gb/s\"\ndelay = \"500ns\"\n\
                 scale_up = \"3.6Tb/s\"\n";
    let rows = |between: &str, unit: &str| -> Vec<String> {
        let row = |from: u32| {
            (0..8).map(|to| format!("{}{unit}", uneven(from, to))).collect::<Vec<_>>().join(between)
        };
        (0..8).map(row).collect()
    };
    let blocks: String = (0..)
        .zip(rows(" ", "b"))
        .map(|(rank, row)| format!("rank {rank} {{\nx: all-to-all {row}\n}}\n"))
        .collect();
    // Files are there for as long as the tests.
    let schedule: &'static str = Box::leak(format!("num_ranks 8\n{blocks}").into_boxed_str());
    let matrix: &'static str = Box::leak(rows(",", "").join("\n").into_boxed_str());
    let files: &'static [_] = Box::leak(Box::new([("it.goal", schedule), ("it.csv", matrix)]));
    for (network, rest) in [
        (star, "algorithm = \"direct\"\nchunks = 1"),
        (star, "algorithm = \"direct\"\nchunks = 3\nchannels = 2"),
        (rails, "algorithm = \"pxn\"\nchunks = 1"),
        (rails, "algorithm = \"pxn\"\nchunks = 2\nchannels = 3"),
    ] {
        let run = |traffic: &str| {
            let text = format!(
                "start_jitter = \"0s\"\n{network}[switch]\nbuffer = \"64MB\"\n[nic]\nmtu = 4096\n[transport]\ncontrol = \"none\"\n[[traffic]]\n\
                 {rest}\n{traffic}"
            );
            let source = Source::new("here.toml", &text, &[]).with_files(files);
            let scenario = Scenario::read(source).unwrap_or_else(|error| panic!("{error}"));
            SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"))
        };
        let of_schedule = run("kind = \"goal\"\nfile = \"it.goal\"\neager = \"1GiB\"\n");
        let own = run("kind = \"collective\"\noperation = \"all-to-all\"\nmatrix = \"it.csv\"\n");
        let (it, own) = (only(&of_schedule).joint[0], &own.collectives[0]);
        let iteration = own.iterations[0];
        assert_eq!((it.times.last_begin, it.times.last_end), (iteration.start, iteration.end), "{rest}");
        assert_eq!((it.ideal, it.times.first_end), (own.ideal, iteration.first_end), "{rest}");
        assert_eq!((it.size, it.busiest), (own.bytes, own.busiest), "{rest}");
        let seconds = iteration.time().as_secs_f64();
        assert_eq!(it.bus_bps().map(|bps| (bps / own.bus_bps(seconds) - 1.0).abs() < 1e-9), Some(true));
        // Rank 2 receives the most, all but its own and that of the one that sends nothing.
        assert_eq!((it.busiest, it.size), (Some(6 * 900_001), 7 * 900_001));
        assert!(
            it.over_ideal().is_some_and(|over| (1.0..1.1).contains(&over)),
            "{rest}: {:?}",
            it.over_ideal()
        );
        let path = only(&of_schedule).path.as_ref().expect("it is done");
        assert!(path.links.iter().all(|link| link.ideal <= link.to.since(link.from)), "{path:?}");
        let did = of_schedule.goals[0].schedule.words(5, 0);
        assert_eq!(did, "x: all-to-all 0b 0b 0b 0b 0b 0b 0b 0b");
        // By way of others what is for another rail is sent twice.
        if rest.contains("direct") {
            for (rank, of) in (0..).zip(&only(&of_schedule).ranks) {
                let others = (0..8).filter(|other| *other != rank);
                let sent: u64 = others.clone().map(|to| uneven(rank, to)).sum();
                let received: u64 = others.map(|from| uneven(from, rank)).sum();
                assert_eq!((of.sent_bytes, of.received_bytes), (sent, received), "rank {rank}");
            }
        }
    }
}

#[test]
fn queue_pairs_that_carry_nothing_are_no_flows() {
    // Of eight octets there are two channels of four, and between two of three ranks nothing goes.
    let few = "num_ranks 3\n\
               rank 0 {\na: all-reduce 8b\nb: all-to-all 0b 70b 0b\nb requires a\n}\n\
               rank 1 {\na: all-reduce 8b\nb: all-to-all 0b 0b 0b\nb requires a\n}\n\
               rank 2 {\na: all-reduce 8b\nb: all-to-all 9b 0b 5b\nb requires a\n}\n";
    let files: &'static [_] =
        Box::leak(Box::new([("few.goal", &*Box::leak(few.to_owned().into_boxed_str()))]));
    let text = of("few.goal", "") + "channels = 4\n";
    let source = Source::new("here.toml", &text, &[]).with_files(files);
    let scenario = Scenario::read(source).unwrap_or_else(|error| panic!("{error}"));
    let results =
        SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"));
    let flows: Vec<_> = results.flows.iter().map(|flow| (flow.bytes, flow.status)).collect();
    // Two rings of three shards, of which each octet goes twice in each half.
    let octets = |flows: &[(u64, FlowStatus)]| flows.iter().map(|(bytes, _)| bytes).sum::<u64>();
    assert_eq!((flows.len(), octets(&flows[..6])), (2 * 3 + 4 * 2, 2 * 2 * 8), "{flows:?}");
    assert_eq!(octets(&flows[6..]), 70 + 9, "{flows:?}");
    assert!(flows.iter().all(|(_, status)| *status == FlowStatus::OK));
    assert_eq!(only(&results).joint[1].times.done, 3);
}

#[test]
fn what_holds_up_the_end_of_a_collective_shows_though_that_takes_less_than_the_whole() {
    let times = |file| {
        let results = run(&of(file, ""), &[("traffic.0.eager", "1MB")]);
        let one = only(&results);
        let path = one.path.as_ref().expect("it is done");
        let of_it: Vec<_> = path.links.iter().filter(|link| link.kind == LinkKind::Collective).collect();
        let [link] = of_it[..] else { panic!("one collective: {:?}", path.links) };
        assert_eq!(
            (link.rank, link.to_rank, link.ideal),
            (2, 3, path.ideal),
            "by the last of three messages"
        );
        (path.collectives, path.ideal, one.joint[0].ideal.expect("it has one"))
    };
    let (alone, ideal, whole) = times("late.goal");
    assert_eq!((alone, whole), (ideal, ideal), "it is a message alone");
    let (disturbed, same, _) = times("disturbed.goal");
    assert_eq!(ideal, same);
    // Most of 200 KB at 100 Gb/s, and still less than three messages.
    assert!(disturbed > ideal + Span::from_micros(12) && disturbed < ideal * 3, "{disturbed} {ideal}");
}

#[test]
fn collectives_of_groups_go_side_by_side_and_what_waits_for_them_behind() {
    let results = run(&of("sums.goal", ""), &[]);
    let one = only(&results);
    let [first, last, second] = one.joint[..] else { panic!("three collectives") };
    assert_eq!([first, second, last].map(|it| (it.group, it.ranks)), [(1, 2), (2, 2), (0, 4)]);
    let begun = |it: &roci_lab::results::JointResult| {
        [it.times.first_begin, it.times.last_begin].map(|at| at.as_secs_f64())
    };
    assert_eq!([begun(&first), begun(&second)], [[1e-6, 3e-6], [5e-6, 9e-6]]);
    assert_eq!(begun(&last), [first.times.first_end, second.times.last_end].map(|at| at.as_secs_f64()));
    // From rank 3's calculation on, by both of its sums.
    let path = one.path.as_ref().expect("it is done");
    assert_eq!((path.computed, path.joint_count(), path.messages), (Span::from_micros(9), 2, Span::ZERO));
    assert_eq!(path.computed + path.collectives, path.time);
    assert_eq!(path.links[1].rank, 3);
    // A rank is done when what it sent last is acknowledged, which the least leaves out.
    let leasts = second.ideal.unwrap_or_default() + last.ideal.unwrap_or_default();
    assert!(path.ideal > leasts && path.ideal < leasts + Span::from_nanos(2_100), "{} {leasts}", path.ideal);
    // Acknowledgements share links with data, and are waited for of messages as long as the last.
    assert!(
        (1.0..1.08).contains(&path.over_ideal().expect("there are collectives")),
        "{:?}",
        path.over_ideal()
    );
    let totals = one.totals();
    assert_eq!((totals.sent, totals.sent_bytes), (2 * 2 * 2 + 4 * 6, 2 * 200_000 + 4 * 600_000));
    assert_eq!(results.flows.iter().map(|flow| flow.delivered).sum::<u64>(), totals.received_bytes);
    let kinds = one.joint_kinds();
    assert_eq!(
        kinds.iter().map(|kind| (kind.ranks, kind.count, kind.done)).collect::<Vec<_>>(),
        [(2, 2, 2), (4, 1, 1)]
    );
    // Short messages, whose way to the next is much of their time.
    let bus: Vec<f64> = kinds.iter().filter_map(|kind| kind.bus_bps()).map(|bps| bps / 1e9).collect();
    assert!((61.0..62.0).contains(&bus[0]) && (72.0..74.0).contains(&bus[1]), "{bus:?}");
    let replays = one.replays.expect("it is done");
    assert_eq!(replays.no_network, Some(Span::from_micros(9)));
    assert_eq!(replays.links, replays.alone, "each link has one message at a time");
}

#[test]
fn lost_packets_hold_collectives_up_and_a_queue_pair_that_fails_ends_them() {
    let alone = run(&of("sums.goal", ""), &[]);
    for recovery in ["go-back-n", "irn", "srnic"] {
        let results = run(&of("sums.goal", ""), &[("faults.loss", "0.01"), ("transport.recovery", recovery)]);
        assert!(only(&results).seconds() > only(&alone).seconds(), "{recovery}");
        assert!(only(&results).joint.iter().all(|it| it.times.done == it.ranks), "{recovery}");
    }
    let down = "[[faults.on]]\nlink = \"h1-s0\"\ndown = true\nfrom = \"8us\"";
    let set = [("transport.timeout", "100us"), ("transport.retry", "1"), ("stop", "1s")];
    let results = run(&of("sums.goal", down), &set);
    let one = only(&results);
    assert!(one.failed && one.path.is_none() && one.joint[1].time().is_none());
}

#[test]
fn ranks_that_wait_in_a_collective_for_one_that_waits_for_them_are_named() {
    let error = try_run(&of("behind.goal", ""), &[]).expect_err("nobody sends").to_string();
    for part in [
        "rank 0 of traffic 0, on h0, waits in `a: all-reduce 8b`",
        "rank 1 of traffic 0, on h1, waits in `r: recv 8b from 0 tag 0`",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn each_message_takes_the_network_of_its_server_where_there_is_one() {
    let text = "start_jitter = \"0s\"\n[topology]\nkind = \"rails\"\nservers = 2\ngpus = 2\nspines = 1\nrate = \"100Gb/s\"\ndelay = \"1us\"\n\
        scale_up = \"800Gb/s\"\nscale_up_delay = \"100ns\"\n[nic]\nmtu = 4096\n[transport]\ncontrol = \"none\"\n\
        [[traffic]]\nkind = \"goal\"\nfile = \"servers.goal\"\neager = \"2MB\"\n";
    let results = run(text, &[]);
    let sent = |name: &str| results.hosts.iter().find(|host| host.name == name).expect("a NIC").tx_bytes;
    assert!(sent("h0.0") > 1_000_000 && sent("h0.1") > 1_000_000);
    let ends: Vec<f64> =
        only(&results).ranks.iter().filter_map(|rank| Some(rank.end?.as_secs_f64())).collect();
    assert!(ends[1] < 15e-6 && ends[2] > 80e-6, "{ends:?}");
}

#[test]
fn ranks_are_dealt_by_the_seed_and_two_runs_of_one_are_alike() {
    let scenario = scenario(&of("ring.goal", ""), &[("traffic.0.placement", "random")]);
    let of_seed = |seed| {
        let results =
            SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).unwrap_or_else(|it| panic!("{it}"));
        let ends: Vec<_> = results.flows.iter().map(|flow| (flow.src, flow.dst, flow.end)).collect();
        let hosts: Vec<u16> = only(&results).ranks.iter().map(|rank| rank.host).collect();
        assert_eq!((ends[0].0, ends[0].1), (hosts[0], hosts[1]), "the ranks are where their queue pairs are");
        (hosts, ends)
    };
    assert_eq!(of_seed(5), of_seed(5));
    assert!((1..9).any(|seed| of_seed(seed).0 != [0, 1, 2]));
}

#[test]
fn a_schedule_that_nothing_holds_up_takes_as_long_as_it_would_with_less_in_its_way() {
    let results = run(&of("ring.goal", ""), &[]);
    let one = only(&results);
    let replays = one.replays.expect("it is done");
    assert_eq!((replays.links, replays.no_network), (replays.alone, Some(Span::from_micros(6))));
    let late = one.seconds().expect("it is done") - replays.alone.expect("an end").as_secs_f64();
    assert!((0.0..ACKS).contains(&late), "{late}");
    assert_eq!(only(&run(&of("ring.goal", ""), &[("traffic.0.replays", "false")])).replays, None);
}

/// A schedule of one rank that calculates for a nanosecond, so many times.
fn counting(operations: usize) -> Scenario {
    let file: &str = format!("num_ranks 1\nrank 0 {{\n{}}}\n", "calc 1\n".repeat(operations)).leak();
    let source = Source::new("here.toml", &of("counting.goal", ""), &[]);
    let files = Box::leak(Box::new([("counting.goal", file)]));
    Scenario::read(source.with_files(files)).unwrap_or_else(|it| panic!("{it}"))
}

#[test]
fn schedules_that_are_done_again_tell_how_far_they_are_and_can_be_ended_with_the_results_kept() {
    let scenario = counting(40_000);
    let mut told = Vec::new();
    let mut hear = |progress: &Progress| {
        told.extend(progress.again);
        Go::On
    };
    let whole = SimulatedWorld.run(&scenario, 1, None, &mut hear).unwrap_or_else(|it| panic!("{it}"));
    assert!(told.iter().all(|(done, all)| *all == 120_000 && done < all), "{told:?}");
    assert!(told.is_sorted() && told.len() >= 6, "{told:?}");
    assert!(only(&whole).replays.is_some() && whole.warnings.is_empty());
    let mut stop = |progress: &Progress| if progress.again.is_some() { Go::Stop } else { Go::On };
    let part = SimulatedWorld.run(&scenario, 1, None, &mut stop).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!((only(&part).replays, &only(&part).path), (None, &only(&whole).path));
    let [warning] = &part.warnings[..] else { panic!("one warning: {:?}", part.warnings) };
    assert!(
        warning.contains("that of traffic 0 takes with less in its way (`replays`) is missing"),
        "{warning}"
    );
}

#[test]
fn what_shares_a_hosts_link_takes_as_long_over_a_fabric_that_holds_nothing_up() {
    let results = run(&of("incast.goal", ""), &[]);
    let one = only(&results);
    let replays = one.replays.expect("it is done");
    // Of 74 packets with 62 octets of headers and check values and 20 of preamble and gap each, a RETH of 16 and an immediate of 4, at 100 Gb/s.
    let message = (300_000.0 + 74.0 * 82.0 + 20.0) * 8.0 / 100e9;
    let [links, alone] = [replays.links, replays.alone].map(|it| it.expect("an end").as_secs_f64());
    assert!((links - alone - 2.0 * message).abs() < 1e-9, "{links} {alone}");
    // In turns or one after the other, the link is busy as long.
    let late = one.seconds().expect("it is done") - links;
    assert!(late.abs() < 0.01 * links, "{late} of {links}");
    assert_eq!(replays.no_network, Some(Span::ZERO));
}

#[test]
fn a_timeline_tells_when_each_operation_waited_and_when_each_message_came() {
    let text = of("ring.goal", "[measure]\ntimeline = true\n");
    let results = run(&text, &[]);
    assert!(results.timeline);
    let times = &only(&results).times;
    assert_eq!(times.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 2]);
    let [calculation, send, waits, last] = times[0][..] else { panic!("four operations") };
    let micros = |count| roci_units::Instant::ZERO + Span::from_micros(count);
    assert_eq!((calculation.ready, calculation.began, calculation.left), (micros(0), micros(0), micros(5)));
    assert_eq!((send.ready, send.left), (micros(5), micros(5)));
    // It waits from the beginning, for what has gone round.
    assert_eq!(waits.ready, micros(0));
    assert_eq!(times[1][0].began, send.came, "the next rank has it when it has come");
    assert_eq!((waits.began, last.began), (times[2][1].came, times[2][1].came));
    assert_eq!(last.left, last.began + Span::from_micros(1));
    assert!(only(&run(&of("ring.goal", ""), &[])).times.iter().all(Vec::is_empty));
}
