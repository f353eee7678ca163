//! Process groups, and the collectives that their ranks do together: the first of a group at each of its ranks, in the order of lines, is one,
//! the second is the next, and so on.

use super::{Does, GoalError};
use crate::traffic::collective::Operation;
use crate::traffic::collective::amounts::Matrix;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::sync::Arc;

/// So many ranks all groups list at most, which take 12 octets each: a range of thousands is a few letters.
const LISTED_MAX: usize = 1 << 22;

/// Ranks that do collectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// In the order in which algorithms count them.
    pub ranks: Vec<u32>,
    /// What they do, in order; places in [`Schedule::joint`](super::Schedule::joint).
    pub numbers: Vec<u32>,
    /// Ranks in order, each with its place among them.
    places: Vec<(u32, u32)>,
}

impl Group {
    /// That of these ranks, which does nothing yet.
    pub(super) fn new(ranks: Vec<u32>) -> Self {
        let mut places: Vec<(u32, u32)> = ranks.iter().copied().zip(0..).collect();
        places.sort_unstable();
        Self { ranks, numbers: Vec::new(), places }
    }

    /// The number of a rank within the group; `None` where it is not of it.
    pub fn place(&self, rank: u32) -> Option<u32> {
        let at = self.places.binary_search_by_key(&rank, |(rank, _)| *rank).ok()?;
        Some(self.places[at].1)
    }
}

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joint {
    /// Its group, a place in [`Schedule::groups`](super::Schedule::groups).
    pub group: u32,
    /// What it does.
    pub operation: Operation,
    /// The root's place in the group, where there is one; else 0.
    pub root: u32,
    /// Octets of a rank's data, as in [`Collective::size`](crate::traffic::Collective::size).
    pub size: u64,
    /// Where each rank says how much it has for each, that: a place in [`Schedule::matrices`](super::Schedule::matrices).
    pub matrix: Option<u32>,
    /// The first rank that has it, and its operation there.
    pub first: (u32, u32),
}

/// Groups while a schedule is read.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    joint: Vec<Joint>,
    /// Ranks of all groups of the file.
    listed: usize,
    /// How many of each group its ranks have; of such as have none there is nothing.
    counts: HashMap<(u32, u32), usize>,
    /// Of each collective whose ranks say what they have for each.
    rows: BTreeMap<u32, Rows>,
}

/// What ranks have for each of their group, in the order of its list; empty of such as have not been read.
#[derive(Debug)]
struct Rows {
    of: Vec<Vec<u64>>,
    /// The last line that says some.
    line: usize,
}

/// What is known of collectives when all ranks have been read.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) groups: Vec<Group>,
    pub(super) joint: Vec<Joint>,
    pub(super) matrices: Vec<Arc<Matrix>>,
}

/// A rank's part in a collective, as it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) operation: Operation,
    pub(super) size: u64,
    /// A place in [`Schedule::groups`](super::Schedule::groups), if there is such a one.
    pub(super) group: u32,
    pub(super) root: u32,
}

/// Where a rank stands that is being read, by group: how many of it have been read.
pub(super) type Counted = HashMap<u32, usize>;

/// A group in words.
fn words(group: u32) -> String {
    group.checked_sub(1).map_or_else(|| "all ranks".to_owned(), |number| format!("group {number}"))
}

impl Groups {
    /// Those of a schedule of so many ranks: that of all of them.
    pub(super) fn new(ranks: u32) -> Self {
        Self { groups: vec![Group::new((0..ranks).collect())], ..Self::default() }
    }

