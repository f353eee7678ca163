//! The control socket: registers of laws and counters of a running device, for `roci ctl`.
//!
//! A Unix stream socket that its own user, or root, may connect to. A connection carries one request, a line, and one answer:
//! a line `ok`, or `error` and why, then what was asked for until the end of the stream.
//!
//! | request | answer |
//! | --- | --- |
//! | `get [QP [NAME]]` | lines of queue pair, law, name, value, separated by spaces, of which values may have some; QP may be `all` |
//! | `set QP NAME VALUE` | what the register is on how many queue pairs now and was before, and perhaps a remark on what becomes of the value; QP may be `all`, of which one at least has to have the register |
//! | `table` | a line of names, then for each queue pair a line of what they name: see [`table`] |
//! | `counters` | counters as Prometheus text |
//!
//! A queue pair is its number, decimal or hexadecimal behind `0x`. Names are those of its law's registers, and `state`, `allowed_rate`,
//! `allowed_window`, `in_flight`, `packets`, `octets`, `retransmitted` and `cnps`, which every queue pair has and which cannot be written. Where switches have told of hops there
//! are `hops_told`, how long ago that was, and of each `hop1_queue`, `hop1_rate` and `hop1_sent`, what its port has sent since it was met; of
//! the way of the peer's packets the same behind `from_`. A law that is a
//! program has the name of its image's file. A queue pair whose program has failed has the registers of the law that took over, which cannot be written either,
//! and of the program a line `failed`: which of the counters `program_failures_total` that is in, where and why.

pub mod board;
mod counters;
pub mod hops;
pub mod table;

use crate::congestion::title;
use crate::device::DeviceInner;
use crate::io::sys;
use crate::numbers::{MANAGEMENT, inner};
use crate::shard::{Core, Entry};
use roci_control::{Credit, Law, Value};
use roci_units::{BitsPerSec, Bytes, Instant, Qpn, Span};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The variable that names the control sockets of programs that name none.
pub const VARIABLE: &str = "ROCI_CONTROL";
/// Devices of one path: the second is at the path with `.2` behind it, and so on.
const DEVICES_MAX: u32 = 64;
/// The longest request.
const REQUEST_MAX: u64 = 4096;
/// A client that says nothing is given up after so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// How soon the thread notices that its device is gone.
const LOOK: Duration = Duration::from_millis(200);
/// Queue pairs that are looked at before the shard is let go to those who send and receive.
const AT_ONCE: u32 = 16;
/// What becomes of a rate that was written.
const PASSES: &str = "rc rises to rt again within some increase_timers, as after a cut; \
    to keep it, set increase_timer to 1000s and byte_counter to 0 before\n";
/// What becomes of a window that was written.
const OWN_WINDOW: &str = "the law sets window anew with what it next hears of the path; \
    to bound what is in flight, make the queue pair with a window of its own (roci perf --window)\n";
/// What becomes of a rate that was written to TIMELY.
const OWN_RATE: &str = "the law sets rate anew with the next round trip that it measures\n";
/// What is read of a queue pair whose program has failed.
const FAILED: &str = "failed";
/// Why nothing of all queue pairs can be named.
const NOBODY: &str = "there is no queue pair yet, or no longer";

/// Asks the device at `path`; gives the answer, or why there is none.
///
/// # Errors
/// What the operating system says when nobody is there.
pub fn ask(path: &Path, request: &str) -> io::Result<Result<String, String>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("{}\n", request.trim()).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (first, rest) = answer.split_once('\n').unwrap_or((&answer, ""));
    Ok(match first.strip_prefix("error ") {
        Some(why) => Err(why.to_owned()),
        None if first == "ok" => Ok(rest.to_owned()),
        None => Err("the device gave no answer".to_owned()),
    })
}

/// The name of a socket, for as long as its device lives.
#[derive(Debug)]
pub(crate) struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        // Who has removed it before has done our work.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Names the variable that is to blame, and what it says.
pub(crate) fn blamed(path: &Path, error: &io::Error) -> io::Error {
    let remedy = match error.kind() {
        io::ErrorKind::AlreadyExists => "; a file stands there: remove it, or name another place",
        _ => "",
    };
    let text =
        format!("{VARIABLE} is {}, where no control socket can be made: {error}{remedy}", path.display());
    io::Error::new(error.kind(), text)
}

/// Whether the variable, if it is set, names a place for a socket: for who opens a device only later.
pub(crate) fn check_variable() -> io::Result<()> {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return Ok(()) };
    let path = Path::new(&path);
    check(path).map_err(|error| blamed(path, &error))
}

