//! What the ends of a test have to be told alike, and the words by which two of ours compare it.
//!
//! perftest 4.5 has no place for it. Behind the zero that ends our version stand octets that perftest does not look at; a peer that
//! has the same there hears our terms in the next step, and tells its own.

use super::handshake::{VERSION, VERSION_LEN};
use super::{Metric, Options, PerfError, Test, Verb};
use crate::congestion::title;
use roci_transport::Recovery;
use roci_wire::Layout;
use std::borrow::Cow;
use std::time::Duration;

/// What stands behind the version and its zero: whose octets they are, and how terms are told.
const MARK: &[u8; 5] = b"RoCI\x02";
/// Octets of terms.
pub(super) const LEN: usize = 26;

const ALL_SIZES: u8 = 1;
const BIDIRECTIONAL: u8 = 2;
const UNRELIABLE: u8 = 4;
/// Above the flags: the place of the recovery among [`Recovery::NAMED`].
const RECOVERY: u32 = 3;

/// What an end was told of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    test: Test,
    all_sizes: bool,
    bidirectional: bool,
    unreliable: bool,
    recovery: Recovery,
    layout: Layout,
    queue_pairs: u32,
    size: u32,
    iterations: u32,
    duration: Option<Duration>,
    control: Option<&'static str>,
}

/// The laws that are compared, by their numbers less one. A program is none of them: it may well be one of these in C.
const LAWS: [&str; 9] =
    ["none", "dcqcn", "timely", "dctcp", "swift", "nscc", "theta-powertcp", "hpcc", "powertcp"];
/// A program in place of a law, and its number.
const PROGRAM: (&str, u8) = ("program", u8::MAX);
/// What runs at an end that was told nothing.
const USUAL: &str = "dcqcn";

/// Marks a version as that of an end that tells its terms.
pub(super) fn mark(version: &mut [u8; VERSION_LEN]) {
    version[VERSION.len() + 1..][..MARK.len()].copy_from_slice(MARK);
}

/// Whether an end that says this version tells its terms.
pub(super) fn is_marked(version: &[u8]) -> bool {
    let end = version.iter().position(|octet| *octet == 0).unwrap_or(version.len());
    version[end..].strip_prefix(&[0]).is_some_and(|rest| rest.starts_with(MARK))
}

/// Whether an end that says this version is ours, of another release.
pub(super) fn is_another_release(version: &[u8]) -> bool {
    let end = version.iter().position(|octet| *octet == 0).unwrap_or(version.len());
    !is_marked(version) && version[end..].starts_with(&[0, MARK[0], MARK[1], MARK[2], MARK[3]])
}

/// What the law of this end is called.
pub(super) fn law_of(options: &Options) -> Cow<'_, str> {
    options.law.as_ref().map_or(USUAL.into(), title)
}

/// What differs, with our program called by its file, of which terms say nothing.
pub(super) fn named(error: PerfError, law: &str, is_client: bool) -> PerfError {
    let name = |told: String| told.replace("--control program", &format!("--control {law}"));
    match error {
        PerfError::Apart { client, server, remedy } if law.ends_with(".elf") => match is_client {
            true => PerfError::Apart { client: name(client), server, remedy },
            false => PerfError::Apart { client, server: name(server), remedy },
        },
        error => error,
    }
}

impl Terms {
    pub(super) fn of(options: &Options) -> Self {
        let Options { test, all_sizes, bidirectional, recovery, size, iterations, duration, .. } = *options;
        let queue_pairs = options.queue_pairs.into();
        let known = |name: &str| [PROGRAM.0].into_iter().chain(LAWS).find(|known| *known == name);
        let control = options.law.as_ref().and_then(|law| known(law.name()));
        let unreliable = options.is_unreliable();
        Self {
            test,
            all_sizes,
            bidirectional,
            unreliable,
            recovery,
            layout: options.layout(),
            queue_pairs,
            size,
            iterations,
            duration,
            control,
        }
    }

