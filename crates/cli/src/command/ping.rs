//! `roci ping`: rping's protocol.

use crate::Failure;
use crate::args::ping::Ping;
use crate::execute::print;
use crate::progress;
use roci_endpoint::addresses::{address_of, addresses_of_host_from, first_address, toward};
use roci_endpoint::cm::CmError;
use roci_endpoint::ping::{self, Options, PingError, Watch};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

/// Pings, or answers.
pub(crate) fn ping(arguments: &Ping) -> Result<(), Failure> {
    if !(arguments.server || arguments.client) {
        let text =
            "--server or --client: `roci ping -s -a ADDRESS` waits there, `roci ping -c -a ADDRESS` pings it";
        return Err(Failure::Request(text.to_owned()));
    }
    progress::listen()?;
    let request = |error: std::io::Error| Failure::Request(error.to_string());
    let source = |other: &dyn Fn() -> std::io::Result<IpAddr>| arguments.source.map_or_else(other, Ok);
    let address = arguments.address.as_deref();
    let (Some(name), true) = (address, arguments.client) else {
        let device = source(&|| address.map_or_else(first_address, address_of)).map_err(request)?;
        return run(arguments, None, device).map_err(failure);
    };
    let hosts = addresses_of_host_from(arguments.source, name, arguments.port);
    let hosts = hosts.map_err(|_| Failure::Request(format!("`{name}` is no host")))?;
    // One after the other, until one of them answers.
    let mut failed = None;
    for host in hosts {
        let error = match source(&|| toward(host)) {
            Ok(device) => match run(arguments, Some(host), device) {
                Err(error @ PingError::Connect(_)) => failure(error),
                Err(error @ PingError::Device(..)) => failure(error),
                done => return done.map_err(failure),
            },
            Err(error) => request(error),
        };
        // Who was asked tells more than that no way leads there.
        if !matches!((&failed, &error), (Some(Failure::Run(_)), Failure::Request(_))) {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Pings `host` from `device`, or answers there.
fn run(arguments: &Ping, host: Option<SocketAddr>, device: IpAddr) -> Result<(), PingError> {
    let options = Options {
        host,
        port: arguments.port,
        device,
        count: arguments.count,
        size: usize::try_from(arguments.size).unwrap_or(usize::MAX),
        validate: arguments.validate,
        persistent: arguments.persistent,
    };
    let screen = Screen { verbose: arguments.verbose, is_client: host.is_some(), times: RefCell::default() };
    screen.summary(ping::run(&options, &screen)?);
    Ok(())
}

fn failure(error: PingError) -> Failure {
    match error {
        PingError::Options(_) | PingError::Device(..) => Failure::Request(error.to_string()),
        error => Failure::Run(error.to_string()),
    }
}

/// What is shown.
struct Screen {
    verbose: bool,
    is_client: bool,
    /// Shortest, longest and sum, in microseconds.
    times: RefCell<(f64, f64, f64)>,
}

impl Watch for Screen {
    fn waiting(&self, at: SocketAddr) {
        print(&format!("waiting for a client at {}, port {}\n", at.ip(), at.port()));
    }

    fn connected(&self, peer: SocketAddr) {
        print(&format!("connected with {}\n", peer.ip()));
    }

    fn refused(&self, peer: SocketAddr, error: &CmError) {
        if self.verbose {
            print(&format!("not connected with {}: {error}\n", peer.ip()));
        }
    }

    fn ping(&self, number: u64, text: &[u8], us: f64) {
        let mut times = self.times.borrow_mut();
        let (min, max, sum) = *times;
        *times = (if number == 0 { us } else { min.min(us) }, max.max(us), sum + us);
        if self.verbose {
            let text: String =
                text.iter().take_while(|octet| **octet != 0).map(|octet| shown(*octet)).collect();
            print(&format!("{}ping data: {text}\n", if self.is_client { "" } else { "server " }));
        }
    }

    fn stopped(&self) -> bool {
        progress::interrupted()
    }
}

/// A character that does a terminal no harm.
fn shown(octet: u8) -> char {
    if octet.is_ascii_graphic() || octet == b' ' { octet.into() } else { '.' }
}

impl Screen {
    fn summary(&self, count: u64) {
        let (min, max, sum) = *self.times.borrow();
        if self.is_client && count > 0 {
            let mean = sum / count as f64;
            print(&format!("{count} pings done, min/avg/max = {min:.1}/{mean:.1}/{max:.1} us\n"));
        } else {
            print(&format!("{count} pings done\n"));
        }
    }
}
