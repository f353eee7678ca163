//! What `roci ctl` can be asked for.

use clap::{Args, Subcommand};
use roci_endpoint::Qpn;
use roci_units::Span;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const CTL: &str = "\
A program on the endpoint opens the socket when it is started with its path in ROCI_CONTROL.

Examples:
  ROCI_CONTROL=/tmp/roci roci perf write-bw 10.0.0.1 -D 60 &
  roci ctl --socket /tmp/roci get
  roci ctl --socket /tmp/roci set all rai 10Mb/s
  roci ctl --socket /tmp/roci watch --every 200ms
  roci ctl --socket /tmp/roci counters            # as Prometheus reads them";

const GET: &str = "\
Examples:
  roci ctl get --socket /tmp/roci                 # every register of every queue pair
  roci ctl get --socket /tmp/roci 0x2c9e40        # of one
  roci ctl get --socket /tmp/roci all alpha       # one register of all
  roci ctl get --socket /tmp/roci --json | jq -r '.[] | [.queue_pair, .registers.rai] | @tsv'";

const SET: &str = "\
Examples:
  roci ctl set --socket /tmp/roci all rai 10Mb/s
  roci ctl set --socket /tmp/roci 0x2c9e40 increase_timer 55us";

const WATCH: &str = "\
Examples:
  roci ctl watch --socket /tmp/roci --every 200ms
  roci ctl watch --socket /tmp/roci 0x2c9e40 --times 10
  roci ctl watch --socket /tmp/roci --every 10ms --stamp > registers.txt
  roci ctl watch --socket /tmp/roci --json | jq 'select(.register == \"alpha\")'";

const HOPS: &str = "\
Examples:
  roci ctl hops --socket /tmp/roci                # of every queue pair that has telemetry
  roci ctl hops --socket /tmp/roci 0x2c9e40 --every 1s
  roci ctl hops --socket /tmp/roci --json | jq '.[].ways[] | {way, bottleneck}'";

const COUNTERS: &str = "\
Examples:
  roci ctl counters --socket /tmp/roci > /var/lib/node_exporter/roci.prom
  roci ctl counters --socket /tmp/roci --json | jq -r '.[] | [.name, .value] | @tsv'";

#[derive(Debug, Args)]
pub(crate) struct Ctl {
    /// The device's control socket [default: what ROCI_CONTROL names]
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) socket: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print registers of queue pairs: of all, of one, or a single one
    #[command(after_help = GET)]
    Get {
        /// The number of the queue pair, or `all`
        #[arg(value_name = "QP", value_parser = word)]
        qp: Option<String>,
        /// The name of the register
        #[arg(value_name = "NAME", requires = "qp", value_parser = word)]
        name: Option<String>,
        /// Print them as JSON: a list of queue pairs with their registers, values as `set` takes them
        #[arg(long)]
        json: bool,
    },
    /// Write a register
    #[command(after_help = SET)]
    Set {
        /// The number of the queue pair, or `all`
        #[arg(value_name = "QP", value_parser = word)]
        qp: String,
        /// The name of the register
        #[arg(value_name = "NAME", value_parser = word)]
        name: String,
        /// Its value, as in a scenario: 10Mb/s, 55us, 1/256
        #[arg(value_name = "VALUE", value_parser = value)]
        value: String,
    },
    /// Print what changes, until Ctrl-C
    #[command(after_help = WATCH)]
    Watch {
        /// The number of the queue pair; all if not said
        #[arg(value_name = "QP", value_parser = word)]
        qp: Option<String>,
        /// How often to look, at least each millisecond
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = period)]
        every: Duration,
        /// How many times, in place of until Ctrl-C
        #[arg(long, value_name = "N")]
        times: Option<u64>,
        /// Put the time before each line, in seconds since 1970, as `tshark -t e` does
        #[arg(long)]
        stamp: bool,
        /// Print each change as JSON, an object a line with the time in it
        #[arg(long, conflicts_with = "stamp")]
        json: bool,
    },
    /// Print the hops of queue pairs' ways, as switches told of them: queues, rates, how much of these is used, and which is the bottleneck
    #[command(after_help = HOPS)]
    Hops {
        /// The number of the queue pair; all if not said
        #[arg(value_name = "QP", value_parser = queue_pair)]
        qp: Option<Qpn>,
        /// How far the two readings lie apart that it takes, at least 10ms
        #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = super::dash::period)]
        every: Duration,
        /// Print them as JSON: a list of queue pairs with their ways and hops
        #[arg(long)]
        json: bool,
    },
    /// Print counters as Prometheus text
    #[command(after_help = COUNTERS)]
    Counters {
        /// Print them as JSON: a list of counters with name, labels and value
        #[arg(long)]
        json: bool,
    },
}

/// The number of a queue pair, decimal or hexadecimal; `None` would be all.
fn queue_pair(text: &str) -> Result<Qpn, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let number = read.ok().filter(|number| *number < 1 << 24);
    number.map(Qpn::new).ok_or_else(|| "it is no number of a queue pair".to_owned())
}

/// One word of a request, which is a line of words.
fn word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("it is one word, and not an empty one".to_owned());
    }
    Ok(text.to_owned())
}

/// A value, whose spaces mean nothing: `10 Mb/s`.
fn value(text: &str) -> Result<String, String> {
    let value: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    if value.is_empty() { Err("it is empty; a value is 10Mb/s, 55us, 1/256".to_owned()) } else { Ok(value) }
}

/// A time between two looks: who looked without a pause would keep the device from its work.
fn period(text: &str) -> Result<Duration, String> {
    match text.parse::<Span>() {
        Ok(span) if span >= Span::from_millis(1) => Ok(Duration::from_nanos(span.as_ps() / 1000)),
        Ok(_) => Err("at least 1ms".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
