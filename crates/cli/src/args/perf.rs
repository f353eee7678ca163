//! What `roci perf` can be asked for. The options are named as perftest names them.

pub(crate) mod absent;

use clap::{Args, ValueEnum};
use roci_endpoint::addresses::address_of;
use roci_endpoint::congestion::LawError;
use roci_endpoint::device::LINK;
use roci_endpoint::perf::{Metric, Options, Order, RateLimit, Test, Verb};
use roci_endpoint::{Law, Mtu, Recovery, Service, congestion};
use roci_units::BitsPerSec;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

pub(crate) const PERF: &str = "\
Examples:
  roci perf write-bw                          # the server; `ib_write_bw HOST` talks to it
  roci perf write-bw 10.0.0.1                 # the client; the server may be `ib_write_bw`
  roci perf send-bw 10.0.0.1 -s 4096 -n 100000 -q 4
  roci perf read-bw 10.0.0.1 -D 10 --report_gbits
  roci perf write-lat 10.0.0.1 -a --json
  roci perf write-bw 10.0.0.1 -R               # connected by RDMA-CM
  roci perf send-bw 10.0.0.1 -c UC --rate_limit 1    # unreliable connections
  roci perf write-bw 10.0.0.1 --recovery irn         # selective repeat, between two ends of ours
  roci perf write-bw 10.0.0.1 --control firmware/dcqcn.elf     # a program controls congestion

