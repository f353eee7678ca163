//! The selected queue pair: its registers, and what it was allowed and sent over time.

use super::number;
use super::state::State;
use crate::command::hops;
use crate::format::{self, rate, time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};
use roci_endpoint::control::board::{Observed, Pair, Unit};

/// What registers take beside a chart, and what a chart needs.
const REGISTERS: u16 = 36;
const CHART_MIN: (u16, u16) = (34, 6);

/// A line of a chart: its name, its colour, and points of seconds before the end and values.
type Curve = (String, Color, Vec<(f64, f64)>);

pub(super) fn draw(frame: &mut Frame, state: &State, area: Rect) {
    let Some((key, pair)) = state.selected.and_then(|key| Some((key, state.board.pair(key)?))) else {
        return;
    };
    let title = format!(" {} {} {} ", number(key.qpn), pair.row.law, super::draw::state(pair));
    let block = Block::bordered().title(title.bold());
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let observed = state.board.observed().filter(|observed| observed.key == key);
    let inside = hops(frame, pair, inside);
    let list = registers(observed, state.register.as_deref());
    let (is_wide, is_high) = (inside.width >= REGISTERS + CHART_MIN.0, inside.height >= 2 * CHART_MIN.1);
    let [left, right] = match (is_wide, is_high) {
        (true, _) => {
            // Two columns of them where they would not fit into one, and there is room for it.
            let is_long = list.len() > usize::from(inside.height) && inside.width >= 2 * REGISTERS + 60;
            let width = if is_long { 2 * REGISTERS } else { REGISTERS };
            Layout::horizontal([Constraint::Length(width), Constraint::Fill(1)]).areas(inside)
        }
        (false, true) => Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(inside),
        (false, false) => [inside, Rect::ZERO],
    };
    columns(frame, list, left);
    if right.width < CHART_MIN.0 / 2 || right.height < CHART_MIN.1 {
        return;
    }
    let charted = state.register.as_deref().zip(observed).and_then(|(name, observed)| {
        let from = state.until.saturating_sub(state.window());
        let at = |seconds: f64| seconds - state.until.as_secs_f64();
        let points = observed.series(name).filter(|(when, _)| *when >= from);
        let points = points.map(|(when, value)| (at(when.as_secs_f64()), value));
        Some((observed.unit(name)?, (name.to_owned(), Color::Magenta, points.collect())))
    });
    let mut curves = rates(state, pair);
    match charted {
        // A rate belongs beside the others.
        Some((Unit::BitsPerSecond, curve)) => {
            curves.push(curve);
            chart(frame, state, right, &curves, Unit::BitsPerSecond);
        }
        Some((unit, curve)) if right.height >= 2 * CHART_MIN.1 => {
            let parts = [Constraint::Fill(3), Constraint::Fill(2)];
            let [above, below] = Layout::vertical(parts).areas(right);
            chart(frame, state, above, &curves, Unit::BitsPerSecond);
            chart(frame, state, below, &[curve], unit);
        }
        Some((unit, curve)) => chart(frame, state, right, &[curve], unit),
        None => chart(frame, state, right, &curves, Unit::BitsPerSecond),
    }
}

/// What switches have told of its ways, above all else where there is room for that; what is left of the area.
fn hops(frame: &mut Frame, pair: &Pair, area: Rect) -> Rect {
    let Some(text) = hops::text(&[], std::iter::once((Vec::new(), pair))) else { return area };
    let lines: Vec<_> = text.lines().map(|line| Line::from(line.trim_start().to_owned())).collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    if height + CHART_MIN.1 > area.height {
        return area;
    }
    let [above, below] = Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(lines), above);
    below
}

