//! What `roci ctl` can be asked for.

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(crate) const CTL: &str = "\
A program on the endpoint opens the socket when it is started with its path in ROCI_CONTROL.

Examples:
  ROCI_CONTROL=/tmp/roci roci perf write-bw 10.0.0.1 -D 60 &
  roci ctl --socket /tmp/roci get
  roci ctl --socket /tmp/roci set all rai 10Mb/s
  roci ctl --socket /tmp/roci watch --every 200ms
  roci ctl --socket /tmp/roci counters            # as Prometheus reads them";

#[derive(Debug, Args)]
pub(crate) struct Ctl {
    /// The device's control socket [default: what ROCI_CONTROL names]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print registers of queue pairs: of all, of one, or a single one
    Get {
        /// The number of the queue pair
        #[arg(value_name = "QP")]
        qp: Option<String>,
        /// The name of the register
        #[arg(value_name = "NAME", requires = "qp")]
        name: Option<String>,
    },
    /// Write a register
    Set {
        /// The number of the queue pair, or `all`
        #[arg(value_name = "QP")]
        qp: String,
        /// The name of the register
        #[arg(value_name = "NAME")]
        name: String,
        /// Its value, as in a scenario: 10Mb/s, 55us, 1/256
        #[arg(value_name = "VALUE")]
        value: String,
    },
    /// Print what changes, until Ctrl-C
    Watch {
        /// The number of the queue pair; all if not said
        #[arg(value_name = "QP")]
        qp: Option<String>,
        /// How often to look
        #[arg(long, value_name = "TIME", default_value = "1s")]
        every: String,
        /// How many times, in place of until Ctrl-C
        #[arg(long, value_name = "N")]
        times: Option<u64>,
    },
    /// Print counters as Prometheus text
    Counters,
}
