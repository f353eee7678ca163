use super::tests_support::written;
use super::*;
use proptest::prelude::*;
use roci_units::{Bytes, Span};

const TWO: &str = "num_ranks 2\nrank 0 {\n  step: calc 5000 cpu 1\n  out: send 8192b to 1 tag 7 nic 1 cpu 2\n  out requires step\n}\n\
                   rank 1 {\n  got: recv 8192b from 0 tag 7\n  any : recv 1 b from -1 tag -1\n  calc 5\n any irequires got\n}\n";

fn read(text: &str) -> Result<Schedule, GoalError> {
    Schedule::read(text.as_bytes())
}

#[test]
fn a_schedule_as_text_says_what_each_rank_does_and_what_waits_for_what() {
    let schedule = read(TWO).unwrap();
    let [first, second] = &schedule.ranks[..] else { panic!("two ranks") };
    let send = Does::Send { to: 1, tag: 7, size: 8192 };
    assert_eq!(
        first.operations(),
        [Operation { does: Does::Calc(5000), cpu: 1, needs: 0 }, Operation { does: send, cpu: 2, needs: 1 }]
    );
    assert_eq!(first.edges(0).collect::<Vec<_>>(), [Edge { to: 1, at_begin: false }]);
    assert_eq!((first.edges(1).count(), first.cpus(), second.cpus()), (0, 3, 1));
    let receives = [
        Does::Recv { from: Some(0), tag: Some(7), size: 8192 },
        Does::Recv { from: None, tag: None, size: 1 },
        Does::Calc(5),
    ];
    assert_eq!(second.operations().iter().map(|it| it.does).collect::<Vec<_>>(), receives);
    assert_eq!(second.edges(0).collect::<Vec<_>>(), [Edge { to: 1, at_begin: true }]);
    assert_eq!((schedule.operations(), receives[1].to_string().as_str()), (5, "recv 1b from -1 tag -1"));
}

#[test]
fn comments_and_empty_lines_say_nothing_and_labels_may_come_after_their_use() {
    let text = "// two\nnum_ranks 2 /* of\n them */\n\nrank 0{\nb requires a // backwards\r\n/* b */ b: calc 2\na: calc 1\n}\n";
    let schedule = read(text).unwrap();
    assert_eq!(schedule.ranks[0].operations().len(), 2);
    assert_eq!(schedule.ranks[0].edges(1).next(), Some(Edge { to: 0, at_begin: false }));
    assert_eq!(schedule.ranks[1], Rank::default(), "a rank without a block does nothing");
}

