//! What the view is like: what is selected, how it is sorted, what is written. Keys change it; it has no terminal and no clock.

use super::number;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use roci_endpoint::control::board::{Board, Key, Pair};
use roci_units::Span;
use std::cmp::Ordering;
use std::time::Duration;

/// How far back the charts can go, in seconds.
const WINDOWS: [u64; 6] = [10, 30, 60, 120, 300, 600];
/// How many queue pairs a page is.
const PAGE: usize = 10;

/// What queue pairs are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Number,
    Sent,
    Allowed,
    Cnps,
    Again,
}

impl Sort {
    const ALL: [Self; 5] = [Self::Number, Self::Sent, Self::Allowed, Self::Cnps, Self::Again];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Sent => "what is sent",
            Self::Allowed => "what is allowed",
            Self::Cnps => "CNPs",
            Self::Again => "what is sent again",
        }
    }

    /// The title of the column that is sorted by, but for the first.
    pub(super) const fn column(self) -> Option<&'static str> {
        match self {
            Self::Number => None,
            Self::Sent => Some("sent"),
            Self::Allowed => Some("allowed"),
            Self::Cnps => Some("CNPs/s"),
            Self::Again => Some("again/s"),
        }
    }

    /// The greatest first; what is equal, by number.
    fn compare(self, a: &Pair, b: &Pair) -> Ordering {
        let rates = |pair: &Pair| pair.rates.filter(|_| pair.is_there).unwrap_or_default();
        let (a_rates, b_rates) = (rates(a), rates(b));
        match self {
            Self::Number => Ordering::Equal,
            Self::Sent => b_rates.sent_bps.total_cmp(&a_rates.sent_bps),
            Self::Cnps => b_rates.cnps.total_cmp(&a_rates.cnps),
            Self::Again => b_rates.retransmitted.total_cmp(&a_rates.retransmitted),
            Self::Allowed => {
                let rate = |pair: &Pair| pair.row.allowed.map_or(u64::MAX, |rate| rate.0);
                rate(b).cmp(&rate(a))
            }
        }
    }
}

/// A register that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    /// `NAME VALUE`, so far.
    pub(super) text: String,
    /// Whether it is for all queue pairs, and not for the one that is selected.
    pub(super) all: bool,
}

/// What the last line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// What a key asks of whoever runs the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Draw it again.
    Draw,
    /// End.
    Quit,
    /// Send these requests to these sockets.
    Set(Vec<(usize, String)>),
}

pub(super) struct State {
    pub(super) board: Board,
    /// The queue pairs in the order in which they are shown.
    pub(super) order: Vec<Key>,
    pub(super) selected: Option<Key>,
    pub(super) sort: Sort,
    /// Whether the selected one is shown in detail.
    pub(super) detail: bool,
    /// The register that is charted besides.
    pub(super) register: Option<String>,
    pub(super) prompt: Option<Prompt>,
    pub(super) note: Option<Note>,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// Time since the beginning.
    pub(super) now: Span,
    /// When the charts end: now, or when it was paused.
    pub(super) until: Span,
    /// How often each socket is asked.
    pub(super) every: Vec<Duration>,
    window: usize,
}

impl State {
    pub(super) fn new(board: Board, every: Duration) -> Self {
        let every = vec![every; board.sockets().len()];
        Self {
            board,
            order: Vec::new(),
            selected: None,
            sort: Sort::Number,
            detail: false,
            register: None,
            prompt: None,
            note: None,
            paused: false,
            help: false,
            now: Span::ZERO,
            until: Span::ZERO,
            every,
            window: 2,
        }
    }

    /// How far back the charts go.
    pub(super) const fn window(&self) -> Span {
        Span::from_secs(WINDOWS[self.window])
    }

    /// Whose registers are to be read.
    pub(super) fn observed(&self) -> Option<Key> {
        self.selected.filter(|_| self.detail)
    }

    /// It is `now`.
    pub(super) fn passes(&mut self, now: Span) {
        self.now = now;
        if !self.paused {
            self.until = now;
        }
    }

    /// After the board has changed, or what it is sorted by: the selected queue pair stays it wherever it comes to stand, and where it is gone
    /// the next in its place takes over.
    pub(super) fn arrange(&mut self) {
        let place = self.place();
        let mut order: Vec<(Key, &Pair)> = self.board.pairs().collect();
        // They come by number, and what is equal stays so.
        if self.sort != Sort::Number {
            order.sort_by(|(_, a), (_, b)| self.sort.compare(a, b));
        }
        self.order = order.into_iter().map(|(key, _)| key).collect();
        if self.selected.is_none_or(|selected| self.board.pair(selected).is_none()) {
            let last = self.order.len().saturating_sub(1);
            self.selected = self.order.get(place.unwrap_or(0).min(last)).copied();
            self.board.observe(self.observed());
        }
    }

    /// Where the selected queue pair stands.
    pub(super) fn place(&self) -> Option<usize> {
        self.order.iter().position(|key| Some(*key) == self.selected)
    }

    fn select(&mut self, place: usize) {
        let last = self.order.len().saturating_sub(1);
        self.selected = self.order.get(place.min(last)).copied();
        self.board.observe(self.observed());
    }

    fn move_by(&mut self, down: bool, by: usize) {
        let place = self.place().unwrap_or(0);
        self.select(if down { place + by } else { place.saturating_sub(by) });
    }