    /// Adds one. `text` is what stands behind `group`, such as `0: 0-7 16-24:4`.
    pub(super) fn add(&mut self, text: &str, line: usize) -> Result<(), GoalError> {
        let failed = |what: String| GoalError::Group { line, what };
        let ranks_of_all = self.groups[0].ranks.len();
        let next = self.groups.len() - 1;
        let (number, list) = text.split_once(':').unwrap_or((text, ""));
        if number.trim().parse() != Ok(next) {
            return Err(failed(format!(
                "a group `{}`; number groups from 0 in the order of lines, this one as `group {next}: 0-7`",
                number.trim()
            )));
        }
        let mut ranks = Vec::new();
        for word in list.split_ascii_whitespace() {
            let range = range(word).filter(|(_, last, _)| (*last as usize) < ranks_of_all);
            let (first, last, step) = range.ok_or_else(|| {
                failed(format!(
                    "group {next} has no ranks `{word}`; list those below {ranks_of_all} that it has, as in `0 2 4`, `0-7` or `0-56:8`"
                ))
            })?;
            let range = (first..last + 1).step_by(step as usize);
            self.listed += range.len();
            if self.listed > LISTED_MAX {
                return Err(failed(format!(
                    "groups list more than {LISTED_MAX} ranks together; leave out those that do nothing"
                )));
            }
            ranks.extend(range);
        }
        if ranks.is_empty() {
            return Err(failed(format!("group {next} has no ranks; list them behind a colon, as in `0-7`")));
        }
        let group = Group::new(ranks);
        if let Some(two) = group.places.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(failed(format!("group {next} has rank {} twice; list it once", two[0].0)));
        }
        self.groups.push(group);
        Ok(())
    }

    /// What an operation of a rank does, its next collective of a group.
    pub(super) fn take_part(
        &mut self,
        first: (u32, u32),
        line: usize,
        counted: &mut Counted,
        Part { operation, size, group, root }: Part,
        row: Option<Vec<u64>>,
    ) -> Result<Does, GoalError> {
        let rank = first.0;
        let failed = |what: String| GoalError::Group { line, what };
        let known = self.groups.len() - 1;
        let of = self.groups.get_mut(group as usize).ok_or_else(|| {
            failed(format!(
                "there is no group {}; list its ranks above, as in `group {known}: 0-7`",
                group - 1
            ))
        })?;
        let Some(place) = of.place(rank) else {
            return Err(failed(format!("{} is without rank {rank}; list it there", words(group))));
        };
        if let Some(row) = row.as_ref().filter(|row| row.len() != of.ranks.len()) {
            return Err(failed(format!(
                "octets for {} ranks, and {} has {}; write a number for each, in the order of its list, with what rank {rank} sends to it",
                row.len(),
                words(group),
                of.ranks.len()
            )));
        }
        if root as usize >= of.ranks.len() {
            let last = of.ranks.len() - 1;
            return Err(failed(format!(
                "{} has no rank {root} to be the root; name one of 0 to {last}, as its list counts them",
                words(group)
            )));
        }
        let count = counted.entry(group).or_default();
        let number = match of.numbers.get(*count) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.joint.len()).unwrap_or(u32::MAX);
                of.numbers.push(number);
                self.joint.push(Joint { group, operation, root, size, matrix: None, first });
                if row.is_some() {
                    self.rows.insert(number, Rows { of: vec![Vec::new(); of.ranks.len()], line });
                }
                number
            }
        };
        *count += 1;
        let does = Does::Collective { operation, size, group, root, number };
        let one = self.joint[number as usize];
        let rows = self.rows.get_mut(&number);
        if one.operation == operation && rows.is_some() != row.is_some() {
            let says = |listed| if listed { "says what it has for each" } else { "has one number for all" };
            return Err(failed(format!(
                "collective {count} of {}: rank {rank} {}, and rank {} {}; let all ranks say it in one way",
                words(group),
                says(row.is_some()),
                one.first.0,
                says(rows.is_some())
            )));
        }
        let is_listed = rows.is_some();
        if let (Some(rows), Some(row)) = (rows, row) {
            (rows.of[place as usize], rows.line) = (row, line);
        }
        if (one.operation, one.root) != (operation, root) || (one.size != size && !is_listed) {
            let of_first =
                Does::Collective { operation: one.operation, size: one.size, group, root: one.root, number }
                    .to_string();
            return Err(GoalError::Unlike {
                group: words(group),
                nth: *count,
                one: of_first,
                first: one.first,
                other: does.to_string(),
                rank,
            });
        }
        Ok(does)
    }

    /// A rank has been read.
    pub(super) fn close(&mut self, rank: u32, counted: &Counted) {
        self.counts.extend(counted.iter().map(|(group, count)| ((*group, rank), *count)));
    }

    /// All of them, when all ranks have been read.
    pub(super) fn finish(mut self) -> Result<Known, GoalError> {
        if self.joint.is_empty() {
            return Ok(Known::default());
        }
        for (group, it) in (0..).zip(&self.groups) {
            let count = |rank: u32| self.counts.get(&(group, rank)).copied().unwrap_or(0);
            let Some(&first) = it.ranks.first() else { continue };
            if let Some(&other) = it.ranks.iter().find(|rank| count(**rank) != count(first)) {
                let (more, fewer) = if count(first) > count(other) { (first, other) } else { (other, first) };
                let (most, fewest) = (count(more), count(fewer));
                return Err(GoalError::Fewer { group: words(group), more, most, fewer, fewest });
            }
        }
        // Steps of training repeat one.
        let mut places = HashMap::<Arc<Matrix>, u32>::new();
        let mut matrices = Vec::new();
        for (number, Rows { of, line }) in std::mem::take(&mut self.rows) {
            let matrix = Matrix::new(&of).map_err(|error| {
                let group = words(self.joint[number as usize].group);
                GoalError::Group { line, what: format!("in a collective of {group} {error}") }
            })?;
            let matrix = Arc::new(matrix);
            let it = &mut self.joint[number as usize];
            it.size = matrix.size();
            let place = places.entry(Arc::clone(&matrix)).or_insert_with(|| {
                matrices.push(matrix);
                u32::try_from(matrices.len() - 1).unwrap_or(u32::MAX)
            });
            it.matrix = Some(*place);
        }
        Ok(Known { groups: self.groups, joint: self.joint, matrices })
    }
}