Both ends are to be given the same test, -s or -a, -n or -D, -q, -b, -A, -c, --recovery, -R and -p.";

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TestName {
    /// Bandwidth of RDMA WRITEs, as ib_write_bw
    WriteBw,
    /// Bandwidth of SENDs, as ib_send_bw
    SendBw,
    /// Bandwidth of RDMA READs, as ib_read_bw
    ReadBw,
    /// Bandwidth of atomics, as ib_atomic_bw
    AtomicBw,
    /// Latency of RDMA WRITEs, as ib_write_lat
    WriteLat,
    /// Latency of SENDs, as ib_send_lat
    SendLat,
    /// Latency of RDMA READs, as ib_read_lat
    ReadLat,
    /// Latency of atomics, as ib_atomic_lat
    AtomicLat,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Atomic {
    /// COMPARE-SWAP
    CmpAndSwap,
    /// FETCH-ADD
    #[default]
    FetchAndAdd,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum RateUnits {
    /// MiB/s of payload
    #[value(name = "M")]
    Mebibytes,
    /// Gb/s of payload
    #[default]
    #[value(name = "g")]
    Gbits,
    /// Packets per second
    #[value(name = "p")]
    Packets,
}

/// A figure of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Figure {
    /// The average bandwidth, in the unit of the table
    Bandwidth,
    /// Millions of messages a second
    MessageRate,
    /// The average latency, in microseconds
    Latency,
}

#[derive(Debug, Args)]
pub(crate) struct Perf {
    /// The test
    #[arg(value_enum, value_name = "TEST")]
    pub(crate) test: TestName,
    /// The server to connect to; without it, be the server
    #[arg(value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Octets of a message; K is 1024 and M 1024^2 of them [default: 65536, 2 of latency, 8 of atomics]
    #[arg(short, long, value_name = "OCTETS", value_parser = octets)]
    pub(crate) size: Option<u32>,
    /// All sizes from 2 to 2^23
    #[arg(short, long, conflicts_with = "size")]
    pub(crate) all: bool,
    /// Messages of each queue pair [default: 5000 of write-bw, else 1000]
    #[arg(short = 'n', long, value_name = "N", value_parser = iterations)]
    pub(crate) iters: Option<u32>,
    /// For so many seconds, in place of a number of messages
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iters", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) duration: Option<u32>,
    /// Seconds that are not measured, before and after [default: 2, or a quarter of a short time]
    #[arg(short = 'f', long, value_name = "SECONDS", requires = "duration")]
    pub(crate) margin: Option<u32>,
    /// Queue pairs
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16_384))]
    pub(crate) qp: u16,
    /// Connections: RC, or UC of WRITEs and SENDs, where nobody acknowledges and nothing is sent again. The sender's bandwidth is then
    /// that at which it sent, the receiver's that of what came, and lost messages are told at the end; of latency a message is lost
    /// that nothing answers for a second, and the next follows
    #[arg(short = 'c', long, value_name = "RC|UC", default_value = "RC", value_parser = service)]
    pub(crate) connection: Service,
    /// Both ends send
    #[arg(short, long)]
    pub(crate) bidirectional: bool,
    /// The path MTU: 256, 512, 1024, 2048 or 4096 [default: what the path carries]
    #[arg(short, long, value_name = "OCTETS", value_parser = mtu)]
    pub(crate) mtu: Option<Mtu>,
    /// Requests outstanding on each queue pair [default: 128]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) tx_depth: Option<u32>,
    /// Receives posted on each queue pair, of SENDs [default: 512, 4000 with UC]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) rx_depth: Option<u32>,
    /// READs and atomics outstanding on each queue pair
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=128))]
    pub(crate) outs: u8,
    /// Generate a completion for one request in N of a queue pair; N is made to fit -t and -l
    #[arg(short = 'Q', long = "cq-mod", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) cq_mod: u32,
    /// Post requests in lists of N, one call each [default: as many as there is room for]
    #[arg(short = 'l', long = "post_list", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) post_list: Option<u32>,
    /// Send messages up to so many octets, at most 256, inline [default: 0 of bandwidth, 256 of latency]
    #[arg(short = 'I', long = "inline_size", value_name = "OCTETS")]
    pub(crate) inline_size: Option<u32>,
    /// Type of service, or traffic class, of data and acknowledgements: a multiple of 4, since two bits are ECN's
    #[arg(short = 'T', long, visible_alias = "tclass", value_name = "TOS", default_value_t = 0)]
    pub(crate) tos: u8,
    /// Post no more than this, over all queue pairs together
    #[arg(long = "rate_limit", value_name = "RATE")]
    pub(crate) rate_limit: Option<f64>,
    /// The unit of --rate_limit
    #[arg(long = "rate_units", value_enum, value_name = "UNIT", default_value_t, requires = "rate_limit")]
    pub(crate) rate_units: RateUnits,
    /// Who keeps the rate: software alone can, SW
    #[arg(long = "rate_limit_type", value_name = "TYPE", hide_short_help = true, value_parser = by_software)]
    pub(crate) rate_limit_type: Option<()>,
    /// Print the time of each message, the shortest first, before the line of the result
    #[arg(short = 'H', long = "report-histogram")]
    pub(crate) report_histogram: bool,
    /// As -H, in the order in which they were sent
    #[arg(short = 'U', long = "report-unsorted")]
    pub(crate) report_unsorted: bool,
    /// The atomic
    #[arg(short = 'A', long = "atomic_type", value_enum, default_value_t)]
    pub(crate) atomic_type: Atomic,
    /// The local ACK timeout, 4.096 us times 2^N
    #[arg(short = 'u', long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(u8).range(1..=31))]
    pub(crate) qp_timeout: u8,
    /// Retransmissions without progress before the test fails
    #[arg(long = "retry_count", value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) retry_count: u8,
    /// The server's TCP port
    #[arg(short, long, value_name = "PORT", default_value_t = 18_515, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Our device: an address of this host, or the name of an interface [default: by which the peer is reached]
    #[arg(short = 'd', long = "ib-dev", value_name = "DEVICE", value_parser = device)]
    pub(crate) ib_dev: Option<IpAddr>,
    /// Connect by RDMA-CM, and exchange parameters over it
    #[arg(short = 'R', long = "rdma_cm")]
    pub(crate) rdma_cm: bool,
    /// Octets that a queue pair may have in flight, as of -s [default: 1 MiB and at most 512 packets, shared by the queue pairs]
    #[arg(long, value_name = "OCTETS", value_parser = window)]
    pub(crate) window: Option<u32>,
    /// Send each packet of a WRITE as a message of its own: faster where messages are about as long as a run of offload
    #[arg(long)]
    pub(crate) lone_writes: bool,
    /// How lost packets are sent again: go-back-n, or between two ends of ours irn, srnic, reno, newreno or sack, which send again
    /// what is missing alone; say the same at both ends
    #[arg(long, value_name = "NAME", default_value = "go-back-n", value_parser = recovery)]
    pub(crate) recovery: Recovery,
    /// Congestion control: dcqcn, none, timely, dctcp, theta-powertcp, swift, nscc, hpcc and powertcp between two ends of ours and over
    /// switches that write telemetry, as `roci switch` does, or a program (PROGRAM.elf), and behind
    /// it its settings, KEY=VALUE separated by commas; say the same at both ends. timely, theta-powertcp and swift are to be
    /// told times above the path's, which between sockets are longer than a NIC's (docs/guide/perf.md), or they crawl
    /// [default: dcqcn]
    #[arg(long, value_name = "LAW")]
    pub(crate) control: Option<String>,
    /// The rate of the link, from which congestion control cuts [default: 100Gb/s]
    #[arg(long, value_name = "RATE", value_parser = link)]
    pub(crate) link: Option<BitsPerSec>,
    /// The rate of switch ports of which telemetry tells none, which are those of other rates than 25, 50, 100, 200 and 400 Gb/s; or the rates of
    /// all hops in the order in which data pass them, 1Gb/s,100Mb/s [default: that of the link]
    #[arg(long, value_name = "RATE", value_parser = link, value_delimiter = ',')]
    pub(crate) hop_rate: Vec<BitsPerSec>,
    /// Do not look for the peak of the bandwidth
    #[arg(short = 'N', long = "noPeak")]
    pub(crate) no_peak: bool,
    /// Print bandwidth in Gb/s, in place of MiB/s
    #[arg(long = "report_gbits")]
    pub(crate) report_gbits: bool,
    /// Fail, with 1, where the average bandwidth of a size is below this, in the unit of the table
    #[arg(short = 'w', long = "limit_bw", value_name = "BANDWIDTH", value_parser = limit)]
    pub(crate) limit_bw: Option<f64>,
    /// Fail, with 1, where a size has fewer messages than this, in millions a second
    #[arg(short = 'y', long = "limit_msgrate", value_name = "MPPS", value_parser = limit)]
    pub(crate) limit_msgrate: Option<f64>,
    /// Print this figure of each size alone
    #[arg(long, value_enum, value_name = "FIGURE", conflicts_with = "json")]
    pub(crate) output: Option<Figure>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the rows of the result alone
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Taken for perftest's sake: a device has one port, and its address is its GID
    #[arg(short = 'x', long = "gid-index", value_name = "INDEX", hide_short_help = true)]
    pub(crate) gid_index: Option<u8>,
    /// Taken for perftest's sake, as -x
    #[arg(short = 'i', long = "ib-port", value_name = "PORT", hide_short_help = true)]
    pub(crate) ib_port: Option<u8>,
    /// Taken for perftest's sake: Ethernet has no service level, and -T says the class
    #[arg(short = 'S', long = "sl", value_name = "LEVEL", hide_short_help = true, value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) sl: Option<u8>,
    /// Taken for perftest's sake: the processor's frequency is not looked at
    #[arg(short = 'F', long = "CPU-freq", hide_short_help = true)]
    pub(crate) cpu_freq: bool,
}

