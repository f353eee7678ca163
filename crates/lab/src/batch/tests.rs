use super::*;
use crate::output::test_results::{
    sample, two_tables, with_collective, with_goal, with_joint, with_priorities, with_rpc,
};
use roci_units::Instant;

/// A world in which a run ends with its seed, unless that is odd and it fails.
struct Echo;

impl World for Echo {
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        _folder: Option<&Path>,
        progress: &mut dyn FnMut(&Progress) -> Go,
    ) -> Result<Results, RunError> {
        for step in 1..4 {
            if progress(&Progress { now: Instant::from_ps(step), ..Progress::default() }) == Go::Stop {
                return Err(RunError::Interrupted);
            }
        }
        match seed % 2 {
            0 => Ok(Results { name: scenario.name.clone(), seed, packets: seed * 10, ..Results::default() }),
            _ => Err(RunError::Impossible("odd".to_owned())),
        }
    }
}

/// Counts, and stops everything after `stop_after` words of progress.
struct Count {
    heard: AtomicUsize,
    ended: AtomicUsize,
    stop_after: usize,
}

impl Count {
    fn until(stop_after: usize) -> Self {
        Self { heard: AtomicUsize::new(0), ended: AtomicUsize::new(0), stop_after }
    }
}

impl Watch for Count {
    fn progress(&self, _index: usize, _progress: &Progress) -> Go {
        let heard = self.heard.fetch_add(1, Ordering::Relaxed) + 1;
        if heard > self.stop_after { Go::Stop } else { Go::On }
    }
    fn ended(&self, _index: usize, _result: &Result<Results, RunError>) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
    fn seconds(&self) -> f64 {
        0.0
    }
}

const TEXT: &str = "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"1Gb/s\"\ndelay = \"1us\"\n\
    [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n";

/// A scenario file of its own for one test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("roci-batch-{name}-{}.toml", std::process::id()));
        std::fs::write(&path, TEXT).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn answers_stand_in_the_order_of_the_tasks_however_many_threads_there_are() {
    let file = File::new("order");
    let group = Group::of_seeds(&file.0, &[], &[2, 3, 4, 8, 10, 12]).unwrap();
    for threads in [0, 1, 3, 64] {
        let watch = Count::until(usize::MAX);
        let answers = run_all(&Echo, &tasks(&group, None), threads, &watch);
        let packets: Vec<_> = answers.iter().map(|answer| answer.as_ref().map(|r| r.packets).ok()).collect();
        assert_eq!(packets, [Some(20), None, Some(40), Some(80), Some(100), Some(120)], "{threads}");
        assert_eq!(watch.ended.into_inner(), 6);
    }
}

#[test]
fn a_stop_ends_what_runs_and_what_has_not_begun() {
    let file = File::new("stop");
    let group = Group::of_seeds(&file.0, &[], &[2, 4, 6]).unwrap();
    let answers = run_all(&Echo, &tasks(&group, None), 1, &Count::until(6));
    assert!(answers[0].is_ok());
    assert_eq!(
        answers[1..].iter().map(|a| a.clone().unwrap_err()).collect::<Vec<_>>(),
        [RunError::Interrupted, RunError::Interrupted]
    );
}

