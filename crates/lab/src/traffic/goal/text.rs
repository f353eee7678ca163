//! Schedules as text: `num_ranks 2`, and for each rank a block of operations and of what waits for what.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   step: calc 5000
//!   out: send 8192b to 1 tag 7 cpu 1
//!   out requires step
//! }
//! rank 1 {
//!   recv 8192b from 0 tag 7
//! }
//! ```
//!
//! The grammar is that of LogGOPSim's `txt2bin`, of which this takes more: options in any order, and labels before they are given. What
//! follows `//` and what stands between `/*` and `*/` is not read.

use super::{Does, GoalError, OPERATIONS_MAX, Operation, RANKS_MAX, Rank, Schedule};
use std::collections::HashMap;

/// A rank that is being read.
struct Block<'a> {
    rank: u32,
    operations: Vec<Operation>,
    labels: HashMap<&'a str, u32>,
    /// Who waits for whom, and for its beginning alone or not; with the number of the line.
    waits: Vec<(&'a str, &'a str, bool, usize)>,
}

/// Reads a schedule.
pub(super) fn read(text: &str) -> Result<Schedule, GoalError> {
    let mut ranks: Vec<Option<Rank>> = Vec::new();
    let mut block: Option<Block<'_>> = None;
    let mut in_comment = false;
    for (line, whole) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let mut rest = whole;
        // What is left of the line is read up to the next comment.
        loop {
            let (content, after) = before_comment(rest, &mut in_comment);
            let form = |expected| GoalError::Form { line, text: whole.trim().to_owned(), expected };
            read_line(content, line, &form, &mut ranks, &mut block)?;
            match after {
                Some(after) => rest = after,
                None => break,
            }
        }
    }
    if let Some(block) = block {
        return Err(GoalError::NoEnd(block.rank));
    }
    if ranks.is_empty() {
        return Err(GoalError::Ranks(0));
    }
    Ok(Schedule { ranks: ranks.into_iter().map(Option::unwrap_or_default).collect() })
}

/// What stands before the next comment, and what stands behind it.
fn before_comment<'a>(line: &'a str, in_comment: &mut bool) -> (&'a str, Option<&'a str>) {
    if *in_comment {
        let Some((_, after)) = line.split_once("*/") else { return ("", None) };
        *in_comment = false;
        return ("", Some(after));
    }
    let begins = line.as_bytes().windows(2).position(|two| matches!(two, b"//" | b"/*"));
    let Some(begin) = begins else { return (line, None) };
    let (content, comment) = line.split_at(begin);
    if comment.starts_with("//") {
        return (content, None);
    }
    *in_comment = true;
    (content, Some(&comment[2..]))
}

fn read_line<'a>(
    content: &'a str,
    line: usize,
    form: &dyn Fn(&'static str) -> GoalError,
    ranks: &mut Vec<Option<Rank>>,
    block: &mut Option<Block<'a>>,
) -> Result<(), GoalError> {
    let mut words = content.split_ascii_whitespace().peekable();
    let Some(first) = words.peek().copied() else { return Ok(()) };
    let Some(open) = block else {
        match first {
            "num_ranks" if ranks.is_empty() => {
                let count = words.nth(1).and_then(|word| word.parse::<u64>().ok());
                let count = count.filter(|_| words.next().is_none()).ok_or_else(|| form("`num_ranks 16`"))?;
                let within = u32::try_from(count).ok().filter(|count| (1..=RANKS_MAX).contains(count));
                ranks.resize(within.ok_or(GoalError::Ranks(count))? as usize, None);
            }
            "rank" => {
                let number = content.trim().strip_prefix("rank").and_then(|rest| rest.strip_suffix('{'));
                let rank = number.and_then(|number| number.trim().parse::<u32>().ok());
                let rank = rank.ok_or_else(|| form("`rank 0 {` on a line of its own"))?;
                match ranks.get(rank as usize) {
                    None if ranks.is_empty() => return Err(GoalError::Ranks(0)),
                    None => return Err(form("a rank below `num_ranks`")),
                    Some(Some(_)) => return Err(GoalError::TwoBlocks { line, rank }),
                    Some(None) => {}
                }
                let (operations, labels, waits) = (Vec::new(), HashMap::new(), Vec::new());
                *block = Some(Block { rank, operations, labels, waits });
            }
            _ => return Err(form("`num_ranks 16` first, and then blocks such as `rank 0 {`")),
        }
        return Ok(());
    };
    if content.trim() == "}" {
        ranks[open.rank as usize] = Some(close(open)?);
        *block = None;
        return Ok(());
    }
    if first == "rank" && content.trim_end().ends_with('{') {
        return Err(GoalError::NoEnd(open.rank));
    }
    if let Some((waits, relation, of)) = three(content)
        && matches!(relation, "requires" | "irequires")
    {
        open.waits.push((waits, of, relation == "irequires", line));
        return Ok(());
    }
    let (label, operation) = match content.split_once(':') {
        Some((label, operation)) => (Some(label.trim()), operation),
        None => (None, content),
    };
    let number = u32::try_from(open.operations.len()).ok().filter(|_| open.operations.len() < OPERATIONS_MAX);
    let number = number.ok_or_else(|| form("fewer operations"))?;
    open.operations.push(read_operation(operation).ok_or_else(|| form(EXPECTED))?);
    if let Some(label) = label {
        if label.is_empty() || label.contains(char::is_whitespace) {
            return Err(form(EXPECTED));
        }
        if open.labels.insert(label, number).is_some() {
            return Err(GoalError::TwoLabels { line, rank: open.rank, label: label.to_owned() });
        }
    }
    Ok(())
}

