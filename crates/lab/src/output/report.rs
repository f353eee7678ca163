//! `report.html`: what a run found out, for people. One file that opens offline: style, script and data are in it, and
//! its content policy forbids every request.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `page` | tiles, plots and tables: what a page consists of |
//! | `lines` | time series thinned to what a screen shows |
//! | `run` | the page of one run |
//! | `over_time` | what of it changed in the course of the run |
//! | `events` | the marks of faults and changes in that |
//! | `completion` | how long its flows took |
//! | `by_size` | slowdown over the size of flows |
//! | `collectives`, `goals`, `rpcs` | collectives, GOAL schedules, and requests and responses, of one run and of several |
//! | `joint` | collectives of schedules, the same |
//! | `faults` | what each table of faults did |
//! | `priorities` | what befell each priority, of one run and of several |
//! | `by_table` | what a comparison has of both: their columns in its table, and their means over seeds |
//! | `named` | what the rows of its tables begin with |
//! | `comparison` | the page of several runs side by side |
//! | `of_traffic` | what it has of each table of traffic |
//! | `tried` | what it has of a search that came before |
//! | `curves` | what it draws: a line for each run, or for each configuration with several seeds |

mod by_size;
mod by_table;
mod collectives;
mod comparison;
mod completion;
mod curves;
mod events;
mod faults;
mod goals;
mod joint;
mod lines;
mod named;
mod of_traffic;
mod over_time;
mod page;
mod priorities;
mod rpcs;
mod run;
mod tried;

pub(super) use events::all as all_marks;
pub(super) use lines::Readings;

use crate::batch::Names;
use crate::results::Results;
use crate::tune::Tried;
use page::Page;
use std::io::{self, Write};

const STYLE: &str = include_str!("report/report.css");
const SCRIPT: &str = include_str!("report/report.js");

/// One of several runs in a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What tells it from the others, such as `control.law=dcqcn`.
    pub label: &'a str,
    /// What it shares with runs of other seeds alone.
    pub configuration: &'a str,
    /// Its own folder beside the comparison's page, if it has one; its report is linked.
    pub folder: Option<&'a str>,
    /// What it found out.
    pub results: &'a Results,
}

/// Writes the report of one run.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    render(out, &run::page(results))
}