/// Receives of an unreliable connection, as perftest has them: nobody waits for one.
const UNRELIABLE_RECEIVES: u32 = 4000;

/// Octets of a message.
fn octets(text: &str) -> Result<u32, String> {
    octets_from(text, 1)
}

/// Octets in flight.
fn window(text: &str) -> Result<u32, String> {
    octets_from(text, 1024)
}

/// Octets, at least `least`, perhaps with a unit: `65536`, `64K`, `1M`.
fn octets_from(text: &str, least: u32) -> Result<u32, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((end, 'k' | 'K')) => (&text[..end], 1 << 10),
        Some((end, 'm' | 'M')) => (&text[..end], 1 << 20),
        _ => (text, 1),
    };
    let octets = digits.parse::<i64>().ok().and_then(|count| count.checked_mul(unit));
    let octets = octets.ok_or_else(|| "a size is 65536, 64K or 1M".to_owned())?;
    match u32::try_from(octets) {
        Ok(octets) if (least..=1 << 30).contains(&octets) => Ok(octets),
        _ => Err(format!("{octets} is not in {least}..={}", 1 << 30)),
    }
}

/// perftest takes no fewer.
fn iterations(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(count @ 5..=0xffff_ffff) => Ok(u32::try_from(count).unwrap_or(u32::MAX)),
        Ok(count) => Err(format!(
            "{count} is not in 5..=4294967295: as with perftest; of a latency's the two longest times do not count, and what is left of fewer is no figure"
        )),
        Err(_) => Err("it is a number of messages".to_owned()),
    }
}

