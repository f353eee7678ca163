//! A table of two readings, for scripts.

use super::{asking, number};
use crate::Failure;
use crate::command::hops;
use crate::execute::print;
use crate::format::{or_dash, rate, size};
use crate::progress;
use crate::table;
use roci_endpoint::Qpn;
use roci_endpoint::control::board::{Board, Pair, Presence, Rates, Socket};
use roci_units::Span;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Reads twice and prints what that comes to. A socket that gives no answer is an error, after those that do are printed.
pub(super) fn once(sockets: &[PathBuf], every: Duration, as_json: bool) -> Result<(), Failure> {
    let board = twice(sockets, every)?;
    if as_json {
        print(&format!("{:#}\n", json(&board)));
    } else if board.sockets().iter().any(|socket| why(socket).is_none()) {
        print(&text(&board));
        print(&left_alone(sockets));
    }
    all_there(&board)
}

/// Reads all sockets, and so much later again.
#[expect(clippy::disallowed_methods, reason = "a reading bears the time at which it was taken")]
pub(crate) fn twice(sockets: &[PathBuf], every: Duration) -> Result<Board, Failure> {
    let mut board = Board::new(sockets.iter().cloned());
    let begun = Instant::now();
    for look in 0..2 {
        let due = every * look;
        while begun.elapsed() < due && !progress::interrupted() {
            std::thread::sleep((due - begun.elapsed().min(due)).min(Duration::from_millis(100)));
        }
        if progress::interrupted() {
            return Err(Failure::Run("interrupted".to_owned()));
        }
        for (socket, path) in sockets.iter().enumerate() {
            let reading = asking::read(path);
            let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            board.take(socket, Span::from_ps(nanos.saturating_mul(1000)), reading);
        }
    }
    Ok(board)
}

/// An error that names the sockets that gave no answer.
pub(crate) fn all_there(board: &Board) -> Result<(), Failure> {
    let missing: Vec<_> = board.sockets().iter().filter_map(missing).collect();
    match missing.as_slice() {
        [] => Ok(()),
        missing => Err(Failure::Run(missing.join("\n"))),
    }
}

fn why(socket: &Socket) -> Option<&str> {
    match &socket.presence {
        Presence::Away { why, .. } => Some(why),
        _ => None,
    }
}

fn missing(socket: &Socket) -> Option<String> {
    let remedy = || {
        let variable = roci_endpoint::control::VARIABLE;
        format!("start an endpoint with {variable}={}", socket.path.display())
    };
    why(socket).map(|why| format!("{}: {why}; {}", socket.path.display(), remedy()))
}

/// The queue pairs that both readings had, and what they come to.
pub(super) fn text(board: &Board) -> String {
    let are_many = board.sockets().len() > 1;
    let mut header =
        vec!["queue pair", "law", "state", "allowed", "sent", "in flight", "packets/s", "CNPs/s", "again/s"];
    if are_many {
        header.push("socket");
    }
    let mut table = table::table(&header);
    for (key, pair) in board.pairs().filter(|(_, pair)| pair.is_there) {
        let rates = pair.rates;
        let each = |read: fn(&Rates) -> f64| or_dash(rates.map(|rates| super::draw::count(read(&rates))));
        let mut cells = vec![
            number(key.qpn),
            pair.row.law.clone(),
            pair.row.state.clone(),
            super::draw::allowed(pair.row.allowed),
            or_dash(rates.map(|rates| rate(rates.sent_bps))),
            size(pair.row.in_flight),
            each(|rates| rates.packets),
            each(|rates| rates.cnps),
            each(|rates| rates.retransmitted),
        ];
        if are_many {
            cells.push(board.sockets()[key.socket].path.display().to_string());
        }
        table.add_row(cells);
    }
    let totals = super::draw::totals(board);
    match board.totals().1 {
        0 => format!("{totals}\n"),
        _ => format!("{}{}{totals}\n", table::lines(&table), hops(board, None).unwrap_or_default()),
    }
}

/// A line for each socket whose endpoint has left telemetry alone.
fn left_alone(sockets: &[PathBuf]) -> String {
    let told = |path: &PathBuf| {
        let told = hops::left_alone(&asking::ask(path, "counters").ok()?)?;
        Some(if sockets.len() > 1 { format!("{}: {told}\n", path.display()) } else { told + "\n" })
    };
    sockets.iter().filter_map(told).collect()
}

/// The hops that switches have told of, of one queue pair or of all; `None` where there are none.
pub(crate) fn hops(board: &Board, only: Option<Qpn>) -> Option<String> {
    let are_many = board.sockets().len() > 1;
    let names = ["queue pair", "socket"];
    let pairs = board.pairs().filter(|(key, pair)| pair.is_there && only.is_none_or(|only| key.qpn == only));
    let named = pairs.map(|(key, pair)| {
        let socket = board.sockets()[key.socket].path.display().to_string();
        let names = [number(key.qpn), socket].into_iter().take(1 + usize::from(are_many));
        (names.collect(), pair)
    });
    hops::text(&names[..1 + usize::from(are_many)], named)
}

/// The same for programs. A rate that is not known, for want of a second reading, and no limit are null.
pub(super) fn json(board: &Board) -> Value {
    let pair = |pair: &Pair| {
        let each = |read: fn(&Rates) -> f64| pair.rates.map(|rates| read(&rates));
        json!({
            "law": pair.row.law,
            "state": pair.row.state,
            "allowed_bps": pair.row.allowed.map(|rate| rate.0),
            "allowed_window_bytes": pair.row.window,
            "sent_bps": each(|rates| rates.sent_bps),
            "in_flight_bytes": pair.row.in_flight,
            "packets_per_s": each(|rates| rates.packets),
            "cnps_per_s": each(|rates| rates.cnps),
            "retransmitted_per_s": each(|rates| rates.retransmitted),
            "packets": pair.row.packets,
            "bytes": pair.row.octets,
            "cnps": pair.row.cnps,
            "retransmitted": pair.row.retransmitted,
        })
    };
    let pairs = board.pairs().filter(|(_, pair)| pair.is_there).map(|(key, of)| {
        let mut value = pair(of);
        value["ways"] = hops::json(of);
        value["queue_pair"] = number(key.qpn).into();
        value["socket"] = board.sockets()[key.socket].path.display().to_string().into();
        value
    });
    let sockets = board
        .sockets()
        .iter()
        .map(|socket| json!({ "path": socket.path.display().to_string(), "error": why(socket) }));
    let (totals, count) = board.totals();
    json!({
        "sockets": sockets.collect::<Vec<_>>(),
        "queue_pairs": pairs.collect::<Vec<_>>(),
        "totals": {
            "queue_pairs": count,
            "sent_bps": totals.sent_bps,
            "packets_per_s": totals.packets,
            "cnps_per_s": totals.cnps,
            "retransmitted_per_s": totals.retransmitted,
        },
    })
}