#[test]
fn a_sweep_is_every_combination_in_order_each_with_every_seed() {
    let file = File::new("sweep");
    let axes = set(&[("nic.mtu", "1024,4096"), ("transport.ring", "1..2")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[5, 6]).unwrap();
    assert_eq!(group.runs.len(), 8);
    assert_eq!(
        group.configurations(),
        [
            "nic.mtu=1024 transport.ring=1",
            "nic.mtu=1024 transport.ring=2",
            "nic.mtu=4096 transport.ring=1",
            "nic.mtu=4096 transport.ring=2"
        ]
    );
    assert_eq!(group.runs[7].scenario.nic.config.mtu, 4096);
    assert_eq!(group.places()[7], PathBuf::from("nic.mtu=4096-transport.ring=2-seed=6"));
    let axes = set(&[("seed", "1..101"), ("nic.mtu", "1..100")]);
    assert!(matches!(Group::of_sweep(&file.0, &[], &axes, &[]), Err(PlanError::TooMany(10_100))));
    let axes = set(&[("traffic.0.size", "")]);
    let told = Group::of_sweep(&file.0, &[], &axes, &[]).unwrap_err().to_string();
    assert!(told.starts_with("--set traffic.0.size=: it has an empty value"), "{told}");
    let axes = set(&[("nic.mtu", "1024,-1")]);
    assert!(matches!(Group::of_sweep(&file.0, &[], &axes, &[]), Err(PlanError::Scenario(_))));
    let twice = [("seed".to_owned(), "1,2".to_owned()), ("seed".to_owned(), "3,4".to_owned())];
    let told = Group::of_sweep(&file.0, &[], &twice, &[]).unwrap_err().to_string();
    assert!(told.starts_with("--set seed: several values are given twice for this key; name all"), "{told}");
}

#[test]
fn configurations_of_a_sweep_are_told_apart_by_their_values_below_the_keys_and_others_by_their_labels() {
    let file = File::new("names");
    let axes =
        set(&[("transport.control", "dcqcn,{ law = \"dcqcn\" },none"), ("switch.ecn.kmin", "10KB,20KB")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[1, 2]).unwrap();
    let names = group.names();
    assert_eq!(names.headings(&[]), ["control", "kmin"]);
    let told: Vec<_> = group.configurations().into_iter().map(|label| names.of(label)).collect();
    let dcqcn = "dcqcn preset=sigcomm15";
    let values = [
        [dcqcn, "10KB"],
        [dcqcn, "20KB"],
        [dcqcn, "10KB (2)"],
        [dcqcn, "20KB (2)"],
        ["none", "10KB"],
        ["none", "20KB"],
    ];
    assert_eq!(told, values);
    let group = Group::of_controls(&file.0, &[], "dcqcn,none", &[]).unwrap();
    let names = group.names();
    assert_eq!((names.headings(&[]), names.of("none")), (vec!["control"], vec!["none"]));
    let group = Group::of_seeds(&file.0, &set(&[("name", "one")]), &[1, 2]).unwrap();
    assert_eq!((group.names().headings(&[]), group.names().of("one")), (vec!["run"], vec!["one"]));
}

#[test]
fn the_page_of_a_sweep_has_a_column_for_each_key_and_not_one_for_all_of_them() {
    let file = File::new("page");
    let axes = set(&[("switch.ecn.kmin", "10KB,20KB"), ("transport.timeout", "1ms,2ms")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[1, 2]).unwrap();
    let of = |run: &super::Run| Results { seed: run.seed, traffic: two_tables(), ..with_collective() };
    let results: Vec<Results> = group.runs.iter().map(of).collect();
    let folder = std::env::temp_dir().join(format!("roci-batch-page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    assert!(group.write_comparison(&folder, &results).is_empty());
    let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let (_, data) = html.split_once("type=\"application/json\">").unwrap();
    let page: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let mut tables = 0;
    for section in page["sections"].as_array().unwrap().iter().filter(|it| !it["table"].is_null()) {
        let row = section["table"]["rows"].as_array().unwrap().last().unwrap().as_array().unwrap();
        assert_eq!(section["names"], serde_json::json!(["kmin", "timeout"]), "{section}");
        let columns = section["table"]["columns"].as_array().unwrap().len();
        assert_eq!(row.len(), 2 + columns, "{section}");
        match section["title"].as_str() {
            Some("Comparison") => {
                assert_eq!((&row[0]["text"], &row[1]), (&"20KB".into(), &"2ms".into()));
                let href = "switch.ecn.kmin=20KB-transport.timeout=2ms-seed=2/report.html";
                assert_eq!((&row[0]["href"], &row[2]), (&href.into(), &2.0.into()));
            }
            _ => assert_eq!(row[..2], ["20KB", "2ms"], "{section}"),
        }
        if section["table"]["columns"][0][0] == "against" {
            assert_eq!(row[2], "kmin=10KB timeout=1ms", "{section}");
        }
        tables += 1;
    }
    assert!(tables > 4, "{tables}");
}

#[test]
fn of_a_comparison_all_is_written_that_can_be_and_nothing_by_halves() {
    let file = File::new("halves");
    let axes = set(&[("switch.ecn.kmin", "10KB,20KB")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[1]).unwrap();
    let results = [with_collective(), with_collective()];
    let folder = std::env::temp_dir().join(format!("roci-batch-halves-{}", std::process::id()));
    // What stands in the way of one of them.
    std::fs::create_dir_all(folder.join("comparison.csv")).unwrap();
    let unwritten = group.write_comparison(&folder, &results);
    let full = crate::output::write(&folder.join("flows.csv"), |file| {
        std::io::Write::write_all(file, &[0; 100_000])?;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    let [comparison, report, flows] =
        ["comparison.csv", "report.html", "flows.csv"].map(|name| folder.join(name).is_file());
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((comparison, report, flows), (false, true, false));
    assert!(unwritten.len() == 1 && unwritten[0].to_string().contains("comparison.csv"), "{unwritten:?}");
    assert!(full.is_err());
}

#[test]
fn a_sweep_leaves_out_what_cannot_be_and_refuses_values_that_go_with_none() {
    let file = File::new("impossible");
    let sweep = |kmin: &str, kmax: &str| {
        let axes = set(&[("switch.ecn.kmin", kmin), ("switch.ecn.kmax", kmax)]);
        Group::of_sweep(&file.0, &[], &axes, &[1, 2])
    };
    let group = sweep("50KB,400KB", "100KB,400KB").unwrap();
    assert_eq!((group.runs.len(), group.configurations().len()), (6, 3));
    let [one] = &group.left_out[..] else { panic!("{:?}", group.left_out) };
    assert_eq!(one.label(), "switch.ecn.kmin=400KB switch.ecn.kmax=100KB");
    assert_eq!(one.error.message, "kmin, 400KB, is more than kmax, 100KB");
    for (kmin, kmax) in
        [("50KB,400KB", "100KB,200KB"), ("300KB,400KB", "100KB,200KB"), ("50KB,5XB", "100KB,200KB")]
    {
        assert!(matches!(sweep(kmin, kmax), Err(PlanError::Scenario(_))), "{kmin} and {kmax}");
    }
}

#[test]
fn what_is_left_out_for_one_reason_is_counted_together_and_told_in_full_in_a_file() {
    let file = File::new("left-out");
    let axes = set(&[
        ("switch.ecn.kmin", "50KB,300KB,400KB"),
        ("switch.ecn.kmax", "100KB,200KB,400KB"),
        ("transport.recovery", "go-back-n,ndp"),
        ("transport.control", "none,ndp"),
    ]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[]).unwrap();
    let told: Vec<_> = group.left_out_alike().iter().map(|it| (it.count, it.first.label())).collect();
    let first = |kmin, kmax, recovery, control| {
        format!(
            "switch.ecn.kmin={kmin} switch.ecn.kmax={kmax} transport.recovery={recovery} transport.control={control}"
        )
    };
    let counts: usize = told.iter().map(|(count, _)| count).sum();
    assert_eq!((counts, group.left_out.len() + group.configurations().len()), (group.left_out.len(), 36));
    assert!(told.contains(&(16, first("300KB", "100KB", "go-back-n", "none"))), "{told:?}");
    assert!(told.len() < 5, "{told:?}");
    let mut csv = Vec::new();
    super::left_out::write_csv(&mut csv, &group.left_out).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let keys = "switch.ecn.kmin,switch.ecn.kmax,transport.recovery,transport.control,reason,remedy\n";
    assert!(csv.starts_with(keys), "{csv}");
    assert_eq!(csv.matches("\"kmin, 400KB, is more than kmax, 100KB\"").count(), 4, "{csv}");
}

#[test]
fn controls_keep_the_settings_of_the_scenario_and_show_their_preset() {
    let file = File::new("controls");
    std::fs::write(&file.0, format!("{TEXT}[transport]\ncontrol = {{ preset = \"hpcc\", g = \"1/64\" }}\n"))
        .unwrap();
    let list = "dcqcn,none,{ law = \"dcqcn\" },{ law = \"dcqcn\", preset = \"sigcomm15\" }";
    let group = Group::of_controls(&file.0, &[], list, &[]).unwrap();
    assert_eq!(
        group.configurations(),
        ["dcqcn preset=hpcc g=1/64", "none", "dcqcn preset=sigcomm15", "dcqcn preset=sigcomm15 (2)"]
    );
    assert_eq!(group.runs[0].scenario.transport.control.settings.len(), 2);
}

#[test]
fn scenarios_of_one_name_have_folders_of_their_own() {
    let (a, b) = (File::new("one"), File::new("two"));
    let group = Group::of_scenarios(&[a.0.clone(), b.0.clone()], &set(&[("name", "same")]), &[]).unwrap();
    let places = group.places();
    assert_eq!(places[0], PathBuf::from("same"));
    assert_ne!(places[0], places[1]);
    assert!(!places[1].to_string_lossy().contains('/'));
}

#[test]
fn folders_of_many_keys_tell_their_values_and_seeds_and_have_names_that_file_systems_take() {
    let file = File::new("many-keys");
    let keys = [
        "switch.ecn.kmin",
        "switch.ecn.kmax",
        "switch.ecn.pmax",
        "switch.pfc.headroom",
        "switch.buffer",
        "transport.ring",
    ];
    let values = ["20KB,30KB", "400KB,500KB", "0.01,0.02", "90KB,95KB", "2MB,3MB", "1,2"];
    let axes: Vec<_> = keys.into_iter().zip(values).collect();
    let places = Group::of_sweep(&file.0, &[], &set(&axes), &[1, 2]).unwrap().places();
    let last = "switch.ecn.kmin=30KB-switch.ecn.kmax=500KB-switch.ecn.pmax=0.02-switch.pfc.headroom=95KB-switch.buffer=3MB-transport.ring=2-seed=2";
    assert!(last.len() > 120 && places.last() == Some(&PathBuf::from(last)), "{places:?}");
    let long = ["é", "x"].map(|letter| folder_name(&letter.repeat(300)));
    assert_eq!(long.map(|name| name.len()), [240, 240]);
}

#[test]
fn a_configuration_is_summed_up_over_its_seeds() {
    let file = File::new("estimates");
    let group = Group::of_seeds(&file.0, &[], &[1, 2, 3]).unwrap();
    let result = |drops| Results {
        switches: vec![crate::results::SwitchResult { drops, ..Default::default() }],
        ..Results::default()
    };
    let results = [result(1), result(2), result(3)];
    let sums = group.sums(&results);
    let (_, drops) = sums[0].values.iter().find(|(metric, _)| *metric == Metric::Drops).unwrap();
    let drops = drops.unwrap();
    assert_eq!(drops.mean, 2.0);
    // Student's t for two degrees of freedom, 4.303, times a deviation of 1, over the root of 3.
    assert!((drops.half_width - 2.484).abs() < 0.01, "{}", drops.half_width);
    let (_, slowdown) = sums[0].values.iter().find(|(metric, _)| *metric == Metric::MeanSlowdown).unwrap();
    assert_eq!(*slowdown, None, "nothing completed");
}

#[test]
fn each_table_of_traffic_is_summed_up_over_the_seeds_where_all_runs_have_the_same() {
    let file = File::new("traffic");
    let group = Group::of_seeds(&file.0, &[], &[1, 2]).unwrap();
    let (one, two) = (sample(), Results { traffic: two_tables(), ..sample() });
    let results = [two.clone(), two.clone()];
    let sums = group.sums_of_traffic(&results);
    let told: Vec<_> = sums.iter().map(|sum| (sum.traffic, sum.flows, sum.runs)).collect();
    assert_eq!(told, [(Some("0"), 2, 2), (Some("background"), 6, 2)]);
    let mean = |sum: &Sum<'_>, metric| {
        sum.values.iter().find(|(it, _)| *it == metric).unwrap().1.map(|value| value.mean)
    };
    // The flows end 900 us after one another; the last of four runs on.
    let completions = [0, 1].map(|table| mean(&sums[table], Metric::P99Completion).unwrap());
    assert!(completions[0] < 0.0261 && completions[1] > 0.0271, "{completions:?}");
    assert_eq!([0, 1].map(|table| mean(&sums[table], Metric::Completed)), [Some(1.0), Some(2.0)]);
    assert_eq!(mean(&sums[0], Metric::Drops), None, "a switch drops for all");
    assert!(group.sums_of_traffic(&[one.clone(), one.clone()]).is_empty(), "of a single table all is told");
    let mut other = two.clone();
    other.traffic[1].name = "1".to_owned();
    for different in [one, other] {
        assert!(group.sums_of_traffic(&[two.clone(), different]).is_empty());
    }
}

#[test]
fn differences_are_told_of_each_table_of_traffic_and_of_no_other_flows() {
    let file = File::new("differences-of-traffic");
    let axes = set(&[("nic.mtu", "1024,4096")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[1, 2]).unwrap();
    let run = |seed, longer| {
        let mut results = Results { seed, traffic: two_tables(), ..sample() };
        results.flows[0].end += roci_units::Span::from_micros(longer);
        results
    };
    let results = [run(1, 0), run(2, 50), run(1, 10), run(2, 60)];
    let told = group.differences_of_traffic(&results);
    let names: Vec<_> = told.iter().map(|it| (it.label, it.against, it.traffic, it.seeds)).collect();
    let is = |table| ("nic.mtu=4096", "nic.mtu=1024", Some(table), 2);
    assert_eq!(names, [is("0"), is("background")]);
    let mean = |place: usize, metric| {
        told[place].values.iter().find(|(it, _)| *it == metric).unwrap().1.map(|it| (it.mean * 1e6).round())
    };
    assert_eq!([0, 1].map(|table| mean(table, Metric::MeanCompletion)), [Some(10.0), Some(0.0)]);
    assert_eq!(mean(0, Metric::Drops), None, "a switch drops for all");
    let all = group.differences(&results);
    assert_eq!((all.len(), all[0].traffic), (1, None));
    let single = results.clone().map(|it| Results { traffic: sample().traffic, ..it });
    assert!(group.differences_of_traffic(&single).is_empty(), "of a single table all is told");
}

#[test]
fn differences_are_told_of_each_priority_and_not_of_runs_that_do_not_count_by_priority() {
    let file = File::new("differences-of-priorities");
    let axes = set(&[("nic.mtu", "1024,4096")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[1, 2]).unwrap();
    let run = |seed, drops, lost| {
        let mut results = Results { seed, ..with_priorities() };
        results.links[1].priorities[0].drops += drops;
        results.links[0].priorities[1].lost += lost;
        results
    };
    let results = [run(1, 0, 0), run(2, 3, 0), run(1, 10, 2), run(2, 13, 3)];
    let told = group.differences_of_priorities(&results);
    let names: Vec<_> = told.iter().map(|it| (it.label, it.against, it.priority, it.seeds)).collect();
    assert_eq!(names, [0, 3].map(|priority| ("nic.mtu=4096", "nic.mtu=1024", priority, 2)));
    let mean = |place: usize, metric| {
        told[place].values.iter().find(|(it, _)| *it == metric).unwrap().1.map(|it| it.mean)
    };
    assert_eq!([0, 1].map(|row| mean(row, PriorityMetric::Drops)), [Some(10.0), Some(0.0)]);
    assert_eq!([0, 1].map(|row| mean(row, PriorityMetric::Lost)), [Some(0.0), Some(2.5)]);
    let uncounted = [run(1, 0, 0), run(2, 3, 0), sample(), sample()];
    assert!(group.differences_of_priorities(&uncounted).is_empty(), "of these nothing is known");
}

#[test]
fn differences_are_told_of_each_collective_schedule_and_table_of_requests() {
    let file = File::new("differences-of-tables");
    let axes = set(&[("nic.mtu", "1024,4096")]);
    let group = Group::of_sweep(&file.0, &[], &axes, &[1, 2]).unwrap();
    let run = |seed, longer| {
        let mut goal = with_goal().goals;
        goal[0].table = 1;
        let path = goal[0].path.as_mut().unwrap();
        path.time += roci_units::Span::from_micros(longer);
        Results { seed, goals: goal, traffic: two_tables(), ..with_collective() }
    };
    let results = [run(1, 0), run(2, 50), run(1, 10), run(2, 60)];
    let told = group.differences_of_tables(&results);
    let names: Vec<_> = told.iter().map(|it| (it.label, it.against, it.name, it.seeds)).collect();
    assert_eq!(names, ["0", "background"].map(|name| ("nic.mtu=4096", "nic.mtu=1024", name, 2)));
    let mean = |place: usize, metric| {
        told[place].values.iter().find(|(it, _)| *it == metric).unwrap().1.map(|it| (it.mean * 1e6).round())
    };
    assert_eq!([0, 1].map(|table| mean(table, TableMetric::Goal)), [None, Some(10.0)]);
    assert_eq!([0, 1].map(|table| mean(table, TableMetric::Iteration)), [Some(0.0), None]);
    assert_eq!(mean(1, TableMetric::Request), None);
    let others = results.map(|it| Results { goals: Vec::new(), collectives: Vec::new(), ..it });
    assert!(group.differences_of_tables(&others).is_empty(), "flows have none");
}

#[test]
fn collectives_of_a_schedule_have_means_over_seeds_by_kind() {
    let file = File::new("joint");
    let group = Group::of_sweep(&file.0, &[], &set(&[("nic.mtu", "4096")]), &[1, 2]).unwrap();
    let run = |seed, longer| {
        let mut results = Results { seed, ..with_joint() };
        results.goals[0].joint[0].times.last_end += roci_units::Span::from_micros(longer);
        results
    };
    let results = [run(1, 0), run(2, 20)];
    let sums = group.sums_of_goals(&results);
    let [sum] = &sums[..] else { panic!("one configuration") };
    let [sums, alone] = sum.joint[..] else { panic!("two kinds") };
    assert_eq!((sums.operation.name(), sums.ranks, sums.count, sums.done), ("all-reduce", 4, 4, 2));
    assert_eq!(sums.time.map(|it| (it.mean * 1e6).round()), Some(110.0));
    assert_eq!(sums.over_ideal.map(|it| (it.mean * 1e3).round()), Some(1375.0));
    assert_eq!((alone.algorithm, alone.count, alone.bus_bps.is_none()), (None, 2, true));
}

#[test]
fn the_deepest_queue_of_a_run_held_nothing_where_no_sample_found_any_and_is_unknown_without_samples() {
    let mut series =
        crate::results::Series::new(roci_units::Span::from_micros(1), vec!["s0>h0:3".to_owned()]);
    let of = |series: &crate::results::Series| {
        let results = Results { series: series.clone(), ..Results::default() };
        [Metric::QueueMean, Metric::QueueP99].map(|metric| metric.of(&results))
    };
    assert_eq!(of(&series), [None, None]);
    series.begin(Instant::from_ps(1_000_000));
    assert_eq!(of(&series), [Some(0.0), Some(0.0)]);
}

#[test]
fn collectives_are_summed_up_over_the_seeds_of_each_configuration() {
    let file = File::new("collectives");
    let group = Group::of_seeds(&file.0, &[], &[1, 2]).unwrap();
    let (one, mut slow) = (with_collective(), with_collective());
    for it in &mut slow.collectives[0].iterations {
        it.end += roci_units::Span::from_micros(100);
    }
    let results = [one.clone(), slow];
    let sums = group.sums_of_collectives(&results);
    assert_eq!((sums.len(), sums[0].name, sums[0].done, sums[0].asked, sums[0].failed), (1, "0", 4, 6, 2));
    let rounded = |of: Option<Estimate>| of.map(|of| (of.mean * 1e6).round());
    assert_eq!(rounded(sums[0].time), Some(150.0), "100 us and 200 us");
    // 1 MB in 100 us and in 200 us, and 2 times 3/4 of it.
    assert_eq!([sums[0].algorithm_bps, sums[0].bus_bps].map(rounded), [Some(60e15), Some(90e15)]);
    assert_eq!(rounded(sums[0].over_ideal), Some(1_875_000.0));
    let mut undone = one.clone();
    undone.collectives[0].iterations.clear();
    let with_undone = [one, undone];
    let sums = group.sums_of_collectives(&with_undone);
    assert!(sums[0].time.is_none() && sums[0].bus_bps.is_none(), "a mean of what some have would be no mean");
    assert!(group.sums_of_collectives(&[sample(), sample()]).is_empty());
}

#[test]
fn requests_are_summed_up_over_the_seeds_of_each_configuration() {
    let file = File::new("requests");
    let group = Group::of_seeds(&file.0, &[], &[1, 2]).unwrap();
    let (one, mut other) = (with_rpc(), with_rpc());
    other.rpcs[0].answered *= 3;
    other.rpcs[0].times = crate::results::Times::default();
    other.rpcs[0].times.add(roci_units::Span::from_micros(400));
    let results = [one, other];
    let sums = group.sums_of_rpcs(&results);
    assert_eq!(sums.len(), 1);
    let mean = |of: Option<Estimate>| of.map(|of| (of.mean * 1e6).round());
    // 100, 200 and 300 us with one seed, and 400 with the other; 3 and 9 in a millisecond.
    assert_eq!((mean(sums[0].mean), mean(sums[0].per_second)), (Some(300.0), Some(6e9)));
    assert!(group.sums_of_rpcs(&[sample(), sample()]).is_empty());
}
