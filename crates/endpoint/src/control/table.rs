//! What a dashboard needs of every queue pair, a short line each: the request `table`, and how its answer is read.
//!
//! The first line has the names, `qp law state at allowed_rate allowed_window in_flight packets octets retransmitted cnps`,
//! separated by spaces as the values are, then `hops`; more may follow some day. `at` is when the line was read, in nanoseconds since the
//! device was opened, so that a rate between two readings does not depend on when these came to be asked for. Rates are in bits
//! per second, windows and what is in flight in octets, and `unlimited` stands where there is none; all else counts since the queue
//! pair was made. `hops` is what switches have told, by [`hops`](super::hops::Way), or `-`.

use super::hops::{self, Way};
use super::{AT_ONCE, ask};
use crate::congestion::title;
use crate::device::DeviceInner;
use crate::numbers::{MANAGEMENT, inner};
use roci_control::{Credit, Law};
use roci_transport::QpState;
use roci_units::{BitsPerSec, Instant, Qpn};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// The names in the first line.
const NAMES: [&str; 11] = [
    "qp",
    "law",
    "state",
    "at",
    "allowed_rate",
    "allowed_window",
    "in_flight",
    "packets",
    "octets",
    "retransmitted",
    "cnps",
];
/// What follows them.
const HOPS: &str = "hops";
/// What stands for no limit.
const UNLIMITED: &str = "unlimited";

/// What is told of one queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number.
    pub qpn: Qpn,
    /// The name of its law, of a program that of its image's file; where its program has failed, of the law that took over.
    pub law: String,
    /// Its state, by the name of a [`QpState`].
    pub state: String,
    /// When it was read, by the device's clock.
    pub at: Instant,
    /// The rate that its law allows; `None`: it is not paced.
    pub allowed: Option<BitsPerSec>,
    /// The octets that its law lets be in flight; `None`: no window of the law's.
    pub window: Option<u32>,
    /// Octets of payload sent and not acknowledged.
    pub in_flight: u64,
    /// Data packets sent, again or not.
    pub packets: u64,
    /// Octets of payload in them.
    pub octets: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Congestion notifications received.
    pub cnps: u64,
    /// What switches have told of its ways, where its packets have room for telemetry.
    pub ways: Vec<Way>,
}

/// Reads the table of the device at `path`: one line for each queue pair. It costs the device less than a microsecond for each,
/// and none of its shards is kept from its work for longer than a few queue pairs take.
///
/// # Errors
/// What the operating system says when nobody is there, or that the answer, within, is none: from a program that has no such request yet.
pub fn read(path: &Path) -> io::Result<Result<Vec<Row>, String>> {
    Ok(ask(path, "table")?.and_then(|answer| parse(&answer)))
}

/// The rows of an answer.
///
/// # Errors
/// The first line that is no such row.
pub fn parse(answer: &str) -> Result<Vec<Row>, String> {
    let mut lines = answer.lines();
    let names = lines.next().unwrap_or_default();
    if !names.split(' ').take(NAMES.len()).eq(NAMES) {
        return Err(format!("the table begins with `{names}`, and not with `{}`", NAMES.join(" ")));
    }
    lines.map(|line| row(line).ok_or_else(|| format!("`{line}` is no line of a table"))).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let (qpn, law, state) = (next()?, next()?, next()?);
    let mut count = || words.next()?.parse::<u64>().ok();
    let at = count()?;
    let mut limit = || match words.next()? {
        UNLIMITED => Some(None),
        number => number.parse::<u64>().ok().map(Some),
    };
    let (allowed, window) = (limit()?, limit()?);
    let mut count = || words.next()?.parse::<u64>().ok();
    Some(Row {
        qpn: super::number(qpn).ok()?,
        law: law.to_owned(),
        state: state.to_owned(),
        at: Instant::from_ps(at.checked_mul(1000)?),
        allowed: allowed.map(BitsPerSec),
        window: match window {
            Some(octets) => Some(u32::try_from(octets).ok()?),
            None => None,
        },
        in_flight: count()?,
        packets: count()?,
        octets: count()?,
        retransmitted: count()?,
        cnps: count()?,
        // A device of before has none.
        ways: match words.next() {
            Some(word) => hops::ways(word)?,
            None => Vec::new(),
        },
    })
}

/// A limit of a law's.
fn limit(value: u32, unit: u64) -> String {
    if value == Credit::UNLIMITED { UNLIMITED.to_owned() } else { (u64::from(value) * unit).to_string() }
}