    /// Big-endian: verb, metric, flags and recovery, law or 0, queue pairs, size, iterations, microseconds or 0, layout.
    pub(super) fn to_octets(self) -> [u8; LEN] {
        let verb = match self.test.verb {
            Verb::Write => 0,
            Verb::Send => 1,
            Verb::Read => 2,
            Verb::Atomic { swap } => 3 + u8::from(swap),
        };
        let metric = u8::from(self.test.metric == Metric::Latency);
        let flags = if self.all_sizes { ALL_SIZES } else { 0 };
        let flags = flags | if self.bidirectional { BIDIRECTIONAL } else { 0 };
        let flags = flags | if self.unreliable { UNRELIABLE } else { 0 };
        let recovery = (0..).zip(Recovery::NAMED).find(|(_, (_, recovery))| *recovery == self.recovery);
        let flags = flags | recovery.map_or(0, |(place, _)| place << RECOVERY);
        let time = self.duration.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1));
        let mut octets = [0; LEN];
        let mut laws = LAWS.into_iter().zip(1..).chain([PROGRAM]);
        let law = laws.find(|(law, _)| Some(*law) == self.control);
        octets[..4].copy_from_slice(&[verb, metric, flags, law.map_or(0, |(_, number)| number)]);
        for (word, place) in
            [self.queue_pairs, self.size, self.iterations].iter().zip(octets[4..].chunks_mut(4))
        {
            place.copy_from_slice(&word.to_be_bytes());
        }
        octets[16..24].copy_from_slice(&time.to_be_bytes());
        octets[24..].copy_from_slice(&self.layout.code());
        octets
    }

    pub(super) fn from_octets(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; LEN] = octets.try_into().ok()?;
        let verb = match octets[0] {
            0 => Verb::Write,
            1 => Verb::Send,
            2 => Verb::Read,
            3 | 4 => Verb::Atomic { swap: octets[0] == 4 },
            _ => return None,
        };
        let metric = match octets[1] {
            0 => Metric::Bandwidth,
            1 => Metric::Latency,
            _ => return None,
        };
        let word = |at: usize| Some(u32::from_be_bytes(*octets[at..].first_chunk()?));
        let time = u64::from_be_bytes(*octets[16..].first_chunk()?);
        Some(Self {
            test: Test { verb, metric },
            all_sizes: octets[2] & ALL_SIZES != 0,
            bidirectional: octets[2] & BIDIRECTIONAL != 0,
            unreliable: octets[2] & UNRELIABLE != 0,
            recovery: Recovery::NAMED.get(usize::from(octets[2] >> RECOVERY))?.1,
            layout: Layout::from_code([octets[24], octets[25]])?,
            queue_pairs: word(4)?,
            size: word(8)?,
            iterations: word(12)?,
            duration: (time != 0).then(|| Duration::from_micros(time)),
            // One that is not known here is a later release's.
            control: match octets[3] {
                number if number == PROGRAM.1 => Some(PROGRAM.0),
                number => number.checked_sub(1).and_then(|place| LAWS.get(usize::from(place)).copied()),
            },
        })
    }

    /// The congestion control that runs at this end.
    pub(super) fn law(&self) -> &'static str {
        self.control.unwrap_or(USUAL)
    }

    /// Whether a server of this test neither sends nor counts: it has memory, which its client reads and writes.
    fn is_passive(&self) -> bool {
        let is_counted = self.test.verb == Verb::Write && self.test.metric == Metric::Latency;
        !(self.bidirectional || is_counted || self.test.verb == Verb::Send)
    }

    fn sizes(&self) -> String {
        if self.all_sizes { "-a".to_owned() } else { format!("-s {}", self.size) }
    }

    fn largest(&self) -> u32 {
        if self.all_sizes { 1 << 23 } else { self.size }
    }

    fn service(&self) -> &'static str {
        if self.unreliable { "-c UC" } else { "-c RC" }
    }

    fn length(&self) -> String {
        match self.duration {
            Some(time) => format!("-D {}", time.as_secs_f64()),
            None => format!("-n {}", self.iterations),
        }
    }

    /// Judges what the ends of one test were told.
    ///
    /// # Errors
    /// [`PerfError::Apart`] names what each was told where that does not go together.
    pub(super) fn compare(client: &Self, server: &Self) -> Result<(), PerfError> {
        let apart = |client, server, remedy| Err(PerfError::Apart { client, server, remedy });
        if client.test != server.test {
            let remedy = "give both ends the same test";
            let [client, server] = [client, server].map(|end| format!("`{}`", end.test.command()));
            return apart(client, server, remedy);
        }
        let is_passive = server.is_passive() && client.is_passive();
        let fits =
            if is_passive { client.largest() <= server.largest() } else { client.sizes() == server.sizes() };
        let counts = is_passive || client.length() == server.length();
        let pairs = client.queue_pairs == server.queue_pairs;
        let services = client.unreliable == server.unreliable;
        let recoveries = client.recovery == server.recovery;
        let directions = client.bidirectional == server.bidirectional;
        // Who was told none has the usual one, and a peer that names another may well measure against that.
        let is_program = |law| law == PROGRAM.0;
        let controls = client
            .control
            .zip(server.control)
            .is_none_or(|(client, server)| client == server || is_program(client) || is_program(server));
        // What the packets of one end have room for those of the other must have as well.
        let layouts = client.layout == server.layout || !recoveries;
        let controls = controls && layouts;
        if fits && counts && services && recoveries && pairs && directions && controls {
            return Ok(());
        }
        let told = |end: &Self| {
            let words = [
                (!fits).then(|| end.sizes()),
                (!counts).then(|| end.length()),
                (!services).then(|| end.service().to_owned()),
                (!recoveries).then(|| format!("--recovery {}", end.recovery.name())),
                (!pairs).then(|| format!("-q {}", end.queue_pairs)),
                (!directions && end.bidirectional).then(|| "-b".to_owned()),
                (!controls).then(|| format!("--control {}", end.law())),
                (!layouts).then(|| format!("(layout {})", end.layout)),
            ];
            let words = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
            match (directions || end.bidirectional, words.is_empty()) {
                (true, _) => format!("`{words}`"),
                (false, true) => "no `-b`".to_owned(),
                (false, false) => format!("`{words}` and no `-b`"),
            }
        };
        apart(told(client), told(server), "give both ends the same")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::handshake::{judge_version, version};
    use roci_wire::Cc;

    fn terms(verb: Verb, metric: Metric) -> Terms {
        Terms::of(&Options::new(Test { verb, metric }))
    }

    #[test]
    fn a_version_that_is_marked_is_still_the_same_to_perftest() {
        let mut ours = version();
        assert!(!is_marked(&ours), "perftest's own");
        mark(&mut ours);
        assert!(is_marked(&ours));
        assert_eq!(judge_version(&ours), Ok("6.06".to_owned()));
        assert!(!is_marked(b"6.28") && !is_marked(b"") && !is_marked(b"\0RoCI\x01"));
        assert!(
            is_another_release(b"\0RoCI\x01") && !is_another_release(&ours) && !is_another_release(b"6.28\0")
        );
    }

    #[test]
    fn terms_are_heard_as_they_are_told() {
        for verb in
            [Verb::Write, Verb::Send, Verb::Read, Verb::Atomic { swap: false }, Verb::Atomic { swap: true }]
        {
            for metric in [Metric::Bandwidth, Metric::Latency] {
                let control = Some(if metric == Metric::Latency { "nscc" } else { "program" });
                let one =
                    Terms { size: 77, queue_pairs: 300, all_sizes: true, control, ..terms(verb, metric) };
                let duration = Some(Duration::from_millis(1500));
                let recovery = if metric == Metric::Latency { Recovery::Ndp } else { Recovery::Irn };
                let layout = Layout::Cc(Cc::new(false, true, 3).unwrap());
                let other = Terms {
                    layout,
                    duration,
                    bidirectional: true,
                    unreliable: true,
                    recovery,
                    ..terms(verb, metric)
                };
                for told in [one, other] {
                    assert_eq!(Terms::from_octets(&told.to_octets()), Some(told));
                }
            }
        }
        let mut later = terms(Verb::Write, Metric::Bandwidth).to_octets();
        later[3] = 200;
        assert_eq!(
            Terms::from_octets(&later).and_then(|terms| terms.control),
            None,
            "a law of a later release"
        );
        assert_eq!(Terms::from_octets(&[9; LEN]), None);
        assert_eq!(Terms::from_octets(&[0; LEN - 1]), None);
    }

    #[test]
    fn our_own_program_is_called_by_its_file_where_ends_are_apart() {
        let apart = || PerfError::Apart {
            client: "`--control program (layout cc)`".to_owned(),
            server: "`--control program (layout standard)`".to_owned(),
            remedy: "",
        };
        let told = |is_client| named(apart(), "near.elf", is_client).to_string();
        assert!(told(true).contains("and the client `--control near.elf (layout cc)`"), "{}", told(true));
        assert!(told(false).contains("given `--control near.elf (layout standard)`"), "{}", told(false));
    }

    #[test]
    fn ends_that_were_told_different_laws_are_apart_and_others_are_not() {
        let ours = terms(Verb::Write, Metric::Bandwidth);
        let told = |law| Terms { control: Some(law), ..ours };
        assert!(Terms::compare(&told("timely"), &told("timely")).is_ok());
        assert!(Terms::compare(&told("timely"), &ours).is_ok(), "one has the usual one");
        assert!(Terms::compare(&told("timely"), &told("program")).is_ok(), "it may be TIMELY");
        assert_eq!(
            [ours, told("timely"), told("program")].map(|end| end.law()),
            ["dcqcn", "timely", "program"]
        );
        let apart = Terms::compare(&told("timely"), &told("none")).unwrap_err().to_string();
        assert_eq!(
            apart,
            "the server was given `--control none` and the client `--control timely`: give both ends the same"
        );
    }

    #[test]
    fn ends_of_different_services_are_apart() {
        let server = terms(Verb::Write, Metric::Bandwidth);
        let client = Terms { unreliable: true, ..server };
        let apart = Terms::compare(&client, &server).unwrap_err().to_string();
        assert_eq!(apart, "the server was given `-c RC` and the client `-c UC`: give both ends the same");
        assert!(Terms::compare(&client, &client).is_ok());
    }

    #[test]
    fn ends_that_send_lost_packets_again_in_different_ways_are_apart() {
        let server = terms(Verb::Read, Metric::Bandwidth);
        let client = Terms { recovery: Recovery::Srnic, ..server };
        let apart = Terms::compare(&client, &server).unwrap_err().to_string();
        assert_eq!(
            apart,
            "the server was given `--recovery go-back-n` and the client `--recovery srnic`: give both ends the same"
        );
        assert!(Terms::compare(&client, &client).is_ok());
        let mut later = client.to_octets();
        later[2] |= 7 << RECOVERY;
        assert_eq!(Terms::from_octets(&later), None, "a recovery of a later release");
    }

    #[test]
    fn what_an_end_was_not_given_stands_outside_the_quotes() {
        let client = terms(Verb::Send, Metric::Bandwidth);
        let server = Terms { bidirectional: true, ..client };
        let apart = |client: &Terms| Terms::compare(client, &server).unwrap_err().to_string();
        let told = "the server was given `-b` and the client no `-b`: give both ends the same";
        assert_eq!(apart(&client), told);
        let told =
            "the server was given `-s 65536 -b` and the client `-s 8` and no `-b`: give both ends the same";
        assert_eq!(apart(&Terms { size: 8, ..client }), told);
    }

    #[test]
    fn a_server_that_only_has_memory_need_not_know_how_much_its_client_moves() {
        for verb in [Verb::Write, Verb::Read] {
            let server = terms(verb, Metric::Bandwidth);
            let client = Terms { size: 64, duration: Some(Duration::from_secs(5)), ..server };
            assert!(Terms::compare(&client, &server).is_ok());
            let longer = Terms { size: server.size + 1, ..server };
            assert!(Terms::compare(&longer, &server).is_err());
            let [client, server] = [client, server].map(|end| Terms { bidirectional: true, ..end });
            assert!(Terms::compare(&client, &server).is_err());
        }
        let server = terms(Verb::Write, Metric::Latency);
        assert!(Terms::compare(&Terms { iterations: 7, ..server }, &server).is_err());
    }
}
