//! perftest's tests of bandwidth and latency: its handshake, its loops and its figures.
//!
//! Either end can be perftest itself (4.5 and newer). [`run`] does a whole test and tells a [`Watch`] what happens; the
//! command `roci perf` is arguments and tables around it.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `handshake` | what the ends tell each other, octet by octet |
//! | `lobby`, `channel` | who comes to a server, and the way by which the ends talk |
//! | `meeting` | what is told before a test, over TCP or RDMA-CM, and who is shown out |
//! | `session` | queue pairs, memory, and the order of the steps |
//! | `bandwidth`, `latency` | the loops that are timed |
//! | `posting` | in which portions requests are posted, and at which rate |
//! | `path` | what the way to the peer carries |
//! | `report` | from instants to figures |
//! | `terms` | what both ends have to be told alike |
//! | `error` | why a test fails, and what can be done |

mod bandwidth;
mod channel;
mod error;
mod handshake;
mod latency;
mod lobby;
mod meeting;
mod path;
mod posting;
mod report;
mod session;
mod terms;

pub use error::PerfError;
use error::named;
pub use handshake::Key;
pub use meeting::run;
pub use report::{Bandwidth, Latency, Rate, Row};

use crate::completion::CompletionQueue;
use crate::congestion;
use crate::device::{LINK, Mtu};
use crate::queue_pair::ACK_TIMEOUT;
use crate::work::{INLINE_MAX, WorkCompletion};
use roci_control::Law;
use roci_control::program::Tally;
use roci_transport::{Recovery, Service, Status};
use roci_units::{BitsPerSec, Span};
use roci_wire::Layout;
use roci_wire::layout::int::IntStack;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What a test does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// RDMA WRITE.
    Write,
    /// SEND.
    Send,
    /// RDMA READ.
    Read,
    /// FETCH-ADD, or COMPARE-SWAP.
    Atomic {
        /// COMPARE-SWAP.
        swap: bool,
    },
}

/// What a test measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Bandwidth.
    Bandwidth,
    /// Latency.
    Latency,
}

/// A test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// What it does.
    pub verb: Verb,
    /// What it measures.
    pub metric: Metric,
}

impl Test {
    /// As a command line asks for it.
    fn command(self) -> String {
        let (verb, more) = match self.verb {
            Verb::Write => ("write", ""),
            Verb::Send => ("send", ""),
            Verb::Read => ("read", ""),
            Verb::Atomic { swap: false } => ("atomic", " -A FETCH_AND_ADD"),
            Verb::Atomic { swap: true } => ("atomic", " -A CMP_AND_SWAP"),
        };
        let metric = match self.metric {
            Metric::Bandwidth => "bw",
            Metric::Latency => "lat",
        };
        format!("{verb}-{metric}{more}")
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Write => "RDMA_Write",
            Verb::Send => "Send",
            Verb::Read => "RDMA_Read",
            Verb::Atomic { swap: false } => "Atomic FETCH_AND_ADD",
            Verb::Atomic { swap: true } => "Atomic CMP_AND_SWAP",
        };
        let metric = match self.metric {
            Metric::Bandwidth => "BW",
            Metric::Latency => "Latency",
        };
        write!(f, "{verb} {metric} Test")
    }
}

