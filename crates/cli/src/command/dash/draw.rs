//! The view as a screen: a header, the table of queue pairs, and a line for what is asked or said.

use super::detail;
use super::number;
use super::state::{Prompt, State};
use crate::command::hops;
use crate::format::{self, or_dash, rate, size};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span as Words};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use roci_endpoint::BitsPerSec;
use roci_endpoint::control::board::{Board, Pair, Presence, Rates, Socket};
use roci_units::Span;

/// The time that the last column shows.
const LAST: Span = Span::from_secs(60);
/// Cells of it, at least and at most.
const SPARK_MIN: usize = 13;
const SPARK_MAX: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Sockets that give no answer have a line each, as far as that goes.
const AWAY_MAX: usize = 3;
/// Lines of the table that stay beside the detail.
const ROWS_MIN: u16 = 4;

/// How many in a second.
pub(super) fn count(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.1 => "<0.1".to_owned(),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A rate that a law allows.
pub(super) fn allowed(limit: Option<BitsPerSec>) -> String {
    limit.map_or("unlimited".to_owned(), |limit| rate(format::float(limit.0)))
}

/// What all queue pairs do together, in a line; or that there is nobody to say it.
pub(super) fn totals(board: &Board) -> String {
    let (rates, pairs) = board.totals();
    let pairs = match pairs {
        0 => return none(board),
        1 => "1 queue pair".to_owned(),
        pairs => format!("{pairs} queue pairs"),
    };
    format!(
        "{pairs}: sent {}, {} packets/s, {} CNPs/s, {} sent again/s",
        rate(rates.sent_bps),
        count(rates.packets),
        count(rates.cnps),
        count(rates.retransmitted)
    )
}

/// Why the board has no queue pair that is there.
fn none(board: &Board) -> String {
    let sockets = board.sockets();
    let dead = sockets.iter().filter(|socket| matches!(socket.presence, Presence::Away { .. })).count();
    let is_any_there = sockets.iter().any(|socket| socket.presence == Presence::There);
    match (dead, sockets) {
        (0, _) if !is_any_there => "nothing was read yet".to_owned(),
        (0, _) => "no queue pairs".to_owned(),
        (_, [_]) => "the socket is dead".to_owned(),
        (dead, all) if dead == all.len() => format!("all {dead} sockets are dead"),
        (dead, all) => {
            let dead =
                format!("{dead} of {} sockets {} dead", all.len(), if dead == 1 { "is" } else { "are" });
            match is_any_there {
                true => format!("no queue pairs; {dead}"),
                false => format!("{dead}; the others were not read yet"),
            }
        }
    }
}

/// A time that has passed: `12 s`, `1:05`, `2:00:07`.
pub(super) fn passed(span: Span) -> String {
    let seconds = span.as_ps() / Span::from_secs(1).as_ps();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

pub(super) fn draw(frame: &mut Frame, state: &State) {
    let header = header(state, frame.area().width);
    let lines = u16::try_from(header.len()).unwrap_or(u16::MAX);
    let said = footer_lines(state, frame.area().width);
    let parts = [Constraint::Length(lines), Constraint::Fill(1), Constraint::Length(said)];
    let [top, body, bottom] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(header), top);
    match state.detail {
        true => {
            let rows = u16::try_from(state.order.len()).unwrap_or(u16::MAX).saturating_add(1);
            let least = rows.min(ROWS_MIN.max(body.height / 3));
            // Where there is no room for both the table gives way, but for the line that is selected.
            let least = if body.height < 16 { least.min(2) } else { least };
            let [above, below] =
                Layout::vertical([Constraint::Length(least), Constraint::Fill(1)]).areas(body);
            table(frame, state, above);
            detail::draw(frame, state, below);
        }
        false => table(frame, state, body),
    }
    footer(frame, state, bottom);
    if state.help {
        help(frame);
    }
}

fn header(state: &State, width: u16) -> Vec<Line<'static>> {
    let board = &state.board;
    let names = board.sockets().iter().enumerate().map(|(place, socket)| label(board, place, socket));
    let mut first =
        vec!["roci dash".bold(), Words::raw(format!("  {}", names.collect::<Vec<_>>().join("  ")))];
    let every = state.every.iter().max().copied().unwrap_or_default();
    let how = match state.paused {
        true => "paused".yellow().bold(),
        false => Words::raw(format!("every {} ms", every.as_millis())),
    };
    let right = [Words::raw(format!("{}  ", passed(state.now))), how];
    let width_of = |words: &[Words]| words.iter().map(Words::width).sum::<usize>();
    let gap = usize::from(width).saturating_sub(width_of(&first) + width_of(&right));
    first.push(Words::raw(" ".repeat(gap.max(2))));
    first.extend(right);
    let mut lines = vec![Line::from(first), Line::from(totals(board))];
    let away: Vec<String> = board.sockets().iter().filter_map(|socket| away(socket, state.now)).collect();
    let more = away.len().saturating_sub(AWAY_MAX);
    lines.extend(away.into_iter().take(AWAY_MAX).map(|line| Line::from(line.yellow())));
    if more > 0 {
        lines.push(Line::from(format!("and {more} more").yellow()));
    }
    lines
}

