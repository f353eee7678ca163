//! What is refused or told of, in which words.

use super::*;

/// Every way to be wrong that we thought of, and what the user is told.
#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    let flow = |keys: &str| star(&format!("[[traffic]]\nkind = \"flows\"\nflows = [{{ {keys} }}]\n"));
    let named =
        |name: &str| format!("[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\nname = \"{name}\"\n");
    let tail = |text: &str| star(&format!("{PERMUTATION}{text}\n"));
    let graph = |links: &str| {
        format!(
            "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nlinks = [\n{links}\n]\n{PERMUTATION}"
        )
    };
    let link =
        |a: &str, b: &str| format!("  {{ a = \"{a}\", b = \"{b}\", rate = \"1Gb/s\", delay = \"1us\" }},");
    let cases: Vec<(&str, String)> = vec![
        ("not TOML", tail("[switch\nbuffer = 3")),
        ("a key twice", tail("[switch]\nbuffer = \"3MB\"\nbuffer = \"4MB\"")),
        ("an unknown key", tail("[switch]\nbufer = \"12MB\"")),
        ("an unknown table", tail("[swich]\nbuffer = \"12MB\"")),
        ("a key of another table", tail("[switch]\nmtu = 1024")),
        ("a flowlet without a gap", tail("[switch]\nrouting = \"flowlet\"\nflowlet_gap = \"0s\"")),
        ("an unknown key like no other", tail("[nic]\nzzz = 1")),
        ("a wrong unit", tail("[transport]\ntimeout = \"500ub\"")),
        ("a missing unit", tail("[transport]\ntimeout = 500")),
        ("a rate with the unit of a size", star(PERMUTATION).replace("10Gb/s", "10GB")),
        ("a rate that some read as octets", star(PERMUTATION).replace("10Gb/s", "10gbps")),
        ("a negative size", flow("src = \"h0\", dst = \"h1\", size = \"-38MB\"")),
        (
            "a negative number",
            tail("seed = 1").replace("[topology]", "seed = -1\n[topology]").replace("\nseed = 1\n", "\n"),
        ),
        ("a run without an end in sight", format!("stop = \"5000s\"\n{}", star(PERMUTATION))),
        (
            "a start after the longest run",
            flow("src = \"h0\", dst = \"h1\", size = \"1MB\", start = \"9000s\""),
        ),
        ("a delay longer than a run", tail("[faults]\ndelay = \"18446744s\"")),
        ("a buffer that headroom takes", tail("[switch]\nbuffer = \"20KB\"")),
        ("a resume beyond any threshold", tail("[switch.pfc]\nresume = \"100MB\"")),
        ("one of a switch", tail("[[switch.on]]\nswitches = [\"s0\"]\npfc = { resume = \"2MB\" }")),
        (
            "a receive buffer that pauses come too late for",
            star(PERMUTATION).replace("1us", "100us") + "[nic]\nrx_fifo = \"64KB\"\nrx_rate = \"5Gb/s\"\n",
        ),
        ("a default buffer that headroom takes", star(PERMUTATION).replace("hosts = 4", "hosts = 1500")),
        ("more ports than can be routed over", star(PERMUTATION).replace("hosts = 4", "hosts = 65535")),
        ("a size of zero", flow("src = \"h0\", dst = \"h1\", size = \"0B\"")),
        ("a size too large", flow("src = \"h0\", dst = \"h1\", size = \"3GiB\"")),
        ("a missing size", flow("src = \"h0\", dst = \"h1\"")),
        ("a zero rate", star(PERMUTATION).replace("10Gb/s", "0Gb/s")),
        ("a list for a number", tail("[nic]\nmtu = [1024]")),
        ("a number out of range", tail("[nic]\nmtu = 9000")),
        ("a share of bandwidth for nobody", tail("[switch]\nets = { 3 = 60, 0 = 40, 1 = 0 }")),
        ("shares of bandwidth beyond all of it", tail("[switch]\nets = { 3 = 60, 0 = 50 }")),
        ("shares that leave some of it", tail("[switch.ets]\n3 = 60\n0 = 30")),
        ("a share for a single priority", tail("[switch]\nets = { 3 = 100 }")),
        ("a share for a priority that there is not", tail("[switch]\nets = { 8 = 60, 0 = 40 }")),
        ("a fraction of bandwidth", tail("[switch]\nets = { 3 = 0.6, 0 = 0.4 }")),
        ("shares in a list", tail("[switch]\nets = [40, 0, 0, 60]")),
        (
            "a share for trimmed headers",
            tail("[switch]\ntrimming = true\nets = { 7 = 60, 0 = 40 }\n[transport]\nrecovery = \"ndp\""),
        ),
        ("a share above one", tail("[switch]\necn = { pmax = 2 }")),
        ("thresholds the wrong way round", tail("[switch]\necn = { kmin = \"1MB\" }")),
        ("a register for a key", tail("[transport]\ncontrol = { law = \"dcqcn\", rc = \"1Gb/s\" }")),
        (
            "a least window above the greatest",
            tail("[transport]\ncontrol = { law = \"swift\", min_cwnd = 100, max_cwnd = 1 }"),
        ),
        (
            "a low threshold above the high one",
            tail("[transport]\ncontrol = { law = \"timely\", t_low = \"500us\", t_high = \"50us\" }"),
        ),
        ("two kinds of marking", tail("[switch]\necn = { step = \"30KB\", pmax = 0.1 }")),
        ("a CC header of sixteen words beside the times", tail("[transport]\nlayout = { words = 16 }")),
        ("a date", tail("[nic]\nmtu = 2026-01-01")),
        ("a flow to itself", flow("src = \"h1\", dst = \"h1\", size = \"1MB\"")),
        ("a flow to nowhere", flow("src = \"h0\", dst = \"h9\", size = \"1MB\"")),
        ("a flow to a switch", flow("src = \"h0\", dst = \"s0\", size = \"1MB\"")),
        ("an unknown op", flow("src = \"h0\", dst = \"h1\", size = \"1MB\", op = \"wrte\"")),
        (
            "an atomic of another length",
            flow("src = \"h0\", dst = \"h1\", size = \"16B\", op = \"fetch-add\""),
        ),
        (
            "two flows of one name",
            star(
                "[[traffic]]\nkind = \"flows\"\nflows = [\n  { name = \"x\", src = \"h0\", dst = \"h1\", size = \"1MB\" },\n  { name = \"x\", src = \"h1\", dst = \"h2\", size = \"1MB\" },\n]\n",
            ),
        ),
        ("two tables of traffic of one name", star(&named("background").repeat(2))),
        ("traffic that is called like the place of another", star(&named("1"))),
        ("no traffic", star("")),
        ("no topology", PERMUTATION.to_owned()),
        ("an unknown kind of topology", star(PERMUTATION).replace("\"star\"", "\"stern\"")),
        ("a key of another kind", star(PERMUTATION).replace("hosts = 4", "hosts = 4\nleaves = 2")),
        (
            "a fat tree given twice",
            star(PERMUTATION).replace("\"star\"", "\"fat-tree\"").replace("hosts = 4", "hosts = 4\nk = 4"),
        ),
        (
            "an odd fat tree",
            star(PERMUTATION).replace("\"star\"", "\"fat-tree\"").replace("hosts = 4", "k = 5"),
        ),
        ("a link to nowhere", graph(&[link("a", "s"), link("b", "ss")].join("\n"))),
        ("a link to itself", graph(&[link("a", "s"), link("b", "s"), link("s", "s")].join("\n"))),
        ("a host without a link", graph(&link("a", "s"))),
        (
            "a NIC that is named as a host",
            graph(&[link("a", "s"), link("b", "s"), link("a", "b")].join("\n")).replace(
                PERMUTATION,
                "[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"a.1\", dst = \"b\", size = 1 }]\n",
            ),
        ),
        (
            "a delay of no links",
            star(PERMUTATION).replace(
                "\"star\"\nhosts = 4",
                "\"rails\"\nservers = 2\ngpus = 2\nspines = 1\nscale_up_delay = \"1us\"",
            ),
        ),
        (
            "a host without a route",
            graph(&[link("a", "s"), link("b", "t")].join("\n")).replace("[\"s\"]", "[\"s\", \"t\"]"),
        ),
        (
            "a name twice",
            graph(&[link("a", "s"), link("b", "s")].join("\n")).replace("[\"s\"]", "[\"s\", \"a\"]"),
        ),
        (
            "a file that is not there",
            "[topology]\nkind = \"hpcc\"\nfile = \"nowhere/fat.txt\"\n".to_owned() + PERMUTATION,
        ),
        (
            "a device for a file",
            "[topology]\nkind = \"hpcc\"\nfile = \"/dev/zero\"\n".to_owned() + PERMUTATION,
        ),
        ("an unknown law", tail("[transport]\ncontrol = { law = \"dcqn\" }")),
        ("a law that does not exist", tail("[transport]\ncontrol = \"cubic\"")),
        ("an unknown preset", tail("[transport]\ncontrol = { law = \"dcqcn\", preset = \"sigcom15\" }")),
        ("an unknown key of a law", tail("[transport]\ncontrol = { law = \"dcqcn\", gg = \"1/256\" }")),
        ("a key of a law that has none", tail("[transport]\ncontrol = { law = \"none\", g = \"1/256\" }")),
        ("a value that a law does not take", tail("[transport]\ncontrol = { law = \"dcqcn\", g = \"2\" }")),
        ("an unknown recovery", tail("[transport]\nrecovery = \"gobackn\"")),
        (
            "a layout that the recovery does not speak",
            tail("[transport]\nrecovery = \"irn\"\nlayout = \"standard\""),
        ),
        ("a layout that no recovery speaks", tail("[transport]\nlayout = \"ndp\"")),
        ("an unknown NIC", tail("[nic]\nmodel = \"cx7\"")),
        ("a part that no NIC has", tail("[nic]\nmodel = \"cx5\"\nwith = { context = { entires = 7 } }")),
        ("a part of the wrong kind", tail("[nic]\nmodel = \"cx5\"\nwith = { pcie = { read = \"7\" } }")),
        (
            "parts of a NIC that has none",
            tail("[nic]\nmodel = \"ideal\"\nwith = { pcie = { read = \"7us\" } }"),
        ),
        ("parts of no NIC", tail("[nic]\nwith = { pcie = { read = \"7us\" } }")),
        ("a queue without room", tail("[nic]\nmodel = \"swcc\"\nwith = { cores = { queue = 0 } }")),
        (
            "an unknown distribution",
            star("[[traffic]]\nkind = \"poisson\"\nsizes = \"WebSerch\"\nload = 0.3\nuntil = \"1ms\"\n"),
        ),
        (
            "a source without an end",
            star("[[traffic]]\nkind = \"poisson\"\nsizes = \"WebSearch\"\nload = 0.3\n"),
        ),
        (
            "a loop without an end",
            star("[[traffic]]\nkind = \"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nmessage = \"1KB\"\n"),
        ),
        (
            "an incast without an end",
            star("[[traffic]]\nkind = \"incast\"\nsenders = 3\nsize = \"1KB\"\nevery = \"1ms\"\n"),
        ),
        ("an incast of too many", star("[[traffic]]\nkind = \"incast\"\nsenders = 4\nsize = \"1KB\"\n")),
        ("a network that loses everything", tail("[faults]\nloss = 1")),
        (
            "a path that loses everything",
            flow("src = \"h0\", dst = \"h1\", size = \"1MB\"")
                + "[[faults.on]]\nlink = \"s0>h0\"\nloss = \"100%\"\n",
        ),
        (
            "losses that begin with the first packet and never end",
            tail("[faults]\nloss = { to_bad = 1, to_good = 0, bad = 1 }"),
        ),
        ("a pause storm that never ends", tail("[faults]\npause_storm = true")),
        (
            "a pause storm on a path that never ends",
            flow("src = \"h0\", dst = \"h1\", size = \"1MB\", priority = 5")
                + "[[faults.on]]\nlink = \"s0>h1\"\npause_storm = { priority = 5 }\n",
        ),
        ("a fault on no link", tail("[[faults.on]]\nlink = \"h0-h1\"\nloss = 0.1")),
        ("a fault on nothing", tail("[[faults.on]]\nlink = \"h0-h9\"\nloss = 0.1")),
        ("a pattern like no link", tail("[[faults.on]]\nlink = \"h*-h*\"\nloss = 0.1")),
        ("a bit error rate above one half", tail("[faults]\nber = 0.6")),
        ("a link faster than it was built", tail("[[faults.on]]\nlink = \"h0-s0\"\nrate = \"40Gb/s\"")),
        ("a link that stands still", tail("[[faults.on]]\nlink = \"h0-s0\"\nrate = \"0Gb/s\"")),
        ("a failed switch that there is not", tail("[[faults.on]]\nswitch = \"s1\"\ndown = true")),
        ("failed switches like none", tail("[[faults.on]]\nswitch = \"leaf*\"\ndown = true")),
        ("a failed host", tail("[[faults.on]]\nswitch = \"h1\"\ndown = true")),
        ("a switch that nothing befalls", tail("[[faults.on]]\nswitch = \"s0\"\nfrom = \"1ms\"")),
        (
            "a fault of links at a switch",
            tail("[[faults.on]]\nswitch = \"s0\"\ndown = true\nrate = \"1Gb/s\""),
        ),
        (
            "a fault of a link and a switch",
            tail("[[faults.on]]\nswitch = \"s0\"\nlink = \"h0-s0\"\ndown = true"),
        ),
        (
            "what is down and flaps",
            tail("[[faults.on]]\nlink = \"h0-s0\"\ndown = true\nflap = { up = \"1ms\", down = \"1ms\" }"),
        ),
        ("a fault of nothing", tail("[[faults.on]]\nloss = 0.1")),
        ("a detection that is no time", tail("[faults]\ndetect = \"always\"")),
        ("a switch that is down for ever", tail("[[faults.on]]\nswitch = \"s0\"\ndown = true")),
        ("a link that is down for ever", tail("[[faults.on]]\nlink = \"h0-s0\"\ndown = true")),
        ("a fault that ends first", tail("[[faults.on]]\nlink = \"h0-s0\"\nfrom = \"2ms\"\nuntil = \"1ms\"")),
        ("a capture of nothing", tail("[measure]\npcap = [\"root\"]")),
        ("a rule about no switch", tail("[[switch.on]]\nbuffer = \"2MB\"")),
        ("a rule about an unknown switch", tail("[[switch.on]]\nswitches = [\"s1\"]\nbuffer = \"2MB\"")),
        ("a register of no law", tail("[[at]]\ntime = \"1ms\"\nset = { \"transport.control.gg\" = 1 }")),
        ("what is no register", tail("[[at]]\ntime = \"1ms\"\nset = { \"switch.buffer\" = \"1MB\" }")),
        (
            "a register of an unknown flow",
            tail("[[at]]\ntime = \"1ms\"\nflow = \"x\"\nset = { \"transport.control.g\" = \"1/2\" }"),
        ),
        ("a name that is no folder", star(PERMUTATION).replace("[topology]", "name = \"../x\"\n[topology]")),
    ];
    let mut told = String::new();
    for (what, text) in cases {
        told.push_str(&format!("# {what}\n{}\n\n", refused(&text)));
    }
    assert_snapshot!(told);
}

