//! What the ranks of an all-to-all have for one another: `matrix`, `skew` and `tokens`.

use super::super::file;
use super::super::read::Table;
use super::super::source::{Located, ScenarioError};
use super::super::topology::{items, split};
use super::super::tree::{Kind, Node};
use crate::traffic::collective::Operation;
use crate::traffic::collective::amounts::{Amounts, EXPONENT_MAX, Matrix, Skew};
use roci_units::{Bytes, ParseError};
use std::sync::Arc;

/// So many tokens a rank has unless it says otherwise.
const TOKENS: u32 = 4096;

/// What a table says of it, and its `size`.
pub(super) struct Said {
    pub(super) size: Bytes,
    pub(super) amounts: Option<Amounts>,
}

impl Said {
    /// What `table` says, whose size is at most `most` octets.
    pub(super) fn read(table: Table<'_>, operation: Operation, most: u64) -> Result<Self, ScenarioError> {
        let first = ["matrix", "skew", "tokens"].into_iter().find(|key| table.get(key).is_some());
        if let Some(key) = first.filter(|_| operation != Operation::AllToAll) {
            let message = format!(
                "`{}` has ranks with as much for each other; only those of `all-to-all` may differ",
                operation.name()
            );
            return Err(table.refuse(key, message, "leave it out, or set `operation = \"all-to-all\"`"));
        }
        if table.get("matrix").is_some() {
            for key in ["skew", "tokens", "size"] {
                if table.get(key).is_some() {
                    let message = format!("`matrix` and `{key}` both say what ranks send");
                    return Err(table.refuse(key, message, format!("leave out `matrix`, or `{key}`")));
                }
            }
            let matrix = matrix(table)?;
            return Ok(Self { size: Bytes(matrix.size()), amounts: Some(Amounts::Matrix(Arc::new(matrix))) });
        }
        let size = table.require("size", table.bytes("size", 1..=most)?)?;
        let (skew, tokens) = (table.ratio("skew")?, table.count("tokens", 1..=1 << 20)?);
        let Some(exponent) = skew else {
            if tokens.is_some() {
                let message = "there are tokens without a `skew`, and each rank has as much for each other";
                return Err(table.refuse("tokens", message, "add `skew = 1.2`, or leave them out"));
            }
            return Ok(Self { size, amounts: None });
        };
        if exponent.as_f64() > f64::from(EXPONENT_MAX) {
            let message = format!("the exponent is {}", exponent.as_f64());
            return Err(table.refuse("skew", message, format!("give one of 0 to {EXPONENT_MAX}")));
        }
        let tokens = tokens.unwrap_or(TOKENS);
        Ok(Self { size, amounts: Some(Amounts::Skewed(Skew { exponent, tokens })) })
    }
}

/// The matrix of a table, as a list of rows or as a file.
fn matrix(table: Table<'_>) -> Result<Matrix, ScenarioError> {
    let file = match table.get("matrix").map(|node| &node.kind) {
        Some(Kind::Text(_)) => table.text("matrix")?,
        _ => None,
    };
    let rows = match &file {
        Some(name) => of_file(table, name)?,
        None => of_list(table)?,
    };
    Matrix::new(&rows).map_err(|error| {
        let (message, remedy) = split(&error.to_string());
        let of = file.as_ref().map_or_else(String::new, |name| format!("{}: ", name.value));
        table.refuse("matrix", format!("{of}{message}"), remedy)
    })
}

fn of_list(table: Table<'_>) -> Result<Vec<Vec<u64>>, ScenarioError> {
    let rows = table.require("matrix", table.list("matrix")?)?;
    let row = |node: &Node| match &node.kind {
        Kind::Array(_) => items(node).iter().map(|cell| of_cell(table, cell)).collect(),
        _ => Err(table.source.error(
            node.origin,
            format!("{} is no row of a matrix", node.shown()),
            "write a list for each rank, as in `matrix = [[0, 4096], [\"1MB\", 0]]`",
        )),
    };
    rows.iter().map(row).collect()
}

fn of_cell(table: Table<'_>, cell: &Node) -> Result<u64, ScenarioError> {
    let read = cell.scalar().ok_or(None).and_then(|text| octets(&text).map_err(Some));
    read.map_err(|error| {
        let why = error.map_or_else(|| "no size".to_owned(), |error| format!("no size: {error}"));
        table.source.error(
            cell.origin,
            format!("{} is {why}", cell.shown()),
            "write octets, as in 4096 or \"4KiB\", and 0 where nothing is sent",
        )
    })
}

/// A line for each rank, with commas between what it sends to each; empty lines and such as begin with `#` are not read.
fn of_file(table: Table<'_>, name: &Located<String>) -> Result<Vec<Vec<u64>>, ScenarioError> {
    let text = file::read(table.source, name)?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let rows = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let row = |(number, line): (usize, &str)| {
        let cell = |cell: &str| {
            octets(cell.trim()).map_err(|error| {
                table.refuse(
                    "matrix",
                    format!("{}: line {number}: `{}` is no size: {error}", name.value, cell.trim()),
                    "write octets with commas between them, as in `0,4096,4KiB`, and 0 where nothing is sent",
                )
            })
        };
        line.split(',').map(cell).collect()
    };
    rows.map(row).collect()
}

