//! Why a test did not come to its end, in words that say what can be done.

use super::channel::QUESTIONS;
use crate::Mtu;
use crate::cm::CmError;
use crate::memory::{LentError, RegionError};
use crate::queue_pair::QueuePairError;
use crate::work::Refused;
use roci_transport::Status;
use roci_units::Qpn;
use roci_wire::cm::reason;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Why a test did not come to its end.
#[derive(thiserror::Error)]
pub enum PerfError {
    /// The options do not go together.
    #[error("{0}")]
    Options(String),
    /// The two ends were told what does not go together. Both say so, in the same words.
    #[error("the server was given {server} and the client {client}: {remedy}")]
    Apart {
        /// Of what differs, what the client was told, in quotes.
        client: String,
        /// And what the server was.
        server: String,
        /// What can be done.
        remedy: &'static str,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {0}, port {1}: {2}{more}", more = remedy(.2))]
    Unreachable(String, u16, io::Error),
    /// The port cannot be had.
    #[error("cannot listen at {0}: {1}{more}", more = remedy(.1))]
    Listen(SocketAddr, io::Error),
    /// There is no place for a control socket where the environment asks for one.
    #[error("{0}")]
    Control(io::Error),
    /// The device cannot be opened.
    #[error("cannot open the device {0}: {1}")]
    Device(IpAddr, io::Error),
    /// The peer said what does not fit.
    #[error("the peer {0}")]
    Peer(String),
    /// The peer has ended the conversation, or no longer takes part in it.
    #[error("the peer has gone before the test was done")]
    Left,
    /// The peer said nothing for too long, before the test began.
    #[error("the peer says no more")]
    Silent,
    /// The server said nothing for so long after the data had been moved.
    #[error(
        "the server has said nothing for {} s since the test was done, though it has not left: was it stopped? -u and --retry_count let it take longer",
        .0.as_secs()
    )]
    Unconfirmed(Duration),
    /// The server said nothing for so long after messages had been sent to it over an unreliable connection.
    #[error(
        "the server has said nothing for {} s since the messages were sent: perftest's waits for those that were lost until its own time is over. Fewer (-n), shorter (-s) or slower ones (--rate_limit) lose none",
        .0.as_secs()
    )]
    Awaits(Duration),
    /// Over an unreliable connection nothing came back, though so many messages were sent one after the other, and each was waited for.
    #[error(
        "nothing came back of the last {0} messages, each of which was waited for: is UDP port 4791 open both ways, and has the other end -c UC as well?"
    )]
    Unreturned(u32),
    /// The server took the connection, and said nothing at all.
    #[error(
        "{0} took the connection and said nothing: is it a roci perf or perftest server, of the same test, and not busy with another client?"
    )]
    Mute(SocketAddr),
    /// It took the connection, and ended it without a word: a server does so to those who have come while it met its client.
    #[error(
        "{0} took the connection and ended it without a word: is it a roci perf or perftest server, of the same test, and not busy with another client?"
    )]
    Unheard(SocketAddr),
    /// Of a test that lasts a time, no message ended within the part that counts.
    #[error(
        "no message ended in the time that counts, though the peer answers: the time is too short for them (-D, -f, or shorter messages with -s), or the peer took none, as when it was given -n in place of -D"
    )]
    Nothing,
    /// A request failed.
    #[error("{}: queue pair {:#08x} ended with {status}{}", explain(*.status), .qpn, longer(*.status))]
    Completion {
        /// How.
        status: Status,
        /// Our queue pair.
        qpn: Qpn,
    },
    /// A request failed, and no packet of any queue pair was ever acknowledged: the ends talk over TCP, and the data take another way.
    #[error(
        "no packet of ours was answered: is UDP port 4791 open both ways{}? Queue pair {:#08x} ended with {unanswered}", carries(*octets),
        .qpn,
        unanswered = Status::TransportRetryCounterExceeded
    )]
    Unanswered {
        /// Our queue pair.
        qpn: Qpn,
        /// The most payload that one of its packets had.
        octets: u32,
    },
    /// A request was not answered in time, by a peer of which nobody says that it has left.
    #[error(
        "the peer no longer answers: requests were not answered in time, and retries are exhausted after {} without an answer (queue pair {qpn:#08x} ended with {late}; {}). {}, or the peer{} stands still or has more to do than it can: a longer -u and a greater --retry_count let it take longer, and fewer -q or -o ask less of it at once",
        seconds(*.after), waits(*.tries), CUT, if *is_there { ", which has not left," } else { "" },
        late = Status::TransportRetryCounterExceeded
    )]
    Late {
        /// Our queue pair.
        qpn: Qpn,
        /// How long was tried.
        after: Duration,
        /// The exponent of the timeout, and how often it may pass without progress.
        tries: (u8, u8),
        /// Whether TCP says that the peer is still there; with RDMA-CM nobody does.
        is_there: bool,
    },
    /// Of a test that lasts a time, nothing had been answered for so long as it ended.
    #[error(
        "no answer from the peer in the last {} of the test{}; retries go on for {} ({}), and were not exhausted when the time was over. {}, or the peer stands still or has more to do than it can",
        seconds(*.silent), if *is_waiting { ", though requests were under way" } else { "" }, seconds(*.after), waits(*.tries), CUT
    )]
    Cut {
        /// How long nothing was answered.
        silent: Duration,
        /// Whether something was under way that should have been.
        is_waiting: bool,
        /// How long would have been tried.
        after: Duration,
        /// The exponent of the timeout, and how often it may pass without progress.
        tries: (u8, u8),
    },
    /// The peer's host has not answered over TCP, which has given it up.
    #[error(
        "the peer's host no longer answers over TCP, which has asked it for {QUESTIONS} s or longer whether it is there. {CUT}, or the host has stopped"
    )]
    Severed,
    /// A request was refused.
    #[error("a request was refused: {0}")]
    Refused(String),
    /// A queue pair could not be made or connected.
    #[error(transparent)]
    QueuePair(#[from] QueuePairError),
    /// RDMA-CM made no connection.
    #[error("{0}{more}", more = whereabouts(.0))]
    Connect(#[from] CmError),
    /// Memory could not be registered.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Memory could not be lent.
    #[error(transparent)]
    Lent(#[from] LentError),
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It was asked to end.
    #[error("stopped before the test was done")]
    Stopped,
}

speaks!(PerfError);

impl<R: fmt::Debug> From<Box<Refused<R>>> for PerfError {
    fn from(refused: Box<Refused<R>>) -> Self {
        Self::Refused(refused.to_string())
    }
}

/// An address was named by which no device can be told, where it is that.
pub(super) fn named(error: io::Error) -> PerfError {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => PerfError::Options(error.to_string()),
        _ => error.into(),
    }
}

/// A time for people.
fn seconds(time: Duration) -> String {
    match time {
        Duration::MAX => "ever".to_owned(),
        time => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// How long an answer is waited for, as options say it.
fn waits((exponent, retries): (u8, u8)) -> String {
    format!("-u {exponent}, --retry_count {retries}")
}

/// What to look at where nothing comes back.
const CUT: &str =
    "The path may be cut: look at the links and switches on it, and whether UDP port 4791 is open both ways";

/// What can be done about an error of TCP.
fn remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; a server is to be started there first, without -R, at this port (-p), or it is busy with another client"
                .to_owned()
        }
        io::ErrorKind::AddrInUse => {
            "; another server is there, or take another port at both ends (-p)".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => format!("; it {}", crate::addresses::foreign()),
        _ => String::new(),
    }
}

/// Where a server may be that does not answer RDMA-CM.
fn whereabouts(error: &CmError) -> &'static str {
    match error {
        CmError::Unreachable(SocketAddr::V6(_)) => {
            "; a server is at its host's first IPv4 address, unless it is told this one (-d)"
        }
        CmError::Unanswered(_) => "; a server that is busy with another client asks for none",
        CmError::Unreachable(_) => "; a server is to be started there first, with -R",
        CmError::Rejected { reason: reason::INVALID_SERVICE, .. } => {
            "; a server is to be started there first, with -R, at this port (-p), or it is busy with another client"
        }
        CmError::Rejected { reason: reason::INVALID_MTU, .. } => {
            "; the server's link takes less than ours: give both ends the same -m, as it says there, such as -m 1024"
        }
        _ => "",
    }
}

