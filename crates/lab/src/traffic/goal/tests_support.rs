//! Schedules at random, for tests.

use crate::traffic::collective::Operation;
use proptest::prelude::*;

/// Schedules as text that come to their end: messages are sent before they are waited for in one order of all operations, and what an
/// operation waits for stands before it. With `collectives` ranks do some of those too, all of them or the first two.
pub(crate) fn written(collectives: bool) -> impl Strategy<Value = String> {
    let step = (
        0u32..4,
        0u32..4,
        0u32..if collectives { 5 } else { 3 },
        0u64..200,
        0u8..2,
        any::<bool>(),
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    );
    prop::collection::vec(step, 1..40).prop_map(|steps| {
        let mut ranks = vec![Vec::<String>::new(); 4];
        let mut waits = vec![Vec::<String>::new(); 4];
        for (tag, (one, other, kind, size, cpu, at_begin, before)) in steps.into_iter().enumerate() {
            let mut add = |rank: u32, text: String| {
                let rank = rank as usize;
                let number = ranks[rank].len();
                for earlier in before.iter().filter(|_| number > 0) {
                    let word = if at_begin { "irequires" } else { "requires" };
                    waits[rank].push(format!("l{number} {word} l{}", earlier.index(number.max(1))));
                }
                ranks[rank].push(format!("l{number}: {text} cpu {cpu}"));
            };
            if kind == 0 {
                add(one, format!("calc {size}"));
            } else if kind > 2 {
                let operation = Operation::ALL[other as usize + usize::from(one > 1)].name();
                let (ranks, group) = if kind == 3 { (4, "") } else { (2, " group 0") };
                (0..ranks).for_each(|rank| add(rank, format!("{operation} {size}b{group}")));
            } else {
                add(one, format!("send {size}b to {other} tag {tag}"));
                add(other, format!("recv {size}b from {one} tag {tag}"));
            }
        }
        let block = |(rank, (lines, waits)): (usize, (&Vec<String>, &Vec<String>))| {
            format!("rank {rank} {{\n{}\n{}\n}}\n", lines.join("\n"), waits.join("\n"))
        };
        let blocks = ranks.iter().zip(&waits).enumerate().map(block);
        format!("num_ranks 4\ngroup 0: 1 0\n{}", blocks.collect::<String>())
    })
}
