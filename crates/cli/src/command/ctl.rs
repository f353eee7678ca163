//! `roci ctl`: registers and counters of a running device.

use crate::Failure;
use crate::args::ctl::{Action, Ctl};
use crate::execute::print;
use crate::progress;
use roci_endpoint::control;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub(crate) fn ctl(arguments: &Ctl) -> Result<(), Failure> {
    let named = || std::env::var_os(control::VARIABLE).map(PathBuf::from);
    let missing =
        || Failure::Request(format!("--socket or {} is to name the control socket", control::VARIABLE));
    let socket = arguments.socket.clone().or_else(named).ok_or_else(missing)?;
    let ask = |request: &str| ask(&socket, request);
    match &arguments.action {
        Action::Get { qp, name } => print(&ask(&words("get", [qp.as_ref(), name.as_ref()]))?),
        Action::Set { qp, name, value } => print(&ask(&format!("set {qp} {name} {value}"))?),
        Action::Counters => print(&ask("counters")?),
        Action::Watch { qp, every, times, stamp } => {
            progress::listen()?;
            watch(&ask, &words("get", [qp.as_ref()]), *every, *times, *stamp)?;
        }
    }
    Ok(())
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

/// The time that stands before lines: seconds since 1970, with microseconds.
#[expect(clippy::disallowed_methods, reason = "for people and scripts, who hold it against other clocks")]
fn clock() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:06} ", since.as_secs(), since.subsec_micros())
}

/// The lines of an answer whose register has not been seen, or with another value, each behind `stamp`.
fn changed(seen: &mut BTreeMap<String, String>, answer: &str, stamp: &str) -> String {
    let mut changed = String::new();
    for line in answer.lines() {
        // Queue pair, law and name; a value may have spaces.
        let Some((end, _)) = line.match_indices(' ').nth(2) else { continue };
        let (register, value) = line.split_at(end);
        if seen.insert(register.to_owned(), value.to_owned()).as_deref() != Some(value) {
            changed.extend([stamp, line, "\n"]);
        }
    }
    changed
}

/// Prints each register when it is first seen, and then when it has another value.
fn watch(
    ask: &dyn Fn(&str) -> Result<String, Failure>,
    request: &str,
    every: Duration,
    times: Option<u64>,
    stamp: bool,
) -> Result<(), Failure> {
    let mut seen = BTreeMap::new();
    let mut left = times.unwrap_or(u64::MAX);
    while left > 0 && !progress::interrupted() {
        let answer = ask(request)?;
        let changed = changed(&mut seen, &answer, &if stamp { clock() } else { String::new() });
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
    fn a_register_is_shown_again_only_with_another_value_and_behind_the_time_of_each() {
        let mut seen = BTreeMap::new();
        let first = "0x11 dcqcn alpha 1/2\n0x11 dcqcn program failed at 3\n";
        assert_eq!(changed(&mut seen, first, ""), first);
        assert_eq!(changed(&mut seen, first, "7.5 "), "");
        let later = "0x11 dcqcn alpha 1/4\n0x11 dcqcn program failed at 3\n0x12 none state Reset\n";
        assert_eq!(
            changed(&mut seen, later, "8.5 "),
            "8.5 0x11 dcqcn alpha 1/4\n8.5 0x12 none state Reset\n"
        );
        let (seconds, rest) = clock().split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(seconds.parse::<u64>().unwrap() > 1_700_000_000, "{seconds}");
        assert_eq!((rest.len(), rest.ends_with(' ')), (7, true), "microseconds and a space");
    }
}