/// How a test is run. Both ends are to be given the same test, size, iterations, duration, number of queue pairs and
/// direction, as with perftest. Two ends of ours compare them, see [`PerfError::Apart`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The test.
    pub test: Test,
    /// The server; `None` to be one.
    pub host: Option<String>,
    /// The server's TCP port, or service of RDMA-CM.
    pub port: u16,
    /// Queue pairs are connected by RDMA-CM, and what is told is told over one.
    pub rdma_cm: bool,
    /// The address of our device; else that by which the peer is reached, or of a server with RDMA-CM the host's first.
    pub device: Option<IpAddr>,
    /// Octets of a message, 1 to 2³⁰; atomics have 8.
    pub size: u32,
    /// All powers of two from 2 to 2²³ octets, in place of one size.
    pub all_sizes: bool,
    /// Messages of each queue pair, at least 5.
    pub iterations: u32,
    /// For so long, in place of a number.
    pub duration: Option<Duration>,
    /// A server shows out who says nothing for so long before the test, be it what it is or what comes next. Who has not said what it
    /// is keeps no client waiting meanwhile, who has begun as one does. So a client gives up a server that has said nothing for as long:
    /// one that was busy with somebody who says no more has shown him out by then.
    pub patience: Duration,
    /// What is not measured at both ends of that time; 2 s if not said, or a quarter of a short time.
    pub margin: Option<Duration>,
    /// Queue pairs; 1 in tests of latency.
    pub queue_pairs: u16,
    /// Their service: RC, or UC in tests of WRITE and SEND, where what is lost stays lost and [`Counted::lost`] tells of it. Requests end as they
    /// leave there, so that a sender's bandwidth is that at which it sent. A test of latency begins anew where nothing has come back for a
    /// second, and a little longer where messages are long.
    pub service: Service,
    /// Both ends send.
    pub bidirectional: bool,
    /// The path MTU, at most what both devices have.
    pub mtu: Option<Mtu>,
    /// Requests outstanding on each queue pair.
    pub tx_depth: u32,
    /// Receives posted on each queue pair.
    pub rx_depth: u32,
    /// READs and atomics outstanding on each queue pair.
    pub outstanding_reads: u8,
    /// The local ACK timeout, 4.096 µs · 2^`qp_timeout`.
    pub qp_timeout: u8,
    /// Retransmissions without progress before the test fails, 0 to 7.
    pub retry_count: u8,
    /// Octets that a queue pair may have in flight; by default 1 MiB and at most 512 packets, shared by the queue pairs.
    pub window: Option<u32>,
    /// Each packet of a WRITE is a message of its own, which fills runs of segmentation offload better; see
    /// [`QueuePairBuilder::lone_writes`](crate::QueuePairBuilder::lone_writes).
    pub lone_writes: bool,
    /// How what is lost is sent again. Any but go-back-N has a header layout of its own, and wants an end of ours at the other side that is
    /// told the same.
    pub recovery: Recovery,
    /// The congestion control of the queue pairs; the device's own if not said. Both ends should have the same, for one
    /// sends the notifications that the other hears.
    pub law: Option<Law>,
    /// The rate of the link, from which congestion control cuts.
    pub link: BitsPerSec,
    /// The rates of switches' ports for which telemetry has no code: one of all, or one of each hop in their order; that of the link if none is said.
    pub hop_rates: Vec<BitsPerSec>,
    /// Whether the peak is looked for.
    pub peak: bool,
    /// Of the requests of a queue pair one in so many makes a completion; at most what fits the queue, and whole lists.
    pub cq_mod: u32,
    /// Requests are posted in lists of so many; else as many at once as there is room for.
    pub post_list: Option<u32>,
    /// Messages up to so many octets, at most [`INLINE_MAX`], are copied when they are posted. If not said, none in tests of
    /// bandwidth, and all that can be in tests of latency.
    pub inline: Option<u32>,
    /// The octet of IPv4's type of service, or IPv6's traffic class, of data and acknowledgements. Its two lowest bits are ECN's
    /// and not the caller's.
    pub tos: u8,
    /// No more is posted than this, over all queue pairs.
    pub rate_limit: Option<RateLimit>,
    /// Whether a test of latency tells how long each message took, see [`Event::Times`].
    pub times: Option<Order>,
    /// Bandwidth is told in Gb/s, else in MiB/s; both ends are to be given the same.
    pub gbits: bool,
}

impl Options {
    /// What perftest does when it is told nothing else.
    pub fn new(test: Test) -> Self {
        let is_latency = test.metric == Metric::Latency;
        let writes = test == (Test { verb: Verb::Write, metric: Metric::Bandwidth });
        Self {
            test,
            host: None,
            port: 18_515,
            rdma_cm: false,
            device: None,
            size: match (test.verb, test.metric) {
                (Verb::Atomic { .. }, _) => 8,
                (_, Metric::Latency) => 2,
                (_, Metric::Bandwidth) => 65_536,
            },
            all_sizes: false,
            iterations: if writes { 5_000 } else { 1_000 },
            duration: None,
            patience: Duration::from_secs(60),
            margin: None,
            queue_pairs: 1,
            service: Service::Rc,
            bidirectional: false,
            mtu: None,
            tx_depth: if is_latency { 1 } else { 128 },
            rx_depth: 512,
            outstanding_reads: 16,
            qp_timeout: ACK_TIMEOUT,
            retry_count: 7,
            window: None,
            lone_writes: false,
            recovery: Recovery::GoBackN,
            law: None,
            link: LINK,
            hop_rates: Vec::new(),
            peak: true,
            cq_mod: 1,
            post_list: None,
            inline: None,
            tos: 0,
            rate_limit: None,
            times: None,
            gbits: false,
        }
    }

    /// Octets of memory that an end registers, and fills once the other has come: moments, where messages are long.
    pub fn memory(&self) -> usize {
        session::memory(self)
    }