fn check(path: &Path) -> io::Result<()> {
    std::os::unix::net::SocketAddr::from_pathname(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !std::fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(io::ErrorKind::AlreadyExists.into()),
        _ => Ok(()),
    }
}

/// A socket at `path`, or where another device has that, at the next free name behind it.
pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, Name)> {
    for number in 1..=DEVICES_MAX {
        let mut name = path.as_os_str().to_owned();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let name = PathBuf::from(name);
        match UnixListener::bind(&name) {
            Ok(listener) => return ready(listener, name),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(_) if UnixStream::connect(&name).is_ok() => {}
            // Left behind by a program that was killed; what is no socket is somebody's file.
            Err(error) => {
                if !std::fs::symlink_metadata(&name)?.file_type().is_socket() {
                    return Err(error);
                }
                std::fs::remove_file(&name)?;
                return ready(UnixListener::bind(&name)?, name);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "too many devices have control sockets there"))
}

fn ready(listener: UnixListener, name: PathBuf) -> io::Result<(UnixListener, Name)> {
    std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok((listener, Name(name)))
}

/// Answers requests until the device is gone.
pub(crate) fn serve(listener: &UnixListener, device: &Weak<DeviceInner>) {
    while device.strong_count() > 0 {
        // Whatever is wrong with the descriptor shows when a client is taken.
        let _ = sys::wait(&[(listener.as_raw_fd(), false)], Some(LOOK));
        let Ok((stream, _)) = listener.accept() else { continue };
        let Some(device) = device.upgrade() else { return };
        // A client that goes away early has itself to blame.
        let _ = attend(stream, &device);
    }
}

fn attend(mut stream: UnixStream, device: &Arc<DeviceInner>) -> io::Result<()> {
    let user = sys::peer_user(&stream)?;
    if user != sys::user() && user != 0 {
        return Ok(());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = line(&mut stream)?;
    let answer = match device.answer(&request) {
        Ok(answer) => format!("ok\n{answer}"),
        Err(why) => format!("error {}\n", why.replace('\n', " ")),
    };
    stream.write_all(answer.as_bytes())
}

fn line(stream: &mut UnixStream) -> io::Result<String> {
    let mut octets = Vec::new();
    BufReader::new(stream.take(REQUEST_MAX)).read_until(b'\n', &mut octets)?;
    String::from_utf8(octets).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// A queue pair's number, decimal or hexadecimal.
fn number(text: &str) -> Result<Qpn, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match read {
        Ok(number) if number < 1 << 24 => Ok(Qpn::new(number)),
        _ => Err(format!("`{text}` is no number of a queue pair")),
    }
}

impl DeviceInner {
    fn answer(&self, request: &str) -> Result<String, String> {
        let words: Vec<&str> = request.split_whitespace().collect();
        match words.as_slice() {
            ["get"] | ["get", "all"] => self.read(None, None),
            ["get", "all", name] => self.read(None, Some(name)),
            ["get", qp] => self.read(Some(number(qp)?), None),
            ["get", qp, name] => self.read(Some(number(qp)?), Some(name)),
            ["set", "all", name, value] => self.write(None, name, value),
            ["set", qp, name, value] => self.write(Some(number(qp)?), name, value),
            ["table"] => Ok(self.table()),
            ["counters"] => Ok(self.prometheus()),
            _ => {
                Err("requests are `get [QP [NAME]]`, `set QP NAME VALUE`, `table` and `counters`".to_owned())
            }
        }
    }

    /// Calls `with` for each queue pair, or for one, and with the time; whether there was any.
    fn each(&self, only: Option<Qpn>, mut with: impl FnMut(&mut Core, &Entry, u32, &Law, Instant)) -> bool {
        let mut found = false;
        for cell in &self.cells {
            let mut next = 0;
            loop {
                let mut shard = cell.lock();
                // Not before the lock is had: who had it has run the shard later than that, and its time does not go back.
                let now = self.now();
                let count = u32::try_from(shard.core.entries.len()).unwrap_or(u32::MAX);
                let places = match only {
                    Some(qpn) => shard.core.numbers.find(qpn).map_or(0..0, |place| place..place + 1),
                    None => next..count.min(next + AT_ONCE),
                };
                next = places.end;
                for place in places {
                    // Taken out for the while, so that the engine beside it can be asked.
                    let Some(entry) = shard.core.entries[place as usize].take() else { continue };
                    found = true;
                    let law = self.laws.get(usize::from(entry.law)).unwrap_or(&Law::None);
                    with(&mut shard.core, &entry, place, law, now);
                    shard.core.entries[place as usize] = Some(entry);
                }
                cell.nudge(&shard, now);
                if only.is_some() || next >= count {
                    break;
                }
            }
        }
        found
    }

    /// The same, but of all without RDMA-CM's.
    fn each_own(
        &self,
        only: Option<Qpn>,
        mut with: impl FnMut(&mut Core, &Entry, u32, &Law, Instant),
    ) -> bool {
        let mut found = false;
        self.each(only, |core, entry, place, law, now| {
            if only.is_some() || entry.qpn != MANAGEMENT {
                found = true;
                with(core, entry, place, law, now);
            }
        });
        found
    }

    fn read(&self, only: Option<Qpn>, name: Option<&str>) -> Result<String, String> {
        let (mut text, mut known) = (String::new(), false);
        let mut names = BTreeSet::new();
        let found = self.each_own(only, |core, entry, place, law, now| {
            let qpn = entry.qpn.get();
            let mut tell = |law: &str, register: &str, value: &str| {
                if name.is_some_and(|name| name != register) && !names.contains(register) {
                    names.insert(register.to_owned());
                }
                if name.is_none_or(|name| name == register) {
                    known = true;
                    // Writing to a String does not fail.
                    let _ = writeln!(text, "{qpn:#08x} {law} {register} {value}");
                }
            };
            let fallen = core.engine.fallen(inner(place)).map(|(fault, law)| (fault.brief(), law.clone()));
            if let Some((why, _)) = &fallen {
                tell(&title(law), FAILED, why);
            }
            let law = fallen.as_ref().map_or(law, |(_, fallback)| fallback);
            let called = title(law);
            for (register, value) in registers(core, entry, place, law, now) {
                tell(&called, &register, &value);
            }
        });
        match (only, name) {
            (Some(qpn), _) if !found => Err(format!("there is no queue pair {qpn:#08x}")),
            (Some(_), Some(name)) if !known => {
                Err(format!("its law has no register `{name}`{}", there_are(&names)))
            }
            (None, Some(_)) if !found => Err(NOBODY.to_owned()),
            (None, Some(name)) if !known => {
                Err(format!("no queue pair has a register `{name}`{}", there_are(&names)))
            }
            _ => Ok(text),
        }
    }

    fn write(&self, only: Option<Qpn>, name: &str, value: &str) -> Result<String, String> {
        let (mut taken, mut wrong, mut remark) = (false, None, String::new());
        let mut fallen = Vec::new();
        let mut names = BTreeSet::new();
        let mut written = Written::default();
        let found = self.each_own(only, |core, entry, place, law, now| {
            if only.is_none() && !law.registers().iter().any(|register| register.name == name) {
                let writable = law.registers().iter().filter(|register| register.writable);
                names.extend(writable.map(|register| register.name.to_owned()));
                return;
            }
            // Where one of all has failed, the others are written all the same.
            if only.is_none()
                && let Some((fault, _)) = core.engine.fallen(inner(place))
            {
                fallen.push(format!("{} failed with {:#08x} ({})", title(law), entry.qpn, fault.brief()));
                return;
            }
            let before = core.engine.control_get(inner(place), name, now);
            match core.engine.control_set(inner(place), name, value, now) {
                Ok(()) => {
                    taken = true;
                    let got = core.engine.control_get(inner(place), name, now);
                    written.note(got.as_ref(), before.as_ref());
                    if let Some(bounded) = got.filter(|got| is_bounded(value, got)) {
                        remark = bounds(law, name, value, &bounded);
                        remark.push_str(own(law, name));
                    } else if !own(law, name).is_empty() {
                        own(law, name).clone_into(&mut remark);
                    } else if matches!(law, Law::Dcqcn(_)) && name == "rc" && recovers(core, place, now) {
                        PASSES.clone_into(&mut remark);
                    }
                }
                Err(error) => {
                    let why = error
                        .map_or_else(|| "there is no room for another law".to_owned(), |it| it.to_string());
                    wrong = Some(format!("{:#08x}: {why}", entry.qpn));
                }
            }
        });
        match (wrong, only) {
            (Some(wrong), _) => Err(wrong),
            (None, Some(qpn)) if !found => Err(format!("there is no queue pair {qpn:#08x}")),
            (None, None) if !found => Err(NOBODY.to_owned()),
            (None, None) if !taken && !fallen.is_empty() => Err(format!("nothing is set: {}", few(&fallen))),
            (None, None) if !taken => {
                Err(format!("no queue pair has a register `{name}` that can be written{}", there_are(&names)))
            }
            _ if fallen.is_empty() => Ok(written.told(name) + &remark),
            _ => Ok(format!("{}{remark}the others are set; {}\n", written.told(name), few(&fallen))),
        }
    }
}

/// The values that a register has on so many queue pairs, and those that it had on them before.
#[derive(Default)]
struct Written(BTreeMap<String, BTreeMap<String, usize>>);

impl Written {
    fn note(&mut self, now: Option<&Value>, before: Option<&Value>) {
        let text = |value: Option<&Value>| value.map_or_else(|| "unknown".to_owned(), Value::to_string);
        *self.0.entry(text(now)).or_default().entry(text(before)).or_default() += 1;
    }

    /// A line for each value: `rai is 10Mb/s on 3 queue pairs now, and was 40Mb/s on 2, 20Mb/s on 1`.
    fn told(&self, name: &str) -> String {
        let line = |(now, before): (&String, &BTreeMap<String, usize>)| {
            let count: usize = before.values().sum();
            let s = if count == 1 { "" } else { "s" };
            let mut several: Vec<_> = before.iter().collect();
            several.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let was = match several.as_slice() {
                [(was, _)] => (*was).clone(),
                several => {
                    // Rates that laws have cut are as many as queue pairs.
                    let told = several.iter().take(TOLD).map(|(was, count)| format!("{was} on {count}"));
                    let more: usize = several.iter().skip(TOLD).map(|(_, count)| **count).sum();
                    let more = (more > 0).then(|| format!("others on {more}"));
                    told.chain(more).collect::<Vec<_>>().join(", ")
                }
            };
            format!("{name} is {now} on {count} queue pair{s} now, and was {was}\n")
        };
        self.0.iter().map(line).collect()
    }
}

/// As many things of a kind are told.
const TOLD: usize = 4;

/// The first few of `all`, and how many more there are.
fn few(all: &[String]) -> String {
    let told = all[..all.len().min(TOLD)].join("; ");
    match all.len().saturating_sub(TOLD) {
        0 => told,
        more => format!("{told}; and {more} more"),
    }
}

/// Which registers there are in place of one that there is not.
fn there_are(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) }
}