#[test]
fn starts_of_every_kind_lie_within_the_longest_run() {
    for traffic in [
        "kind = \"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nmessage = \"1KB\"\ncount = 1\nstart = \"20000s\"",
        "kind = \"poisson\"\nsizes = \"WebSearch\"\nload = 0.3\nstart = \"4600s\"\nuntil = \"4700s\"",
        "kind = \"permutation\"\nsize = \"1KB\"\nstart = \"4503.6s\"",
    ] {
        let told = refused(&star(&format!("[[traffic]]\n{traffic}\n")));
        assert!(told.contains("is longer than a run can last"), "{told}");
    }
    let last = star("[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\nstart = \"4503.5s\"\n");
    assert!(parse(&last).is_ok());
}

#[test]
fn a_run_that_is_over_before_any_flow_begins_is_refused_and_one_flow_too_late_is_told() {
    for traffic in [
        "kind = \"permutation\"\nsize = \"1KB\"\nstart = \"5ms\"\n",
        "kind = \"poisson\"\nsizes = \"1KB\"\nload = 0.3\nstart = \"1ms\"\n",
        "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1MB\", start = \"2ms\" }]\n",
    ] {
        let told = refused(&format!("stop = \"1ms\"\n{}", star(&format!("[[traffic]]\n{traffic}"))));
        assert!(told.contains("no flow ever begins: the first `start`, "), "{told}");
        assert!(told.contains("is not before the run's `stop`, 1ms"), "{told}");
        assert!(told.contains("make `stop` later, or `start` earlier"), "{told}");
    }
    let late = "[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\nstart = \"3ms\"\n";
    let both = format!("stop = \"1ms\"\n{}", star(&format!("{PERMUTATION}{late}")));
    let scenario = parse(&both).unwrap();
    let notes: Vec<&str> = scenario.notes().collect();
    assert_eq!(notes, ["line 13: what starts at 3ms never does, for the run stops at 1ms"]);
    assert_eq!(parse(&both.replace("3ms", "999us")).unwrap().notes().count(), 0);
}

