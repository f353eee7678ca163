//! Line plots as SVG, and a page that shows them beside their table.

use super::report::Report;
use std::fmt::Write as _;

/// Lines over one pair of axes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its points, in the order of x.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 44.0;
/// Okabe and Ito's colours, told apart by everyone.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#4d4d4d"];
/// More points than pixels show nothing more.
const POINTS_MAX: usize = 1_800;

impl Plot {
    /// An empty plot.
    pub(super) fn new(title: &str, x: &str, y: &str) -> Self {
        Self { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), lines: Vec::new() }
    }

    /// Adds a line.
    #[must_use]
    pub(super) fn line(mut self, name: &str, points: Vec<(f64, f64)>) -> Self {
        self.lines.push(Line { name: name.to_owned(), points });
        self
    }

    /// The plot as an SVG element.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = Axis::over(points().map(|point| point.0), false);
        let y = Axis::over(points().map(|point| point.1), true);
        let place_x = |value: f64| LEFT + x.share(value) * (WIDTH - LEFT - RIGHT);
        let place_y = |value: f64| HEIGHT - BOTTOM - y.share(value) * (HEIGHT - TOP - BOTTOM);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\">\n<title>{}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n",
            escape(&self.title)
        );
        let _ =
            writeln!(out, "<text x=\"{LEFT}\" y=\"16\" font-weight=\"600\">{}</text>", escape(&self.title));
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in x.ticks() {
            let at = place_x(tick);
            let label = x.label(tick);
            let _ = writeln!(out, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#e6e6e6\"/>");
            let _ = writeln!(
                out,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 16.0
            );
        }
        for tick in y.ticks() {
            let at = place_y(tick);
            let label = y.label(tick);
            let _ = writeln!(out, "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#e6e6e6\"/>");
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                at + 4.0
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 8.0,
            escape(&self.x)
        );
        let _ = writeln!(
            out,
            "<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(TOP, bottom),
            escape(&self.y)
        );
        let mut legend = LEFT;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let mut path = String::new();
            for (index, (at, value)) in thin(&line.points).into_iter().enumerate() {
                let sign = if index == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{sign}{:.1} {:.1}", place_x(at), place_y(value));
            }
            let _ =
                writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\"/>");
            let _ = writeln!(
                out,
                "<path d=\"M{legend:.0} 31h14\" stroke=\"{colour}\" stroke-width=\"3\"/>\
                 <text x=\"{:.0}\" y=\"35\">{}</text>",
                legend + 18.0,
                escape(&line.name)
            );
            legend += 34.0 + 6.6 * super::statistics::count(line.name.chars().count());
        }
        out.push_str("</svg>\n");
        out
    }
}

/// A page that opens offline: the figures' tables and plots.
pub fn page(reports: &[Report]) -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Reproduced figures</title>\n<style>\n\
         body { font: 15px/1.5 system-ui, sans-serif; max-width: 960px; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }\n\
         table { border-collapse: collapse; width: 100%; font-size: 13px; overflow-wrap: anywhere }\n\
         th, td { text-align: left; padding: 3px 8px; border-bottom: 1px solid #ddd; vertical-align: top }\n\
         svg { width: 100%; height: auto; margin-top: 1rem } .bad { color: #b00020; font-weight: 600 }\n\
         </style>\n</head>\n<body>\n",
    );
    for report in reports {
        let _ = writeln!(
            out,
            "<h2 id=\"{}\">{}: {}</h2>",
            report.file_name(),
            report.name,
            escape(&report.title)
        );
        let _ = write!(out, "<p>{}, {} seeds.", report.kind.name(), report.seeds.len());
        if let Some(without) = &report.without {
            let _ = write!(out, " Switched off: {}.", escape(without));
        }
        if report.missed() > 0 {
            let _ = write!(out, " <span class=\"bad\">Rows that are missed: {}.</span>", report.missed());
        }
        let _ = writeln!(out, "</p>\n<table>\n<tr><th>{}</tr>", Report::HEADINGS.join("<th>"));
        for (row, cells) in report.rows.iter().zip(report.cells()) {
            let class = if row.verdict.is_good() { "" } else { " class=\"bad\"" };
            let _ = writeln!(out, "<tr{class}><td>{}</tr>", cells.map(|cell| escape(&cell)).join("<td>"));
        }
        out.push_str("</table>\n");
        if !report.note.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", escape(&report.note));
        }
        for plot in &report.plots {
            out.push_str(&plot.svg());
        }
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// A range of values with round ticks.
struct Axis {
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    /// The axis over `values`; from zero on, where it is asked for and none is negative.
    fn over(values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (mut from, mut to) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        if from_zero && from > 0.0 {
            from = 0.0;
        }
        if from >= to {
            to = from + 1.0;
        }
        let rough = (to - from) / 6.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * decade).find(|step| *step >= rough);
        let step = step.unwrap_or(decade * 10.0);
        if from_zero {
            to = (to / step).ceil() * step;
        }
        Self { from, to, step }
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        let first = (self.from / self.step).ceil();
        let ticks = (0..20u8).map(|index| (first + f64::from(index)) * self.step);
        ticks.take_while(|tick| *tick <= self.to + self.step * 1e-9).collect()
    }

    fn label(&self, tick: f64) -> String {
        let decimals = (0..9u8).find(|decimals| self.step * 10f64.powi(i32::from(*decimals)) >= 0.999);
        let text = format!("{tick:.*}", usize::from(decimals.unwrap_or(9)));
        if text.trim_start_matches('-').chars().all(|c| "0.".contains(c)) { "0".to_owned() } else { text }
    }
}

/// Least and greatest value of each run of points, where there are more points than pixels.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for run in points.chunks(points.len().div_ceil(POINTS_MAX / 2)) {
        let least = run.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let most = run.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let (Some(least), Some(most)) = (least, most) else { continue };
        let (first, second) = if least.0 <= most.0 { (least, most) } else { (most, least) };
        kept.push(*first.1);
        if first.0 != second.0 {
            kept.push(*second.1);
        }
    }
    kept
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_ticks() {
        let axis = Axis::over([0.3, 9.8].into_iter(), true);
        assert_eq!(axis.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(axis.label(4.0), "4");
        let axis = Axis::over([0.0, 0.28].into_iter(), false);
        assert_eq!(axis.ticks().len(), 6);
        assert_eq!(axis.label(0.05), "0.05");
        assert_eq!(Axis::over([5.0].into_iter(), true).ticks().first(), Some(&0.0));
        assert!(Axis::over(std::iter::empty(), true).step > 0.0);
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|x| (f64::from(x), 0.0)).collect();
        points[54_321].1 = 7.0;
        points[54_322].1 = -7.0;
        let thinned = thin(&points);
        assert!(thinned.len() <= POINTS_MAX);
        assert!(thinned.contains(&(54_321.0, 7.0)) && thinned.contains(&(54_322.0, -7.0)));
        assert!(thinned.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_plot_is_well_formed_and_escapes_its_names() {
        let svg = Plot::new("a < b", "t (s)", "Gb/s").line("R&C", vec![(0.0, 1.0), (1.0, 2.0)]).svg();
        assert!(svg.contains("a &lt; b") && svg.contains("R&amp;C") && svg.contains("<path d=\"M64.0"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        assert!(!svg.contains("NaN"));
    }
}