fn octets(text: &str) -> Result<u64, ParseError> {
    text.parse().map(|Bytes(octets)| octets)
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::super::super::tests::star;
    use super::super::super::{Scenario, ScenarioError};
    use super::*;
    use crate::traffic::Traffic;
    use crate::traffic::collective::{Algorithm, Collective};
    use roci_units::Ratio;

    const FILES: &[(&str, &str)] = &[
        ("four.csv", "# who sends\n0,1KB,2,3\n\n 4, 0, 5, 6\n7,8,0,9\n10,11,12,0\n"),
        ("odd.csv", "0,1,2,3\n4,0,5,-6\n"),
        ("three.csv", "0,1,2\n4,0,5\n7,8,0\n"),
        ("ragged.csv", "0,1,2\n4,0,5\n7,8\n"),
    ];

    fn read(lines: &str) -> Result<Collective, ScenarioError> {
        let text = star(&format!("[[traffic]]\nkind = \"collective\"\n{lines}\n"));
        let scenario = Scenario::read(Source::new("test.toml", &text, &[]).with_files(FILES))?;
        let Traffic::Collective(one) = &scenario.traffic[0] else { panic!("a collective") };
        Ok(one.clone())
    }

    const ALL_TO_ALL: &str = "operation = \"all-to-all\"\n";

    #[test]
    fn amounts_stand_in_the_scenario_or_in_a_file_or_are_drawn() {
        let listed = "matrix = [[0, \"1KB\", 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [10, 11, 12, 0]]";
        let listed = read(&format!("{ALL_TO_ALL}{listed}")).unwrap();
        let matrix = listed.matrix().expect("one");
        assert_eq!((matrix.row(0), matrix.octets(3, 1)), (&[0, 1000, 2, 3][..], 11));
        assert_eq!((listed.size, listed.algorithm), (Bytes(1019), Algorithm::Direct));
        assert_eq!(read(&format!("{ALL_TO_ALL}matrix = \"four.csv\"")).unwrap(), listed);
        let drawn = read(&format!("{ALL_TO_ALL}size = \"1MB\"\nskew = 1.2")).unwrap();
        let skew = Skew { exponent: Ratio::new(6, 5), tokens: TOKENS };
        assert_eq!((drawn.size, drawn.amounts), (Bytes(1_000_000), Some(Amounts::Skewed(skew))));
        let over =
            read(&format!("{ALL_TO_ALL}matrix = \"four.csv\"\nalgorithm = \"auto\"\nranks_per_server = 2"));
        assert!(over.unwrap().matrix().is_some());
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_a_remedy() {
        for (lines, message, remedy) in [
            ("matrix = \"three.csv\"", "3 rows for 4 ranks", "in the order of `hosts`"),
            (
                "matrix = \"ragged.csv\"",
                "ragged.csv: row 2 has 2 numbers, and there are 3 rows",
                "write one for each rank",
            ),
            ("matrix = \"odd.csv\"", "odd.csv: line 2: `-6` is no size", "0 where nothing is sent"),
            ("matrix = \"none.csv\"", "none.csv", "name a readable file"),
            ("matrix = [[0, -1], [1, 0]]", "-1 is no size", "0 where nothing is sent"),
            ("matrix = [[0, [1]], [1, 0]]", "is no size", "write octets"),
            ("matrix = [0, 1]", "0 is no row of a matrix", "write a list for each rank"),
            ("matrix = 5", "matrix", ""),
            ("matrix = []", "0 rows for 4 ranks", ""),
            (
                "matrix = \"four.csv\"\nsize = 5",
                "`matrix` and `size` both say what ranks send",
                "leave out `matrix`, or `size`",
            ),
            ("matrix = \"four.csv\"\nskew = 1", "`matrix` and `skew` both say", "or `skew`"),
            (
                "matrix = \"four.csv\"\nchunks = 3",
                "a rank has 2B for another, which goes in 3 messages",
                "set `chunks`",
            ),
            (
                "matrix = \"four.csv\"\nalgorithm = \"pxn\"",
                "each server has one rank",
                "set `ranks_per_server`",
            ),
            ("size = 4095\nskew = 1", "4095B in 4096 tokens are less than an octet", "set `tokens` to less"),
            ("size = \"1MB\"\nskew = 10.5", "the exponent is 10.5", "give one of 0 to 10"),
            ("size = \"1MB\"\nskew = -1", "skew", ""),
            ("size = \"1MB\"\ntokens = 5", "there are tokens without a `skew`", "add `skew = 1.2`"),
            ("skew = 1", "size", ""),
        ] {
            let error = read(&format!("{ALL_TO_ALL}{lines}")).expect_err(lines).to_string();
            assert!(error.contains(message) && error.contains(remedy), "{lines}: {error}");
        }
        let error = read("operation = \"all-reduce\"\nskew = 1\nsize = 5").unwrap_err().to_string();
        assert!(error.contains("only those of `all-to-all` may differ"), "{error}");
    }
}