#[test]
fn what_is_no_schedule_is_refused_with_its_line() {
    let block = |lines: &str| format!("num_ranks 2\nrank 0 {{\n{lines}\n}}\n");
    for (text, message) in [
        (String::new(), "0 ranks; begin with `num_ranks N`"),
        ("num_ranks 70000\n".to_owned(), "70000 ranks"),
        ("rank 0 {\n}\n".to_owned(), "0 ranks; begin with `num_ranks N`"),
        (
            "num_ranks 2\nrank 2 {\n}\n".to_owned(),
            "line 2: \"rank 2 {\" is no line of a schedule; write a rank below",
        ),
        ("num_ranks 2\nrank 1\n".to_owned(), "line 2: \"rank 1\""),
        ("num_ranks 2 3\n".to_owned(), "line 1: \"num_ranks 2 3\""),
        ("num_ranks 2\nrank 0 { calc 5\n}\n".to_owned(), "write `rank 0 {` on a line of its own"),
        (block("} calc 5"), "line 3: \"} calc 5\""),
        ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n".to_owned(), "line 4: a second block of rank 0"),
        ("num_ranks 2\nrank 0 {\ncalc 1\n".to_owned(), "the block of rank 0 has no end"),
        ("num_ranks 2\nrank 0 {\ncalc 1\nrank 1 {\n}\n".to_owned(), "the block of rank 0 has no end"),
        ("num_ranks 2\ncalc 1\n".to_owned(), "line 2: \"calc 1\""),
        (block("calc"), "line 3: \"calc\" is no line of a schedule"),
        (block("calc 1 tag 2"), "line 3"),
        (block("send 8 to 1"), "line 3"),
        (block("send 8b to -1"), "line 3"),
        (block("send 8b to 1 tag -1"), "line 3"),
        (block("send 8b from 1"), "line 3"),
        (block("recv 8b from 1 tag"), "line 3"),
        (block("calc 1 cpu 256"), "line 3"),
        (block("a b: calc 1"), "line 3"),
        (block("a: calc 1\na: calc 2"), "line 4: rank 0 has two operations `a`"),
        (block("a: calc 1\na requires b"), "line 4: rank 0 has no operation `b`"),
        (
            block("send 8b to 5"),
            "rank 0, operation 0, `send 8b to 5 tag 0`: there is no rank 5; `num_ranks` is 2",
        ),
        (
            block("calc 1\nsend 1073741825b to 1"),
            "rank 0, operation 1, `send 1073741825b to 1 tag 0`: messages have at most 1GiB",
        ),
        (
            block("a: calc 1\nb: calc 2\na requires b\nb irequires a"),
            "rank 0: operation 0, `a: calc 1`, waits for itself",
        ),
        (block("recv 8b from 1 tag 3"), "rank 0 receives 1 messages of tag 3 from rank 1, which sends it 0"),
    ] {
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    assert_eq!(Schedule::read(&[0xff; 20]), Err(GoalError::Neither));
    assert!(read(&block("recv 8b from -1 tag 3")).is_ok(), "who sends that is not known");
}

#[test]
fn queue_pairs_are_those_of_pairs_of_ranks_or_of_their_tags() {
    let text = "num_ranks 3\nrank 0 {\nsend 10b to 1 tag 1\nsend 30b to 1 tag 2\nsend 5b to 0 tag 9\nsend 7b to 2 tag 1\n}\nrank 2 {\nsend 0b to 0 tag 4\n}\n";
    let goal = |by_tag| {
        let hosts = (0..3).map(HostId).collect();
        Goal::new(Arc::new(read(text).unwrap()), hosts, by_tag, Common::default()).unwrap()
    };
    let line = |from, to, tag, messages, octets, longest| Line { from, to, tag, messages, octets, longest };
    let pairs = goal(false);
    assert_eq!(pairs.lines(), [line(0, 1, 0, 2, 40, 30), line(0, 2, 0, 1, 7, 7), line(2, 0, 0, 1, 0, 0)]);
    assert_eq!((pairs.line(0, 1, 2), pairs.line(2, 0, 4), pairs.line(1, 0, 0)), (Some(0), Some(2), None));
    let tags = goal(true);
    assert_eq!((tags.lines().len(), tags.line(0, 1, 2), tags.line(0, 1, 3)), (4, Some(1), None));
}

#[test]
fn each_rank_has_a_host_of_its_own() {
    let schedule = Arc::new(read(TWO).unwrap());
    let with = |hosts: &[u16]| {
        let hosts = hosts.iter().copied().map(HostId).collect();
        Goal::new(Arc::clone(&schedule), hosts, false, Common::default())
    };
    assert_eq!(with(&[0]).unwrap_err(), PlacementError::Count { ranks: 2, hosts: 1 });
    assert_eq!(with(&[4, 4]).unwrap_err(), PlacementError::TwoRanks(HostId(4)));
    let usual = with(&[4, 1]).unwrap();
    assert_eq!((usual.unit, usual.overhead, usual.eager), (Span::from_nanos(1), Span::ZERO, Bytes(65_535)));
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap()
}

/// A schedule as `txt2bin` writes it.
fn binary(schedule: &Schedule) -> Vec<u8> {
    let rank = |rank: &Rank| {
        let operations = rank.operations();
        let roots: Vec<u32> =
            (0..).zip(operations).filter(|(_, it)| it.needs == 0).map(|(it, _)| it).collect();
        let mut octets = Vec::new();
        let u32s = |octets: &mut Vec<u8>, numbers: &[u32]| {
            numbers.iter().for_each(|number| octets.extend(number.to_le_bytes()));
        };
        u32s(&mut octets, &[count(operations), count(&roots)]);
        u32s(&mut octets, &roots);
        let mut list = Vec::new();
        for (number, it) in (0..).zip(operations) {
            let (kind, peer, size, tag) = match it.does {
                Does::Send { to, tag, size } => (1, to, size, tag),
                Does::Recv { from, tag, size } => {
                    (2, from.unwrap_or(u32::MAX), size, tag.unwrap_or(u32::MAX))
                }
                Does::Calc(size) => (3, 0, size, 0),
                Does::Collective { .. } => unreachable!("`txt2bin` knows none"),
            };
            u32s(&mut octets, &[it.needs]);
            octets.push(kind);
            u32s(&mut octets, &[peer]);
            octets.extend(size.to_le_bytes());
            u32s(&mut octets, &[tag]);
            octets.extend([it.cpu, 0]);
            for at_begin in [false, true] {
                let waiting = rank.edges(number).filter(|edge| edge.at_begin == at_begin).map(|edge| edge.to);
                let first = count(&list);
                list.extend(waiting);
                u32s(&mut octets, &[count(&list) - first, first]);
            }
        }
        u32s(&mut octets, &list);
        octets
    };
    let ranks: Vec<Vec<u8>> = schedule.ranks.iter().map(rank).collect();
    let mut octets = 4223u64.to_le_bytes().to_vec();
    octets.extend(count(&ranks).to_le_bytes());
    octets.extend([3, 1]);
    let mut at = 6 + 16 * ranks.len() as u64;
    for rank in &ranks {
        let end = at + rank.len() as u64;
        octets.extend(at.to_le_bytes());
        octets.extend(end.to_le_bytes());
        at = end;
    }
    octets.extend(ranks.concat());
    octets
}

#[test]
fn a_broken_binary_file_is_refused() {
    let whole = binary(&read(TWO).unwrap());
    assert!(Schedule::read(&whole).is_ok());
    for length in 8..whole.len() {
        assert!(Schedule::read(&whole[..length]).is_err(), "{length} octets");
    }
    // Two ranks in one place: so a small file could ask for much memory.
    let mut shared = whole.clone();
    shared.copy_within(30..46, 14);
    let error = Schedule::read(&shared).unwrap_err().to_string();
    assert!(error.contains("ranks lie in one place"), "{error}");
    let mut used_up = whole.clone();
    used_up[..8].copy_from_slice(&2342u64.to_le_bytes());
    let error = Schedule::read(&used_up).unwrap_err().to_string();
    assert!(error.contains("--save-mem"), "{error}");
}

proptest! {
    #[test]
    fn text_and_binary_of_a_schedule_are_read_alike(text in written(false)) {
        let mut schedule = read(&text).unwrap();
        // What operations are called stays in the text.
        schedule.ranks.iter_mut().for_each(|rank| rank.labels = Labels::default());
        prop_assert_eq!(Schedule::read(&binary(&schedule)), Ok(schedule));
    }

    #[test]
    fn no_octets_make_the_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..200), places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let _ = Schedule::read(&octets);
        let mut changed = binary(&read(TWO).unwrap());
        for (place, octet) in places {
            let place = place.index(changed.len());
            changed[place] = octet;
        }
        let _ = Schedule::read(&changed);
    }
}