/// What a figure is to reach.
fn limit(text: &str) -> Result<f64, String> {
    let known = text.parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0);
    known.ok_or_else(|| "a limit is a number above 0".to_owned())
}

fn mtu(text: &str) -> Result<Mtu, String> {
    let known = text.parse().ok().and_then(Mtu::from_octets);
    known.ok_or_else(|| "an MTU is 256, 512, 1024, 2048 or 4096".to_owned())
}

/// A program's file is one that is there, or else one that came with us.
fn law(text: &str, link: BitsPerSec) -> Result<Law, String> {
    let read = |path: &Path| match (
        roci_lab::program::octets(path),
        path.to_str().and_then(roci_lab::program::shipped),
    ) {
        (Err(error), Some(image)) if error.kind() == ErrorKind::NotFound => Ok(image.to_vec()),
        (octets, _) => octets,
    };
    congestion::law(text, link, read).map_err(|error| {
        let more = match &error {
            LawError::File(name, _) => match roci_lab::program::image(Path::new(name)) {
                Err(why) => return format!("--control {text}: {name}: {why}"),
                Ok(_) => String::new(),
            },
            LawError::Image(name, _) => format!("; `roci program check {name}` says more, and what to do"),
            _ => String::new(),
        };
        format!("--control {text}: {error}{more}")
    })
}

fn service(text: &str) -> Result<Service, String> {
    match text {
        "RC" => Ok(Service::Rc),
        "UC" => Ok(Service::Uc),
        "UD" => Err(
            "datagrams have no test here; perftest itself has, over libroci_verbs.so (docs/guide/verbs.md)"
                .to_owned(),
        ),
        _ => Err("it is RC or UC".to_owned()),
    }
}

fn recovery(text: &str) -> Result<Recovery, String> {
    let mut known = Recovery::NAMED.into_iter().filter(|(_, recovery)| *recovery != Recovery::Ndp);
    known.find(|(name, _)| *name == text).map(|(_, recovery)| recovery).ok_or_else(|| match text {
        "ndp" => {
            "no network trims packets of RoCEv2, which NDP lives on; irn sends again what is missing alone"
                .to_owned()
        }
        _ => "it is go-back-n, irn, srnic, reno, newreno or sack".to_owned(),
    })
}

fn by_software(text: &str) -> Result<(), String> {
    match text {
        "SW" => Ok(()),
        "HW" | "PP" => Err("there is no NIC beneath that could keep a rate; SW is what can".to_owned()),
        _ => Err("it is SW".to_owned()),
    }
}