    /// Octets of a unit of bandwidth.
    pub fn unit(&self) -> f64 {
        if self.gbits { 1e9 / 8.0 } else { 1_048_576.0 }
    }

    /// What is not measured at each end of `duration`.
    fn margin(&self, duration: Duration) -> Duration {
        let usual = Duration::from_secs(2);
        self.margin.unwrap_or(if duration > 2 * usual { usual } else { duration / 4 })
    }

    /// How long a peer may be silent before a request that it was sent fails; without end where no timeout was asked for.
    fn retry_time(&self) -> Duration {
        match self.qp_timeout & 31 {
            0 => Duration::MAX,
            exponent => Duration::from_nanos(4_096 << exponent) * (u32::from(self.retry_count) + 1),
        }
    }

    /// The same where timeouts may lengthen of themselves, each to twice the one before.
    fn given_up_after(&self) -> Duration {
        match self.recovery {
            Recovery::Reno | Recovery::NewReno | Recovery::Sack if self.qp_timeout & 31 > 0 => {
                Duration::from_nanos(4_096 << (self.qp_timeout & 31))
                    * ((2 << u32::from(self.retry_count & 7)) - 1)
            }
            _ => self.retry_time(),
        }
    }

    /// The exponent of the timeout, and how often it may pass without progress.
    const fn tries(&self) -> (u8, u8) {
        (self.qp_timeout, self.retry_count)
    }

    /// The header layout of the queue pairs: what the recovery needs to know, or else what the law does.
    fn layout(&self) -> Layout {
        match self.recovery {
            Recovery::GoBackN => self.law.as_ref().map_or(Layout::Standard, congestion::layout),
            other => other.layout(),
        }
    }

    /// Whether packets have room for telemetry.
    fn has_telemetry(&self) -> bool {
        self.layout().int_at().is_some()
    }

    /// Whether what is lost stays lost.
    fn is_unreliable(&self) -> bool {
        self.service == Service::Uc
    }

    /// What an unreliable connection cannot have.
    fn judge_unreliable(&self) -> Result<(), PerfError> {
        let wrong = |what: &str| Err(PerfError::Options(what.to_owned()));
        match self.test.verb {
            Verb::Read | Verb::Atomic { .. } => wrong(
                "an unreliable connection (UC) has WRITEs and SENDs; READs and atomics need answers, and RC",
            ),
            Verb::Send if self.all_sizes => wrong(
                "SENDs over an unreliable connection (UC) go in one size: receives whose messages were lost would be too short for the next",
            ),
            _ if self.window.is_some() || self.lone_writes => wrong(
                "an unreliable connection (UC) has no window, and lone WRITEs bring it nothing: a rate (--rate_limit) holds it back",
            ),
            _ if self.layout() != Layout::Standard && self.recovery == Recovery::GoBackN => wrong(
                "an unreliable connection (UC) has the standard layout, and this law needs words in each packet",
            ),
            _ if self.recovery != Recovery::GoBackN => {
                wrong("an unreliable connection (UC) sends nothing again, and has no recovery")
            }
            _ if self.law.as_ref().is_some_and(|law| !self.service.has_answers_for(law)) => wrong(
                "nobody acknowledges the packets of an unreliable connection (UC), and this law lives on that: dcqcn and none do without",
            ),
            _ => Ok(()),
        }
    }