/// Writes the report of several runs side by side, under `title`, in whose tables they have the columns of `names`.
///
/// # Errors
/// What `out` answers.
pub fn write_comparison(
    out: &mut impl Write,
    title: &str,
    names: &Names<'_>,
    runs: &[Run<'_>],
) -> io::Result<()> {
    render(out, &comparison::page(title, names, runs))
}

/// The same of the runs that a search has come to, with what it has `tried`.
///
/// # Errors
/// What `out` answers.
pub fn write_tuned(
    out: &mut impl Write,
    title: &str,
    names: &Names<'_>,
    runs: &[Run<'_>],
    tried: &Tried,
) -> io::Result<()> {
    let mut page = comparison::page(title, names, runs);
    page.sections.extend(tried::section(tried));
    render(out, &page)
}

/// Writes the table of a comparison as CSV, one line per run (RFC 4180).
///
/// # Errors
/// What `out` answers.
pub fn write_comparison_csv(out: &mut impl Write, runs: &[Run<'_>]) -> io::Result<()> {
    comparison::write_csv(out, runs)
}

/// Whether some of `runs` has several `[[traffic]]` tables, of which [`write_traffic_csv`] tells.
pub fn has_tables_of_traffic(runs: &[Run<'_>]) -> bool {
    of_traffic::are_several(runs)
}

/// Writes what became of the flows of each `[[traffic]]` table as CSV, one line per table of a run (RFC 4180).
///
/// # Errors
/// What `out` answers.
pub fn write_traffic_csv(out: &mut impl Write, runs: &[Run<'_>]) -> io::Result<()> {
    of_traffic::write_csv(out, runs)
}

fn render(out: &mut impl Write, page: &Page) -> io::Result<()> {
    // In a script element only "<" could end the data early, and JSON can say it otherwise.
    let data = serde_json::to_string(page)?.replace('<', "\\u003c");
    let title = page.title.replace('&', "&amp;").replace('<', "&lt;");
    write!(
        out,
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Rocinante {version}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<main id="page"><noscript>This report draws itself: please allow its script.</noscript></main>
<script id="data" type="application/json">{data}</script>
<script>
{SCRIPT}</script>
</body>
</html>
"#,
        version = env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::sample;
    use crate::results::{CoreArray, Deadlock, Failure, ProgramResult};
    use roci_control::Class;
    use roci_control::program::csr::Side;
    use roci_control::program::fault::Why;
    use roci_control::program::{Fault, Tally};
    use roci_nic::arch::presets;
    use roci_nic::{ArchCounters, CoreCounters};
    use roci_units::Span;
    use serde_json::Value;

    fn html(results: &Results) -> String {
        let mut out = Vec::new();
        write(&mut out, results).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn data(html: &str) -> Value {
        let (_, rest) = html.split_once("type=\"application/json\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    fn plots(page: &Value) -> Vec<&Value> {
        let sections = page["sections"].as_array().unwrap();
        sections.iter().flat_map(|section| section["plots"].as_array().unwrap()).collect()
    }

    #[test]
    fn every_plot_has_a_line_with_points() {
        let page = data(&html(&sample()));
        assert!(plots(&page).len() >= 7, "{}", plots(&page).len());
        for plot in plots(&page) {
            for line in plot["lines"].as_array().unwrap() {
                assert!(line["x"].as_array().unwrap().len() >= 2, "{}", plot["title"]);
                assert_eq!(line["x"].as_array().unwrap().len(), line["y"].as_array().unwrap().len());
            }
            assert!(!plot["lines"].as_array().unwrap().is_empty(), "{}", plot["title"]);
        }
    }

    #[test]
    fn a_run_without_samples_says_so_instead_of_showing_an_empty_plot() {
        let page = data(&html(&Results::default()));
        assert!(plots(&page).is_empty());
        assert!(page.to_string().contains("measure.sample"));
    }

    #[test]
    fn what_was_paused_is_drawn_in_frames_and_in_time() {
        let page = data(&html(&sample()));
        let plot = |title: &str| {
            let named = |plot: &&Value| plot["title"].as_str().unwrap().starts_with(title);
            plots(&page).into_iter().find(named).unwrap_or_else(|| panic!("no {title}"))["lines"].clone()
        };
        let (frames, time) = (plot("PAUSE frames received in each"), plot("Time stood paused, of each"));
        assert_eq!(
            (&frames[0]["name"], frames[0]["colour"].clone()),
            (&time[0]["name"], time[0]["colour"].clone())
        );
        let values = |line: &Value| -> Vec<f64> {
            line["y"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
        };
        // One frame in each interval of 100 µs, which stops the port for 30 µs, over the first 39 intervals.
        let (frames, time) = (values(&frames[0]), values(&time[0]));
        assert_eq!((frames[0], time[0]), (2.0, 0.3), "two intervals to a stretch");
        assert_eq!((frames[20], time[20]), (0.0, 0.0));
        assert_eq!(frames.len(), time.len());
    }

    #[test]
    fn a_deadlock_stands_before_everything_else() {
        let ring = [("s0", "s1"), ("s1", "s2"), ("s2", "s0")];
        let cycle = ring.map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
        let deadlock = Deadlock { at: roci_units::Instant::from_ps(3_000_000_000), priority: 3, cycle };
        let page = data(&html(&Results { deadlock: Some(deadlock), ..sample() }));
        assert!(page["subtitle"].as_str().unwrap().ends_with("; stood still in a deadlock"));
        let first = &page["sections"][0];
        assert!(first["note"].as_str().unwrap().starts_with("Found after 3 ms"), "{first}");
        assert_eq!(first["table"]["rows"][2], serde_json::json!(["s2", "s0"]));
        assert!(!data(&html(&sample())).to_string().contains("eadlock"));
    }

    /// Results of a run in which a program failed, a law fell behind and a write was lost.
    fn troubled() -> Results {
        let mut results = sample();
        let fault = Fault {
            image: "law.elf".into(),
            side: Side::Rx,
            qpn: 7,
            at: roci_units::Instant::from_ps(2_000_000_000),
            class: Class::ACK,
            number: 40,
            place: "law.c:12".into(),
            why: Why::Silent,
        };
        results.programs.push(ProgramResult {
            control: 0,
            elf: "later.elf".into(),
            flows_fallen: 1,
            tally: Tally { wrong: 3, faults: vec![fault.clone()], ..Tally::default() },
            failures: vec![Failure { host: 1, flow: Some(0), fault }],
            events: String::new(),
        });
        results.hosts[2].unheard = 743;
        let swcc = presets::find("swcc").unwrap();
        let cores = CoreCounters {
            held_up: 51,
            held_up_for: Span::from_micros(90),
            busiest: Span::from_micros(400),
            busiest_over: Span::from_micros(800),
            ..CoreCounters::default()
        };
        results.hosts[3].cores = CoreArray::of(&swcc).map(Box::new);
        results.hosts[3].nic = Some(Box::new(ArchCounters { cores, ..ArchCounters::default() }));
        results.warnings.push("nobody took it".into());
        results
    }

    #[test]
    fn what_went_wrong_with_laws_stands_before_everything_else() {
        let page = data(&html(&troubled()));
        let subtitle = page["subtitle"].as_str().unwrap();
        assert!(
            subtitle.ends_with("; a program failed; a law did not hear of all; cores fell behind"),
            "{subtitle}"
        );
        let section = |place: usize| &page["sections"][place];
        assert!(
            section(0)["note"].as_str().unwrap().starts_with("3 queue pairs went over"),
            "{}",
            section(0)
        );
        let failure = &section(0)["table"]["rows"][0];
        assert_eq!(
            (&failure[0], &failure[1], &failure[2], &failure[6], &failure[7]),
            (&"law.elf".into(), &"s0".into(), &"a".into(), &"ACK".into(), &"law.c:12".into())
        );
        assert_eq!(section(1)["table"]["rows"], serde_json::json!([["s1", 743.0]]));
        let cores = &section(2)["table"]["rows"];
        assert_eq!(
            cores,
            &serde_json::json!([["s2", "swcc", "8 pairs of cores at 250MHz", 0.5, 51.0, 9e-5]])
        );
        assert!(section(2)["note"].as_str().unwrap().contains("roci program profile"), "{}", section(2));
        assert_eq!(section(3)["note"], "nobody took it");
        let quiet = data(&html(&sample())).to_string();
        assert!(
            !quiet.contains("went over")
                && !quiet.contains("unheard")
                && !quiet.contains("Warnings")
                && !quiet.contains("fell behind")
        );
    }

    #[test]
    fn a_comparison_marks_the_runs_in_which_laws_failed_or_fell_behind() {
        let (good, bad) = (sample(), troubled());
        let run = |label, results| Run { label, configuration: label, folder: None, results };
        let page = |runs: &[Run<'_>]| {
            let mut out = Vec::new();
            write_comparison(&mut out, "a against b", &Names::default(), runs).unwrap();
            data(std::str::from_utf8(&out).unwrap())
        };
        let both = page(&[run("good", &good), run("bad", &bad)]);
        let table = &both["sections"][0]["table"];
        let columns = table["columns"].as_array().unwrap();
        for (heading, value) in [("fell back", 3.0), ("unheard", 743.0), ("held up", 51.0)] {
            // The first cell names the run.
            let column = 1 + columns.iter().position(|column| column[0] == heading).expect(heading);
            assert_eq!([&table["rows"][0][column], &table["rows"][1][column]], [0.0, value], "{heading}");
        }
        assert!(!page(&[run("good", &good); 2]).to_string().contains("unheard"));
    }

    #[test]
    fn a_comparison_says_where_its_throughput_is_not_that_of_all_flows() {
        let whole = sample();
        let mut part = sample();
        part.flows.extend(sample().flows);
        let page = |results| {
            let mut out = Vec::new();
            let run = Run { label: "a", configuration: "a", folder: None, results };
            write_comparison(&mut out, "a against a", &Names::default(), &[run; 2]).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(page(&part).contains("flows of a run are sampled") && page(&part).contains("a: 8 of 16."));
        assert!(!page(&whole).contains("are sampled"));
    }

    #[test]
    fn names_from_a_scenario_cannot_end_the_data_or_begin_a_script() {
        let results = Results { name: "</script><script>alert(1)//&".into(), ..sample() };
        let html = html(&results);
        assert_eq!(html.matches("<script").count(), 2);
        assert_eq!(html.matches("</script>").count(), 2);
        assert_eq!(data(&html)["title"], results.name);
    }

    #[test]
    fn nothing_in_the_page_points_outside() {
        let html = html(&sample());
        for scheme in ["http://", "https://", "src=", "@import", "url("] {
            let found = html.matches(scheme).count();
            // The one URL is the name of SVG's namespace, which nobody fetches.
            assert_eq!(found, usize::from(scheme == "http://"), "{scheme}");
        }
    }

    #[test]
    fn a_variant_of_a_scenario_names_its_overrides_under_the_title() {
        let overrides = vec![("switch.ecn".to_owned(), "false".to_owned())];
        let page = data(&html(&Results { overrides, ..sample() }));
        assert!(page["subtitle"].as_str().unwrap().starts_with("with switch.ecn=false; seed 7, "));
    }

    #[test]
    fn a_comparison_has_the_means_that_the_terminal_shows() {
        let results = sample();
        let runs = [Run { label: "a", configuration: "a", folder: None, results: &results }; 2];
        let mut csv = Vec::new();
        write_comparison_csv(&mut csv, &runs).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let row = |number: usize| csv.lines().nth(number).unwrap().split(',');
        let value = |wanted: &str| {
            let (_, value) = row(0).zip(row(1)).find(|(name, _)| *name == wanted).unwrap();
            value.parse().ok()
        };
        assert_eq!(value("fct_mean_s"), results.completion_times().mean());
        assert_eq!(value("slowdown_mean"), results.slowdowns().mean());
    }

    #[test]
    fn order_and_balance_are_compared_and_the_page_leaves_them_out_where_no_run_tells_of_them() {
        let mut results = sample();
        results.flows.iter_mut().for_each(|flow| flow.reordered = 0);
        let told = |results: &Results| {
            let runs = [Run { label: "a", configuration: "a", folder: None, results }; 2];
            let (mut csv, mut page) = (Vec::new(), Vec::new());
            write_comparison_csv(&mut csv, &runs).unwrap();
            write_comparison(&mut page, "a against a", &Names::default(), &runs).unwrap();
            let csv = String::from_utf8(csv).unwrap();
            let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
            let cells = ["reordered", "imbalance"].map(|wanted| {
                let place = rows[0].iter().position(|name| *name == wanted).unwrap();
                rows[1][place].to_owned()
            });
            let page = data(std::str::from_utf8(&page).unwrap()).to_string();
            (cells, ["reordered", "imbalance"].map(|name| page.contains(&format!("[\"{name}\""))))
        };
        assert_eq!(told(&results), (["0", ""].map(str::to_owned), [false, false]));
        results.flows[1].reordered = 5;
        results.flows[3].reordered = 2;
        results.switches[0].imbalance = Some(0.5);
        assert_eq!(
            told(&results),
            (["7", "0.5"].map(str::to_owned), [true, true]),
            "of one switch that chooses"
        );
        results.switches[1].imbalance = Some(1.0);
        assert_eq!(told(&results).0[1], "0.75", "the mean of both");
    }

    #[test]
    fn a_comparison_has_a_column_for_each_key_that_was_set() {
        let with = |set: &[(&str, &str)]| Results {
            overrides: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ..sample()
        };
        let law = "{ law = \"dcqcn\", g = 1 }";
        let (one, other) = (
            with(&[("switch.ecn.kmin", "50KB"), ("seed", "3")]),
            with(&[("switch.ecn.kmin", "100KB"), ("transport.control", law)]),
        );
        let run = |results| Run { label: "a", configuration: "a", folder: None, results };
        let csv = |runs: &[Run<'_>]| {
            let mut csv = Vec::new();
            write_comparison_csv(&mut csv, runs).unwrap();
            String::from_utf8(csv).unwrap()
        };
        let told = csv(&[run(&one), run(&other)]);
        let ends: Vec<&str> = told.lines().map(|line| line.splitn(32, ',').last().unwrap()).collect();
        let begin = [
            "switch.ecn.kmin,transport.control,configuration,",
            "50KB,,a,",
            "100KB,\"{ law = \"\"dcqcn\"\", g = 1 }\",a,",
        ];
        assert_eq!(ends.len(), begin.len());
        for (end, begin) in ends.into_iter().zip(begin) {
            assert!(end.starts_with(begin), "{end}");
        }
        let plain = csv(&[run(&sample())]);
        assert!(plain.lines().next().unwrap().contains(",reordered,imbalance,configuration,paired_seeds,"));
    }

    #[test]
    fn a_comparison_says_of_each_configuration_from_which_it_differs_how_much_seed_by_seed() {
        let with = |seed: u64, marks: u64| {
            let mut results = Results { seed, ..sample() };
            results.switches[0].ecn_marks = marks;
            results
        };
        let all = [with(1, 100), with(2, 900), with(1, 110), with(2, 912)];
        let runs: Vec<Run<'_>> = ["a", "a", "b, c", "b, c"]
            .into_iter()
            .zip(&all)
            .map(|(name, results)| Run { label: "run", configuration: name, folder: None, results })
            .collect();
        let cells = |runs: &[Run<'_>], names: &[&str]| -> Vec<Vec<String>> {
            let mut csv = Vec::new();
            write_comparison_csv(&mut csv, runs).unwrap();
            let csv = String::from_utf8(csv).unwrap().replace("\"b, c\"", "b and c");
            let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
            assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
            let places = names.iter().map(|name| rows[0].iter().position(|it| it == name).expect(name));
            let places: Vec<usize> = places.collect();
            rows[1..].iter().map(|row| places.iter().map(|place| row[*place].to_owned()).collect()).collect()
        };
        let names = [
            "configuration",
            "paired_seeds",
            "ecn_marks_diff",
            "ecn_marks_diff_ci95",
            "drops_diff",
            "offered_bps_diff",
            "baseline",
        ];
        let told = cells(&runs, &names);
        assert_eq!(told[0], ["a", "", "", "", "", "", "a"], "nothing is said of the first");
        assert_eq!(told[0], told[1]);
        // 10 and 12 more: t of one degree of freedom is 12.706, and the standard error is 1.
        assert_eq!(told[2][..3], ["b and c", "2", "11"]);
        assert!((told[2][3].parse::<f64>().unwrap() - 12.706).abs() < 1e-9, "{told:?}");
        assert_eq!(told[2][4..], ["0", "", "a"], "drops are alike, and what was offered is not known");
        assert_eq!(told[2], told[3]);
        let one_seed = cells(&[runs[0], runs[2]], &names);
        assert_eq!(one_seed[1], ["b and c", "1", "", "", "", "", "a"], "one seed tells of no difference");

        let page = |runs: &[Run<'_>]| {
            let mut out = Vec::new();
            write_comparison(&mut out, "a against b", &Names::default(), runs).unwrap();
            data(std::str::from_utf8(&out).unwrap())
        };
        let section = &page(&runs)["sections"][1];
        assert_eq!(section["title"], "Differences, seed by seed");
        let marks = section["table"]["columns"].as_array().unwrap().iter().position(|it| it[0] == "CE marks");
        assert_eq!(section["table"]["rows"][0][1 + marks.unwrap()]["mean"], 11.0);
        assert_eq!(section["names"], serde_json::json!(["configuration"]));
        assert_eq!(section["table"]["columns"][0][0], "against");
        assert_eq!(section["table"]["rows"][0][1], "a");
        assert!(!page(&[runs[0], runs[2]]).to_string().contains("seed by seed"));
    }

    #[test]
    fn what_was_offered_is_compared_where_it_is_known() {
        let offered = crate::results::Offered { from: roci_units::Instant::ZERO, until: sample().simulated };
        let by_the_clock = Results { offered: Some(offered), ..sample() };
        for (results, known) in [(sample(), false), (by_the_clock, true)] {
            let runs = [Run { label: "a", configuration: "a", folder: None, results: &results }; 2];
            let mut out = Vec::new();
            write_comparison(&mut out, "a against a", &Names::default(), &runs).unwrap();
            let page = data(std::str::from_utf8(&out).unwrap());
            assert_eq!(page.to_string().contains("\"offered\""), known);
            assert!(!page.to_string().contains("\"failed\""), "none did");
            let mut csv = Vec::new();
            write_comparison_csv(&mut csv, &runs).unwrap();
            let csv = String::from_utf8(csv).unwrap();
            let column =
                csv.lines().next().unwrap().split(',').position(|name| name == "offered_bps").unwrap();
            let value = csv.lines().nth(1).unwrap().split(',').nth(column).unwrap();
            assert_eq!(!value.is_empty(), known, "{csv}");
        }
    }

    #[test]
    fn a_comparison_has_one_row_per_run() {
        let results = sample();
        let runs = ["dcqcn", "none"].map(|label| Run {
            label,
            configuration: "both",
            folder: Some(label),
            results: &results,
        });
        let mut out = Vec::new();
        write_comparison(&mut out, "a against b", &Names::default(), &runs).unwrap();
        let page = data(std::str::from_utf8(&out).unwrap());
        let means = page["sections"][0]["table"]["rows"].as_array().unwrap();
        assert_eq!(
            (means.len(), &means[0][1]),
            (1, &serde_json::json!(2.0)),
            "two runs of one configuration"
        );
        assert_eq!(page["sections"][1]["table"]["rows"].as_array().unwrap().len(), 2);
        let mut csv = Vec::new();
        write_comparison_csv(&mut csv, &runs).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_eq!(csv.lines().count(), 3);
        let column = csv.lines().next().unwrap().split(',').position(|name| name == "paused_s").unwrap();
        assert_eq!(csv.lines().nth(1).unwrap().split(',').nth(column), Some("0.00234"), "two switches");
    }
}
