//! What `roci switch` can be asked for.

use clap::Args;
use roci_endpoint::bridge::Attachment;
use roci_units::{BitsPerSec, Ratio, Span};
use std::path::PathBuf;
use std::str::FromStr;

pub(crate) const SWITCH: &str = "\
A port is `tap:NAME`, a device that is created and that `ip link set NAME netns HOST` gives to a host, or the name of an interface;
behind an @, the rate of its link.

Examples:
  roci switch tap:r0 tap:r1 tap:r2 --rate 1Gb/s --delay 5us
  roci switch tap:r0@1Gb/s tap:r1@100Mb/s --set switch.ecn.kmin=20KB --set switch.pfc=false
  roci switch tap:r0 tap:r1 tap:r2 --like scenarios/advcam-incast.toml --series out/queues.csv
  roci switch eth1 eth2 --rate 10Gb/s --pause-frames   # between two real hosts
  roci switch tap:r0 tap:r1 --set switch.int=true      # telemetry for `roci perf --control hpcc`
  roci switch tap:r0 tap:r1 --loss 0.01 --duration 60s --json";

#[derive(Debug, Args)]
pub(crate) struct Switch {
    /// The ports, 2 to 64: `tap:NAME`, or the name of an interface; `@RATE` behind it is the rate of its link
    #[arg(value_name = "PORT", required = true, num_args = 2..=64)]
    pub(crate) ports: Vec<Port>,
    /// The rate of each link [default: that of the scenario, or 1Gb/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<BitsPerSec>,
    /// The propagation delay of each link [default: that of the scenario, or 1us]
    #[arg(long, value_name = "TIME", value_parser = delay)]
    pub(crate) delay: Option<Span>,
    /// The scenario whose first host's switch it is to be like: its `[switch]`, that host's `nic.ets`, and its link
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) like: Option<PathBuf>,
    /// Set a key of `[switch]`, or `nic.ets`, as in a scenario: switch.ecn.kmin=20KB
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// What an IP packet may have on the TAP devices, as 9000 or 9KB
    #[arg(long, value_name = "SIZE", default_value_t = 1500, value_parser = super::size::<u16>(576..=9000))]
    pub(crate) mtu: u16,
    /// How many of the frames from hosts are lost, as 0.01 or 1/100
    #[arg(long, value_name = "RATIO", default_value = "0", hide_default_value = true, value_parser = loss)]
    pub(crate) loss: Ratio,
    /// What losses and marks are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Take the priority of RoCEv2 packets from tag or DSCP, as of all others, and not by `switch.classes`
    #[arg(long)]
    pub(crate) trust_dscp: bool,
    /// The DSCP of RoCEv2 packets that have room for telemetry, which the switch writes with switch.int=true
    /// [default: 23]
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) int_dscp: Option<u8>,
    /// Send PFC frames to pause what is behind interfaces; TAP devices are paused without
    #[arg(long)]
    pub(crate) pause_frames: bool,
    /// How long to serve [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", value_parser = positive)]
    pub(crate) duration: Option<Span>,
    /// Write what each port does every so often into this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) series: Option<PathBuf>,
    /// How often a line of the series is written
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "series", value_parser = period)]
    pub(crate) every: Span,
    /// Print what was counted as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors, and JSON where that is asked for
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A port as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) attachment: Attachment,
    /// The rate of its link, where it is not that of all.
    pub(crate) rate: Option<BitsPerSec>,
}

impl Port {
    pub(crate) fn name(&self) -> &str {
        self.attachment.name()
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (device, rate) = match text.split_once('@') {
            Some((device, text)) => (device, Some(rate(text)?)),
            None => (text, None),
        };
        Ok(Self { attachment: device.parse()?, rate })
    }
}

fn rate(text: &str) -> Result<BitsPerSec, String> {
    match text.parse::<BitsPerSec>() {
        Ok(BitsPerSec(0)) => Err("a link without a rate carries nothing; a rate is 1Gb/s".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

fn delay(text: &str) -> Result<Span, String> {
    text.parse::<Span>().map_err(|error| error.to_string())
}

fn positive(text: &str) -> Result<Span, String> {
    delay(text).and_then(|span| if span.is_zero() { Err("more than 0s".to_owned()) } else { Ok(span) })
}

fn period(text: &str) -> Result<Span, String> {
    delay(text)
        .and_then(|span| if span < Span::from_millis(1) { Err("at least 1ms".to_owned()) } else { Ok(span) })
}

fn loss(text: &str) -> Result<Ratio, String> {
    match text.parse::<Ratio>() {
        Ok(ratio) if ratio.is_proper() => Ok(ratio),
        Ok(_) => Err("at most 1".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