#[test]
fn storms_and_losses_that_spare_the_traffic_are_no_reason_to_refuse_it() {
    let flow = "[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1MB\" }]\n";
    for faults in [
        "[faults]\npause_storm = { priority = 5 }",
        "[[faults.on]]\nlink = \"s0-h1\"\npause_storm = true\nuntil = \"1ms\"",
        "[[faults.on]]\nlink = \"s0-h2\"\npause_storm = true",
        "[faults]\nloss = { to_bad = 0.5, to_good = 0.1, bad = 1 }",
    ] {
        assert!(parse(&star(&format!("{flow}{faults}\n"))).is_ok(), "{faults}");
    }
}

#[test]
fn a_topology_file_whose_links_lose_everything_is_refused_where_it_is_named() {
    let read = |file| {
        let text = "[topology]\nkind = \"hpcc\"\nfile = \"t.txt\"\n".to_owned() + PERMUTATION;
        Scenario::read(Source::new("test.toml", &text, &[]).with_files(file))
    };
    let fine = read(&[("t.txt", "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0.5\n\nnodes switches links\n")]);
    assert_eq!(fine.unwrap().notes().count(), 0);
    let told = read(&[("t.txt", "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 1\n")]).unwrap_err().to_string();
    assert!(told.starts_with("test.toml:3:8: nothing gets over the link of `h1`"), "{told}");
    let more = read(&[("t.txt", "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n0 1 1Gbps 1us 0\n")]);
    assert!(more.unwrap().notes().any(|note| note.contains("counts 2 links")));
}