    fn judge(&self) -> Result<(), PerfError> {
        let wrong = |what: &str| Err(PerfError::Options(what.to_owned()));
        match self.service {
            Service::Rc => {}
            Service::Uc => self.judge_unreliable()?,
            Service::Ud => return wrong("tests run over RC or UC"),
        }
        match self.test {
            Test { verb: Verb::Atomic { .. }, .. } if self.size != 8 || self.all_sizes => {
                wrong("atomics have 8 octets")
            }
            Test { metric: Metric::Latency, .. } if self.queue_pairs != 1 || self.bidirectional => {
                wrong("a test of latency has one queue pair and no direction")
            }
            _ if self.recovery == Recovery::Ndp => wrong(
                "NDP's recovery lives on switches that trim packets, and no network does that for RoCEv2",
            ),
            _ if self.recovery != Recovery::GoBackN
                && self.law.as_ref().is_some_and(|law| congestion::layout(law) != Layout::Standard) =>
            {
                wrong(
                    "this law needs words in each packet, which only go-back-n leaves room for: leave --recovery out",
                )
            }
            _ if self.layout() != Layout::Standard && self.lone_writes => wrong(
                "lone WRITEs are of standard RoCEv2: this recovery or law has packets of another layout",
            ),
            Test { verb: Verb::Read, .. } if self.has_telemetry() => wrong(
                "what switches tell comes back in acknowledgements, and go-back-N acknowledges no READ data: this law controls WRITEs and SENDs",
            ),
            _ if self.hop_rates.len() > IntStack::HOPS => {
                wrong("a packet tells of five hops at most, and --hop-rate has more rates than these")
            }
            Test { metric, .. }
                if self.hop_rates.len() > 1 && (self.bidirectional || metric == Metric::Latency) =>
            {
                wrong(
                    "--hop-rate with several rates has them in the order of the hops of one way, and here data go both: give one for all, or run a test of bandwidth without -b",
                )
            }
            _ if self.queue_pairs == 0 => wrong("at least one queue pair is needed"),
            _ if self.size == 0 || self.size > 1 << 30 => wrong("a message has 1 to 2^30 octets"),
            _ if self.duration.is_none() && self.iterations < 5 => {
                wrong("at least 5 iterations are needed: of a latency's the two longest do not count")
            }
            _ if self.duration.is_some() && self.all_sizes => {
                wrong("all sizes go with iterations, not with a time")
            }
            _ if self.tx_depth == 0 || self.rx_depth == 0 => wrong("a queue takes at least one request"),
            _ if self.outstanding_reads == 0 => wrong("at least one READ has to be outstanding"),
            Test { metric: Metric::Latency, .. }
                if self.cq_mod != 1 || self.post_list.is_some() || self.rate_limit.is_some() =>
            {
                wrong(
                    "a test of latency has one message at a time: no list, no rate, and a completion for each",
                )
            }
            Test { metric: Metric::Bandwidth, .. } if self.times.is_some() => {
                wrong("the time of each message is told by tests of latency")
            }
            _ if self.times.is_some() && self.duration.is_some() => {
                wrong("the time of each message goes with iterations, not with a time")
            }
            Test { verb: Verb::Read | Verb::Atomic { .. }, .. } if self.inline.is_some() => {
                wrong("READs and atomics send no data that could be inline")
            }
            _ if self.inline.is_some_and(|most| most as usize > INLINE_MAX) => {
                Err(PerfError::Options(format!("a request carries at most {INLINE_MAX} octets inline")))
            }
            _ if self.cq_mod == 0 || self.post_list == Some(0) => wrong("a list has at least one request"),
            _ if self.tos & 3 != 0 => wrong(
                "the two lowest bits of the type of service are ECN's, which congestion control sets: a multiple of 4",
            ),
            _ if self.rate_limit.is_some_and(|rate| !rate.is_one()) => wrong("a rate is more than nothing"),
            _ => match self.duration {
                Some(duration) if duration.is_zero() || self.margin(duration) * 2 >= duration => {
                    wrong("the time is not longer than its two margins")
                }
                _ => Ok(()),
            },
        }
    }
}

/// A rate that is not exceeded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLimit {
    /// Gb/s of payload.
    Gbits(f64),
    /// MiB/s of payload.
    Mebibytes(f64),
    /// Packets per second.
    Packets(f64),
}

impl RateLimit {
    fn is_one(self) -> bool {
        let (Self::Gbits(rate) | Self::Mebibytes(rate) | Self::Packets(rate)) = self;
        rate.is_finite() && rate > 0.0
    }
}

/// In which order times are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The shortest first.
    Sorted,
    /// As they came.
    Unsorted,
}

/// What is known once the two ends are connected.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Our device.
    pub device: IpAddr,
    /// The path MTU.
    pub mtu: Mtu,
    /// What the peer says that it is.
    pub version: String,
    /// The congestion control of our queue pairs and of the peer's, `program` for one; `None`: the peer is perftest, which does not say. Two
    /// that differ are a measurement of their own: marks are answered by the end that receives, in the way that its law has.
    pub laws: Option<[String; 2]>,
    /// Our queue pairs.
    pub local: Vec<Key>,
    /// The peer's, in the same order.
    pub remote: Vec<Key>,
}