const EXPECTED: &str = "`a: calc 5000`, `b: send 8192b to 1 tag 7`, `c: recv 8192b from 0 tag 7`, with `cpu 1` behind it where wanted, or \
                        `b requires a`, or `}`";

/// The three words of a line that has no others.
fn three(content: &str) -> Option<(&str, &str, &str)> {
    let mut words = content.split_ascii_whitespace();
    let three = (words.next()?, words.next()?, words.next()?);
    words.next().is_none().then_some(three)
}

/// What an operation without its label says; `None` where it says something else.
fn read_operation(text: &str) -> Option<Operation> {
    let mut words = text.split_ascii_whitespace().peekable();
    let kind = words.next()?;
    let mut size = words.next()?;
    if kind != "calc" {
        size = match size.strip_suffix('b') {
            Some(size) => size,
            // The unit may stand apart.
            None => words.next_if_eq(&"b").map(|_| size)?,
        };
    }
    let size: u64 = size.parse().ok()?;
    let peer = match kind {
        "calc" => None,
        "send" => words.next_if_eq(&"to").and_then(|_| words.next()),
        "recv" => words.next_if_eq(&"from").and_then(|_| words.next()),
        _ => return None,
    };
    let (mut tag, mut cpu) = ("0", 0);
    while let Some(option) = words.next() {
        let value = words.next()?;
        match option {
            "tag" if kind != "calc" => tag = value,
            "cpu" => cpu = value.parse().ok()?,
            // Which NIC of a host a message takes is the topology's business.
            "nic" => _ = value.parse::<u8>().ok()?,
            _ => return None,
        }
    }
    let any = |word: &str| if word == "-1" { Some(None) } else { word.parse().ok().map(Some) };
    let does = match kind {
        "calc" => Does::Calc(size),
        "send" => Does::Send { to: peer?.parse().ok()?, tag: tag.parse().ok()?, size },
        _ => Does::Recv { from: any(peer?)?, tag: any(tag)?, size },
    };
    Some(Operation { does, cpu, needs: 0 })
}

/// The rank of a block that is closed.
fn close(block: &mut Block<'_>) -> Result<Rank, GoalError> {
    let find = |label: &str, line: usize| {
        let no_label = || GoalError::NoLabel { line, rank: block.rank, label: label.to_owned() };
        block.labels.get(label).copied().ok_or_else(no_label)
    };
    let edges = block.waits.iter().map(|&(waits, of, at_begin, line)| {
        let of = find(of, line)?;
        Ok((find(waits, line)?, of, at_begin))
    });
    let edges = edges.collect::<Result<Vec<_>, GoalError>>()?;
    Ok(Rank::new(std::mem::take(&mut block.operations), &edges))
}
