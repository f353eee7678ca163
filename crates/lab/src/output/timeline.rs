//! `timeline.json`: what happened when, in the Trace Event Format, for Perfetto (ui.perfetto.dev) and chrome://tracing.
//!
//! Each rank of a schedule is a process with a thread for each CPU; each collective and each table of other traffic is one too, and so is
//! the network, with its faults, the deepest queues and all goodput.

use super::report::{Readings, all_marks};
use crate::results::series::Metric;
use crate::results::{FlowResult, FlowStatus, GoalResult, OperationTimes, Results, TrafficResult};
use crate::traffic::goal::Does;
use roci_transport::Status;
use roci_units::{Instant, Span};
use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};

/// Writes the timeline of `results`.
///
/// # Errors
/// What `out` answers.
pub(crate) fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut timeline = Timeline { out, process: 0, pair: 0, line: String::new(), is_first: true };
    timeline.network(results)?;
    for (table, traffic) in results.traffic.iter().enumerate() {
        if let Some(goal) = results.goals.iter().find(|goal| goal.table == table) {
            timeline.schedule(results, traffic, goal)?;
        } else if results.collectives.iter().any(|it| it.table == table) {
            timeline.collective(results, traffic, table)?;
        } else {
            timeline.flows(results, traffic)?;
        }
    }
    writeln!(out, "\n]}}")
}

/// Above all processes: each has a host or a table of traffic.
const THREADS: u32 = 1 << 20;

/// From when until when.
#[derive(Clone, Copy)]
struct Range {
    from: Instant,
    until: Instant,
}

/// What is told of an event besides its name.
struct Said<'a> {
    /// In words.
    what: &'a str,
    /// In figures: members of a JSON object.
    rest: String,
}

/// The figures of an operation that goes over the network.
fn figures(goal: &GoalResult, does: Does) -> String {
    match does {
        Does::Calc(_) => String::new(),
        Does::Send { to, tag, size } => format!("\"octets\":{size},\"to\":{to},\"tag\":{tag}"),
        Does::Recv { from, tag, size } => {
            let any = |number: Option<u32>| number.map_or(-1, i64::from);
            format!("\"octets\":{size},\"from\":{},\"tag\":{}", any(from), any(tag))
        }
        Does::Collective { operation, size, group, number, root } => {
            let mut said = format!("\"operation\":\"{}\",\"octets\":{size}", operation.name());
            // That of all ranks has no number.
            if let Some(group) = group.checked_sub(1) {
                let _ = write!(said, ",\"group\":{group}");
            }
            if operation.has_root() {
                let _ = write!(said, ",\"root\":{root}");
            }
            if let Some(it) = goal.joint.get(number as usize) {
                let _ = write!(said, ",\"ranks\":{}", it.ranks);
                if let Some(algorithm) = it.algorithm {
                    let (name, (channels, chunks)) = (algorithm.name(), it.parts);
                    let _ =
                        write!(said, ",\"algorithm\":\"{name}\",\"channels\":{channels},\"chunks\":{chunks}");
                }
            }
            said
        }
    }
}

/// The file in the making.
struct Timeline<'a, W> {
    out: &'a mut W,
    /// The process that events belong to.
    process: u32,
    /// The last pair of events that are the beginning and the end of something.
    pair: u64,
    line: String,
    is_first: bool,
}

/// Microseconds to the picosecond, as the format has times.
struct Micros(Span);

impl Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ps = self.0.as_ps();
        write!(f, "{}.{:06}", ps / 1_000_000, ps % 1_000_000)
    }
}

const fn since_start(at: Instant) -> Micros {
    Micros(at.since(Instant::ZERO))
}

