//! Results as files: for programs, for spreadsheets, for Wireshark and for people.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`digits`] | numbers as people say them |
//! | [`folder`] | a folder of results that appears as a whole or not at all |
//! | [`summary`], `faults`, `nic`, `rpc`, `traffic` | `summary.json` |
//! | [`flows`] | `flows.csv` |
//! | [`links`] | `links.csv` |
//! | [`priorities`] | `priorities.csv`, and what `summary.json` says of them |
//! | [`collectives`] | `collectives.csv` |
//! | [`goals`] | `ranks.csv`, `critical.csv`, `joint.csv` |
//! | [`series`] | `series.parquet` |
//! | `timeline` | `timeline.json` |
//! | [`pcap`] | packet captures in pcapng |
//! | [`report`] | `report.html`, of one run or of several side by side |

pub mod collectives;
pub mod digits;
mod faults;
pub mod flows;
pub mod folder;
pub mod goals;
pub mod links;
mod nic;
pub mod pcap;
pub mod priorities;
pub mod report;
mod rpc;
pub mod series;
pub mod summary;
mod timeline;
mod traffic;

pub use folder::Folder;

use crate::results::Results;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file or folder could not be made.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something that is not ours stands where the results are to go.
    #[error("{} is not a folder of results ({} is not one of ours); choose another with --out", path.display(), foreign.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What in it did not come from here.
        foreign: PathBuf,
    },
    /// The path cannot be that of a folder.
    #[error("{} cannot be a folder of results: it has no name of its own; choose another with --out", path.display())]
    Nameless {
        /// The path.
        path: PathBuf,
    },
}

/// Writes `results` into `folder`: `flows.csv`, `links.csv`, `series.parquet`, `report.html` and `summary.json`;
/// `priorities.csv` where there are several priorities, `collectives.csv` where there are collectives, `ranks.csv` and `critical.csv` where there are GOAL schedules, `joint.csv` where these have collectives, `timeline.json` where that [was asked for](crate::results::Results::timeline), and `series.csv` where the series is [to be text too](crate::results::Series::set_text).
///
/// `clock` gives seconds since any origin; what passes is noted in the results and goes into `summary.json`, which is
/// written last.
///
/// # Errors
/// [`OutputError::Write`] names the file; nothing appears in that case.
pub fn write_all(folder: &Path, results: &mut Results, clock: &dyn Fn() -> f64) -> Result<(), OutputError> {
    let began = clock();
    write(&folder.join("flows.csv"), |file| flows::write(file, results))?;
    write(&folder.join("links.csv"), |file| links::write(file, results))?;
    if results.priorities().next().is_some() {
        write(&folder.join("priorities.csv"), |file| priorities::write(file, results))?;
    }
    if !results.collectives.is_empty() {
        write(&folder.join("collectives.csv"), |file| collectives::write(file, results))?;
    }
    if !results.goals.is_empty() {
        write(&folder.join("ranks.csv"), |file| goals::write(file, results))?;
        write(&folder.join("critical.csv"), |file| goals::write_critical(file, results))?;
    }
    if results.goals.iter().any(|goal| !goal.joint.is_empty()) {
        write(&folder.join("joint.csv"), |file| goals::write_joint(file, results))?;
    }
    if results.timeline {
        write(&folder.join("timeline.json"), |file| timeline::write(file, results))?;
    }
    write(&folder.join("series.parquet"), |file| series::write(file, results))?;
    if results.series.is_text() {
        write(&folder.join("series.csv"), |file| series::write_csv(file, results))?;
    }
    write(&folder.join("report.html"), |file| report::write(file, results))?;
    let recorded: Vec<_> = results.programs.iter().filter(|program| !program.events.is_empty()).collect();
    for program in &recorded {
        let name = match recorded.len() {
            1 => "events.txt".to_owned(),
            _ => format!("events-{}.txt", program.control),
        };
        write(&folder.join(name), |file| file.write_all(program.events.as_bytes()))?;
    }
    results.run.output_s = clock() - began;
    write(&folder.join("summary.json"), |file| summary::write(file, results))
}

/// Creates the file at `path` and has `fill` write it. One that cannot be written to its end is removed.
///
/// # Errors
/// [`OutputError::Write`] names the file.
pub fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), OutputError> {
    let inner = || {
        let mut file = BufWriter::new(File::create(path)?);
        fill(&mut file).and_then(|()| file.flush()).inspect_err(|_| {
            // Whoever reads half of it would take it for all.
            let _ = std::fs::remove_file(path);
        })
    };
    inner().map_err(|source| OutputError::Write { path: path.into(), source })
}

#[cfg(test)]
pub(crate) mod test_results;
