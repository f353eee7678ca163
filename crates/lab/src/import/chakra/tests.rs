use super::*;
use crate::scenario::Scenario;
use encode::{
    ALL_GATHER, ALL_REDUCE, BARRIER, BROADCAST, COMPUTE, LOAD, METADATA, Node, RECEIVE, SEND, collective,
    file, number, text, trace,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

#[expect(dead_code, reason = "other tests use what these do not")]
#[path = "../../../tests/support/chakra.rs"]
mod encode;

/// A folder with the traces of some ranks, `step.0.et` and so on.
struct Traces(PathBuf);

impl Traces {
    fn of(ranks: &[&[Node]]) -> Self {
        let octets: Vec<_> = ranks.iter().map(|nodes| trace(nodes)).collect();
        Self::of_octets(&octets)
    }

    fn of_octets(ranks: &[Vec<u8>]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("roci-chakra-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (rank, octets) in ranks.iter().enumerate() {
            std::fs::write(folder.join(format!("step.{rank}.et")), octets).unwrap();
        }
        Self(folder)
    }

    fn import(&self, options: &Options) -> Result<Imported, ChakraError> {
        import(&prefix(&self.0)?, options, "step.goal")
    }

    /// What comes of them, which a scenario runs.
    fn schedule(&self, options: &Options) -> String {
        let imported = self.import(options).unwrap_or_else(|error| panic!("{error}"));
        let scenario = self.0.join("step.toml");
        std::fs::write(self.0.join("step.goal"), &imported.schedule).unwrap();
        std::fs::write(&scenario, &imported.scenario).unwrap();
        Scenario::load(&scenario, &[]).unwrap_or_else(|error| panic!("{error}\n{}", imported.scenario));
        imported.schedule
    }

    fn refused(&self, options: &Options) -> String {
        let told = self.import(options).expect_err("it cannot be done").to_string();
        told.replace(&*self.0.to_string_lossy(), "")
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What rank 0 is told whose only node is this one, beside another rank that does nothing.
fn refused(node: Node) -> String {
    Traces::of(&[&[node], &[]]).refused(&Options::default())
}

fn compute(id: u64, micros: u64) -> Node {
    Node::new(id, "mm", COMPUTE).lasts(micros)
}

#[test]
fn nodes_of_each_type_become_operations_that_wait_as_they_do() {
    let on_host = number(encode::BOOL, 1);
    let zero = [
        Node::new(0, "in\nit */", METADATA),
        Node::new(1, "launch", COMPUTE).lasts(3).attribute("is_cpu_op", &on_host).controlled_by(0),
        compute(2, 10).after(&[1]),
        Node::new(3, "load", LOAD).with("tensor_size", 5000),
        Node::new(4, "to_next", SEND)
            .with("comm_dst", 1)
            .with("comm_size", 4096)
            .with("comm_tag", 7)
            .after(&[2, 3]),
        collective(5, "gradients", ALL_REDUCE, 1001).after(&[4]),
        compute(6, 1).after(&[5]),
    ];
    let one = [
        Node::new(1, "from_last", RECEIVE).with("comm_src", 0).with("comm_size", 4096).with("comm_tag", 7),
        collective(2, "gradients", ALL_REDUCE, 1001).after(&[1]),
        collective(3, "end", BARRIER, 0),
    ];
    let zero = [&zero[..], &[collective(7, "end", BARRIER, 0).after(&[6])]].concat();
    let machine = Machine { local_mem_bw: Some(500.0), ..Machine::default() };
    insta::assert_snapshot!(Traces::of(&[&zero, &one]).schedule(&Options { machine, ..Options::default() }));
}

#[test]
fn a_trace_is_read_in_each_version_of_the_format() {
    let nodes = [compute(1, 5), collective(2, "sum", ALL_REDUCE, 64).after(&[1])];
    let schema = text(1, &[text(1, b"schema"), text(29, b"1.1.1-chakra.0.0.4")].concat());
    let later = number(200, 3);
    let expected = Traces::of(&[&nodes, &nodes]).schedule(&Options::default());
    for metadata in [&b""[..], &schema, &[text(1, b"0.0.4"), text(2, &schema)].concat(), &later] {
        let octets = file(metadata, &nodes);
        assert_eq!(Traces::of_octets(&[octets.clone(), octets]).schedule(&Options::default()), expected);
    }
    let with_more =
        nodes.clone().map(|node| node.field(&number(6, 1)).field(&text(9, b"")).field(&text(11, &later)));
    assert_eq!(Traces::of(&[&with_more, &with_more]).schedule(&Options::default()), expected);
}

#[test]
fn numbers_of_all_types_say_the_same() {
    let zigzag = 1000 << 1;
    let values = [
        number(7, 1000),
        number(9, 1000),
        number(11, 1000),
        number(13, 1000),
        number(15, zigzag),
        number(17, zigzag),
        [encode::varint(19 << 3 | 5), 1000u32.to_le_bytes().to_vec()].concat(),
        [encode::varint(21 << 3 | 1), 1000u64.to_le_bytes().to_vec()].concat(),
        [encode::varint(23 << 3 | 5), 1000i32.to_le_bytes().to_vec()].concat(),
        [encode::varint(25 << 3 | 1), 1000i64.to_le_bytes().to_vec()].concat(),
        [encode::varint(3 << 3 | 1), 1000f64.to_le_bytes().to_vec()].concat(),
        [encode::varint(5 << 3 | 5), 1000f32.to_le_bytes().to_vec()].concat(),
        text(29, b"1000"),
    ];
    let send = |value: &[u8]| Node::new(1, "out", SEND).with("comm_dst", 1).attribute("comm_size", value);
    for value in values {
        let schedule = Traces::of(&[&[send(&value)], &[]]).schedule(&Options::default());
        assert!(schedule.contains("send 1000b to 1 tag 0"), "{value:?}: {schedule}");
    }
    for value in [
        number(9, u64::MAX),
        [encode::varint(3 << 3 | 1), 0.5f64.to_le_bytes().to_vec()].concat(),
        text(29, b"x"),
    ] {
        let told = refused(send(&value));
        assert_eq!(told, "/step.0.et: node 1, `out`: its `comm_size` is no number from 0 on; correct it");
    }
}

#[test]
fn a_node_that_says_no_time_takes_what_a_roofline_has() {
    // 3.12 10^9 operations at 312 10^12 a second are 10,000 ns; 1.56 MB at 1560 GB/s 1,000 ns.
    let node = |operations, octets| {
        Node::new(1, "mm", COMPUTE).with("num_ops", operations).with("tensor_size", octets)
    };
    let machine = Machine { peak_perf: Some(312.0), local_mem_bw: Some(1560.0) };
    let options = Options { machine, ..Options::default() };
    for (node, nanos) in [
        (node(3_120_000_000, 1_560_000), 10_000),
        (node(3_120_000, 1_560_000), 1000),
        (node(3_120_000_000, 0), 10_000),
        (node(3_120_000_000, 1_560_000).lasts(2), 2000),
        (Node::new(1, "mm", COMPUTE), 0),
    ] {
        let schedule = Traces::of(&[&[node], &[]]).schedule(&options);
        assert!(schedule.contains(&format!("mm_n1: calc {nanos} cpu 0\n")), "{nanos}: {schedule}");
    }
    assert_eq!(
        refused(node(1, 1)),
        "/step.0.et: node 1, `mm`: it says how many operations it takes (`num_ops`), and not how long; give --peak-perf"
    );
    let told = refused(Node::new(1, "ld", LOAD).with("tensor_size", 1));
    assert!(told.ends_with("(`tensor_size`), and not how long; give --local-mem-bw"), "{told}");
    let told = refused(compute(1, u64::MAX));
    assert!(told.contains("it takes more than eleven days"), "{told}");
}

#[test]
fn groups_are_those_of_the_file_or_of_the_trace_itself() {
    let sum = |id, group: &str| collective(id, "sum", ALL_REDUCE, 100).of_group(group);
    // Even and odd ranks, the latter the other way round, and all, which is named by 0 or not at all.
    let even = [sum(1, "1"), sum(2, "0")];
    let odd = [sum(1, "2"), sum(2, "")];
    let listed = "['[{\"pg_name\": \"1\", \"ranks\": [0, 2]}, {\"pg_name\": \"2\", \"ranks\": [3, 1]}, {\"pg_name\": \"0\", \"ranks\": []}]']";
    let init = Node::new(0, "pg", METADATA).given(listed);
    let with_list = |nodes: &[Node]| [std::slice::from_ref(&init), nodes].concat();
    let of_traces = Traces::of(&[&with_list(&even), &with_list(&odd), &with_list(&even), &with_list(&odd)]);
    let by_trace = of_traces.schedule(&Options::default());
    for line in [
        "group 0: 0 2 // 1\n",
        "group 1: 0-3\n",
        "group 2: 3 1 // 2\n",
        "sum_n1: all-reduce 100b group 0 cpu 2\n",
        "sum_n2: all-reduce 100b group 1 cpu 2\n",
        "sum_n1: all-reduce 100b group 2 cpu 2\n",
    ] {
        assert!(by_trace.contains(line), "{line}: {by_trace}");
    }
    let turned = listed.replace("3, 1", "1, 3");
    let init = Node::new(0, "pg", METADATA).given(&turned);
    let last = [&[init][..], &odd].concat();
    let told = Traces::of(&[&with_list(&even), &with_list(&odd), &with_list(&even), &last]);
    let told = told.refused(&Options::default());
    assert!(
        told.contains("`2` has its ranks in another order here (1, 3) than in a trace before (3, 1)"),
        "{told}"
    );

    let of_file = Traces::of(&[&even, &odd, &even, &odd]);
    let file = of_file.0.join("comm_group.json");
    std::fs::write(&file, "{\"1\": [0, 2], \"2\": [3, 1]}").unwrap();
    let options = Options { groups: Some(file.clone()), ..Options::default() };
    let without_init = by_trace.replace("pg_n0: calc 0 cpu 4\n", "");
    assert_eq!(of_file.schedule(&options), without_init);
    assert!(
        of_file
            .refused(&Options::default())
            .contains("there is no process group `1`, neither in the trace of rank 0")
    );
    for (groups, told) in [
        ("{\"1\": [1, 2], \"2\": [3, 1]}", "process group `1` is without this rank"),
        ("{\"1\": [0, 4]}", "process group `1` has rank 4, and there are traces of 4 ranks"),
        ("{\"1\": [0, 0]}", "process group `1` has rank 0 twice"),
        ("{\"1\": 0}", "comm_group.json: group `1` has no list of ranks"),
    ] {
        std::fs::write(&file, groups).unwrap();
        let it = of_file.refused(&options);
        assert!(it.contains(told), "{it}");
    }
}

#[test]
fn collectives_that_are_not_the_same_at_all_ranks_are_named() {
    let sum = |id, size| collective(id, "sum", ALL_REDUCE, size);
    let gather = collective(4, "gather", ALL_GATHER, 8);
    let told = |one: &[Node], other: &[Node]| Traces::of(&[one, other]).refused(&Options::default());
    let unlike = told(&[sum(1, 8), sum(2, 8)], &[sum(3, 8), gather.clone()]);
    let said = "collective 2 of group 0 is `sum_n2: all-reduce 8b group 0` at rank 0 and `gather_n4: all-gather 16b group 0` at rank 1";
    assert!(unlike.contains(said), "{unlike}");
    assert!(told(&[sum(1, 8)], &[sum(3, 9)]).contains("`sum_n3: all-reduce 9b group 0` at rank 1"));
    for (one, other) in [(2, 1), (1, 2)] {
        let of = |count| (1..=count).map(|id| sum(id, 8)).collect::<Vec<_>>();
        let told = told(&of(one), &of(other));
        let more = u64::from(other > one);
        let said = format!("rank {more} does 2 collectives of group 0, and rank {} does 1", 1 - more);
        assert!(told.contains(&said), "{told}");
    }
    // The order is that in which they can be done, and not that of the file.
    let turned = [sum(1, 8), gather.clone()];
    let file = [gather.after(&[1]), sum(1, 8)];
    assert!(Traces::of(&[&turned, &file]).import(&Options::default()).is_ok());
}

#[test]
fn ranks_that_begin_collectives_of_two_groups_in_different_orders_are_told_of() {
    let of = |id, group: &str| collective(id, group, ALL_REDUCE, 8).of_group(group);
    let listed = "[{\"pg_name\": \"a\", \"ranks\": []}, {\"pg_name\": \"b\", \"ranks\": []}]";
    let init = Node::new(0, "pg", METADATA).given(listed);
    let one = [init.clone(), of(1, "a"), of(2, "b").after(&[1])];
    let other = [init, of(1, "b"), of(2, "a").after(&[1])];
    let told = Traces::of(&[&one, &other]).refused(&Options::default());
    let said = "rank 0: operation 1, `a_n1: all-reduce 8b group 0`, waits for rank 1, which waits in `b_n1: all-reduce 8b group 1`";
    assert!(told.contains(said), "{told}");
}

#[test]
fn a_collective_begins_when_the_one_before_it_of_its_group_is_done() {
    let nodes = [collective(1, "a", ALL_REDUCE, 64), collective(2, "b", ALL_REDUCE, 64)];
    let schedule = Traces::of(&[&nodes, &nodes]).schedule(&Options::default());
    assert!(schedule.contains("b_n2 requires a_n1\n"), "{schedule}");
    let listed = Node::new(0, "pg", METADATA).given("[{\"pg_name\": \"a\", \"ranks\": []}]");
    let nodes =
        [listed, collective(1, "a", ALL_REDUCE, 64), collective(2, "b", ALL_REDUCE, 64).of_group("a")];
    let schedule = Traces::of(&[&nodes, &nodes]).schedule(&Options::default());
    assert!(!schedule.contains("requires"), "{schedule}");
}

#[test]
fn sizes_count_as_astra_sim_counts_them_and_may_be_long() {
    let of = |kind, size| [collective(1, "it", kind, size)];
    // Of an all-gather what goes in; of all others what goes in as well, which is cut.
    let gather = of(ALL_GATHER, 100);
    assert!(
        Traces::of(&[&gather, &gather]).schedule(&Options::default()).contains("all-gather 200b group 0")
    );
    let sum = of(ALL_REDUCE, 100);
    assert!(Traces::of(&[&sum, &sum]).schedule(&Options::default()).contains("all-reduce 100b group 0"));
    // REDUCE, GATHER and SCATTER: of a gather the root has what goes in at all.
    for (kind, line) in [(1, "reduce 100b group 0"), (3, "gather 200b group 0"), (4, "scatter 100b group 0")]
    {
        let nodes = of(kind, 100);
        let imported = Traces::of(&[&nodes, &nodes]).import(&Options::default()).unwrap();
        assert!(imported.schedule.contains(line), "{line}");
        assert!(imported.notes[0].contains("the first rank of its process group"), "{:?}", imported.notes);
    }
    let long = of(ALL_REDUCE, 1 << 33);
    // Which a scenario cuts up.
    Traces::of(&[&long, &long]).schedule(&Options::default());
    for size in [(1 << 40) + 1, u64::MAX] {
        let told = refused(collective(1, "it", ALL_GATHER, size));
        assert!(told.contains("and 1TiB is the most"), "{told}");
    }
    let half = of(ALL_GATHER, (1 << 39) + 1);
    assert!(Traces::of(&[&half, &half]).refused(&Options::default()).contains("1099511627778 octets in all"));
}

#[test]
fn the_network_of_many_ranks_has_a_buffer_for_their_ports() {
    let nodes = [collective(1, "params", BROADCAST, 64)];
    let ranks: Vec<&[Node]> = vec![&nodes; 300];
    // It is a scenario, which a buffer of the usual size would not be.
    assert!(Traces::of(&ranks).schedule(&Options::default()).contains("num_ranks 300\n"));
}

#[test]
fn what_the_traces_do_not_say_is_told() {
    let nodes = [collective(1, "params", BROADCAST, 64), Node::new(2, "mm", COMPUTE), compute(3, 1)];
    let imported = Traces::of(&[&nodes, &nodes]).import(&Options::default()).unwrap();
    let [broadcast, times] = &imported.notes[..] else { panic!("{:?}", imported.notes) };
    assert!(broadcast.starts_with("BROADCAST: from the first rank of its process group"), "{broadcast}");
    assert!(times.starts_with("2 of 4 nodes that compute or copy take no time"), "{times}");
    assert!(imported.scenario.contains(&format!("# {broadcast}\n# {times}\nname = \"step\"\n")));
    // A rank alone waits for nobody.
    let schedule = Traces::of(&[&nodes]).schedule(&Options::default());
    assert!(schedule.contains("params_n1: broadcast 64b group 0 cpu 2\n"), "{schedule}");
}

#[test]
fn nodes_that_cannot_be_done_are_named_with_what_to_do() {
    let send = |to: u64| Node::new(1, "out", SEND).with("comm_dst", to).with("comm_size", 8);
    let typed = |kind| collective(1, "it", kind, 8);
    for (node, told) in [
        (compute(1, 1).after(&[9]), "it waits for node 9, which is not there"),
        (compute(1, 1).after(&[1]), "it waits for itself"),
        (Node::new(1, "it", 8), "a Storage node, which no schedule has"),
        (Node::new(1, "it", 77), "its type is 77, which is not known"),
        (send(2), "its `comm_dst` is 2, and there are traces of 2 ranks"),
        (send(1).with("comm_src", 1), "its `comm_src` is 1, and it stands in the trace of rank 0"),
        (Node::new(1, "out", SEND).with("comm_dst", 1), "it has no `comm_size`"),
        (send(1).with("comm_tag", 1 << 32), "its `comm_tag` is 4294967296"),
        (
            Node::new(1, "out", SEND).with("comm_dst", 1).with("comm_size", (1 << 30) + 1),
            "1GiB is the most; send several",
        ),
        (typed(10), "its `comm_type` is 10, which is not known"),
        (typed(0).attribute("involved_dim", &text(28, &number(1, 0))), "its `involved_dim` leaves ranks out"),
        (typed(0).attribute("pg_name", &text(28, b"")), "its `pg_name` is no name"),
    ] {
        let it = refused(node);
        assert!(it.starts_with("/step.0.et: node 1, `") && it.contains(told), "{told}: {it}");
    }
    let told = Traces::of(&[&[compute(1, 1), compute(1, 2)]]).refused(&Options::default());
    assert!(told.contains("node 1, `mm`: there are two nodes of this number"), "{told}");
    let receive = Node::new(1, "in", RECEIVE).with("comm_src", 1).with("comm_size", 8);
    let told = Traces::of(&[&[receive], &[]]).refused(&Options::default());
    assert!(told.contains("rank 0 receives 1 messages of tag 0 from rank 1, which sends it 0"), "{told}");
}

#[test]
fn traces_are_found_by_their_folder_by_one_of_them_or_by_what_they_begin_with() {
    let traces = Traces::of(&[&[], &[]]);
    let step = traces.0.join("step");
    for given in [traces.0.clone(), step.clone(), traces.0.join("step.1.et")] {
        assert!(is_named(&given), "{}", given.display());
        assert_eq!(prefix(&given).unwrap(), step);
    }
    assert!(!is_named(&traces.0.join("config.txt")));
    std::fs::write(traces.0.join("step.3.et"), trace(&[])).unwrap();
    let told = traces.refused(&Options::default());
    assert_eq!(told, "there is no trace of rank 2, /step.2.et, and one of rank 3; add it");
    std::fs::write(traces.0.join("other.0.et"), trace(&[])).unwrap();
    let told = traces.refused(&Options::default());
    assert_eq!(told, "here are traces of several runs, /other, /step; name one of these");
    assert!(Traces::of(&[]).refused(&Options::default()).starts_with("there are no Chakra traces"));
}

#[test]
fn files_that_are_no_traces_are_named_with_the_octet() {
    let whole = trace(&[compute(1, 5), collective(2, "sum", ALL_REDUCE, 64)]);
    let told = |octets: &[u8]| Traces::of_octets(&[octets.to_vec()]).refused(&Options::default());
    let second = 1 + usize::from(whole[0]);
    for end in second + 1..second + usize::from(whole[second]) {
        let at = second + 1;
        assert_eq!(
            told(&whole[..end]),
            format!("/step.0.et: it ends within the message at octet {at}; copy or make it anew")
        );
    }
    let cases: [(&[u8], &str); 5] = [
        (b"", "there is nothing in it"),
        (&[0x1f, 0x8b, 8, 0], "it is compressed"),
        // A length of 2^35, one of 65 MiB, and one of 60 MiB of which there is nothing.
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 1], "at octet 0 there is no length of a message"),
        (&[0x80, 0x80, 0xc0, 0x20, 0], "at octet 0 there is no length of a message"),
        (&[0x80, 0x80, 0x80, 0x1e, 0], "it ends within the message at octet 4"),
    ];
    for (octets, expected) in cases {
        let told = told(octets);
        assert!(told.starts_with(&format!("/step.0.et: {expected}")), "{told}");
    }
    let told = told(&[0, 2, 0x0f, 0x0f]);
    assert!(told.starts_with("/step.0.et: no message of a Chakra trace at octet 2 ("), "{told}");
}

/// What comes of octets as the trace of rank 0 of four.
fn read(octets: &[u8]) -> Result<Steps, String> {
    let machine = Machine { peak_perf: Some(1.0), local_mem_bw: Some(1.0) };
    Steps::read(octets, 0, 4, &machine).map_err(|error| error.to_string())
}

proptest! {
    #[test]
    fn any_octets_are_read_or_refused_in_words(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(told) = read(&octets) {
            prop_assert!(!told.is_empty());
        }
    }

    #[test]
    fn a_damaged_trace_is_read_or_refused_in_words(at in 0..200usize, octet: u8, cut in 0..200usize) {
        let nodes = [
            Node::new(0, "pg", METADATA).given("[{\"pg_name\": \"1\", \"ranks\": [0, 2]}]"),
            compute(1, 5).with("num_ops", 7).after(&[0]),
            collective(2, "sum", ALL_REDUCE, 64).of_group("1").after(&[1]),
            Node::new(3, "out", SEND).with("comm_dst", 1).with("comm_size", 8).controlled_by(2),
        ];
        let mut octets = trace(&nodes);
        prop_assert!(read(&octets).is_ok());
        let length = octets.len();
        octets[at % length] = octet;
        octets.truncate(length - cut % length);
        if let Err(told) = read(&octets) {
            prop_assert!(!told.is_empty());
        }
    }
}
