//! `roci dash`: what congestion control does on a real network, live on a terminal, or as a table of two readings.
//!
//! What readings come to is computed by `roci_endpoint::control::board`. Here `asking` brings them, `state` is what the
//! view is like and what keys do to it, `draw` and `detail` put it on a screen, and `live` runs all of that on a terminal.

mod asking;
mod detail;
mod draw;
mod live;
mod plain;
mod state;
#[cfg(test)]
mod tests;

pub(super) use plain::{all_there, hops, twice};

use crate::Failure;
use crate::args::dash::Dash;
use crate::progress;
use roci_endpoint::control;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;

pub(crate) fn dash(asked: &Dash) -> Result<(), Failure> {
    let sockets = sockets(asked)?;
    progress::listen()?;
    match asked.once || !std::io::stdout().is_terminal() {
        true => plain::once(&sockets, asked.every, asked.json),
        false => live::live(&sockets, asked.every),
    }
}

/// The sockets that are named, or else that of the environment.
fn sockets(asked: &Dash) -> Result<Vec<PathBuf>, Failure> {
    let named = || std::env::var_os(control::VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let sockets = match asked.sockets.as_slice() {
        [] => named().into_iter().collect(),
        sockets => sockets.to_vec(),
    };
    if sockets.is_empty() {
        let what = format!("--socket or {} is to name a control socket", control::VARIABLE);
        return Err(Failure::Request(what));
    }
    let mut seen = BTreeSet::new();
    if let Some(again) = sockets.iter().find(|socket| !seen.insert(*socket)) {
        let what = format!("--socket {} is named twice, and would count twice", again.display());
        return Err(Failure::Request(what));
    }
    Ok(sockets)
}

/// The number of a queue pair, as `roci ctl` writes and takes it.
pub(super) fn number(qpn: roci_endpoint::Qpn) -> String {
    format!("{qpn:#08x}")
}