/// What happens in a test.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The server waits for a client; with RDMA-CM at this address and port alone.
    Waiting(Option<SocketAddr>),
    /// Somebody came to the server who is no client, or did not go on as one; it waits on.
    Stranger {
        /// From where.
        from: SocketAddr,
        /// What it did: `said nothing and left`.
        deed: &'a str,
    },
    /// The server took the connection, and has said nothing for a twelfth of [`Options::patience`]; the client waits on.
    Mute(SocketAddr),
    /// Somebody has come, and the system has no room for his connection at present, descriptors perhaps; the server tries on. Told
    /// once, until it has room again.
    Shut(&'a io::Error),
    /// The two ends are connected; the test begins.
    Connected(&'a Connection),
    /// So many messages of so many have been moved, or so many milliseconds of so many have passed.
    Progress {
        /// Done.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// Packets come whose telemetry is left alone, as other hops tell than `hop_rates` has rates of. Told once, as the first have come.
    Unrated,
    /// A port has sent more than the rate lets through that `hop_rates` say for it, so that another is its. Told once, as it is first seen.
    Beyond,
    /// A port has sent less for long than the rate lets through that `hop_rates` say for it, while packets waited there, so that a lower one is its. Told
    /// once, as it is first seen.
    Short,
    /// How long each message took, in microseconds and as in [`Latency`], where [`Options::times`] asks for it; the row of the
    /// same messages follows.
    Times(&'a [f64]),
    /// A line of the result.
    Row(&'a Row),
    /// The test is over, well or not; what this end has counted since [`Event::Connected`].
    Counted(&'a Counted),
    /// The same of a program that runs as the law: its name, and what it has done.
    Program(&'a str, &'a Tally),
}

/// What an end has counted, over all its queue pairs: what a figure has to be read with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Data packets sent, retransmissions included. Responses to READs are not among them.
    pub packets: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Local ACK timeouts.
    pub timeouts: u64,
    /// NAKs for a sequence received, by which a receiver asks for what is missing.
    pub naks: u64,
    /// RNR NAKs received.
    pub rnr: u64,
    /// CNPs received.
    pub cnps: u64,
    /// CNPs sent.
    pub cnps_sent: u64,
    /// Data packets received with CE.
    pub ecn_marked: u64,
    /// Packets that the operating system dropped because we did not take them fast enough.
    pub overflowed: u64,
    /// Acknowledgements that brought telemetry of switches; `None` where packets have no room for it, or this end sent none.
    pub told: Option<u64>,
    /// Packets whose telemetry was left alone, as other hops told than `hop_rates` has rates of.
    pub unrated: u64,
    /// How often a port had sent more than the rate lets through that `hop_rates` say for it.
    pub beyond: u64,
    /// How often a port had sent less for long than that while packets waited.
    pub short: u64,
    /// The widest window in octets that the law let a queue pair have as the test ended; `None` where it has none.
    pub law_window: Option<u32>,
    /// Messages sent over unreliable connections.
    pub sent: u64,
    /// Of those, messages that the peer did not take; `None` where nothing was sent so, or the peer is not ours and does not say.
    pub lost: Option<u64>,
    /// Messages that came whole over unreliable connections, each counted once, and those that came in part or could not be taken.
    pub taken: u64,
    /// See [`taken`](Self::taken).
    pub dropped: u64,
    /// Those that were taken once more, as the network had doubled them: see [`Counters::doubled`](crate::Counters::doubled).
    pub doubled: u64,
}

/// Who is told what happens.
pub trait Watch {
    /// It has happened.
    fn event(&self, event: Event<'_>);
    /// Whether the test is to end at once. Asked at least twenty times a second.
    fn stopped(&self) -> bool {
        false
    }
}

/// The reason among what has ended, where there is one: what was flushed says only that there is a reason.
fn reason(completions: &[WorkCompletion]) -> Option<PerfError> {
    let bad = || completions.iter().filter(|completion| !completion.is_ok());
    let first =
        bad().find(|completion| completion.status != Status::WorkRequestFlushed).or_else(|| bad().next())?;
    Some(PerfError::Completion { status: first.status, qpn: first.qp_num })
}

/// A completion, which is to be a good one.
fn good(completion: WorkCompletion) -> Result<WorkCompletion, PerfError> {
    let WorkCompletion { status, qp_num: qpn, .. } = completion;
    if completion.is_ok() { Ok(completion) } else { Err(PerfError::Completion { status, qpn }) }
}

/// How long a message of so many octets is waited for, or its answer, before it is lost on an unreliable connection: a second, and what it
/// takes at 80 Mb/s.
fn lost_after(size: u32) -> Span {
    Span::from_secs(1) + Span::from_nanos(100 * u64::from(size))
}

/// How long a loop without news waits before it looks about.
const PATIENCE: Duration = Duration::from_millis(20);

/// Takes what has ended; where nothing has, waits so long for the first.
fn gather(cq: &CompletionQueue, to: &mut Vec<WorkCompletion>, patience: Duration) -> Result<(), PerfError> {
    if cq.poll_into(to, 64) > 0 {
        return Ok(());
    }
    match cq.wait(patience) {
        Ok(completion) => to.push(completion),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