impl DeviceInner {
    /// All queue pairs but RDMA-CM's. Numbers are taken from a few at a time, and become text once the shard is let go.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{} {HOPS}\n", NAMES.join(" "));
        let mut rows = Vec::with_capacity(AT_ONCE as usize);
        for cell in &self.cells {
            let mut next = 0;
            loop {
                let shard = cell.lock();
                let (now, core) = (self.now(), &shard.core);
                let count = u32::try_from(core.entries.len()).unwrap_or(u32::MAX);
                let places = next..count.min(next + AT_ONCE);
                next = places.end;
                for place in places {
                    let entry = core.entries[place as usize].as_ref();
                    let Some(entry) = entry.filter(|entry| entry.qpn != MANAGEMENT) else { continue };
                    let law = match core.engine.fallen(inner(place)) {
                        Some((_, fallback)) => fallback.name().into(),
                        None => self.laws.get(usize::from(entry.law)).map_or(Law::None.name().into(), title),
                    };
                    let status = core.engine.query(inner(place)).ok();
                    let counters = entry.counters(&core.engine, place);
                    rows.push((entry.qpn, law, status, counters, entry.ways(now)));
                }
                cell.nudge(&shard, now);
                drop(shard);
                for (qpn, law, status, counters, ways) in rows.drain(..) {
                    let state = status.as_ref().map_or(QpState::Error, |status| status.state);
                    let credit = status.as_ref().map_or(Credit::FREE, |status| status.credit);
                    let in_flight = status.as_ref().map_or(0, |status| status.in_flight);
                    // Writing to a String does not fail.
                    let _ = writeln!(
                        text,
                        "{qpn:#08x} {law} {state:?} {} {} {} {in_flight} {} {} {} {} {}",
                        now.as_ps() / 1000,
                        limit(credit.rate_kbps, 1000),
                        limit(credit.window, 1),
                        counters.packets,
                        counters.octets,
                        counters.retransmitted,
                        counters.cnps,
                        hops::word(&ways),
                    );
                }
                if next >= count {
                    break;
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_table_is_read_as_it_was_written_and_more_behind_it_is_left_alone() {
        let names = format!("{} {HOPS}", NAMES.join(" "));
        let text = format!(
            "{names}\n0x00002a dcqcn ReadyToSend 1500 2500000000 unlimited 4096 7 28000 1 2 -\n\
             0x00002b hpcc Reset 1501 unlimited 65536 0 0 0 0 0 to:7:1:5:800,100000000,1280,-3\n"
        );
        let rows = parse(&text).unwrap();
        let first = Row {
            qpn: Qpn::new(42),
            law: "dcqcn".to_owned(),
            state: "ReadyToSend".to_owned(),
            at: Instant::from_ps(1_500_000),
            allowed: Some(BitsPerSec(2_500_000_000)),
            window: None,
            in_flight: 4096,
            packets: 7,
            octets: 28_000,
            retransmitted: 1,
            cnps: 2,
            ways: Vec::new(),
        };
        assert_eq!(rows[0], first);
        assert_eq!((rows[1].allowed, rows[1].window), (None, Some(65_536)));
        assert_eq!(rows[1].ways[0].hops[0].queued.0, 800);
        let before = text.replace(" -\n", "\n").replace(" hops", "");
        assert_eq!(parse(&before).unwrap()[0], first, "a device that tells of no hops");
        assert_eq!(parse(&text.replace("\n", " more\n")).unwrap(), rows);
        assert_eq!(parse(&names).unwrap(), []);
    }

    #[test]
    fn what_is_no_table_is_refused_with_the_line() {
        let names = NAMES.join(" ");
        assert!(parse("").is_err());
        assert!(parse("0x00002a dcqcn rai 40Mb/s\n").is_err());
        for line in [
            "0x00002a dcqcn ReadyToSend 1500 2500000000 unlimited 4096 7 28000 1",
            "0x00002a dcqcn ReadyToSend -1 2500000000 unlimited 4096 7 28000 1 2",
            "0x00002a dcqcn ReadyToSend 1500 fast unlimited 4096 7 28000 1 2",
            "0x00002a dcqcn ReadyToSend 1500 1 4294967296 4096 7 28000 1 2",
            "0x00002a dcqcn ReadyToSend 18446744073709551615 1 1 4096 7 28000 1 2",
            "0x00002a dcqcn ReadyToSend 1500 1 1 4096 7 28000 1 2 to:1",
            "0xfffffffff dcqcn ReadyToSend 1500 1 1 4096 7 28000 1 2",
            "",
        ] {
            assert_eq!(parse(&format!("{names}\n{line}\n")), Err(format!("`{line}` is no line of a table")));
        }
    }
}