    /// Takes the next register, or the one before, of those that are numbers; none comes between the last and the first.
    fn next_register(&mut self, forward: bool) {
        let Some(observed) = self.board.observed() else { return };
        let names = observed.registers.iter().map(|(name, _)| name);
        // The chart has these two anyway.
        let charted = names.filter(|name| *name != "allowed_rate" && observed.unit(name).is_some());
        let mut all: Vec<Option<String>> = vec![None];
        all.extend(charted.map(|name| Some(name.clone())));
        let place = all.iter().position(|name| *name == self.register).unwrap_or(0);
        let step = if forward { 1 } else { all.len() - 1 };
        self.register = all.swap_remove((place + step) % all.len());
    }

    /// What became of a register that was to be written.
    pub(super) fn written(&mut self, socket: usize, request: &str, answer: Result<String, String>) {
        let are_many = self.board.sockets().len() > 1;
        let place = match self.board.sockets().get(socket).filter(|_| are_many) {
            Some(socket) => format!("{}: ", socket.path.display()),
            None => String::new(),
        };
        let (is_error, said) = match answer {
            // An endpoint of before says nothing.
            Ok(told) if told.trim().is_empty() => (false, "done".to_owned()),
            Ok(told) => (false, told.trim().replace('\n', "; ")),
            Err(why) => (true, why),
        };
        let text = format!("{place}{request}: {said}");
        self.note = Some(match self.note.take() {
            // Of several sockets each says something.
            Some(before) if are_many && before.text.contains(&format!("{request}: ")) => {
                Note { text: format!("{}; {text}", before.text), is_error: before.is_error || is_error }
            }
            _ => Note { text, is_error },
        });
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Draw;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.prompt.is_some() {
            return self.prompt_key(key.code, is_control);
        }
        self.note = None;
        if self.help {
            // Any key ends it, and only that, but for the one that ends all.
            self.help = false;
            return if key.code == KeyCode::Char('q') { Action::Quit } else { Action::Draw };
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Down | KeyCode::Char('j') => self.move_by(true, 1),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(false, 1),
            KeyCode::PageDown => self.move_by(true, PAGE),
            KeyCode::PageUp => self.move_by(false, PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.select(0),
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX),
            KeyCode::Char('s') => {
                let place = Sort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or(0);
                self.sort = Sort::ALL[(place + 1) % Sort::ALL.len()];
                self.arrange();
                self.note = Some(Note { text: format!("sorted by {}", self.sort.name()), is_error: false });
            }
            KeyCode::Enter | KeyCode::Tab => self.show_detail(!self.detail),
            KeyCode::Esc => self.show_detail(false),
            KeyCode::Char('+' | '=') => self.window = (self.window + 1).min(WINDOWS.len() - 1),
            KeyCode::Char('-') => self.window = self.window.saturating_sub(1),
            KeyCode::Right | KeyCode::Char(']') if self.detail => self.next_register(true),
            KeyCode::Left | KeyCode::Char('[') if self.detail => self.next_register(false),
            KeyCode::Char('p') => {
                self.paused = !self.paused;
                self.passes(self.now);
            }
            KeyCode::Char('h' | '?') => self.help = true,
            KeyCode::Char('e' | ':') => {
                let text = self.register.iter().filter(|_| self.detail).map(|name| format!("{name} "));
                self.prompt = Some(Prompt { text: text.collect(), all: self.selected.is_none() });
            }
            _ => {}
        }
        Action::Draw
    }

    fn show_detail(&mut self, detail: bool) {
        self.detail = detail && self.selected.is_some();
        self.board.observe(self.observed());
    }

    fn prompt_key(&mut self, code: KeyCode, is_control: bool) -> Action {
        let Some(prompt) = &mut self.prompt else { return Action::Draw };
        match code {
            KeyCode::Esc => self.prompt = None,
            KeyCode::Char('u') if is_control => prompt.text.clear(),
            KeyCode::Char(letter) if !is_control && prompt.text.len() < 200 => prompt.text.push(letter),
            KeyCode::Backspace => {
                prompt.text.pop();
            }
            KeyCode::Tab => prompt.all = !prompt.all || self.selected.is_none(),
            KeyCode::Enter => {
                let prompt = self.prompt.take().unwrap_or_default();
                match self.requests(&prompt) {
                    Ok(requests) => {
                        self.note = None;
                        return Action::Set(requests);
                    }
                    // It is to be corrected, not written again.
                    Err(why) => {
                        self.note = Some(Note { text: why.to_owned(), is_error: true });
                        self.prompt = Some(prompt);
                    }
                }
            }
            _ => {}
        }
        Action::Draw
    }

    fn requests(&self, prompt: &Prompt) -> Result<Vec<(usize, String)>, &'static str> {
        let text = prompt.text.trim();
        let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // Spaces within a value mean nothing: 10 Mb/s.
        let value: String = value.chars().filter(|letter| !letter.is_whitespace()).collect();
        if name.is_empty() || value.is_empty() {
            return Err("write the name of a register and its value: rai 10Mb/s");
        }
        Ok(match self.selected.filter(|_| !prompt.all) {
            Some(key) => vec![(key.socket, format!("set {} {name} {value}", number(key.qpn)))],
            None => (0..self.board.sockets().len())
                .map(|socket| (socket, format!("set all {name} {value}")))
                .collect(),
        })
    }
}
