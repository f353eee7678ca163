//! Figures of papers: what there are, and what each has beside ours.

use super::{lines, prose, table};
use crate::format::or_dash;
use comfy_table::ContentArrangement;
use roci_lab::figures::expect::Figure;
use roci_lab::figures::{self, Report};
use roci_lab::scenario::overrides::seeds_in_words;

/// Figures of a group: what each shows, and how long it takes.
pub(crate) fn figures(group: &figures::Group, figures: &[(&str, Figure)]) -> String {
    let mut table = prose(&["figure", "kind", "rows", "ablations", "1 seed", "5 seeds", "what it shows"]);
    for (name, figure) in figures {
        let ablations =
            Some(figure.ablations.len()).filter(|count| *count > 0).map(|count| count.to_string());
        let [rows, ablations] = [figure.rows.len().to_string(), or_dash(ablations)];
        let [one, five] = [figure.takes.one_seed, figure.takes.five_seeds].map(about);
        table.add_row([*name, figure.kind.name(), &rows, &ablations, &one, &five, &figure.title]);
    }
    format!("{}: {}\n\n{}\n", group.name, group.from, lines(&table))
}

/// A figure: what the paper has, what we have.
pub(crate) fn figure(report: &Report) -> String {
    let mut text = format!("{}: {}, {}", report.name, report.title, seeds_in_words(&report.seeds));
    if let Some(without) = &report.without {
        text.push_str(&format!(", without {without}"));
    }
    text.push_str("\n\n");
    let mut table = table(&Report::HEADINGS);
    // On a terminal a cell may take several lines; what is piped has a line for each row.
    if table.width().is_some() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for row in report.cells() {
        table.add_row(row);
    }
    text.push_str(&lines(&table));
    if !report.note.is_empty() {
        text.push_str(&format!("\n  {}\n", report.note));
    }
    text.push('\n');
    text
}

/// About how long something takes.
fn about(seconds: Option<f64>) -> String {
    match seconds {
        None => "over 2 min".to_owned(),
        Some(seconds) if seconds < 1.0 => "under 1 s".to_owned(),
        Some(seconds) => format!("about {seconds:.0} s"),
    }
}
