//! Who asks the devices: a thread for each socket, so that none that hangs holds up the others or the keys.

use ratatui::crossterm::event::Event;
use roci_endpoint::control;
use roci_endpoint::control::board::{Key, Pace, registers};
use roci_endpoint::control::table::{self, Row};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// What a thread tells.
pub(super) enum Told {
    /// All queue pairs of a socket, or why there are none; and how often it is asked.
    Reading { socket: usize, reading: Result<Vec<Row>, String>, every: Duration },
    /// The registers of one.
    Registers { key: Key, registers: Result<Vec<(String, String)>, String> },
    /// What became of a register that was to be written.
    Written { socket: usize, request: String, answer: Result<String, String> },
    /// A key, or another size.
    Terminal(Event),
    /// There is nobody to press keys any more.
    Deaf(io::Error),
}

/// What a thread is told.
pub(super) enum Order {
    /// Write a register, by a request `set QP NAME VALUE`.
    Set(String),
    /// Look now.
    Look,
}

/// What all threads may look up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// Whose registers are shown.
    pub(super) observed: Option<Key>,
    /// Whether nothing is to be asked for just now.
    pub(super) paused: bool,
}

/// Asks for a table.
pub(super) fn read(path: &Path) -> Result<Vec<Row>, String> {
    table::read(path).unwrap_or_else(|error| Err(why(&error)))
}

/// Why a socket gives no answer.
fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no endpoint serves it, there is no such socket".to_owned(),
        ErrorKind::ConnectionRefused => "no endpoint serves it, whoever did has ended".to_owned(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "its endpoint hangs: no answer for 10 s".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn ask(path: &Path, request: &str) -> Result<String, String> {
    control::ask(path, request).unwrap_or_else(|error| Err(why(&error)))
}

/// Asks the socket again and again, until nobody listens.
#[expect(clippy::disallowed_methods, reason = "when to ask next is a matter of real time")]
pub(super) fn serve(
    socket: usize,
    path: &Path,
    every: Duration,
    orders: &Receiver<Order>,
    wish: &Mutex<Wish>,
    tell: &Sender<Told>,
) {
    let mut pace = Pace::new(every);
    let mut next = Instant::now();
    loop {
        let wish_now = || wish.lock().map(|wish| *wish).unwrap_or_default();
        let wait = match wish_now().paused {
            true => Duration::from_secs(3600),
            false => next.saturating_duration_since(Instant::now()),
        };
        match orders.recv_timeout(wait) {
            Ok(Order::Set(request)) => {
                let answer = ask(path, &request);
                if tell.send(Told::Written { socket, request, answer }).is_err() {
                    return;
                }
            }
            Ok(Order::Look) => {}
            // It was paused while we waited.
            Err(RecvTimeoutError::Timeout) if wish_now().paused => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Wish { observed, paused } = wish_now();
        let begun = Instant::now();
        if !paused && begun >= next {
            let reading = read(path);
            if reading.is_ok() {
                pace.answered(begun.elapsed());
            }
            next = begun + pace.every();
            if tell.send(Told::Reading { socket, reading, every: pace.every() }).is_err() {
                return;
            }
        }
        // Also after a look out of turn, and what was written shows at once.
        if let Some(key) = observed.filter(|key| key.socket == socket) {
            let answer = ask(path, &format!("get {}", super::number(key.qpn)));
            let registers = answer.map(|answer| registers(&answer));
            if tell.send(Told::Registers { key, registers }).is_err() {
                return;
            }
        }
    }
}
