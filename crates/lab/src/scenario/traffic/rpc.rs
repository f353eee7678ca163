//! `kind = "rpc"`.

use super::super::read::Table;
use super::super::source::ScenarioError;
use super::{Reading, to_itself};
use crate::traffic::rpc::Rpc;
use crate::traffic::spec::{Common, Op, Traffic};
use roci_fabric::packet::HostId;
use roci_rpc::Credits;
use roci_units::{Bytes, Span};

/// The most octets of a request: 64 MiB, as its buffer is to have an address on the machine.
const REQUEST_MAX: u64 = 1 << 26;
/// The most octets of a response: one packet of the smallest kind of NIC is more.
const RESPONSE_MAX: u64 = 4096;

const CREDITS: [(&str, Credits); 4] = [
    ("none", Credits::Unlimited),
    ("session", Credits::Session(32)),
    ("basic", Credits::Basic),
    ("loosened", Credits::Loosened),
];

impl Reading<'_> {
    pub(super) fn rpc(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common =
            Common { op: Op::Send, priority: table.priority("priority")?, control: self.control(table)? };
        self.several_hosts(table)?;
        let server = table.require("server", self.host(table, "server")?)?;
        let clients = match table.texts("clients")? {
            None => {
                (0u16..).map(HostId).take(self.names.host_count()).filter(|&host| host != server).collect()
            }
            Some(names) => {
                let clients = names.iter().map(|name| match self.names.host(table.source, name)? {
                    host if host == server => Err(to_itself(table, name)),
                    host => Ok(host),
                });
                clients.collect::<Result<Vec<_>, _>>()?
            }
        };
        if clients.is_empty() {
            return Err(table.refuse("clients", "this list of hosts is empty", "name at least one client"));
        }
        let threads = table.count("threads", 1..=65_535)?.unwrap_or(1);
        let credits = table.word("credits", &CREDITS)?.unwrap_or_default();
        let session = table.count("session_credits", 1..=65_535)?;
        let credits = match (credits, session) {
            (Credits::Session(usual), packets) => Credits::Session(packets.unwrap_or(usual)),
            (_, Some(_)) => {
                return Err(table.refuse(
                    "session_credits",
                    "`session_credits` are those of sessions, and `credits` are of another kind",
                    "set `credits = \"session\"`, or leave `session_credits` out",
                ));
            }
            (credits, None) => credits,
        };
        let count = table.number("count", 1..=u64::from(u32::MAX))?;
        if count.is_none() {
            self.must_stop(table, "count", " = 1000")?;
        }
        Ok(Traffic::Rpc(Rpc {
            server,
            clients,
            threads: u16::try_from(threads).unwrap_or(u16::MAX),
            connections: table.count("connections", 1..=65_535)?.unwrap_or(threads),
            request: table.require("request", table.bytes("request", 1..=REQUEST_MAX)?)?,
            response: table.bytes("response", 1..=RESPONSE_MAX)?.unwrap_or(Bytes(32)),
            window: table.count("window", 1..=65_535)?.unwrap_or(8),
            count,
            processing: table.span("processing")?.unwrap_or_default(),
            overhead: table.span("overhead")?.unwrap_or(Span::from_nanos(50)),
            credits,
            credits_cache: table.bytes("credits_cache", 4096..=1 << 40)?,
            rx_ring: table.count("rx_ring", 1..=65_535)?.unwrap_or(4096),
            warmup: table.span("warmup")?.unwrap_or_default(),
            start: self.start(table)?,
            common,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{parse, star};
    use super::*;
    use roci_units::Instant;

    fn with(lines: &str) -> String {
        star(&format!("[[traffic]]\nkind = \"rpc\"\n{lines}"))
    }

    fn read(lines: &str) -> Rpc {
        let scenario = parse(&with(lines)).unwrap();
        let [Traffic::Rpc(spec)] = &scenario.traffic[..] else { panic!("requests") };
        spec.clone()
    }

    #[test]
    fn all_others_ask_one_thread_unless_it_says_otherwise() {
        let usual = read("server = \"h1\"\nrequest = \"256B\"\ncount = 10\n");
        assert_eq!(usual.clients, [HostId(0), HostId(2), HostId(3)]);
        assert_eq!((usual.threads, usual.connections, usual.window, usual.rx_ring), (1, 1, 8, 4096));
        assert_eq!((usual.response, usual.credits), (Bytes(32), Credits::Unlimited));
        assert_eq!(usual.queue_pairs(), 3);
        let lines = "server = \"h0\"\nclients = [\"h2\"]\nthreads = 4\nconnections = 8\nrequest = \"7.9MB\"\nresponse = \"64B\"\n\
            window = 2\ncount = 3\nprocessing = \"1us\"\noverhead = \"80ns\"\ncredits = \"session\"\nsession_credits = 16\n\
            rx_ring = 512\ncredits_cache = \"1MiB\"\nwarmup = \"1ms\"\nstart = \"5us\"\npriority = 2\n";
        let expected = Rpc {
            server: HostId(0),
            clients: vec![HostId(2)],
            threads: 4,
            connections: 8,
            request: Bytes(7_900_000),
            response: Bytes(64),
            window: 2,
            count: Some(3),
            processing: Span::from_micros(1),
            overhead: Span::from_nanos(80),
            credits: Credits::Session(16),
            credits_cache: Some(Bytes(1 << 20)),
            rx_ring: 512,
            warmup: Span::from_millis(1),
            start: Instant::ZERO + Span::from_micros(5),
            common: Common { op: Op::Send, priority: Some(2), control: None },
        };
        assert_eq!(read(lines), expected);
        let one = "server = \"h0\"\nthreads = 4\nrequest = 64\ncount = 1\n";
        assert_eq!(read(one).connections, 4);
        assert_eq!(read(&format!("{one}credits = \"session\"\n")).credits, Credits::Session(32));
        assert_eq!(read(&format!("{one}credits = \"loosened\"\n")).credits, Credits::Loosened);
    }

    #[test]
    fn requests_that_cannot_be_are_refused_with_a_remedy() {
        let usual = "server = \"h0\"\nrequest = 64\n";
        for (lines, message, remedy) in [
            (
                format!("{usual}count = 1\nclients = [\"h1\", \"h0\"]\n"),
                "would send to itself",
                "two different hosts",
            ),
            (format!("{usual}count = 1\nclients = []\n"), "is empty", "at least one client"),
            (usual.to_owned(), "never ends", "`count = 1000`"),
            (
                format!("{usual}count = 1\nsession_credits = 4\n"),
                "of another kind",
                "leave `session_credits` out",
            ),
            (format!("{usual}count = 1\ncredits = \"carc\"\n"), "carc", "loosened"),
            (format!("{usual}count = 1\nthreads = 17\n"), "17 threads", "16 hardware threads"),
            (format!("{usual}count = 1\nresponse = \"4KiB\"\n"), "a packet", "1024"),
        ] {
            let told = parse(&with(&lines)).unwrap_err().to_string();
            assert!(told.contains(message) && told.contains(remedy), "{lines}: {told}");
        }
    }
}