/// What a socket is called: where there are several, with the number by which queue pairs name it.
fn label(board: &Board, place: usize, socket: &Socket) -> String {
    match board.sockets().len() {
        1 => socket.path.display().to_string(),
        _ => format!("{}:{}", place + 1, socket.path.display()),
    }
}

fn away(socket: &Socket, now: Span) -> Option<String> {
    let Presence::Away { since, why } = &socket.presence else { return None };
    let passed = passed(now.saturating_sub(*since));
    Some(format!("{}: {why}, for {passed}; asked again all the time", socket.path.display()))
}

/// The column for what switches have told.
const BOTTLENECK: &str = "bottleneck";

/// What a column shows of a queue pair.
type Cell = fn(&Pair) -> String;

/// Columns behind the number: title, width at least, whether they are written from the right, how dispensable they are, what they show.
/// Without its state nothing else of a queue pair says that it has failed.
/// The bottleneck has a column where some queue pair has telemetry.
const COLUMNS: [(&str, usize, bool, u8, Cell); 8] = [
    ("law", 7, false, 4, |pair| pair.row.law.clone()),
    ("state", 11, false, 1, |pair| state(pair).to_owned()),
    ("allowed", 10, true, 2, |pair| allowed(pair.row.allowed)),
    ("sent", 10, true, 0, |pair| each(pair, |rates| rate(rates.sent_bps))),
    (BOTTLENECK, 0, false, 2, hops::brief),
    ("in flight", 9, true, 6, |pair| size(pair.row.in_flight)),
    ("CNPs/s", 8, true, 3, |pair| each(pair, |rates| count(rates.cnps))),
    ("again/s", 8, true, 5, |pair| each(pair, |rates| count(rates.retransmitted))),
];

/// What a queue pair counts in a second; of one that is not there nothing is known.
fn each(pair: &Pair, show: fn(&Rates) -> String) -> String {
    or_dash(pair.rates.filter(|_| pair.is_there).map(|rates| show(&rates)))
}

pub(super) fn state(pair: &Pair) -> &str {
    match (pair.is_there, pair.is_gone()) {
        (true, _) => &pair.row.state,
        (false, true) => "gone",
        (false, false) => "no answer",
    }
}

/// How wide columns are: names of laws and of states have room, also those that are not in sight, so that nothing moves as one scrolls.
fn widths(board: &Board) -> [usize; COLUMNS.len()] {
    let mut widths = COLUMNS.map(|column| column.1);
    for (_, pair) in board.pairs() {
        widths[0] = widths[0].max(pair.row.law.len());
        widths[1] = widths[1].max(state(pair).len());
        if !pair.paths.is_empty() {
            widths[4] = widths[4].max(BOTTLENECK.len()).max(hops::brief(pair).chars().count());
        }
    }
    widths
}

