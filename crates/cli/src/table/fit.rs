//! Tables that are wider than a terminal, in blocks that are not.

use super::{lines, table};
use comfy_table::{Row, Table};

/// The lines of `table`, of whose columns the first `names` tell its rows apart. Where it is wider than the terminal, it is broken into
/// blocks of columns, each with the names; what is piped has a line for each row.
pub(super) fn fitted(table: &Table, names: usize) -> String {
    within(table, names, table.width().map(usize::from))
}

/// What stands to the left of a table, and between two of its columns.
const GAP: usize = 2;

/// The same within a `width`. Where the names alone take more than half of it, rows are numbered, and the names stand in the first
/// block with the numbers.
fn within(whole: &Table, names: usize, width: Option<usize>) -> String {
    let widths: Vec<usize> = whole.column_max_content_widths().into_iter().map(usize::from).collect();
    let sum = |places: &[usize]| places.iter().map(|place| GAP + widths[*place]).sum::<usize>();
    let all: Vec<usize> = (0..widths.len()).collect();
    let (name, figures) = all.split_at(names.min(all.len()));
    let Some(width) = width.filter(|width| sum(&all) > *width) else { return lines(whole) };
    let numbered = 2 * sum(name) > width;
    let digits = GAP + whole.row_iter().count().to_string().len();
    let (first, room) = match numbered {
        true => (&[][..], width.saturating_sub(digits)),
        false => (name, width.saturating_sub(sum(name))),
    };
    let headings = cells(whole.header());
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for together in figures.chunk_by(|_, next| belongs_to_the_one_before(&headings[*next])) {
        match blocks.last_mut().filter(|block| sum(block) + sum(together) <= room) {
            Some(block) => block.extend(together),
            None => blocks.push(together.to_vec()),
        }
    }
    let legend = numbered.then(|| block(whole, name, true));
    let rest = blocks.iter().map(|places| block(whole, &[first, places].concat(), numbered));
    legend.into_iter().chain(rest).collect::<Vec<_>>().join("\n")
}

/// Whether a heading makes sense only behind the one before it, as that of a percentile of the same.
fn belongs_to_the_one_before(heading: &str) -> bool {
    heading == "max" || heading.strip_prefix('p').is_some_and(|rest| rest.parse::<u32>().is_ok())
}

fn cells(row: Option<&Row>) -> Vec<String> {
    row.into_iter().flat_map(Row::cell_iter).map(comfy_table::Cell::content).collect()
}

/// The columns at `places`, behind the numbers of the rows where they are `numbered`.
fn block(whole: &Table, places: &[usize], numbered: bool) -> String {
    let of = |number: String, cells: &[String]| -> Vec<String> {
        let chosen = places.iter().map(|place| cells.get(*place).cloned().unwrap_or_default());
        numbered.then_some(number).into_iter().chain(chosen).collect()
    };
    let header = of("#".to_owned(), &cells(whole.header()));
    let mut block = table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, row) in (1..).zip(whole.row_iter()) {
        let number: u32 = number;
        block.add_row(of(number.to_string(), &cells(Some(row))));
    }
    lines(&block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(name: &str) -> Table {
        let mut all = table(&["load", "kmin", "flows", "completion mean", "p99", "goodput"]);
        all.add_row(["0.3", name, "8 of 8", "1.661 ms ± 528.4 us", "24.29 ms ± 8.408 ms", "82.57 Gb/s"]);
        all.add_row(["0.6", "100KB", "8 of 8", "1.590 ms ± 505.3 us", "24.15 ms ± 8.113 ms", "84.28 Gb/s"]);
        all
    }

    fn words(line: &str) -> Vec<&str> {
        line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn a_table_wider_than_the_terminal_is_broken_into_blocks_with_the_names_in_each() {
        let whole = sweep("20KB");
        assert_eq!(within(&whole, 2, None), lines(&whole), "piped");
        assert_eq!(within(&whole, 2, Some(100)), lines(&whole), "it fits");
        let told = within(&whole, 2, Some(60));
        assert!(told.lines().all(|line| line.chars().count() <= 60), "{told}");
        let blocks: Vec<Vec<&str>> = told.split("\n\n").map(|block| block.lines().collect()).collect();
        let headings: Vec<_> = blocks.iter().map(|block| words(block[0])).collect();
        assert_eq!(headings[0], ["load", "kmin", "flows"]);
        assert_eq!(
            headings[1],
            ["load", "kmin", "completion mean", "p99"],
            "a percentile stays behind its mean"
        );
        assert_eq!(headings[2], ["load", "kmin", "goodput"]);
        assert_eq!(words(blocks[2][2]), ["0.6", "100KB", "84.28 Gb/s"]);
    }

    #[test]
    fn long_names_are_said_once_and_rows_are_numbered() {
        let name = "program elf=firmware/dcqcn.elf preset=hpcc";
        let told = within(&sweep(name), 2, Some(80));
        let blocks: Vec<Vec<&str>> = told.split("\n\n").map(|block| block.lines().collect()).collect();
        assert_eq!(words(blocks[0][1]), ["1", "0.3", name]);
        assert_eq!(words(blocks[1][0]), ["#", "flows", "completion mean", "p99", "goodput"]);
        assert_eq!(words(blocks[1][2])[..2], ["2", "8 of 8"]);
        assert!(told.lines().all(|line| line.chars().count() <= 80) && blocks.len() == 2, "{told}");
    }
}