/// Whether the law holds another quantity than `text` says: it keeps some within bounds that depend on others.
fn is_bounded(text: &str, got: &Value) -> bool {
    match got {
        Value::Rate(rate) => text.parse::<BitsPerSec>().is_ok_and(|asked| asked.as_kbps() != rate.as_kbps()),
        Value::Octets(octets) => text.parse::<Bytes>().is_ok_and(|asked| asked != *octets),
        _ => false,
    }
}

/// What is said of a value that was written and is another one now.
fn bounds(law: &Law, name: &str, asked: &str, got: &Value) -> String {
    let register = law.registers().iter().find(|register| register.name == name);
    let range = register.map_or("", |register| register.range);
    format!("{name} takes {range}: it is {got} now, not {asked}\n")
}

/// What is said of a quantity that the law computes again and again; nothing of all others.
fn own(law: &Law, name: &str) -> &'static str {
    match (law, name) {
        (
            Law::Dctcp(_) | Law::Hpcc(_) | Law::PowerTcp(_) | Law::ThetaPowerTcp(_) | Law::Nscc(_),
            "window",
        ) => OWN_WINDOW,
        (Law::Timely(_), "rate") => OWN_RATE,
        _ => "",
    }
}

/// Whether a rate of DCQCN rises faster than a person would notice that it was written.
fn recovers(core: &mut Core, place: u32, now: Instant) -> bool {
    match core.engine.control_get(inner(place), "increase_timer", now) {
        Some(Value::Time(period)) => period < Span::from_secs(1),
        _ => false,
    }
}