#[test]
fn a_timeout_that_is_over_before_anything_can_be_acknowledged_is_refused_with_the_round_trip() {
    let tree = "[topology]\nkind = \"fat-tree\"\nk = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n".to_owned()
        + PERMUTATION;
    let timeout = |time: &str| parse(&format!("{tree}[transport]\ntimeout = \"{time}\"\n"));
    // Two links each way in one rack: 4 us, and four times 84 octets at 10 Gb/s, 268.8 ns.
    let error = timeout("4268800ps").unwrap_err();
    let timeout_line = tree.lines().count() + 2;
    assert!(error.to_string().starts_with(&format!("test.toml:{timeout_line}:11: ")), "{error}");
    assert!(error.message.contains("between `h0` and `h1`, takes 4269ns"), "{}", error.message);
    // Six links each way: 12 us, six times 1122 octets (a WRITE of 1024 with all that is around it) and six times 86.
    assert!(error.remedy.contains(", 17799ns, for a full packet between `h0`"), "{}", error.remedy);
    let near = timeout("4268801ps").unwrap();
    assert!(near.notes().any(|note| note.contains("17799ns")), "{:?}", near.notes().collect::<Vec<_>>());
    assert_eq!(timeout("17798401ps").unwrap().notes().count(), 0);
    assert_eq!(timeout("0s").unwrap().notes().count(), 0);
    // With few packets in flight IRN's is 5/16 of it; with Homa it is not.
    let few = |control: &str, time: &str| {
        let lines = format!("[transport]\ntimeout = \"{time}\"\n{control}");
        let scenario = parse(&format!("{tree}{lines}")).unwrap();
        scenario.notes().filter(|note| note.contains("with at most 3 packets in flight")).count()
    };
    let irn = "recovery = \"irn\"\ncontrol = \"none\"\nmax_in_flight = 60\n";
    assert_eq!([few(irn, "55us"), few(irn, "60us"), few(irn, "0s")], [1, 0, 0]);
    assert_eq!(few("control = \"homa\"\n", "55us"), 0);
}