/// `3`, `0-7` or `0-56:8` as the first, the last and by how much they go on.
fn range(word: &str) -> Option<(u32, u32, u32)> {
    let (range, step) = match word.split_once(':') {
        Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
        None => (word, 1),
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last, step))
}

/// Writes ranks as [`Groups::add`] reads them, each behind a space, those that follow one another by one number in one word.
pub(crate) fn write_ranks(out: &mut impl Write, ranks: &[u32]) -> fmt::Result {
    let mut rest = ranks;
    while let [first, others @ ..] = rest {
        let step = others.first().and_then(|second| second.checked_sub(*first)).filter(|step| *step > 0);
        let follows = |pair: &&[u32]| pair[1].checked_sub(pair[0]) == step;
        let more = if step.is_some() { rest.windows(2).take_while(follows).count() } else { 0 };
        let last = rest[more];
        match (more, step) {
            (0 | 1, _) => write!(out, " {first}")?,
            (_, Some(1)) => write!(out, " {first}-{last}")?,
            (_, step) => write!(out, " {first}-{last}:{}", step.unwrap_or(1))?,
        }
        rest = if more > 1 { &rest[more + 1..] } else { others };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::*;

    fn read(text: &str) -> Result<Schedule, GoalError> {
        Schedule::read(text.as_bytes())
    }

    /// Four ranks that do these; each line is of the ranks before its colon.
    fn four(groups: &str, lines: &[(&[u32], &str)]) -> String {
        let block = |rank: u32| {
            let of: String = lines
                .iter()
                .filter(|(ranks, _)| ranks.contains(&rank))
                .map(|(_, line)| format!("{line}\n"))
                .collect();
            format!("rank {rank} {{\n{of}}}\n")
        };
        format!("num_ranks 4\n{groups}{}", (0..4).map(block).collect::<String>())
    }

    #[test]
    fn the_same_line_of_each_rank_is_one_collective() {
        let all = [0, 1, 2, 3];
        let text = four(
            "group 0: 0-2:2\ngroup 1: 3 1\n",
            &[
                (&all, "a: all-reduce 8b"),
                (&[0, 2], "b: all-gather 16b group 0 cpu 3"),
                (&[1, 3], "b: broadcast 4 b root 1 group 1"),
                (&all, "c: all-to-all 8b"),
            ],
        );
        let schedule = read(&text).unwrap();
        assert_eq!(
            schedule.groups.iter().map(|it| &it.ranks[..]).collect::<Vec<_>>(),
            [&all[..], &[0, 2], &[3, 1]]
        );
        assert_eq!(
            schedule.groups.iter().map(|it| &it.numbers[..]).collect::<Vec<_>>(),
            [&[0, 2][..], &[1], &[3]]
        );
        let joint: Vec<_> =
            schedule.joint.iter().map(|it| (it.group, it.operation, it.size, it.first)).collect();
        assert_eq!(
            joint,
            [
                (0, Operation::AllReduce, 8, (0, 0)),
                (1, Operation::AllGather, 16, (0, 1)),
                (0, Operation::AllToAll, 8, (0, 2)),
                (2, Operation::Broadcast, 4, (1, 1)),
            ]
        );
        let last = schedule.ranks[3].operations()[1].does;
        assert_eq!(
            last,
            Does::Collective { operation: Operation::Broadcast, size: 4, group: 2, root: 1, number: 3 }
        );
        assert_eq!(
            (schedule.words(3, 1), schedule.words(3, 2)),
            ("b: broadcast 4b root 1 group 1".into(), "c: all-to-all 8b".into())
        );
        assert_eq!([3, 1, 0].map(|rank| schedule.groups[2].place(rank)), [Some(0), Some(1), None]);
    }

    #[test]
    fn what_ranks_cannot_do_together_is_refused() {
        let all: &[u32] = &[0, 1, 2, 3];
        for (groups, lines, message) in [
            ("group 1: 0\n", &[][..], "line 2: a group `1`; number groups from 0"),
            ("group 0\n", &[], "line 2: group 0 has no ranks; list them"),
            ("group 0: 4\n", &[], "line 2: group 0 has no ranks `4`; list those below 4"),
            ("group 0: 2-1\n", &[], "no ranks `2-1`"),
            ("group 0: 0-3:0\n", &[], "no ranks `0-3:0`"),
            ("group 0: 0-2 1\n", &[], "line 2: group 0 has rank 1 twice"),
            ("", &[(all, "all-reduce 8b group 0")], "line 3: there is no group 0; list its ranks above"),
            ("group 0: 1 2\n", &[(&[0], "all-reduce 8b group 0")], "line 4: group 0 is without rank 0"),
            ("", &[(all, "all-reduce 8b root 1")], "line 3: \"all-reduce 8b root 1\" is no line"),
            (
                "",
                &[(all, "reduce 8b root 4")],
                "line 3: all ranks has no rank 4 to be the root; name one of 0 to 3",
            ),
            (
                "group 0: 1 2\n",
                &[(&[1, 2], "gather 8b group 0 root 2")],
                "group 0 has no rank 2 to be the root",
            ),
            (
                "",
                &[(&[0, 1], "broadcast 8b root 2"), (&[2, 3], "broadcast 8b")],
                "collective 1 of all ranks is `broadcast 8b root 2` at rank 0 and `broadcast 8b` at rank 2",
            ),
            ("", &[(all, "all-reduce 8")], "line 3: \"all-reduce 8\" is no line of a schedule"),
            ("", &[(all, "all-reduce 8b tag 1")], "line 3"),
            ("", &[(all, "calc 8 group 0")], "line 3"),
            (
                "",
                &[(&[0, 1], "x: all-reduce 8b"), (&[2], "y: all-reduce 9b"), (&[3], "all-reduce 8b")],
                "collective 1 of all ranks is `x: all-reduce 8b` at rank 0 and `y: all-reduce 9b` at rank 2",
            ),
            (
                "",
                &[(&[0, 1, 2], "all-reduce 8b"), (all, "all-reduce 8b")],
                "rank 0 does 2 collectives of all ranks, and rank 3 does 1",
            ),
            (
                "group 0: 0 1\ngroup 1: 0 1\n",
                &[
                    (&[0], "a: all-reduce 8b group 0\nb: all-reduce 8b group 1\nb requires a"),
                    (&[1], "a: all-reduce 8b group 1\nb: all-reduce 8b group 0\nb requires a"),
                ],
                "rank 0: operation 0, `a: all-reduce 8b group 0`, waits for rank 1, which waits in `a: all-reduce 8b group 1` for others",
            ),
        ] {
            let text = four(groups, lines);
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
        let late = "num_ranks 2\nrank 0 {\n}\ngroup 0: 0\n";
        assert!(read(late).is_err_and(|error| error.to_string().contains("groups above the blocks")));
        // Of those that are begun together none waits for the other, nor does what a broadcast's root does next.
        let crossed = |between: &str| {
            let one = format!("a: all-reduce 8b group 0\nb: all-reduce 8b group 1\n{between}");
            let other = format!("a: all-reduce 8b group 1\nb: all-reduce 8b group 0\n{between}");
            four("group 0: 0 1\ngroup 1: 0 1\n", &[(&[0], &*one), (&[1], &*other)])
        };
        assert!(read(&crossed("")).is_ok() && read(&crossed("b irequires a")).is_ok());
        assert!(matches!(read(&crossed("b requires a")), Err(GoalError::Circle { .. })));
    }

    #[test]
    fn each_rank_says_what_it_has_for_each_of_its_group_in_the_order_of_its_list() {
        let text = four(
            "group 0: 3 1\n",
            &[
                (&[0], "a: all-to-all 0b 1b 2 b 3b cpu 1"),
                (&[1], "a: all-to-all 4b 5b 6b 7b\nall-to-all 8b 9b group 0"),
                (&[2], "all-to-all 0b 0b 0b 0b"),
                (&[3], "a: all-to-all 1b 1b 1b 1b\nall-to-all 0b 70b group 0"),
                (&[0, 1, 2, 3], "all-to-all 80b"),
            ],
        );
        let schedule = read(&text).unwrap();
        let [first, even, second] = schedule.joint[..] else { panic!("{:?}", schedule.joint) };
        assert_eq!([first, second, even].map(|it| it.matrix), [Some(0), Some(1), None]);
        let matrices = &schedule.matrices;
        assert_eq!((matrices[0].row(1), matrices[0].octets(0, 2)), (&[4, 5, 6, 7][..], 2));
        // Rank 3 stands first in the list.
        assert_eq!((matrices[1].octets(0, 1), matrices[1].octets(1, 0)), (70, 8));
        assert_eq!((first.size, second.size, even.size), (22, 79, 80));
        assert_eq!(schedule.words(0, 0), "a: all-to-all 0b 1b 2b 3b");
        assert_eq!(schedule.words(1, 1), "all-to-all 8b 9b group 0");
        // A step that is done again has the same.
        let again =
            read(&text.replace("}\n", "all-to-all 0b 1b 1b 1b\nall-to-all 0b 1b 1b 1b\n}\n")).unwrap();
        let of: Vec<_> = again.joint.iter().map(|it| it.matrix).collect();
        assert_eq!((again.matrices.len(), of), (3, vec![Some(0), None, Some(1), Some(1), Some(2)]));
    }

    #[test]
    fn lists_of_octets_that_do_not_fit_are_told_of_with_their_line() {
        let all: &[u32] = &[0, 1, 2, 3];
        for (lines, message) in [
            (
                &[(all, "all-to-all 0b 1b 2b group 0")][..],
                "line 4: octets for 3 ranks, and group 0 has 4; write a number for each",
            ),
            (
                &[(&[0, 1], "all-to-all 8b group 0"), (&[2, 3], "all-to-all 1b 2b 3b 4b group 0")],
                "line 10: collective 1 of group 0: rank 2 says what it has for each, and rank 0 has one number for all; let all",
            ),
            (
                &[(&[0], "all-to-all 1b 2b 3b 4b group 0"), (&[1, 2, 3], "all-to-all 8b group 0")],
                "line 7: collective 1 of group 0: rank 1 has one number for all, and rank 0 says what it has for each",
            ),
            (
                &[(all, "all-reduce 1b 2b 3b 4b group 0")],
                "line 4: \"all-reduce 1b 2b 3b 4b group 0\" is no line",
            ),
            (&[(all, "all-to-all 1b 2b 3 group 0")], "is no line of a schedule"),
            (&[(all, "all-to-all 1b -2b 3b 4b group 0")], "is no line of a schedule"),
            (
                &[(all, "all-to-all 0b 0b 0b 1000000000000b group 0")],
                "line 13: in a collective of group 0 rank 3 sends or receives more than 1TiB",
            ),
        ] {
            let text = four("group 0: 0-3\n", lines);
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
    }

    #[test]
    fn groups_of_a_short_file_take_no_more_than_they_may() {
        let groups: String = (0..80).map(|group| format!("group {group}: 0-65534\n")).collect();
        let error = read(&format!("num_ranks 65535\n{groups}")).unwrap_err().to_string();
        assert!(error.starts_with("line 66: groups list more than 4194304 ranks together"), "{error}");
    }

    #[test]
    fn lists_of_ranks_are_written_as_they_are_read() {
        for (ranks, text) in [
            (&[5][..], " 5"),
            (&[0, 1, 2, 3], " 0-3"),
            (&[0, 8, 16, 24, 25], " 0-24:8 25"),
            (&[3, 1, 0], " 3 1 0"),
            (&[0, 1, 5, 6, 7], " 0 1 5-7"),
            (&[2, 4], " 2 4"),
        ] {
            let mut written = String::new();
            write_ranks(&mut written, ranks).unwrap();
            assert_eq!(written, text);
            let mut groups = Groups::new(32);
            groups.add(&format!(" 0:{written}"), 1).unwrap();
            assert_eq!(groups.groups[1].ranks, ranks);
        }
    }
}
