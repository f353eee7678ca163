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
//! follows `//` and what stands between `/*` and `*/` is not read. And it takes collectives, of all ranks or of groups that stand
//! before the blocks:
//!
//! ```text
//! num_ranks 8
//! group 0: 0-3
//! rank 0 {
//!   sum: all-reduce 1048576b group 0 cpu 1
//!   all-gather 8388608b
//!   reduce 8388608b root 3
//!   all-to-all 0b 4096b 8192b 0b group 0 // to each of the group
//! }
//! ```

use super::groups::{Counted, Groups, Known, Part};
use super::labels::Labels;
use super::{Does, GoalError, OPERATIONS_MAX, Operation, RANKS_MAX, Rank, Schedule};
use crate::traffic::collective::Operation as Collectively;
use std::collections::HashMap;
use std::iter::Peekable;
use std::str::SplitAsciiWhitespace;

/// A rank that is being read.
struct Block<'a> {
    rank: u32,
    operations: Vec<Operation>,
    labels: HashMap<&'a str, u32>,
    /// Those of all operations, empty where there is none.
    names: Vec<&'a str>,
    /// Its collectives by group.
    counted: Counted,
    /// Who waits for whom, and for its beginning alone or not; with the number of the line.
    waits: Vec<(&'a str, &'a str, bool, usize)>,
}

/// Reads a schedule.
pub(super) fn read(text: &str) -> Result<Schedule, GoalError> {
    let mut read = Read::default();
    let mut block: Option<Block<'_>> = None;
    let mut in_comment = false;
    for (line, whole) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let mut rest = whole;
        // What is left of the line is read up to the next comment.
        loop {
            let (content, after) = before_comment(rest, &mut in_comment);
            let form = |expected| GoalError::Form { line, text: whole.trim().to_owned(), expected };
            read_line(content, line, &form, &mut read, &mut block)?;
            match after {
                Some(after) => rest = after,
                None => break,
            }
        }
    }
    if let Some(block) = block {
        return Err(GoalError::NoEnd(block.rank));
    }
    if read.ranks.is_empty() {
        return Err(GoalError::Ranks(0));
    }
    let Known { groups, joint, matrices } = read.groups.finish()?;
    let ranks = read.ranks.into_iter().map(Option::unwrap_or_default).collect();
    Ok(Schedule { ranks, groups, joint, matrices })
}

/// What has been read.
#[derive(Default)]
struct Read {
    ranks: Vec<Option<Rank>>,
    groups: Groups,
}

