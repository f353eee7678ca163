//! The view on a terminal, which is given back as it was however the view ends.

use super::asking::{Order, Told, Wish, serve};
use super::draw::{draw, passed};
use super::state::{Action, State};
use crate::Failure;
use crate::progress;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, event, execute};
use roci_endpoint::control::board::Board;
use roci_units::Span;
use std::io::{self, BufWriter, Stdout};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How soon a signal is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// A terminal that shows nothing but us.
struct Screen(Terminal<CrosstermBackend<BufWriter<Stdout>>>);

impl Screen {
    fn enter() -> io::Result<Self> {
        // Before anything is changed: a panic aborts, so nothing would be dropped.
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            print(panic);
        }));
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout()))));
        // Half of it is to be undone as well.
        entered.map(Self).inspect_err(|_| restore())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. Where that cannot be done there is nobody to tell.
fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
}

/// Shows the view until it is to end.
pub(super) fn live(sockets: &[PathBuf], every: Duration) -> Result<(), Failure> {
    let (tell, told) = channel();
    let wish = Arc::new(Mutex::new(Wish::default()));
    let mut orders = Vec::new();
    for (socket, path) in sockets.iter().enumerate() {
        let (order, ordered) = channel();
        let (path, wish, tell) = (path.clone(), wish.clone(), tell.clone());
        spawn("roci-dash-ask", move || serve(socket, &path, every, &ordered, &wish, &tell))?;
        orders.push(order);
    }
    let screen = Screen::enter().map_err(|error| failure(&error))?;
    spawn("roci-dash-keys", move || keys(&tell))?;
    let state = State::new(Board::new(sockets.iter().cloned()), every);
    let mut view = View { screen, state, orders, wish };
    view.run(&told)
}

fn failure(error: &io::Error) -> Failure {
    Failure::Run(format!("the terminal: {error}"))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| Failure::Run(format!("cannot start a thread: {error}")))
}

/// Tells of keys for as long as there are any.
fn keys(tell: &Sender<Told>) {
    loop {
        let (said, is_last) = match event::read() {
            Ok(event) => (Told::Terminal(event), false),
            Err(error) => (Told::Deaf(error), true),
        };
        if tell.send(said).is_err() || is_last {
            return;
        }
    }
}

struct View {
    screen: Screen,
    state: State,
    orders: Vec<Sender<Order>>,
    wish: Arc<Mutex<Wish>>,
}

impl View {
    #[expect(clippy::disallowed_methods, reason = "for people: how long it has been running")]
    fn run(&mut self, told: &Receiver<Told>) -> Result<(), Failure> {
        let begun = Instant::now();
        let now = || Span::from_nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000));
        let (mut is_new, mut shown) = (true, String::new());
        while !progress::interrupted() {
            self.state.passes(now());
            // The header has the time.
            let passed = passed(self.state.now);
            if is_new || shown != passed {
                (is_new, shown) = (false, passed);
                self.screen.0.draw(|frame| draw(frame, &self.state)).map_err(|error| failure(&error))?;
            }
            let first = match told.recv_timeout(LOOK) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // All that is there is drawn at once.
            is_new = true;
            self.state.passes(now());
            for told in std::iter::once(first).chain(told.try_iter()) {
                if !self.take(told)? {
                    return Ok(());
                }
            }
            self.state.arrange();
            self.tell();
        }
        Ok(())
    }

    /// Takes in what was told; whether it goes on.
    fn take(&mut self, told: Told) -> Result<bool, Failure> {
        let now = self.state.now;
        match told {
            Told::Reading { socket, reading, every } => {
                self.state.every[socket] = every;
                self.state.board.take(socket, now, reading);
            }
            Told::Registers { key, registers } => self.state.board.take_registers(key, now, registers),
            Told::Written { socket, request, answer } => self.state.written(socket, &request, answer),
            Told::Terminal(event::Event::Key(key)) => match self.state.key(key) {
                Action::Quit => return Ok(false),
                Action::Draw => {}
                Action::Set(requests) => {
                    for (socket, request) in requests {
                        // A thread that is gone has told why.
                        let _ = self.orders[socket].send(Order::Set(request));
                    }
                }
            },
            Told::Terminal(_) => {}
            Told::Deaf(error) => return Err(failure(&error)),
        }
        Ok(true)
    }

    /// Lets the threads know what is wished for, if that is something else than before.
    fn tell(&self) {
        let wish = Wish { observed: self.state.observed(), paused: self.state.paused };
        let Ok(mut known) = self.wish.lock() else { return };
        let before = std::mem::replace(&mut *known, wish);
        drop(known);
        // Those that wait find out by themselves that it is paused.
        if wish.observed != before.observed || before.paused && !wish.paused {
            for order in &self.orders {
                let _ = order.send(Order::Look);
            }
        }
    }
}
