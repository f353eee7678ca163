//! What is printed of programs.

use super::{lines, table};
use roci_lab::program::{Check, class_name};

/// What was proved of a program.
pub(crate) fn check(name: &str, check: &Check, clock: u64) -> String {
    let mut text = format!(
        "{name}: {} B of code, {} B of 128 B of context, {} B of 64 B of header\n",
        check.code, check.context, check.header
    );
    for side in &check.sides {
        text += &format!("\n{}(): {} B of stack\n", side.side.function(), side.stack);
        let mut rows = table(&["event", "cycles, at most", "time"]);
        let mut row = |event: &str, cycles: u64| {
            // In picoseconds; a bound has fewer than 2^40 cycles.
            let span = cycles.saturating_mul(1_000_000_000_000) / clock;
            rows.add_row([event.to_owned(), cycles.to_string(), format!("{} ns", span.div_ceil(1_000))]);
        };
        for (class, cycles) in &side.kinds {
            row(class_name(*class), *cycles);
        }
        row("any", side.cycles);
        row("the start", side.start_cycles);
        text += &lines(&rows);
    }
    text + "\n"
}
