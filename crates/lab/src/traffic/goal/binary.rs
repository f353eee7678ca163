//! Schedules as LogGOPSim's `txt2bin` writes them, in little-endian numbers without gaps.
//!
//! | what | octets |
//! | --- | --- |
//! | 4223, which tells the kind of file | 8 |
//! | how many ranks, CPUs of a rank, and NICs | 4, 1, 1 |
//! | of each rank where it begins and ends, counted from behind the first 8 octets | 16 each |
//!
//! and of each rank
//!
//! | what | octets |
//! | --- | --- |
//! | how many operations, and how many of them wait for nothing | 4, 4 |
//! | the numbers of the latter | 4 each |
//! | of each operation: how many it waits for, its kind (1 send, 2 receive, 3 calculate), peer, size, tag, CPU, NIC; how many wait for its end, and the first of them in the list; how many for its beginning, and the first | 4, 1, 4, 8, 4, 1, 1, 4, 4, 4, 4 |
//! | the list of who waits | 4 each |

use super::labels::Labels;
use super::{Does, GoalError, OPERATIONS_MAX, Operation, RANKS_MAX, Rank, Schedule};

const COOKIE: u64 = 4223;
/// What LogGOPSim leaves there when it has used a file up (`--save-mem`).
const USED_UP: u64 = 2342;
/// Any rank, or any tag.
const ANY: u32 = u32::MAX;

/// Reads a schedule; `None` where the file is of another kind.
pub(super) fn read(octets: &[u8]) -> Option<Result<Schedule, GoalError>> {
    let (cookie, rest) = octets.split_first_chunk()?;
    match u64::from_le_bytes(*cookie) {
        COOKIE => Some(read_ranks(rest)),
        USED_UP => Some(Err(broken("LogGOPSim has used it up with `--save-mem`"))),
        _ => None,
    }
}

fn broken(why: &str) -> GoalError {
    GoalError::Broken(why.to_owned())
}

/// Numbers, one after the other.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], GoalError> {
        let (octets, rest) = self.0.split_first_chunk().ok_or_else(|| broken("it ends early"))?;
        self.0 = rest;
        Ok(*octets)
    }

    fn u8(&mut self) -> Result<u8, GoalError> {
        self.take::<1>().map(|[octet]| octet)
    }

    fn u32(&mut self) -> Result<u32, GoalError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, GoalError> {
        self.take().map(u64::from_le_bytes)
    }
}

fn read_ranks(octets: &[u8]) -> Result<Schedule, GoalError> {
    let mut numbers = Numbers(octets);
    let count = numbers.u32()?;
    if !(1..=RANKS_MAX).contains(&count) {
        return Err(GoalError::Ranks(count.into()));
    }
    numbers.take::<2>()?;
    // Each octet belongs to one rank, so that what is read is no more than the file.
    let mut left = octets.len();
    let ranks = (0..count).map(|_| {
        let (start, end) = (numbers.u64()?, numbers.u64()?);
        let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        let of_rank = octets.get(start..end).ok_or_else(|| broken("a rank lies beyond its end"))?;
        left = left.checked_sub(of_rank.len()).ok_or_else(|| broken("ranks lie in one place"))?;
        read_rank(Numbers(of_rank))
    });
    Ok(Schedule { ranks: ranks.collect::<Result<_, _>>()?, ..Schedule::default() })
}

fn read_rank(mut numbers: Numbers<'_>) -> Result<Rank, GoalError> {
    let (count, roots) = (numbers.u32()?, numbers.u32()?);
    if count as usize >= OPERATIONS_MAX {
        return Err(broken("a rank has more than 2^31 operations"));
    }
    for _ in 0..roots {
        numbers.u32()?;
    }
    let (mut operations, mut lists) = (Vec::new(), Vec::new());
    for _ in 0..count {
        // How many it waits for is counted again.
        numbers.u32()?;
        let (kind, peer, size, tag) = (numbers.u8()?, numbers.u32()?, numbers.u64()?, numbers.u32()?);
        let cpu = numbers.u8()?;
        numbers.u8()?;
        lists.push([[numbers.u32()?, numbers.u32()?], [numbers.u32()?, numbers.u32()?]]);
        let any = |number| if number == ANY { None } else { Some(number) };
        let does = match kind {
            1 if tag == ANY => return Err(broken("a message is sent with any tag")),
            1 => Does::Send { to: peer, tag, size },
            2 => Does::Recv { from: any(peer), tag: any(tag), size },
            3 => Does::Calc(size),
            _ => return Err(broken("an operation neither sends nor receives nor calculates")),
        };
        operations.push(Operation { does, cpu, needs: 0 });
    }
    let list: Vec<u32> =
        numbers.0.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect();
    let mut edges = Vec::new();
    // And each place of the list to one operation.
    let mut left = list.len();
    for (of, lists) in (0..count).zip(lists) {
        for ([how_many, first], at_begin) in lists.into_iter().zip([false, true]) {
            let range = first as usize..first as usize + how_many as usize;
            // Of none the place says nothing.
            let waiting = if how_many == 0 { Some(&[][..]) } else { list.get(range) };
            let waiting = waiting.ok_or_else(|| broken("a list of who waits lies beyond its end"))?;
            left = left
                .checked_sub(waiting.len())
                .ok_or_else(|| broken("lists of who waits lie in one place"))?;
            for &waits in waiting {
                if waits >= count {
                    return Err(broken("an operation waits that is not there"));
                }
                edges.push((waits, of, at_begin));
            }
        }
    }
    Ok(Rank::new(operations, &edges, Labels::default()))
}