/// A line for each register, and which of them is charted.
fn registers(observed: Option<&Observed>, charted: Option<&str>) -> Vec<(Line<'static>, bool)> {
    let Some(observed) = observed else { return Vec::new() };
    let error = observed.error.iter().map(|why| (Line::from(why.clone().red()), false));
    let one = |(name, value): &(String, String)| {
        let is_charted = charted == Some(name.as_str());
        let line = Line::from(format!("{name:<18} {value}"));
        (if is_charted { line.magenta().bold() } else { line }, is_charted)
    };
    error.chain(observed.registers.iter().map(one)).collect()
}

/// The lines, in columns one beside the other, from where the charted one is seen.
fn columns(frame: &mut Frame, list: Vec<(Line<'static>, bool)>, area: Rect) {
    let count = (area.width / REGISTERS).max(1);
    let rows = usize::from(area.height);
    let room = rows * usize::from(count);
    let charted = list.iter().position(|(_, is_charted)| *is_charted).unwrap_or(0);
    let top = charted.saturating_sub(room / 2).min(list.len().saturating_sub(room));
    let mut lines = list.into_iter().skip(top).map(|(line, _)| line);
    let parts = Layout::horizontal(vec![Constraint::Fill(1); count.into()]).spacing(1).split(area);
    for part in parts.iter() {
        frame.render_widget(Paragraph::new(lines.by_ref().take(rows).collect::<Vec<_>>()), *part);
    }
}

/// What it was allowed and what it sent. While it is not paced there is nothing to draw of the first.
fn rates(state: &State, pair: &Pair) -> Vec<Curve> {
    let from = state.until.saturating_sub(state.window());
    let (mut allowed, mut sent) = (Vec::new(), Vec::new());
    for point in pair.series.since(from).filter(|point| point.at >= from) {
        let at = point.at.as_secs_f64() - state.until.as_secs_f64();
        allowed.extend(point.allowed.map(|rate| (at, format::float(rate.0))));
        sent.extend(point.sent.map(|rate| (at, format::float(rate.0))));
    }
    vec![("allowed".to_owned(), Color::Yellow, allowed), ("sent".to_owned(), Color::Cyan, sent)]
}

/// A value on an axis.
fn label(value: f64, unit: Unit) -> String {
    match unit {
        Unit::BitsPerSecond => rate(value),
        Unit::Seconds => time(value),
        Unit::Octets => format::octets_of(value),
        Unit::One => format::number(value),
    }
}

/// The next round number that is not below `value`: 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15 and so on.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= value * 0.999_999).unwrap_or(10.0 * decade)
}

fn chart(frame: &mut Frame, state: &State, area: Rect, curves: &[Curve], unit: Unit) {
    let values = || curves.iter().flat_map(|(_, _, points)| points.iter().map(|(_, value)| *value));
    let top = round_up(values().fold(0.0, f64::max));
    let least = values().fold(0.0, f64::min);
    let bottom = if least < 0.0 { -round_up(-least) } else { 0.0 };
    let sets = curves.iter().map(|(name, color, points)| {
        Dataset::default()
            .name(name.clone())
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(*color))
            .data(points)
    });
    let back = state.window().as_secs_f64();
    let ago = |seconds: f64| {
        if seconds < 60.0 { format!("{seconds} s") } else { format!("{} min", seconds / 60.0) }
    };
    let x = Axis::default().bounds([-back, 0.0]).labels([format!("-{}", ago(back)), "now".to_owned()]);
    let middle = f64::midpoint(bottom, top);
    let y = Axis::default().bounds([bottom, top]).labels([
        label(bottom, unit),
        label(middle, unit),
        label(top, unit),
    ]);
    // Names of curves stand above, where they are in no curve's way.
    let names = curves.iter().flat_map(|(name, color, points)| {
        let last = points.last().map_or_else(|| "-".to_owned(), |(_, value)| label(*value, unit));
        [ratatui::text::Span::styled(format!("{name} {last}"), *color), "  ".into()]
    });
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(Line::from_iter(names)), above);
    let chart = Chart::new(sets.collect()).x_axis(x).y_axis(y).legend_position(None);
    frame.render_widget(chart, below);
}
