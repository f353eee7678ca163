//! The command `roci`: arguments, progress, tables and exit codes. What it does is done by `roci_lab` and
//! `roci_endpoint`.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`args`] | what can be asked for |
//! | [`command`] | the commands |
//! | [`execute`], [`plan`] | running groups of runs and writing their results, and what is said of them before |
//! | [`progress`] | how far they have come; Ctrl-C |
//! | [`table`] | what is printed |
//! | `format` | numbers for people |
//!
//! It exits with 0 when all is done, 1 when a run failed, 2 when the request was wrong.
#![forbid(unsafe_code)]

mod args;
mod command;
mod execute;
mod format;
mod plan;
mod progress;
mod table;

use args::Command;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// The C library's allocator keeps the holes that growing tables of queue pairs leave behind them: 100 000 short flows
/// on 16 hosts held 2 GB for 0.2 in use, and spent three quarters of the run on getting them.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Why the command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// The request was wrong: exit 2.
    Request(String),
    /// It was right, but a run failed: exit 1.
    Run(String),
}

fn main() -> ExitCode {
    // A panic aborts, so no draft of results would be dropped.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        roci_lab::output::folder::remove_drafts();
        print(panic);
    }));
    let done = match args::parse().command {
        Command::Run(arguments) => command::run(&arguments),
        Command::Sweep(arguments) => command::sweep(&arguments),
        Command::Compare(arguments) => command::compare(&arguments),
        Command::Tune(arguments) => command::tune(&arguments),
        Command::Import(arguments) => command::import(&arguments),
        Command::Reproduce(arguments) => command::reproduce(&arguments),
        Command::Nic(arguments) => command::nic(&arguments),
        Command::Program(arguments) => command::program(&arguments),
        Command::Perf(arguments) => command::perf(&arguments),
        Command::Ping(arguments) => command::ping(&arguments),
        Command::Ctl(arguments) => command::ctl(&arguments),
        Command::Dash(arguments) => command::dash(&arguments),
        Command::Switch(arguments) => command::switch(&arguments),
        Command::Help(arguments) => command::help(&arguments),
    };
    let (message, code) = match (done, execute::unprinted()) {
        (Ok(()), None) => return ExitCode::SUCCESS,
        (Ok(()), Some(message)) | (Err(Failure::Run(message)), _) => (message, 1),
        (Err(Failure::Request(message)), _) => (message, 2),
    };
    // A closed pipe behind us is no reason to panic.
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::from(code)
}