#[test]
fn an_mtu_that_no_real_queue_pair_has_is_simulated_and_told() {
    let notes = |lines: &str| {
        parse(&(star(PERMUTATION) + lines)).unwrap().notes().map(str::to_owned).collect::<Vec<_>>()
    };
    for mtu in [256, 512, 1024, 2048, 4096] {
        assert!(notes(&format!("[nic]\nmtu = {mtu}\n")).is_empty(), "{mtu}");
    }
    assert!(notes("[nic]\nmtu = 1500\n")[0].starts_with("`nic.mtu = 1500` is simulated as it stands"));
    let one = "[[nic.on]]\nhosts = [\"h1\"]\nmtu = 1\n";
    assert!(notes(one)[0].contains("256, 512, 1024, 2048 or 4096"));
}

#[test]
fn irn_that_may_lose_packets_without_a_bound_on_those_in_flight_is_told() {
    let notes = |pfc: bool, lines: &str| {
        let text =
            format!("{}[switch]\npfc = {pfc}\n[transport]\nrecovery = \"irn\"\n{lines}", star(PERMUTATION));
        parse(&text).unwrap().notes().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(notes(false, "")[0].contains("`transport.max_in_flight`"));
    assert!(notes(true, "").is_empty());
    assert!(notes(false, "max_in_flight = 10\n").is_empty());
}

#[test]
fn more_packets_in_flight_than_bitmaps_are_long_is_told() {
    let told = |recovery: &str, bound: u32| {
        let lines = format!("[transport]\nrecovery = \"{recovery}\"\nmax_in_flight = {bound}\n");
        let scenario = parse(&(star(PERMUTATION) + &lines)).unwrap();
        scenario.notes().filter(|note| note.contains("bitmaps")).map(str::to_owned).collect::<Vec<_>>()
    };
    let note = |set: u32, bitmap: u32| {
        format!(
            "`transport.max_in_flight = {set}` is more than bitmaps of selective repeat are long, {bitmap} packets, and no more are \
             in flight"
        )
    };
    assert_eq!(told("irn", 100_000), [note(100_000, 8192)]);
    assert_eq!(told("srnic", 8193), [note(8193, 8192)]);
    assert_eq!(told("sack", 4096), [note(4096, 2048)]);
    for (recovery, bound) in [("irn", 8192), ("sack", 2048), ("go-back-n", 100_000)] {
        assert_eq!(told(recovery, bound), [""; 0], "{recovery}");
    }
}

#[test]
fn the_bound_of_irn_stands_beside_bandwidth_times_delay() {
    let told = |bound: &str| {
        let lines =
            format!("[switch]\npfc = false\n[transport]\nrecovery = \"irn\"\ncontrol = \"none\"\n{bound}");
        let scenario = parse(&(star(PERMUTATION) + &lines)).unwrap();
        scenario.notes().collect::<Vec<_>>().join(" ")
    };
    // Two links each way, 4 us, and twice a full packet and its acknowledgement at 10 Gb/s: six packets and a part of one.
    let product = "10Gb/s times the idle round trip of a full packet between `h0` and `h1`, ";
    let unbounded = told("");
    assert!(unbounded.contains(&format!("Set `transport.max_in_flight` to 7: {product}")), "{unbounded}");
    assert!(told("max_in_flight = 6\n").contains("is below the product of bandwidth and delay, 7 packets: "));
    assert_eq!(told("max_in_flight = 7\n"), "");
    assert_eq!(told("max_in_flight = 14\n"), "");
    assert!(
        told("max_in_flight = 15\n")
            .contains("more than twice the product of bandwidth and delay, 7 packets")
    );
}

#[test]
fn irn_is_bounded_where_its_data_travel_on_a_priority_that_pause_does_not_hold_back() {
    let told = |paused: &str| {
        let lines = format!(
            "[switch.classes]\npause = [{paused}]\n[transport]\nrecovery = \"irn\"\ncontrol = \"none\"\n"
        );
        let scenario = parse(&(star(PERMUTATION) + &lines)).unwrap();
        scenario.notes().any(|note| note.contains("is half of IRN"))
    };
    assert!(told("2"));
    assert!(!told("3"));
}

#[test]
fn cutoffs_of_homa_that_descend_are_refused_where_they_are_written() {
    let read = |keys: &str| {
        parse(&(star(PERMUTATION) + &format!("[transport]\ncontrol = {{ law = \"homa\", {keys} }}\n")))
    };
    let error = read("cutoff_1 = \"7KB\"").unwrap_err();
    assert_eq!(error.message, "`cutoff_1` is 7KB, above `cutoff_2`, which is 2800B: cutoffs ascend");
    assert!(error.to_string().starts_with("test.toml:10:"), "{error}");
    assert!(
        read("cutoff_2 = \"5KB\", cutoff_3 = \"4999B\"").unwrap_err().message.contains("above `cutoff_3`")
    );
    for fine in [
        "cutoff_1 = \"7KB\", cutoff_2 = \"7KB\"",
        "cutoff_3 = \"4KB\", cutoff_2 = \"3KB\"",
        // Two levels have one cutoff between them.
        "cutoff_1 = \"7KB\", priorities = 4",
    ] {
        assert!(read(fine).is_ok(), "{fine}: {}", read(fine).unwrap_err());
    }
}

#[test]
fn two_headers_that_one_packet_cannot_have_are_told_of_without_a_layout_that_nobody_wrote() {
    let read = |recovery: &str, more: &str| {
        let transport =
            format!("[transport]\nrecovery = \"{recovery}\"\n{more}control = {{ law = \"homa\" }}\n");
        parse(&(star(PERMUTATION) + &transport))
    };
    let error = read("ndp", "").unwrap_err();
    assert!(error.message.contains("each need a header layout of their own"), "{error}");
    assert!(error.to_string().starts_with("test.toml:10:"), "{error}");
    for recovery in ["irn", "go-back-n"] {
        // What is named in its place is taken.
        assert!(error.to_string().contains(&format!("\"{recovery}\"")), "{error}");
        assert!(read(recovery, "").is_ok(), "{}", read(recovery, "").unwrap_err());
    }
    // A layout that was written is what is wrong first.
    let error = read("ndp", "layout = \"ndp\"\n").unwrap_err();
    assert!(error.to_string().starts_with("test.toml:11:"), "{error}");
}

#[test]
fn writes_that_leave_cutoffs_of_homa_descending_are_refused_where_they_are_written() {
    let read = |keys: &str, writes: &[(&str, &str)]| {
        let mut text = star(PERMUTATION) + &format!("[transport]\ncontrol = {{ law = \"homa\", {keys} }}\n");
        for (time, set) in writes {
            let set = set.replace("cutoff", "\"transport.control.cutoff").replace(" =", "\" =");
            text += &format!("[[at]]\ntime = \"{time}\"\nset = {{ {set} }}\n");
        }
        parse(&text)
    };
    let eight = "priorities = 8";
    let error = read(eight, &[("1us", "cutoff_1 = \"7KB\"")]).unwrap_err();
    assert_eq!(
        error.message,
        "from 1us on `cutoff_1` is 7KB, above `cutoff_2`, which is 2800B: cutoffs ascend"
    );
    assert!(error.to_string().starts_with("test.toml:13:"), "{error}");
    // What an earlier write left counts, and the later one is named.
    let error =
        read(eight, &[("2us", "cutoff_2 = \"4KB\""), ("1us", "cutoff_1 = \"2800B\", cutoff_2 = \"5KB\"")]);
    assert!(error.is_ok(), "{}", error.unwrap_err());
    let error =
        read(eight, &[("2us", "cutoff_2 = \"4KB\""), ("1us", "cutoff_1 = \"5KB\", cutoff_2 = \"5KB\"")])
            .unwrap_err();
    assert!(error.message.starts_with("from 2us on `cutoff_1` is 5KB"), "{error}");
    assert!(error.to_string().starts_with("test.toml:13:"), "{error}");
    for (keys, writes) in [
        // Those of one instant are judged together, in whatever order they stand.
        (eight, &[("1us", "cutoff_1 = \"7KB\", cutoff_2 = \"8KB\"")][..]),
        (eight, &[("1us", "cutoff_1 = \"7KB\""), ("1us", "cutoff_2 = \"7KB\"")]),
        // Two levels have one cutoff between them.
        ("priorities = 4", &[("1us", "cutoff_1 = \"7KB\"")]),
    ] {
        let scenario = read(keys, writes);
        assert!(scenario.is_ok(), "{keys} {writes:?}: {}", scenario.unwrap_err());
    }
}

#[test]
fn a_setting_of_the_command_line_for_no_named_law_says_whose_it_is() {
    let text = star(PERMUTATION);
    let told = |set: &[(&str, &str)]| {
        let scenario = with(&text, set).unwrap();
        scenario.notes().map(str::to_owned).collect::<Vec<_>>()
    };
    let notes = told(&[("transport.control.g", "1/64")]);
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with("no law is named beside `g`, which is set by `--set`: it holds for `dcqcn`"),
        "{notes:?}"
    );
    assert_eq!(told(&[("transport.control.law", "dcqcn"), ("transport.control.g", "1/64")]).len(), 0);
    assert_eq!(told(&[("transport.control", "dcqcn"), ("transport.control.g", "1/64")]).len(), 0);
}