impl<W: Write> Timeline<'_, W> {
    /// An event of `kind` with `name`; `fields` are what else it has.
    fn event(&mut self, kind: char, name: &str, fields: std::fmt::Arguments<'_>) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
        self.line.clear();
        let name = serde_json::to_string(name)?;
        write!(self.line, "{comma}{{\"ph\":\"{kind}\",\"pid\":{},\"name\":{name},{fields}}}", self.process)
            .map_err(io::Error::other)?;
        self.out.write_all(self.line.as_bytes())
    }

    /// Begins the next process.
    fn process(&mut self, name: &str) -> io::Result<()> {
        self.process += 1;
        let (place, name) = (self.process, serde_json::to_string(name)?);
        self.event('M', "process_name", format_args!("\"args\":{{\"name\":{name}}}"))?;
        self.event('M', "process_sort_index", format_args!("\"args\":{{\"sort_index\":{place}}}"))
    }

    /// The number of a thread of the process: one that no other has, nor any process, as viewers take those for its main thread.
    const fn thread(&self, number: u8) -> u32 {
        THREADS + (self.process << 8) + number as u32
    }

    /// Names a thread of the process.
    fn name_thread(&mut self, number: u8, name: &str) -> io::Result<()> {
        let (thread, name) = (self.thread(number), serde_json::to_string(name)?);
        self.event('M', "thread_name", format_args!("\"tid\":{thread},\"args\":{{\"name\":{name}}}"))
    }

    /// Something that a thread does; `arguments` are members of a JSON object, if any.
    fn slice(&mut self, thread: u8, name: &str, arguments: &str, range: Range) -> io::Result<()> {
        let (from, length) = (since_start(range.from), Micros(range.until.since(range.from)));
        let thread = self.thread(thread);
        let said = if arguments.is_empty() { String::new() } else { format!(",\"args\":{{{arguments}}}") };
        self.event('X', name, format_args!("\"tid\":{thread},\"ts\":{from},\"dur\":{length}{said}"))
    }

    /// Something that may overlap with others of its process. Viewers have a line for those of one name, so that tells with whom it is, and
    /// `said` the rest.
    fn pair(&mut self, of: &str, name: &str, said: &Said<'_>, range: Range) -> io::Result<()> {
        self.pair_in(of, name, said, range, "")
    }

    /// The same in one of the format's colours, if in any.
    fn pair_in(
        &mut self,
        of: &str,
        name: &str,
        said: &Said<'_>,
        range: Range,
        colour: &str,
    ) -> io::Result<()> {
        self.pair += 1;
        let colour = match colour {
            "" => String::new(),
            name => format!(",\"cname\":\"{name}\""),
        };
        // Without `local` it would stand apart from its process.
        let pair = format!("\"cat\":\"{of}\",\"id2\":{{\"local\":\"{:#x}\"}}", self.pair);
        let (from, until) = (since_start(range.from), since_start(range.until));
        let (what, rest) = (serde_json::to_string(said.what)?, &said.rest);
        self.event(
            'b',
            name,
            format_args!("{pair},\"ts\":{from}{colour},\"args\":{{\"what\":{what},{rest}}}"),
        )?;
        self.event('e', name, format_args!("{pair},\"ts\":{until}{colour}"))
    }

    /// Faults, changes, queues and goodput.
    fn network(&mut self, results: &Results) -> io::Result<()> {
        self.process("network")?;
        for mark in all_marks(results) {
            let from = mark.from * 1e6;
            self.event('i', &mark.name, format_args!("\"s\":\"g\",\"ts\":{from:.6}"))?;
            if let Some(until) = mark.until {
                let (until, name) = (until * 1e6, format!("{}, over", mark.name));
                self.event('i', &name, format_args!("\"s\":\"g\",\"ts\":{until:.6}"))?;
            }
        }
        let readings = Readings::only(results, &[Metric::Bytes, Metric::Goodput]);
        let queues = readings.with_highest_peaks(Metric::Bytes).into_iter();
        let queues = queues.filter_map(|place| {
            let name = format!("queue {}", results.series.queue_names()[place]);
            Some((name, "octets", readings.get(Metric::Bytes, place)?))
        });
        let goodput = readings.sum(Metric::Goodput);
        let goodput = (!goodput.x.is_empty()).then(|| ("goodput".to_owned(), "b/s", &goodput));
        for (name, unit, points) in queues.chain(goodput) {
            for (x, y) in points.x.iter().zip(&points.y) {
                let at = x * 1e6;
                self.event('C', &name, format_args!("\"ts\":{at:.6},\"args\":{{\"{unit}\":{y}}}"))?;
            }
        }
        Ok(())
    }

    /// The ranks of a schedule. What is under way when it is given up ends then.
    fn schedule(&mut self, results: &Results, table: &TrafficResult, goal: &GoalResult) -> io::Result<()> {
        let flows = &results.flows[table.flows.clone()];
        let given_up = last_failure(flows).filter(|_| goal.failed);
        let end = given_up.unwrap_or(results.simulated);
        for (number, (rank, times)) in goal.ranks.iter().zip(&goal.times).enumerate() {
            self.process(&format!("{}: rank {number} on {}", table.name, results.host(rank.host)))?;
            let cpus: BTreeSet<u8> = times.iter().map(|it| it.cpu).collect();
            for cpu in cpus {
                self.name_thread(cpu, &format!("CPU {cpu}"))?;
            }
            for (operation, it) in (0..).zip(times) {
                let label = goal.label(u32::try_from(number).unwrap_or(u32::MAX), operation);
                let flow = it.line.filter(|_| goal.failed).and_then(|line| flows.get(line as usize));
                self.operation(goal, (it, label), end, flow.map(|flow| flow.status))?;
            }
            if let (Some(at), 1..) = (given_up, rank.undone) {
                let name = match rank.undone {
                    1 => "given up, 1 operation not done".to_owned(),
                    undone => format!("given up, {undone} operations not done"),
                };
                let at = since_start(at);
                self.event('i', &name, format_args!("\"s\":\"p\",\"ts\":{at}"))?;
            }
        }
        Ok(())
    }

    /// What an operation kept its CPU busy with, and what it waited for besides. What had not come to its end lasts until `end`; a message that
    /// had not, and whose queue pair ended in an error, has the `status` of that for its name and is red, or where others failed before it, not as red.
    fn operation(
        &mut self,
        goal: &GoalResult,
        (it, label): (&OperationTimes, &str),
        end: Instant,
        status: Option<FlowStatus>,
    ) -> io::Result<()> {
        let name = if label.is_empty() { it.does.to_string() } else { format!("{label}: {}", it.does) };
        if it.began != Instant::NEVER && it.left > it.began {
            self.slice(it.cpu, &name, "", Range { from: it.began, until: it.left.min(end) })?;
        }
        let (of, peer, from, until) = match it.does {
            Does::Calc(_) => return Ok(()),
            Does::Recv { from: Some(from), .. } => ("wait", format!("from {from}"), it.ready, it.began),
            Does::Recv { from: None, .. } => ("wait", "from any".to_owned(), it.ready, it.began),
            Does::Send { to, .. } => ("message", format!("to {to}"), it.left, it.came),
            Does::Collective { group: 0, .. } => ("collective", "all ranks".to_owned(), it.left, it.came),
            Does::Collective { group, .. } => {
                ("collective", format!("group {}", group - 1), it.left, it.came)
            }
        };
        if from == Instant::NEVER || from >= until.min(end) {
            return Ok(());
        }
        let range = Range { from, until: until.min(end) };
        match status.filter(|status| it.came == Instant::NEVER && has_failed(*status)) {
            None => self.pair(of, &peer, &Said { what: &name, rest: figures(goal, it.does) }, range),
            Some(status) => {
                let how = status.name();
                let said = Said { what: &format!("{name}, {how}"), rest: figures(goal, it.does) };
                self.pair_in(of, &format!("{peer}, {how}"), &said, range, colour(status))
            }
        }
    }

    fn collective(&mut self, results: &Results, table: &TrafficResult, place: usize) -> io::Result<()> {
        self.process(&table.name)?;
        self.name_thread(0, "iterations")?;
        for it in results.collectives.iter().filter(|it| it.table == place) {
            let figures = format!(
                "\"operation\":\"{}\",\"octets\":{},\"ranks\":{},\"algorithm\":\"{}\",\"channels\":{},\"chunks\":{}",
                it.operation.name(),
                it.bytes,
                it.ranks,
                it.algorithm.name(),
                it.channels,
                it.chunks
            );
            for (number, iteration) in it.iterations.iter().enumerate() {
                let range = Range { from: iteration.start, until: iteration.end };
                let name = format!("iteration {number}, last {}", results.host(iteration.last));
                self.slice(0, &name, &figures, range)?;
            }
            if let Some(at) = last_failure(&results.flows[table.flows.clone()]).filter(|_| it.failed) {
                let name = format!("given up in iteration {}", it.iterations.len());
                let at = since_start(at);
                self.event('i', &name, format_args!("\"s\":\"p\",\"ts\":{at}"))?;
            }
        }
        Ok(())
    }

    /// The flows of other traffic.
    fn flows(&mut self, results: &Results, table: &TrafficResult) -> io::Result<()> {
        self.process(&table.name)?;
        for flow in &results.flows[table.flows.clone()] {
            let until = flow.end.min(results.simulated);
            if flow.start >= until {
                continue;
            }
            let [from, to] = [flow.src, flow.dst].map(|host| results.host(host));
            let how = if flow.status == FlowStatus::OK { "" } else { flow.status.name() };
            let what = format!("{}, {}B {how}", flow.name, flow.bytes);
            let range = Range { from: flow.start, until };
            let said = Said { what: what.trim_end(), rest: format!("\"octets\":{}", flow.bytes) };
            if has_failed(flow.status) {
                let name = format!("{from}>{to}, {how}");
                self.pair_in("flow", &name, &said, range, colour(flow.status))?;
            } else {
                self.pair("flow", &format!("{from}>{to}"), &said, range)?;
            }
        }
        Ok(())
    }
}