/// What can be read of a queue pair, in order.
fn registers(
    core: &mut Core,
    entry: &Entry,
    place: u32,
    law: &Law,
    now: Instant,
) -> Vec<(Cow<'static, str>, String)> {
    let mut all: Vec<(Cow<'static, str>, String)> = Vec::new();
    if let Ok(status) = core.engine.query(inner(place)) {
        let limit = |value: u32, shown: String| {
            if value == Credit::UNLIMITED { "unlimited".to_owned() } else { shown }
        };
        let Credit { rate_kbps, window, .. } = status.credit;
        all.push(("state".into(), format!("{:?}", status.state)));
        all.push((
            "allowed_rate".into(),
            limit(rate_kbps, BitsPerSec::from_kbps(rate_kbps.into()).to_string()),
        ));
        all.push(("allowed_window".into(), limit(window, format!("{window}B"))));
        all.push(("in_flight".into(), format!("{}B", status.in_flight)));
        let counters = entry.counters(&core.engine, place);
        all.push(("packets".into(), counters.packets.to_string()));
        all.push(("octets".into(), format!("{}B", counters.octets)));
        all.push(("retransmitted".into(), counters.retransmitted.to_string()));
        all.push(("cnps".into(), counters.cnps.to_string()));
    }
    for way in entry.ways(now) {
        let whose = if way.is_ours { "" } else { "from_" };
        all.push((format!("{whose}hops_told").into(), way.age.to_string()));
        for (place, hop) in way.hops.iter().enumerate() {
            let name = |what| format!("{whose}hop{}_{what}", place + 1).into();
            all.push((name("queue"), format!("{}B", hop.queued.0)));
            all.push((name("rate"), hop.rate.to_string()));
            all.push((name("sent"), format!("{}B", hop.sent.0)));
        }
    }
    for register in law.registers() {
        if let Some(value) = core.engine.control_get(inner(place), register.name, now) {
            all.push((register.name.into(), value.to_string()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Backend, Device, DeviceConfig, Progress};
    use crate::io::MemoryWire;

    #[test]
    fn a_path_for_a_control_socket_is_judged_before_there_is_one() {
        let folder = std::env::temp_dir();
        let judged = |path: &Path| check(path).map_err(|error| error.kind());
        assert_eq!(judged(&folder.join("roci-control-judged")), Ok(()));
        assert_eq!(judged(Path::new("roci-control-judged")), Ok(()));
        assert_eq!(judged(Path::new("/no/such/place")), Err(io::ErrorKind::NotFound));
        assert_eq!(judged(&folder), Err(io::ErrorKind::AlreadyExists));
        assert_eq!(judged(&folder.join("x".repeat(200))), Err(io::ErrorKind::InvalidInput));
        let why = blamed(Path::new("/no/such"), &io::ErrorKind::NotFound.into()).to_string();
        assert_eq!(why, "ROCI_CONTROL is /no/such, where no control socket can be made: entity not found");
        let why = blamed(Path::new("/a/file"), &io::ErrorKind::AlreadyExists.into()).to_string();
        assert!(why.ends_with("; a file stands there: remove it, or name another place"), "{why}");
    }

    #[test]
    fn what_was_written_is_told_with_what_it_was_and_on_how_many_queue_pairs() {
        let mut written = Written::default();
        let rate = |mbps| Value::Rate(BitsPerSec::from_mbps(mbps));
        written.note(Some(&rate(10)), Some(&rate(40)));
        assert_eq!(written.told("rai"), "rai is 10Mb/s on 1 queue pair now, and was 40Mb/s\n");
        for before in [40, 20, 1, 2, 3, 4] {
            written.note(Some(&rate(10)), Some(&rate(before)));
        }
        let was = "40Mb/s on 2, 1Mb/s on 1, 20Mb/s on 1, 2Mb/s on 1, others on 2";
        assert_eq!(written.told("rai"), format!("rai is 10Mb/s on 7 queue pairs now, and was {was}\n"));
        written.note(Some(&rate(5)), Some(&rate(5)));
        assert_eq!(
            written.told("rai").lines().nth(1),
            Some("rai is 5Mb/s on 1 queue pair now, and was 5Mb/s")
        );
    }

    #[test]
    fn a_request_is_carried_out_no_earlier_than_what_held_it_up() {
        let backend = Backend::Memory(MemoryWire::new(1));
        let config = DeviceConfig { backend, progress: Progress::Caller, ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let cq = device.create_cq().unwrap();
        let _qp = device.alloc_pd().create_qp(&cq, &cq).build().unwrap();
        let inner = &device.inner;
        let shard = inner.cells[0].lock();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let mut at = None;
                inner.each(None, |_, _, _, _, now| at = Some(now));
                at
            });
            std::thread::sleep(Duration::from_millis(20));
            let before = inner.now();
            drop(shard);
            assert!(asked.join().unwrap() >= Some(before));
        });
    }
}