#[test]
fn a_default_timeout_that_is_too_short_is_refused_where_the_topology_is() {
    let error = parse(&(star(PERMUTATION).replace("1us", "300us") + "[switch]\npfc = false\n")).unwrap_err();
    assert!(error.message.starts_with("the timeout of 500us is over before"), "{error}");
    assert!(error.remedy.starts_with("set `transport.timeout`"), "{error}");
}

#[test]
fn what_a_file_says_is_quoted_whole_and_followed_by_what_to_do() {
    let text = "[topology]\nkind = \"hpcc\"\nfile = \"t.txt\"\n".to_owned() + PERMUTATION;
    let source = Source::new("test.toml", &text, &[]);
    let source = source.with_files(&[("t.txt", "3 1 2\n2\n0 2; 1Gbps \"1us; 0\n")]);
    let error = Scenario::read(source).unwrap_err();
    assert_eq!(error.message, r#"t.txt: line 3: "0 2; 1Gbps \"1us; 0" cannot be read here"#);
    assert!(error.remedy.starts_with("write a link: "), "{}", error.remedy);
}

#[test]
fn a_recovery_brings_the_layout_that_it_speaks() {
    let layout = |lines: &str| parse(&(star(PERMUTATION) + lines)).unwrap().transport.layout;
    assert_eq!(layout("[transport]\nrecovery = \"irn\""), roci_wire::Layout::Irn);
    assert_eq!(layout("[transport]\nrecovery = \"go-back-n\""), roci_wire::Layout::Standard);
    assert_eq!(layout("[transport]\nlayout = \"irn\""), roci_wire::Layout::Irn);
}

#[test]
fn a_recovery_brings_the_law_that_its_paper_has_unless_another_is_named() {
    let law =
        |lines: &str| parse(&(star(PERMUTATION) + lines)).unwrap().transport.control.law.value.to_string();
    assert_eq!(law("[transport]\nrecovery = \"srnic\""), "dctcp");
    assert_eq!(law("[transport]\nrecovery = \"srnic\"\ncontrol = \"swift\""), "swift");
    assert_eq!(law("[transport]\nrecovery = \"ndp\""), "ndp");
    assert_eq!(law("[transport]\nrecovery = \"irn\""), "dcqcn");
}

#[test]
fn a_wrong_override_is_named_in_place_of_a_line() {
    let mut told = String::new();
    for (path, value) in [
        ("switch.bufer", "2MB"),
        ("switch.buffer", "-2MB"),
        ("traffic.1.size", "2MB"),
        ("traffic.0.flows.x.size", "2MB"),
        ("traffic.all.size", "2MB"),
        ("measure.pcap", "root"),
        ("measure.pcap", "true"),
        ("seed.x", "2"),
        ("switch..buffer", "2"),
        ("transport.control.law", "dcqn"),
        ("traffic.0.flows.0.dst", "s5"),
    ] {
        let error = with(DESIGN, &[(path, value)]).map(|scenario| scenario.name).expect_err(path);
        told.push_str(&format!("{error}\n\n"));
    }
    assert_snapshot!(told);
}

#[test]
fn a_table_on_the_command_line_that_is_none_is_told_as_one_and_not_as_a_string() {
    let refused = |path: &str, value: &str| {
        let error = with(DESIGN, &[(path, value)]).map(|scenario| scenario.name).expect_err(path);
        assert!(error.to_string().contains(&format!("--set {path}")), "{error}");
        (error.message, error.remedy)
    };
    let once = "keep one of the two".to_owned();
    for (path, value, key) in [
        ("switch.ets", "{3=60,3=40}", "3"),
        ("transport.control", "{ law = \"dcqcn\", \"g\" = 1, \"g\" = 2 }", "g"),
        ("traffic.0.flows", "[{ src = \"h0\", dst = \"h1\", src = \"h2\" }]", "src"),
    ] {
        assert_eq!(refused(path, value), (format!("key `{key}` stands twice in `{value}`"), once.clone()));
    }
    let (message, remedy) = refused("switch.ets", "{ 3 = 60, 0 = 40");
    assert!(message.starts_with("`{ 3 = 60, 0 = 40` is not TOML: "), "{message}");
    assert!(remedy.contains("close the table with `}`"), "{remedy}");
    let (message, remedy) = refused("transport.control", "{ law = dcqcn }");
    assert!(message.starts_with("`{ law = dcqcn }` is not TOML: "), "{message}");
    assert!(remedy.contains("quotes"), "{remedy}");
}

proptest! {
    #[test]
    fn no_text_panics(text in "[ -~\n]{0,200}") {
        let _ = parse(&text);
    }

    /// Damage to a text that is right finds what random text never reaches.
    #[test]
    fn no_damaged_scenario_panics(
        cut in 0usize..1_900,
        length in 0usize..60,
        word in prop::sample::select(vec![
            "", "\"", "-1", "0", "[]", "{}", "true", "\"x\"", "9999999999999999999999", "1e400", "nan", "kind", "=", "\u{b5}",
        ]),
    ) {
        let text: String = DESIGN.chars().take(cut).chain(word.chars()).chain(DESIGN.chars().skip(cut + length)).collect();
        let _ = parse(&text);
    }

    #[test]
    fn no_override_panics(path in "[a-z0-9.]{0,30}", value in ".{0,20}") {
        let _ = with(DESIGN, &[(&path, &value)]);
    }

    #[test]
    fn no_override_of_a_known_key_panics(
        section in prop::sample::select(keys::SECTIONS.to_vec()),
        at in 0usize..20,
        value in prop::sample::select(vec!["", "-1", "0", "[]", "{}", "true", "x", "1/0", "[[1]]", "{ a = 1 }", "18446744073709551615"]),
    ) {
        let names = section.names();
        let path = format!("{}.{}", section.path, names[at % names.len()]);
        let _ = with(DESIGN, &[(path.trim_start_matches('.'), value)]);
    }
}

#[test]
fn atomics_of_which_a_round_trip_holds_more_than_may_be_outstanding_draw_no_advice_on_packets_in_flight() {
    let told = |op: &str, lines: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 5\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[switch]\npfc = false\n\
             [[traffic]]\nkind = \"closed-loop\"\npairs = [[\"h1\", \"h0\"]]\nop = \"{op}\"\nmessage = \"8B\"\ncount = 9\n\
             [transport]\nrecovery = \"irn\"\ncontrol = \"none\"\n{lines}"
        );
        parse(&text).unwrap().notes().collect::<Vec<_>>().join(" ")
    };
    for atomic in ["fetch-add", "compare-swap"] {
        assert_eq!(told(atomic, ""), "", "16 of 459");
        assert_eq!(told(atomic, "max_in_flight = 20\n"), "");
    }
    for (op, packets) in [("write", 47), ("send", 48), ("read", 48)] {
        assert!(told(op, "").contains(&format!("Set `transport.max_in_flight` to {packets}: ")), "{op}");
    }
}

