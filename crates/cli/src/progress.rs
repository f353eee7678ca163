//! How far runs have come, on a terminal only; and Ctrl-C.

use crate::Failure;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use roci_lab::batch::{Asked, Watch};
use roci_lab::results::Results;
use roci_lab::run::{Go, Progress, RunError};
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C and SIGTERM no longer kill us, but are remembered, so that drafts of results can be taken away.
pub(crate) fn listen() -> Result<(), Failure> {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("cannot listen for Ctrl-C: {error}")))
}

/// Whether the user has pressed Ctrl-C.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A progress bar on stderr; where that is no terminal, or all is to be quiet, it draws nothing.
pub(crate) struct Bar(ProgressBar);

/// Steps of a bar: it shows tenths of a percent.
const STEPS: u64 = 1_000;

impl Bar {
    pub(crate) fn new(quiet: bool, what: &str) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(8) };
        let style =
            ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} % {msg} [{elapsed}{left}]");
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left));
        bar.set_prefix(what.chars().take(30).collect::<String>());
        Self(bar)
    }

    /// Shows `done` of `asked` runs.
    pub(crate) fn runs(&self, done: usize, asked: usize) {
        self.0.set_position(thousandths(done as u64, asked as u64));
        self.0.set_message(format!("{done} of {asked} runs"));
    }

    /// Shows `done` of `total` messages, or milliseconds.
    pub(crate) fn messages(&self, done: u64, total: u64, are_ms: bool) {
        if total > 0 {
            self.0.set_position(thousandths(done, total));
        }
        self.0.set_message(if are_ms { String::new() } else { format!("{done} messages") });
    }

    /// Takes the bar away while `print` prints.
    pub(crate) fn hide_while(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A line on stderr that tells what happens just now, and above it what is told once; of no use where that is no terminal.
pub(crate) struct Line(ProgressBar, bool);

impl Line {
    pub(crate) fn new(quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(4) };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("[{elapsed}] {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar, quiet)
    }

    /// Shows what is true now.
    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if !self.0.is_hidden() {
            self.0.set_message(what());
        }
    }

    /// Tells something once, with or without a terminal.
    pub(crate) fn note(&self, what: &str) {
        if !self.1 {
            self.0.suspend(|| {
                let _ = writeln!(std::io::stderr(), "{what}");
            });
        }
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// How long it will still take, as soon as anything is known of that.
fn left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    if state.pos() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// How many thousandths of `whole` there are in `part`.
fn thousandths(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * u128::from(STEPS) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(STEPS).min(STEPS)
}

/// What each of so many runs counts for: what it is `asked` to move, where that is known of all; else they are alike.
fn weights(runs: usize, asked: &[Asked]) -> Vec<u64> {
    let known: Option<Vec<u64>> = asked.iter().map(Asked::weight).collect();
    known.filter(|weights| weights.len() == runs).unwrap_or_else(|| vec![1; runs])
}

/// How many thousandths of all runs are done, of which these `parts` are.
fn in_all(parts: &[u64], weights: &[u64]) -> u64 {
    let both = parts.iter().zip(weights);
    let done: u128 = both.map(|(part, weight)| u128::from(*part) * u128::from(*weight)).sum();
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    u64::try_from(done / all.max(1)).unwrap_or(STEPS)
}

/// Hears of all runs and shows them in one bar.
pub(crate) struct Watcher {
    bar: Bar,
    /// Thousandths of each run.
    parts: Mutex<Vec<u64>>,
    /// What each counts for in the whole.
    weights: Vec<u64>,
    done: AtomicUsize,
    start: Instant,
    /// What the scenarios of the runs are called; of none where all is to be quiet.
    names: Vec<String>,
}

impl Watcher {
    /// Of runs whose scenarios are called so.
    #[expect(clippy::disallowed_methods, reason = "for people, and for what writing takes")]
    pub(crate) fn new(quiet: bool, names: Vec<String>, asked: &[Asked]) -> Self {
        Self {
            bar: Bar::new(quiet, names.first().map_or("", String::as_str)),
            parts: Mutex::new(vec![0; names.len()]),
            weights: weights(names.len(), asked),
            done: AtomicUsize::new(0),
            start: Instant::now(),
            names: if quiet { Vec::new() } else { names },
        }
    }

    pub(crate) fn clear(&self) {
        self.bar.clear();
    }

    fn show(&self, index: usize, part: u64, message: impl FnOnce(usize) -> String) {
        // Who finds the lock taken has nothing newer to show.
        if self.bar.0.is_hidden() {
            return;
        }
        let Ok(mut parts) = self.parts.try_lock() else { return };
        // Never back, should more flows begin than was thought.
        parts[index] = parts[index].max(part);
        self.bar.0.set_position(in_all(&parts, &self.weights));
        self.bar.0.set_message(message(parts.len()));
    }
}

/// How far a run is, in words.
fn of_one(progress: &Progress) -> String {
    let simulated = format!("{:.2} ms simulated", progress.now.as_secs_f64() * 1e3);
    match progress.again {
        Some((done, all)) => {
            let percent = thousandths(done, all) / 10;
            format!("{simulated}, {percent} % of its schedules done again with less in their way (replays)")
        }
        None => format!(
            "{simulated}, {} of {} flows, {:.1} M hops",
            progress.flows_done,
            progress.flows_begun,
            crate::format::float(progress.packet_hops) / 1e6
        ),
    }
}

impl Watch for Watcher {
    fn progress(&self, index: usize, progress: &Progress) -> Go {
        if let (Some(warning), Some(name)) = (&progress.warning, self.names.get(index)) {
            self.bar.hide_while(|| {
                let _ = writeln!(std::io::stderr(), "{name}: warning: {warning}");
            });
        }
        // Whichever ends it first.
        let delivered = progress.total.map_or(0, |total| thousandths(progress.delivered, total));
        let passed = progress.stop.map_or(0, |stop| thousandths(progress.now.as_ps(), stop.as_ps()));
        let part = delivered.max(passed);
        self.show(index, part, |runs| match runs {
            1 => of_one(progress),
            runs => format!("{} of {runs} runs", self.done.load(Ordering::Relaxed)),
        });
        if interrupted() { Go::Stop } else { Go::On }
    }

    fn ended(&self, index: usize, _result: &Result<Results, RunError>) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.show(index, STEPS, |runs| format!("{done} of {runs} runs"));
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_what_it_is_at_in_the_simulation_and_behind_it() {
        let now = roci_units::Instant::from_ps(2_500_000_000);
        let simulating =
            Progress { now, flows_done: 3, flows_begun: 8, packet_hops: 1_200_000, ..Progress::default() };
        assert_eq!(of_one(&simulating), "2.50 ms simulated, 3 of 8 flows, 1.2 M hops");
        let again = of_one(&Progress { again: Some((40, 120)), ..simulating });
        assert_eq!(
            again,
            "2.50 ms simulated, 33 % of its schedules done again with less in their way (replays)"
        );
    }

    #[test]
    fn a_run_counts_for_what_it_moves_and_all_are_alike_where_one_has_no_end() {
        let of = |octets| Asked { flows: 1, octets, ..Asked::default() };
        let heavy = weights(2, &[of(1_000_000), of(9_000_000)]);
        assert_eq!(in_all(&[STEPS, 0], &heavy), 100, "the light one of two is done");
        assert_eq!(in_all(&[STEPS, 500], &heavy), 550);
        let endless = weights(2, &[of(1_000_000), Asked { endless: 1, ..of(9_000_000) }]);
        assert_eq!(in_all(&[STEPS, 0], &endless), 500);
        assert_eq!(in_all(&[STEPS, STEPS], &weights(2, &[])), STEPS);
    }
}