/// Which columns fit, and how many cells are left for what was sent.
fn columns(width: usize, first: usize, widths: &[usize]) -> (Vec<usize>, usize) {
    let mut kept: Vec<usize> = (0..COLUMNS.len()).filter(|place| widths[*place] > 0).collect();
    let taken = |kept: &[usize]| first + kept.iter().map(|place| widths[*place] + 2).sum::<usize>();
    while taken(&kept) > width && kept.len() > 1 {
        let dispensable = kept.iter().enumerate().max_by_key(|(_, place)| COLUMNS[**place].3);
        let Some((place, _)) = dispensable else { break };
        kept.remove(place);
    }
    let left = width.saturating_sub(taken(&kept) + 2).min(SPARK_MAX);
    (kept, if left < SPARK_MIN { 0 } else { left })
}

fn table(frame: &mut Frame, state: &State, area: Rect) {
    let are_many = state.board.sockets().len() > 1;
    // The mark, the number of the queue pair, and behind it that of its socket.
    let first = 2 + 10 + if are_many { 3 } else { 0 };
    let widths = widths(&state.board);
    let (columns, cells) = columns(area.width.into(), first, &widths);
    let rows = usize::from(area.height.saturating_sub(1));
    let place = state.place().unwrap_or(0);
    // The selected one stays in the middle, but for the ends.
    let top = place.saturating_sub(rows / 2).min(state.order.len().saturating_sub(rows));
    let shown: Vec<_> = state.order.iter().skip(top).take(rows).copied().collect();
    let pairs: Vec<_> = shown.iter().filter_map(|key| Some((*key, state.board.pair(*key)?))).collect();
    let each = Span::from_ps(LAST.as_ps() / cells.max(1) as u64);
    let means =
        |pair: &Pair| if cells == 0 { Vec::new() } else { pair.series.means(state.until, each, cells) };
    let means: Vec<Vec<Option<f64>>> = pairs.iter().map(|(_, pair)| means(pair)).collect();
    // One scale for all, so that they can be compared.
    let most = means.iter().flatten().flatten().copied().fold(0.0, f64::max);
    let mut title = format!("  {:<width$}", "queue pair", width = first - 2);
    for place in &columns {
        let (name, _, right, ..) = COLUMNS[*place];
        let sorted = if state.sort.column() == Some(name) { "▾" } else { "" };
        title += &padded(&format!("{name}{sorted}"), widths[*place], right);
    }
    if cells > 0 {
        let scale = if most > 0.0 { format!(", to {}", rate(most)) } else { String::new() };
        let scaled = format!("sent in 1 min{scale}");
        title += &format!("  {}", if scaled.len() <= cells { &scaled } else { "sent in 1 min" });
    }
    let mut lines = vec![Line::from(title).style(Style::new().add_modifier(Modifier::UNDERLINED))];
    for ((key, pair), means) in pairs.iter().zip(&means) {
        let is_selected = Some(*key) == state.selected;
        let mark = if is_selected { "▸ " } else { "  " };
        let mut name = number(key.qpn);
        if are_many {
            name += &format!(" @{}", key.socket + 1);
        }
        let mut text = format!("{mark}{name:<width$}", width = first - 2);
        for place in &columns {
            let (_, _, right, _, cell) = COLUMNS[*place];
            text += &padded(&cell(pair), widths[*place], right);
        }
        let style = match pair.is_there {
            true => Style::new(),
            false => Style::new().fg(Color::DarkGray),
        };
        let style = if is_selected { style.add_modifier(Modifier::BOLD) } else { style };
        let mut words = vec![Words::styled(text, style)];
        if cells > 0 {
            words.push(Words::styled(format!("  {}", spark(means, most)), style.fg(Color::Cyan)));
        }
        lines.push(Line::from(words));
    }
    let is_there = |socket: &Socket| socket.presence == Presence::There;
    // Of a socket that is dead the header says why.
    if state.order.is_empty() && state.board.sockets().iter().any(is_there) {
        lines.push(Line::from("  there is no queue pair yet".dim()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn padded(text: &str, width: usize, right: bool) -> String {
    match right {
        true => format!("  {text:>width$}"),
        false => format!("  {text:<width$}"),
    }
}

/// A bar for each mean: none where nothing is known.
fn spark(means: &[Option<f64>], most: f64) -> String {
    let bar = |mean: &Option<f64>| match mean {
        None => ' ',
        Some(_) if most <= 0.0 => BARS[0],
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is one of eight")]
        Some(mean) => BARS[((mean / most * 7.0).round() as usize).min(7)],
    };
    means.iter().map(bar).collect()
}

/// What is said of a register may be long: it is not cut off, but for the third line.
fn footer_lines(state: &State, width: u16) -> u16 {
    let Some(note) = state.note.as_ref().filter(|_| state.prompt.is_none()) else { return 1 };
    let lines = Words::raw(note.text.as_str()).width() / usize::from(width.max(1)) + 1;
    u16::try_from(lines).unwrap_or(u16::MAX).min(3)
}

fn footer(frame: &mut Frame, state: &State, area: Rect) {
    let line = match (&state.prompt, &state.note) {
        (Some(prompt), note) => {
            let line = prompt_line(state, prompt, note.as_ref().map(|note| note.text.as_str()));
            let column = u16::try_from(prompt_start(state, prompt) + prompt.text.chars().count());
            let column = column.unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
            frame.set_cursor_position((area.x + column, area.y));
            line
        }
        (None, Some(note)) => {
            let color = if note.is_error { Color::Red } else { Color::Green };
            Line::from(Words::styled(note.text.clone(), color))
        }
        (None, None) => {
            let register = if state.detail { "  ←→ register  +- window" } else { "" };
            Line::from(
                format!("h help  ↑↓ select  Enter detail{register}  s sort  e set  p pause  q quit").dim(),
            )
        }
    };
    let wrapped = state.prompt.is_none() && state.note.is_some();
    let line = Paragraph::new(line);
    frame.render_widget(if wrapped { line.wrap(Wrap { trim: true }) } else { line }, area);
}

fn prompt_whom(state: &State, prompt: &Prompt) -> String {
    match state.selected.filter(|_| !prompt.all) {
        Some(key) => format!("set {} ", number(key.qpn)),
        None => "set all ".to_owned(),
    }
}

fn prompt_start(state: &State, prompt: &Prompt) -> usize {
    prompt_whom(state, prompt).chars().count()
}

fn prompt_line(state: &State, prompt: &Prompt, wrong: Option<&str>) -> Line<'static> {
    let other = if prompt.all { "this one alone" } else { "all" };
    let mut words =
        vec![prompt_whom(state, prompt).bold(), Words::raw(prompt.text.clone()), Words::raw("   ")];
    words.push(match wrong {
        Some(wrong) => wrong.to_owned().red(),
        None if prompt.text.is_empty() => format!("NAME VALUE, as in rai 10Mb/s; Tab: {other}; Esc").dim(),
        None => format!("Enter; Tab: {other}; Esc").dim(),
    });
    Line::from(words)
}

const KEYS: [(&str, &str); 10] = [
    ("↑ ↓ j k", "select a queue pair; PgUp PgDn Home End"),
    ("s", "sort by number, sent, allowed, CNPs, sent again"),
    ("Enter Tab", "the selected one in detail, and back (Esc)"),
    ("← → [ ]", "there: which register is charted besides"),
    ("+ -", "there: how far back, 10 s to 10 min"),
    ("e :", "set a register, as `roci ctl set` does"),
    ("p", "pause: nothing is asked, all stands still"),
    ("h ?", "this"),
    ("q Ctrl-C", "quit"),
    ("", "Rates that are allowed count headers, sent ones payload."),
];

fn help(frame: &mut Frame) {
    let lines: Vec<_> = KEYS.iter().map(|(keys, what)| Line::from(format!(" {keys:<10} {what}"))).collect();
    let area = frame.area();
    let (width, height) = (72.min(area.width), u16::try_from(lines.len() + 2).unwrap_or(0).min(area.height));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), place);
}
