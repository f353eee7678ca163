//! `roci ctl`: registers and counters of a running device.

mod json;

use super::dash;
use crate::Failure;
use crate::args::ctl::{Action, Ctl};
use crate::execute::print;
use crate::progress;
use roci_endpoint::Qpn;
use roci_endpoint::control;
use roci_endpoint::control::board::{Key, Pair};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where no switch has told of a hop.
const NO_HOPS: &str = "no switch has told anything: it takes one that writes telemetry (`roci switch --set switch.int=true`) \
    and packets with room for it (`--control hpcc`, `powertcp` or a program that reads it)\n";

pub(crate) fn ctl(arguments: &Ctl) -> Result<(), Failure> {
    let named = || std::env::var_os(control::VARIABLE).map(PathBuf::from);
    let missing =
        || Failure::Request(format!("--socket or {} is to name the control socket", control::VARIABLE));
    let socket = arguments.socket.clone().or_else(named).ok_or_else(missing)?;
    let ask = |request: &str| ask(&socket, request);
    match &arguments.action {
        Action::Get { qp, name, json } => {
            let answer = ask(&words("get", [qp.as_ref(), name.as_ref()]))?;
            print(&if *json { format!("{:#}\n", json::registers(&answer)) } else { answer });
        }
        Action::Set { qp, name, value } => print(&ask(&format!("set {qp} {name} {value}"))?),
        Action::Counters { json } => {
            let answer = ask("counters")?;
            print(&if *json { format!("{:#}\n", json::counters(&answer)) } else { answer });
        }
        Action::Hops { qp, every, json } => {
            progress::listen()?;
            print(&hops(&socket, *qp, *every, *json)?);
        }
        Action::Watch { qp, every, times, stamp, json } => {
            progress::listen()?;
            let told: fn(&str, f64) -> String = match (*json, *stamp) {
                (true, _) => json::change,
                (_, true) => stamped,
                _ => |line, _| format!("{line}\n"),
            };
            watch(&ask, &words("get", [qp.as_ref()]), *every, *times, told)?;
        }
    }
    Ok(())
}

/// What two readings tell of the hops of one queue pair, or of all.
fn hops(socket: &Path, only: Option<Qpn>, every: Duration, as_json: bool) -> Result<String, Failure> {
    let board = dash::twice(&[socket.to_owned()], every)?;
    dash::all_there(&board)?;
    let there = || board.pairs().filter(|(key, pair)| pair.is_there && only.is_none_or(|qpn| key.qpn == qpn));
    if let (Some(qpn), None) = (only, there().next()) {
        return Err(Failure::Request(format!("there is no queue pair {}", dash::number(qpn))));
    }
    if as_json {
        let told = |(key, pair): (Key, &Pair)| serde_json::json!({ "queue_pair": dash::number(key.qpn), "law": pair.row.law, "ways": super::hops::json(pair) });
        return Ok(format!("{:#}\n", there().map(told).collect::<serde_json::Value>()));
    }
    let hops = dash::hops(&board, only);
    let left_alone = super::hops::left_alone(&ask(socket, "counters")?).map(|told| told + "\n");
    if hops.is_none() && left_alone.is_none() {
        return Ok(NO_HOPS.to_owned());
    }
    Ok(hops.into_iter().chain(left_alone).collect())
}

fn words<const N: usize>(first: &str, rest: [Option<&String>; N]) -> String {
    rest.into_iter().flatten().fold(first.to_owned(), |line, word| line + " " + word)
}

fn ask(socket: &Path, request: &str) -> Result<String, Failure> {
    match control::ask(socket, request) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(why)) => Err(Failure::Request(why)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            let (socket, variable) = (socket.display(), control::VARIABLE);
            Err(Failure::Run(format!("no endpoint serves {socket}; start one with {variable}={socket}")))
        }
        Err(error) => Err(Failure::Run(format!("{}: {error}", socket.display()))),
    }
}

/// Seconds since 1970, of which microseconds are told.
#[expect(clippy::disallowed_methods, reason = "for people and scripts, who hold it against other clocks")]
fn seconds() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// A line behind the time that it is of, in seconds.
fn stamped(line: &str, at: f64) -> String {
    format!("{at:.6} {line}\n")
}

/// The lines of an answer whose register has not been seen, or with another value.
fn changed<'a>(seen: &mut BTreeMap<String, String>, answer: &'a str) -> Vec<&'a str> {
    let is_new = |line: &&str| {
        // Queue pair, law and name; a value may have spaces.
        let Some((end, _)) = line.match_indices(' ').nth(2) else { return false };
        let (register, value) = line.split_at(end);
        seen.insert(register.to_owned(), value.to_owned()).as_deref() != Some(value)
    };
    answer.lines().filter(is_new).collect()
}

/// Prints each register when it is first seen, and then when it has another value, as `told` has its line and the time.
fn watch(
    ask: &dyn Fn(&str) -> Result<String, Failure>,
    request: &str,
    every: Duration,
    times: Option<u64>,
    told: fn(&str, f64) -> String,
) -> Result<(), Failure> {
    let mut seen = BTreeMap::new();
    let mut left = times.unwrap_or(u64::MAX);
    while left > 0 && !progress::interrupted() {
        let answer = ask(request)?;
        let now = seconds();
        let changed: String = changed(&mut seen, &answer).into_iter().map(|line| told(line, now)).collect();
        if !changed.is_empty() {
            print(&changed);
        }
        left -= 1;
        if left > 0 {
            std::thread::sleep(every);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_shown_again_only_with_another_value() {
        let mut seen = BTreeMap::new();
        let first = "0x11 dcqcn alpha 1/2\n0x11 dcqcn program failed at 3\n";
        assert_eq!(changed(&mut seen, first), ["0x11 dcqcn alpha 1/2", "0x11 dcqcn program failed at 3"]);
        assert!(changed(&mut seen, first).is_empty());
        let later = "0x11 dcqcn alpha 1/4\n0x11 dcqcn program failed at 3\n0x12 none state Reset\n";
        assert_eq!(changed(&mut seen, later), ["0x11 dcqcn alpha 1/4", "0x12 none state Reset"]);
    }

    #[test]
    fn the_time_before_a_line_counts_from_1970_and_has_microseconds() {
        assert!(seconds() > 1.7e9, "{}", seconds());
        assert_eq!(
            stamped("0x12 none state Reset", 1_700_000_000.5),
            "1700000000.500000 0x12 none state Reset\n"
        );
    }
}
