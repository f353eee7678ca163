//! What `roci dash` can be asked for.

use clap::Args;
use roci_units::Span;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const DASH: &str = "\
A program on the endpoint opens the socket when it is started with its path in ROCI_CONTROL.
On a terminal h shows the keys. Where the output is none a table of two readings is printed.

Examples:
  ROCI_CONTROL=/tmp/roci roci perf write-bw 10.0.0.1 -D 60 &
  roci dash --socket /tmp/roci
  roci dash --socket /tmp/sender --socket /tmp/receiver --every 500ms
  roci dash --socket /tmp/roci --once --every 1s
  roci dash --socket /tmp/roci --once --json | jq '.totals.sent_bps'";

#[derive(Debug, Args)]
pub(crate) struct Dash {
    /// The control socket of a device; again for more [default: what ROCI_CONTROL names]
    #[arg(long = "socket", value_name = "PATH")]
    pub(crate) sockets: Vec<PathBuf>,
    /// How often to look, at least each 10ms; with very many queue pairs it is less often, so that it costs them nothing
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = period)]
    pub(crate) every: Duration,
    /// Print a table of two readings, so far apart, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print it as JSON
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
}

/// A time between two looks.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    match text.parse::<Span>() {
        Ok(span) if span >= Span::from_millis(10) => Ok(Duration::from_nanos(span.as_ps() / 1000)),
        Ok(_) => Err("at least 10ms".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