/// Whether a queue pair ended in an error.
fn has_failed(status: FlowStatus) -> bool {
    matches!(status, FlowStatus::Completed(status) if status != Status::Success)
}

/// In which colour it stands that a queue pair ended in this error: not as red where others failed before.
fn colour(status: FlowStatus) -> &'static str {
    if status == FlowStatus::Completed(Status::WorkRequestFlushed) { "bad" } else { "terrible" }
}

/// When the last of those that ended in an error did.
fn last_failure(flows: &[FlowResult]) -> Option<Instant> {
    flows.iter().filter(|flow| has_failed(flow.status)).map(|flow| flow.end).max()
}

#[cfg(test)]
mod tests {
    use super::super::test_results::{sample, with_collective, with_goal, with_joint};
    use super::*;
    use crate::traffic::collective::Operation;
    use serde_json::Value;

    fn events(results: &Results) -> Vec<Value> {
        let mut json = Vec::new();
        write(&mut json, results).unwrap();
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        json["traceEvents"].as_array().expect("a list").clone()
    }

    fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
        events.iter().filter(|event| event["ph"] == kind).collect()
    }

    #[test]
    fn each_rank_is_a_process_that_calculates_on_its_cpus_and_waits_beside_that() {
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let mut results = with_goal();
        let calc = OperationTimes {
            does: Does::Calc(20_000),
            cpu: 2,
            ready: at(0),
            began: at(0),
            left: at(20),
            came: Instant::NEVER,
            line: None,
        };
        let send = OperationTimes {
            does: Does::Send { to: 1, tag: 7, size: 1000 },
            ready: at(20),
            began: at(20),
            left: at(30),
            came: at(70),
            ..calc
        };
        let recv = OperationTimes {
            does: Does::Recv { from: Some(0), tag: Some(7), size: 1000 },
            ready: at(5),
            began: at(70),
            left: at(70),
            ..calc
        };
        let never =
            OperationTimes { ready: Instant::NEVER, began: Instant::NEVER, left: Instant::NEVER, ..calc };
        results.goals[0].times = vec![vec![calc, send], vec![recv, never]];
        let events = events(&results);
        let slices: Vec<String> = of_kind(&events, "X").into_iter().map(Value::to_string).collect();
        assert_eq!(slices.len(), 2, "{slices:?}");
        let of_rank = |name: &str| {
            let names = of_kind(&events, "M");
            let of = names.iter().find(|event| event["args"]["name"] == name).expect("such a process");
            of["pid"].as_u64().expect("a number")
        };
        let calculation = of_kind(&events, "X")[0];
        assert_eq!(calculation["pid"], of_rank("0: rank 0 on s0"));
        assert_eq!(calculation["name"], "calc 20000");
        let of_process =
            |event: &&Value| event["name"] == "thread_name" && event["pid"] == calculation["pid"];
        let threads: Vec<&Value> = events.iter().filter(of_process).collect();
        assert_eq!((threads.len(), &threads[0]["tid"]), (1, &calculation["tid"]));
        assert_eq!(threads[0]["args"]["name"], "CPU 2");
        assert!(events.iter().all(|event| event["pid"] != calculation["tid"]), "a main thread");
        assert_eq!((calculation["ts"].as_f64(), calculation["dur"].as_f64()), (Some(0.0), Some(20.0)));
        let pairs = [
            ("message", "0: rank 0 on s0", 30.0, 70.0, ["to 1", "send 1000b to 1 tag 7"]),
            ("wait", "0: rank 1 on s1", 5.0, 70.0, ["from 0", "recv 1000b from 0 tag 7"]),
        ];
        for (of, process, from, until, said) in pairs {
            let ends: Vec<&Value> = events.iter().filter(|event| event["cat"] == of).collect();
            assert_eq!(ends.len(), 2, "{of}");
            assert_eq!([ends[0], ends[1]].map(|event| event["ts"].as_f64()), [Some(from), Some(until)]);
            assert!(ends.iter().all(|event| event["pid"] == of_rank(process)), "{of}");
            assert_eq!(ends[0]["id2"]["local"], ends[1]["id2"]["local"]);
            assert_eq!([&ends[0]["name"], &ends[0]["args"]["what"]], said.map(Value::from).each_ref());
            let figures = ["octets", "tag"].map(|figure| ends[0]["args"][figure].as_u64());
            assert_eq!(figures, [Some(1000), Some(7)], "{of}");
        }
    }

    #[test]
    fn collectives_say_how_they_were_done() {
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let mut results = with_joint();
        let does =
            Does::Collective { operation: Operation::Reduce, size: 1000, group: 1, root: 2, number: 0 };
        let of = OperationTimes {
            does,
            cpu: 0,
            ready: at(0),
            began: at(10),
            left: at(10),
            came: at(50),
            line: None,
        };
        results.goals[0].times = vec![vec![of], Vec::new()];
        let told = events(&results);
        let begun = of_kind(&told, "b")[0];
        let expected = serde_json::json!({
            "what": begun["args"]["what"], "operation": "reduce", "octets": 1000, "group": 0, "root": 2, "ranks": 4,
            "algorithm": "ring", "channels": 2, "chunks": 4,
        });
        assert_eq!((&begun["name"], &begun["args"]), (&Value::from("group 0"), &expected));
        let iterations = events(&with_collective());
        let expected = serde_json::json!({
            "operation": "all-reduce", "octets": 1_000_000, "ranks": 4, "algorithm": "ring", "channels": 1, "chunks": 2,
        });
        assert!(of_kind(&iterations, "X").iter().all(|it| it["args"] == expected), "{iterations:?}");
    }

    #[test]
    fn a_message_whose_queue_pair_failed_is_told_from_a_slow_one_and_its_schedule_ends_with_it() {
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let mut results = with_goal();
        let send = OperationTimes {
            does: Does::Send { to: 1, tag: 7, size: 1000 },
            cpu: 0,
            ready: at(0),
            began: at(0),
            left: at(0),
            came: Instant::NEVER,
            line: Some(0),
        };
        let came = OperationTimes { came: at(5), ..send };
        let recv = OperationTimes {
            does: Does::Recv { from: Some(0), tag: Some(7), size: 1000 },
            began: Instant::NEVER,
            left: Instant::NEVER,
            line: None,
            ..send
        };
        results.goals[0].times = vec![vec![came, send, OperationTimes { line: Some(1), ..send }], vec![recv]];
        results.goals[0].failed = true;
        results.goals[0].ranks[0].undone = 2;
        results.goals[0].ranks[1].undone = 1;
        let errors = [Status::TransportRetryCounterExceeded, Status::WorkRequestFlushed];
        for (flow, status) in results.flows.iter_mut().zip(errors) {
            (flow.status, flow.end) = (FlowStatus::Completed(status), at(40));
        }
        results.traffic[0].flows = 0..2;
        assert!(results.simulated > at(40));
        let events = events(&results);
        let begun = of_kind(&events, "b").into_iter();
        let begun = begun.map(|it| [&it["name"], &it["cname"], &it["args"]["what"]].map(Value::as_str));
        let [retry, flushed] = errors.map(Status::name);
        let [to_retry, to_flushed] = [retry, flushed].map(|how| format!("to 1, {how}"));
        let [retry, flushed] = [retry, flushed].map(|how| format!("send 1000b to 1 tag 7, {how}"));
        assert_eq!(
            begun.take(4).collect::<Vec<_>>(),
            [
                [Some("to 1"), None, Some("send 1000b to 1 tag 7")],
                [Some(&*to_retry), Some("terrible"), Some(&*retry)],
                [Some(&*to_flushed), Some("bad"), Some(&*flushed)],
                [Some("from 0"), None, Some("recv 1000b from 0 tag 7")],
            ]
        );
        let ends = of_kind(&events, "e").into_iter().map(|event| event["ts"].as_f64());
        assert_eq!(ends.take(4).collect::<Vec<_>>(), [5.0, 40.0, 40.0, 40.0].map(Some));
        let given_up = events.iter().filter(|event| event["s"] == "p");
        let given_up: Vec<_> = given_up.map(|it| (it["name"].as_str(), it["ts"].as_f64())).collect();
        let said = ["given up, 2 operations not done", "given up, 1 operation not done"];
        assert_eq!(given_up, said.map(|said| (Some(said), Some(40.0))));
    }

    #[test]
    fn a_flow_that_failed_is_told_from_a_slow_one_and_a_collective_that_was_given_up_has_a_mark() {
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let begun = |results: &Results| -> Vec<(String, Option<String>)> {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let events = events(results);
            let flows = events.iter().filter(|event| event["ph"] == "b" && event["cat"] == "flow");
            flows.map(|it| (text(&it["name"]).expect("a name"), text(&it["cname"]))).collect()
        };
        let mut results = sample();
        let ran = |flow: &FlowResult| flow.start < flow.end.min(results.simulated);
        let place = results.flows.iter().position(ran).expect("a flow");
        results.flows[place].status = FlowStatus::OK;
        let (plain, colour) = begun(&results).swap_remove(0);
        assert!(!plain.contains(',') && colour.is_none(), "{plain}");
        for (status, colour) in
            [(Status::TransportRetryCounterExceeded, "terrible"), (Status::WorkRequestFlushed, "bad")]
        {
            results.flows[place].status = FlowStatus::Completed(status);
            let expected = (format!("{plain}, {}", status.name()), Some(colour.to_owned()));
            assert_eq!(begun(&results)[0], expected);
        }

        let mut results = with_collective();
        let marks = |results: &Results| -> Vec<(String, Option<f64>)> {
            let events = events(results);
            let marks = events.iter().filter(|event| event["s"] == "p");
            marks.map(|it| (it["name"].to_string(), it["ts"].as_f64())).collect()
        };
        let flows = results.traffic[results.collectives[0].table].flows.clone();
        for (number, flow) in results.flows[flows].iter_mut().enumerate() {
            let error = [Status::TransportRetryCounterExceeded, Status::WorkRequestFlushed][number.min(1)];
            (flow.status, flow.end) = (FlowStatus::Completed(error), at(200));
        }
        results.collectives[0].failed = false;
        assert_eq!(marks(&results), []);
        results.collectives[0].failed = true;
        assert_eq!(marks(&results), [("\"given up in iteration 2\"".to_owned(), Some(200.0))]);
    }

    #[test]
    fn flows_overlap_and_iterations_follow_one_another() {
        let results = sample();
        let ran = |flow: &&FlowResult| flow.start < flow.end.min(results.simulated);
        let flows = results.flows.iter().filter(ran).count();
        let events = self::events(&results);
        let begun: Vec<&Value> = events.iter().filter(|event| event["cat"] == "flow").collect();
        assert_eq!(begun.len(), 2 * flows);
        assert!(flows > 0);
        let collective = with_collective();
        let iterations: usize = collective.collectives.iter().map(|it| it.iterations.len()).sum();
        assert_eq!(of_kind(&self::events(&collective), "X").len(), iterations);
        assert!(iterations > 0);
    }
}