#[test]
fn telemetry_is_written_for_flows_that_read_it_alone() {
    let int = |common: &str, own: &str| {
        let text = format!("{PERMUTATION}control = \"{own}\"\n[transport]\ncontrol = \"{common}\"\n");
        parse(&star(&text)).unwrap().switch.int
    };
    assert!(!int("hpcc", "none"), "no flow has the common control");
    assert!(int("none", "hpcc"));
    assert!(parse(&star(&format!("{PERMUTATION}[transport]\ncontrol = \"hpcc\"\n"))).unwrap().switch.int);
}

#[test]
fn who_compares_recoveries_is_told_that_each_brings_its_law() {
    let told = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let scenario = Scenario::parse(&star(PERMUTATION), "test.toml", &set).unwrap();
        scenario.notes().any(|note| note.contains("this recovery brings `dctcp`"))
    };
    assert!(told(&[("transport.recovery", "srnic")]));
    assert!(!told(&[("transport.recovery", "srnic"), ("transport.control", "none")]));
    assert!(!told(&[]));
    let own = Scenario::parse(
        &star(&format!("{PERMUTATION}control = \"none\"\n")),
        "test.toml",
        &[("transport.recovery".to_owned(), "srnic".to_owned())],
    );
    assert!(own.unwrap().notes().all(|note| !note.contains("brings")), "no flow has the common law");
}