/// What a failed request means for a person.
fn explain(status: Status) -> &'static str {
    match status {
        Status::TransportRetryCounterExceeded => "the peer no longer answers",
        Status::RnrRetryCounterExceeded => "the peer posts no receives",
        Status::RemoteAccessError => "the peer's memory is shorter than our messages, or its key is another",
        Status::RemoteInvalidRequestError => "the peer takes no such request",
        Status::LocalLengthError => "the peer's messages are longer than ours",
        _ => "a request failed",
    }
}

/// What lets a test wait longer.
fn longer(status: Status) -> &'static str {
    match status {
        Status::TransportRetryCounterExceeded => {
            "; where it is slow, or much is lost on the way, -u and --retry_count let it take longer"
        }
        _ => "",
    }
}

/// What to ask where packets are longer than the least that any link carries.
fn carries(octets: u32) -> String {
    if octets <= Mtu::Mtu256.octets().into() {
        return String::new();
    }
    format!(", and does the path carry {octets} octets of payload in a packet (-m asks for fewer)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_silent_over_ipv6_is_perhaps_at_its_host_s_ipv4_address() {
        for (address, hints) in [("[fd00::1]:18515", true), ("10.0.0.1:18515", false)] {
            let told = PerfError::from(CmError::Unreachable(address.parse().unwrap())).to_string();
            assert!(told.starts_with(&format!("{address} does not answer")), "{told}");
            assert_eq!(told.ends_with("unless it is told this one (-d)"), hints, "{told}");
        }
    }

    #[test]
    fn of_a_host_that_tcp_has_given_up_no_more_is_told_than_how_long_it_was_asked() {
        let told = PerfError::Severed.to_string();
        assert!(
            told.contains("which has asked it for 5 s or longer whether it is there. The path"),
            "{told}"
        );
    }

    #[test]
    fn only_packets_that_some_link_may_not_carry_are_asked_about() {
        let told = |octets| PerfError::Unanswered { qpn: Qpn::new(0x11), octets }.to_string();
        assert!(told(4096).contains("does the path carry 4096 octets"), "{}", told(4096));
        assert!(told(256).contains("open both ways? Queue pair 0x000011 ended"), "{}", told(256));
    }
}
