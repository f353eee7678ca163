//! What `roci ping` can be asked for. The options are named as rping names them.

use super::perf::device;
use clap::Args;
use std::net::IpAddr;

pub(crate) const PING: &str = "\
Examples:
  roci ping -s                                # the server, at this host's first address
  roci ping -s -a 10.0.0.1 -P                 # at this address, for one client after the other
  roci ping -c -a 10.0.0.1 -C 10 -v           # ten pings, each shown; the server may be `rping -s`
  roci ping -c -a 10.0.0.1 -C 1000 -S 4096 -V # a thousand, each compared with what came back";

#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// Be the server
    #[arg(short, long, conflicts_with = "client")]
    pub(crate) server: bool,
    /// Be the client
    #[arg(short, long, requires = "address")]
    pub(crate) client: bool,
    /// The server's address
    #[arg(short, long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// The server's port
    #[arg(short, long, value_name = "PORT", default_value_t = roci_endpoint::ping::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// How often; the default is until Ctrl-C
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) count: u64,
    /// The size of a ping, as 4096 or 4KiB
    #[arg(short = 'S', long, value_name = "SIZE", default_value_t = 64, value_parser = super::size::<u32>(17..=1 << 24))]
    pub(crate) size: u32,
    /// Show each ping
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
    /// Compare what comes back
    #[arg(short = 'V', long)]
    pub(crate) validate: bool,
    /// As a server, go on after the first client
    #[arg(short = 'P', long)]
    pub(crate) persistent: bool,
    /// Our device: an address of this host, or the name of an interface [default: by which the server is reached]
    #[arg(short = 'I', long = "source", value_name = "DEVICE", value_parser = device)]
    pub(crate) source: Option<IpAddr>,
}
