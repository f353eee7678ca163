//! `roci ping`: rping's protocol.

use crate::Failure;
use crate::args::ping::Ping;
use crate::execute::print;
use crate::progress;
use roci_endpoint::addresses::{address_of, first_address, toward};
use roci_endpoint::cm::CmError;
use roci_endpoint::ping::{self, Options, PingError, Watch};
use std::cell::RefCell;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Pings, or answers.
pub(crate) fn ping(arguments: &Ping) -> Result<(), Failure> {
    if !(arguments.server || arguments.client) {
        let text =
            "--server or --client: `roci ping -s -a ADDRESS` waits there, `roci ping -c -a ADDRESS` pings it";
        return Err(Failure::Request(text.to_owned()));
    }
    progress::listen()?;
    let request = |error: std::io::Error| Failure::Request(error.to_string());
    let address = arguments.address.as_deref();
    let (host, device) = match (address, arguments.client) {
        (Some(name), true) => {
            let wrong = || Failure::Request(format!("`{name}` is no host"));
            let host = (name, arguments.port).to_socket_addrs().ok().and_then(|mut all| all.next());
            let host = host.ok_or_else(wrong)?;
            (Some(host), arguments.source.map_or_else(|| toward(host), Ok))
        }
        (Some(name), false) => (None, arguments.source.map_or_else(|| address_of(name), Ok)),
        (None, _) => (None, arguments.source.map_or_else(first_address, Ok)),
    };
    let options = Options {
        host,
        port: arguments.port,
        device: device.map_err(request)?,
        count: arguments.count,
        size: usize::try_from(arguments.size).unwrap_or(usize::MAX),
        validate: arguments.validate,
        persistent: arguments.persistent,
    };
    let screen = Screen { verbose: arguments.verbose, is_client: host.is_some(), times: RefCell::default() };
    match ping::run(&options, &screen) {
        Ok(count) => {
            screen.summary(count);
            Ok(())
        }
        Err(error @ (PingError::Options(_) | PingError::Device(..))) => {
            Err(Failure::Request(error.to_string()))
        }
        Err(error) => Err(Failure::Run(error.to_string())),
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