fn link(text: &str) -> Result<BitsPerSec, String> {
    match text.parse::<BitsPerSec>() {
        Ok(rate) if rate >= BitsPerSec::from_mbps(1) => Ok(rate),
        Ok(_) => Err("a link has at least 1 Mb/s".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn device(text: &str) -> Result<IpAddr, String> {
    address_of(text).map_err(|error| error.to_string())
}

/// The laws that hear of acknowledgements alone, but for those that READs are refused with.
const BY_ACKNOWLEDGEMENTS: [&str; 5] = ["timely", "dctcp", "swift", "theta-powertcp", "nscc"];

impl Perf {
    /// What is to be known before the test of a law that hears nothing of it, whose times, unless it is told others, are those of a NIC, or which lives on
    /// switches' word.
    pub(crate) fn hint(&self) -> Option<String> {
        let control = self.control.as_deref()?;
        let (name, settings) = control.split_once(',').unwrap_or((control, ""));
        let name = name.trim();
        // A program is as its name says: those that come with us have the laws' own settings.
        let program = Path::new(name).extension().is_some_and(|extension| extension == "elf");
        let law = if program { Path::new(name).file_stem()?.to_str()? } else { name };
        let is_read = matches!(self.test, TestName::ReadBw | TestName::ReadLat);
        if is_read && self.recovery == Recovery::GoBackN && BY_ACKNOWLEDGEMENTS.contains(&law) {
            return Some(format!(
                "{name} hears of acknowledgements, and go-back-n acknowledges no READ data: nothing holds them back. With --recovery irn it does, and dcqcn does here too"
            ));
        }
        if ["hpcc", "powertcp"].contains(&law) {
            return Some(format!(
                "{name} hears of the path by telemetry alone, which `roci switch --set switch.int=true` writes. Tell it a base_rtt above the path's, at most 1ms, --link, from which its first window comes, and --hop-rate where ports have other rates than 25, 50, 100, 200 and 400 Gb/s"
            ));
        }
        let target = match law {
            "timely" => "t_low",
            "swift" => "base_target",
            "theta-powertcp" => "base_rtt",
            _ => return None,
        };
        let is_told = settings.split(',').any(|pair| pair.trim().starts_with(target));
        (!is_told).then(|| {
            format!(
                "{name}'s times are a NIC's, and between sockets it crawls: add {target}=…, see docs/guide/perf.md"
            )
        })
    }

    /// What is asked for; or why the law is none.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let swap = matches!(self.atomic_type, Atomic::CmpAndSwap);
        let (verb, metric) = match self.test {
            TestName::WriteBw => (Verb::Write, Metric::Bandwidth),
            TestName::SendBw => (Verb::Send, Metric::Bandwidth),
            TestName::ReadBw => (Verb::Read, Metric::Bandwidth),
            TestName::AtomicBw => (Verb::Atomic { swap }, Metric::Bandwidth),
            TestName::WriteLat => (Verb::Write, Metric::Latency),
            TestName::SendLat => (Verb::Send, Metric::Latency),
            TestName::ReadLat => (Verb::Read, Metric::Latency),
            TestName::AtomicLat => (Verb::Atomic { swap }, Metric::Latency),
        };
        let is_latency = metric == Metric::Latency;
        if is_latency && (self.limit_bw.is_some() || self.limit_msgrate.is_some()) {
            return Err("-w and -y are limits of tests of bandwidth".to_owned());
        }
        if self.output.is_some_and(|figure| (figure == Figure::Latency) != is_latency) {
            let right = if is_latency { "latency" } else { "bandwidth or message_rate" };
            return Err(format!("--output of this test is {right}"));
        }
        let usual = Options::new(Test { verb, metric });
        let link = self.link.unwrap_or(LINK);
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Ok(Options {
            host: self.host.clone(),
            port: self.port,
            rdma_cm: self.rdma_cm,
            device: self.ib_dev,
            size: self.size.unwrap_or(usual.size),
            all_sizes: self.all,
            iterations: self.iters.unwrap_or(usual.iterations),
            duration: self.duration.map(seconds),
            margin: self.margin.map(seconds),
            queue_pairs: self.qp,
            service: self.connection,
            bidirectional: self.bidirectional,
            mtu: self.mtu,
            tx_depth: self.tx_depth.unwrap_or(usual.tx_depth),
            rx_depth: self.rx_depth.unwrap_or(match self.connection {
                Service::Uc => UNRELIABLE_RECEIVES,
                _ => usual.rx_depth,
            }),
            outstanding_reads: self.outs,
            qp_timeout: self.qp_timeout,
            retry_count: self.retry_count,
            window: self.window,
            lone_writes: self.lone_writes,
            recovery: self.recovery,
            law: self.control.as_deref().map(|text| law(text, link)).transpose()?,
            link,
            hop_rates: self.hop_rate.clone(),
            peak: !self.no_peak,
            cq_mod: self.cq_mod,
            post_list: self.post_list,
            inline: self.inline_size,
            tos: self.tos,
            rate_limit: self.rate_limit.map(|rate| match self.rate_units {
                RateUnits::Mebibytes => RateLimit::Mebibytes(rate),
                RateUnits::Gbits => RateLimit::Gbits(rate),
                RateUnits::Packets => RateLimit::Packets(rate),
            }),
            times: match (self.report_histogram, self.report_unsorted) {
                (_, true) => Some(Order::Unsorted),
                (true, false) => Some(Order::Sorted),
                (false, false) => None,
            },
            gbits: self.report_gbits,
            ..usual
        })
    }
}