impl Read {
    /// Ranks that differ in what they do together, with what they call it.
    fn with_labels(&self, error: GoalError, label: Option<&str>) -> GoalError {
        let with =
            |label: &str, does: String| if label.is_empty() { does } else { format!("{label}: {does}") };
        match error {
            GoalError::Unlike { group, nth, one, first, other, rank } => {
                let of_first = self.ranks[first.0 as usize].as_ref().map_or("", |rank| rank.label(first.1));
                let (one, other) = (with(of_first, one), with(label.unwrap_or_default(), other));
                GoalError::Unlike { group, nth, one, first, other, rank }
            }
            error => error,
        }
    }
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
    read: &mut Read,
    block: &mut Option<Block<'a>>,
) -> Result<(), GoalError> {
    let Some(first) = content.split_ascii_whitespace().next() else { return Ok(()) };
    let Some(open) = block else {
        *block = read_outside(content, line, form, read)?;
        return Ok(());
    };
    if content.trim() == "}" {
        read.groups.close(open.rank, &open.counted);
        read.ranks[open.rank as usize] = Some(close(open)?);
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
    let Said { mut operation, group, row } = read_operation(operation).ok_or_else(|| form(EXPECTED))?;
    if let Does::Collective { operation: kind, size, root, .. } = operation.does {
        let what = Part { operation: kind, size, group, root };
        let part = read.groups.take_part((open.rank, number), line, &mut open.counted, what, row);
        operation.does = part.map_err(|error| read.with_labels(error, label))?;
    }
    open.operations.push(operation);
    open.names.push(label.unwrap_or_default());
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

/// Reads a line outside of blocks; the block where it opens one.
fn read_outside<'a>(
    content: &'a str,
    line: usize,
    form: &dyn Fn(&'static str) -> GoalError,
    read: &mut Read,
) -> Result<Option<Block<'a>>, GoalError> {
    let mut words = content.split_ascii_whitespace();
    match words.next() {
        Some("num_ranks") if read.ranks.is_empty() => {
            let count = words.next().and_then(|word| word.parse::<u64>().ok());
            let count = count.filter(|_| words.next().is_none()).ok_or_else(|| form("`num_ranks 16`"))?;
            let within = u32::try_from(count).ok().filter(|count| (1..=RANKS_MAX).contains(count));
            let count = within.ok_or(GoalError::Ranks(count))?;
            *read = Read { ranks: vec![None; count as usize], groups: Groups::new(count) };
        }
        Some("group") if !read.ranks.is_empty() => {
            if read.ranks.iter().any(Option::is_some) {
                return Err(form("groups above the blocks of all ranks"));
            }
            read.groups.add(content.trim().strip_prefix("group").unwrap_or_default(), line)?;
        }
        Some("rank") => {
            let number = content.trim().strip_prefix("rank").and_then(|rest| rest.strip_suffix('{'));
            let rank = number.and_then(|number| number.trim().parse::<u32>().ok());
            let rank = rank.ok_or_else(|| form("`rank 0 {` on a line of its own"))?;
            match read.ranks.get(rank as usize) {
                None if read.ranks.is_empty() => return Err(GoalError::Ranks(0)),
                None => return Err(form("a rank below `num_ranks`")),
                Some(Some(_)) => return Err(GoalError::TwoBlocks { line, rank }),
                Some(None) => {}
            }
            return Ok(Some(Block {
                rank,
                operations: Vec::new(),
                labels: HashMap::new(),
                names: Vec::new(),
                counted: Counted::default(),
                waits: Vec::new(),
            }));
        }
        _ => {
            return Err(form(
                "`num_ranks 16` first, then groups of ranks, if any, such as `group 0: 0-7`, and then blocks such as `rank 0 {`",
            ));
        }
    }
    Ok(None)
}

const EXPECTED: &str = "`a: calc 5000`, `b: send 8192b to 1 tag 7`, `c: recv 8192b from 0 tag 7`, `d: all-reduce 8192b group 0`, with `cpu 1` \
                        behind it where wanted, or `b requires a`, or `}`";

/// The three words of a line that has no others.
fn three(content: &str) -> Option<(&str, &str, &str)> {
    let mut words = content.split_ascii_whitespace();
    let three = (words.next()?, words.next()?, words.next()?);
    words.next().is_none().then_some(three)
}

/// What an operation without its label says.
struct Said {
    operation: Operation,
    /// The group that it is for.
    group: u32,
    /// Of an all-to-all what the rank has for each of that, where it says so.
    row: Option<Vec<u64>>,
}

type Words<'a> = Peekable<SplitAsciiWhitespace<'a>>;

/// Octets, with their unit.
fn octets(words: &mut Words<'_>) -> Option<u64> {
    let size = words.next()?;
    let size = match size.strip_suffix('b') {
        Some(size) => size,
        // The unit may stand apart.
        None => words.next_if_eq(&"b").map(|_| size)?,
    };
    size.parse().ok()
}

/// Reads an operation; `None` where it says something else.
fn read_operation(text: &str) -> Option<Said> {
    let mut words = text.split_ascii_whitespace().peekable();
    let kind = words.next()?;
    let mut size = if kind == "calc" { words.next()?.parse().ok()? } else { octets(&mut words)? };
    let jointly = Collectively::ALL.into_iter().find(|operation| operation.name() == kind);
    let mut row = None;
    if jointly == Some(Collectively::AllToAll) {
        let begins = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        let mut each = vec![size];
        while words.peek().is_some_and(begins) {
            each.push(octets(&mut words)?);
        }
        // One for all is what each has in all.
        if each.len() > 1 {
            size = each.iter().fold(0, |sum, octets| sum.saturating_add(*octets));
            row = Some(each);
        }
    }
    let peer = match kind {
        "calc" => None,
        "send" => words.next_if_eq(&"to").and_then(|_| words.next()),
        "recv" => words.next_if_eq(&"from").and_then(|_| words.next()),
        _ => jointly.map(|_| None)?,
    };
    let (mut tag, mut cpu, mut group, mut root) = ("0", 0, 0, 0);
    while let Some(option) = words.next() {
        let value = words.next()?;
        match option {
            "tag" if matches!(kind, "send" | "recv") => tag = value,
            "group" if jointly.is_some() => group = value.parse::<u32>().ok()?.checked_add(1)?,
            "root" if jointly.is_some_and(Collectively::has_root) => root = value.parse().ok()?,
            "cpu" => cpu = value.parse().ok()?,
            // Which NIC of a host a message takes is the topology's business.
            "nic" => _ = value.parse::<u8>().ok()?,
            _ => return None,
        }
    }
    let any = |word: &str| if word == "-1" { Some(None) } else { word.parse().ok().map(Some) };
    let does = match (kind, jointly) {
        (_, Some(operation)) => Does::Collective { operation, size, group, root, number: 0 },
        ("calc", _) => Does::Calc(size),
        ("send", _) => Does::Send { to: peer?.parse().ok()?, tag: tag.parse().ok()?, size },
        _ => Does::Recv { from: any(peer?)?, tag: any(tag)?, size },
    };
    Some(Said { operation: Operation { does, cpu, needs: 0 }, group, row })
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
    let labels = Labels::new(block.names.iter().copied());
    Ok(Rank::new(std::mem::take(&mut block.operations), &edges, labels))
}
