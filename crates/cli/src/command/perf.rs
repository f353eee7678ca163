//! `roci perf`: perftest's tests, with perftest's tables.

use super::hops::{LOWER_RATES, WRONG_RATES, other_hops};
use crate::Failure;
use crate::args::perf::{Figure, Perf};
use crate::execute::print;
use crate::format::size;
use crate::progress::{self, Bar};
use clap::ValueEnum as _;
use roci_endpoint::perf::{
    self, Bandwidth, Connection, Counted, Event, Key, Metric, Options, PerfError, Row, Verb, Watch,
};
use roci_endpoint::{Recovery, Service};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::Write as _;

/// Measures, as server or as client.
pub(crate) fn perf(arguments: &Perf) -> Result<(), Failure> {
    progress::listen()?;
    let options = arguments.options().map_err(Failure::Request)?;
    let is_terse = arguments.json || arguments.output.is_some();
    let screen = Screen {
        options: &options,
        asked: arguments,
        json: arguments.json,
        quiet: arguments.quiet || is_terse,
        has_peak: Cell::new(true),
        bar: Bar::new(arguments.quiet || is_terse, &options.test.to_string()),
        result: RefCell::default(),
        counted: Cell::default(),
        program: RefCell::default(),
        missed: RefCell::default(),
    };
    if !arguments.quiet {
        let memory = (options.memory() >= LONG).then(|| {
            let memory = size(options.memory() as u64);
            format!("each end prepares {memory} of memory once they have met, which takes a moment")
        });
        for note in arguments.hint().into_iter().chain(memory) {
            screen.note(&note);
        }
    }
    let done = perf::run(&options, &screen);
    screen.bar.clear();
    if done.is_ok() && !screen.quiet {
        // Where the peer is gone, or answers no more, what was lost says nothing of the window: the error has what to do.
        print(&(remedy(&options, &screen.counted.get()).to_owned() + LINE));
    }
    let missed = screen.missed.take().filter(|_| done.is_ok());
    if arguments.json {
        screen.print_json(done.as_ref().err().map(ToString::to_string).or_else(|| missed.clone()));
    }
    match done {
        Ok(()) => missed.map_or(Ok(()), |missed| Err(Failure::Run(missed))),
        Err(
            error @ (PerfError::Options(_)
            | PerfError::Apart { .. }
            | PerfError::Control(_)
            | PerfError::Device(..)),
        ) => Err(Failure::Request(error.to_string())),
        Err(error) => Err(Failure::Run(error.to_string())),
    }
}

const LINE: &str =
    "---------------------------------------------------------------------------------------\n";

/// So much memory takes longer to fill than one waits without a word.
const LONG: usize = 1 << 29;

/// What is shown.
struct Screen<'a> {
    options: &'a Options,
    /// As the command line has it.
    asked: &'a Perf,
    json: bool,
    quiet: bool,
    bar: Bar,
    /// Whether all rows so far have the peak that was asked for.
    has_peak: Cell<bool>,
    /// The connection, the rows, and the times of the row that follows.
    result: RefCell<(Option<Value>, Vec<Value>, Vec<f64>)>,
    counted: Cell<Counted>,
    /// The program that ran as the law.
    program: RefCell<Value>,
    /// The first limit that was missed, as it is told.
    missed: RefCell<Option<String>>,
}

impl Watch for Screen<'_> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Waiting(at) if !self.quiet => {
                print(
                    "\n************************************\n\
                     * Waiting for client to connect... *\n\
                     ************************************\n",
                );
                if let Some(at) = at {
                    print(&format!(" with RDMA-CM (-R) at {}, port {}\n", at.ip(), at.port()));
                }
            }
            Event::Waiting(_) => {}
            Event::Stranger { from, deed } => {
                self.note(&format!("{from} is no client: it {deed}; still waiting for one"));
            }
            Event::Shut(error) => {
                self.note(&format!("somebody has come and cannot be let in for now ({error}); still waiting"));
            }
            Event::Mute(server) => self.note(&format!(
                "{server} took the connection but says nothing: is it a roci perf or perftest server, of the same test, and not \
                 busy with another client? Still waiting for it"
            )),
            Event::Connected(connection) => {
                self.result.borrow_mut().0 = Some(connection_json(connection));
                if !self.quiet {
                    print(&head(self.options, connection));
                }
            }
            Event::Progress { done, total } => {
                self.bar.messages(done, total, self.options.duration.is_some())
            }
            Event::Unrated if !self.asked.quiet => self.note(&other_hops(rates(self.options))),
            Event::Beyond if !self.asked.quiet => self.note(WRONG_RATES),
            Event::Short if !self.asked.quiet => self.note(LOWER_RATES),
            Event::Unrated | Event::Beyond | Event::Short => {}
            Event::Times(times) if self.json => self.result.borrow_mut().2 = times.to_vec(),
            Event::Times(times) => self.bar.hide_while(|| print(&each(times))),
            Event::Row(row) => {
                if let Row::Bandwidth(Bandwidth { peak: None, .. }) = row {
                    self.has_peak.set(!self.options.peak);
                }
                let first = self.missed.take().or_else(|| missed(self.asked, self.options, row));
                self.missed.replace(first);
                self.bar.hide_while(|| {
                    if self.json {
                        let mut result = self.result.borrow_mut();
                        let mut row = row_json(row);
                        if self.options.times.is_some() {
                            row["times_us"] = json!(std::mem::take(&mut result.2));
                        }
                        result.1.push(row);
                    } else if let Some(figure) = self.asked.output {
                        print(&format!("{:.6}\n", figure_of(figure, self.options, row)));
                    } else {
                        print(&line(self.options, row));
                    }
                });
            }
            Event::Counted(counted) => {
                if !self.has_peak.get() && !self.asked.quiet {
                    self.note(no_peak(self.options));
                }
                self.counted.set(*counted);
                if !self.quiet {
                    let told = troubles(self.options, counted) + &messages(counted);
                    self.bar.hide_while(|| print(&told));
                }
            }
            Event::Program(name, tally) => {
                // Its queue pair is written as the table above and `roci ctl` write it.
                let first = tally.first().map(|fault| fault.told(format_args!("{:#08x}", fault.qpn)));
                self.program.replace(json!({
                    "name": name,
                    "failed_queue_pairs": tally.fallen(),
                    "first": first,
                }));
                if let Some(first) = first
                    && !self.quiet
                {
                    let count = tally.fallen();
                    let s = if count == 1 { "" } else { "s" };
                    let text = format!(
                        " {name} failed with {count} queue pair{s}, and its fallback took over:\n   {first}\n"
                    );
                    self.bar.hide_while(|| print(&text));
                }
            }
        }
    }

    fn stopped(&self) -> bool {
        progress::interrupted()
    }
}

impl Screen<'_> {
    /// Says something beside the result.
    fn note(&self, text: &str) {
        // Nobody may be listening.
        self.bar.hide_while(|| drop(writeln!(std::io::stderr(), "{text}")));
    }

    /// The result, or why there is none and what had been counted by then.
    fn print_json(&self, error: Option<String>) {
        let (connection, rows, _) = self.result.take();
        let options = self.options;
        let size = if options.all_sizes { Value::from("all") } else { options.size.into() };
        let value = json!({
            "command": self.asked.test.to_possible_value().map(|name| name.get_name().to_owned()),
            "test": options.test.to_string(),
            "role": if options.host.is_some() { "client" } else { "server" },
            "size": size,
            "iterations": if options.duration.is_none() { Some(options.iterations) } else { None },
            "duration_s": options.duration.map(|time| time.as_secs()),
            "connection_type": options.service.name(),
            "queue_pairs": options.queue_pairs,
            "tx_depth": options.tx_depth,
            "rx_depth": options.rx_depth,
            "bidirectional": options.bidirectional,
            "rdma_cm": options.rdma_cm,
            "recovery": options.recovery.name(),
            "control": self.asked.control.as_deref().unwrap_or("dcqcn"),
            "link_bps": options.link.0,
            "connection": connection,
            "rows": rows,
            "counted": counted_json(options, &self.counted.get()),
            "program": self.program.take(),
            "error": error,
        });
        print(&format!("{value:#}\n"));
    }
}

/// What perftest prints before the result.
fn head(options: &Options, connection: &Connection) -> String {
    let mut text = String::from(LINE);
    let is_latency = options.test.metric == Metric::Latency;
    let entries = [
        (" Device         : ", connection.device.to_string()),
        (" Number of qps  : ", options.queue_pairs.to_string()),
        (" Connection type: ", options.service.name().to_owned()),
        (" TX depth       : ", options.tx_depth.to_string()),
        (" Mtu            : ", format!("{}[B]", connection.mtu.octets())),
        (" Link type      : ", "Ethernet".to_owned()),
        (" Data ex. method: ", if options.rdma_cm { "rdma_cm" } else { "Ethernet" }.to_owned()),
    ];
    // perftest has no such line, and where both are alike we have none.
    // Two programs may be one: the other's file is not known here.
    let is_alike = |ours: &str, theirs: &str| ours == theirs || theirs == "program" && ours.ends_with(".elf");
    let laws = connection.laws.as_ref().filter(|[ours, theirs]| !is_alike(ours, theirs));
    let laws = laws.map(|[ours, theirs]| {
        let both = "the other end; say --control at both for the same";
        (" Control        : ", format!("{ours}, and {theirs} at {both}"))
    });
    let recovery = (options.recovery != Recovery::GoBackN)
        .then(|| (" Recovery       : ", options.recovery.name().to_owned()));
    let entries = entries.into_iter().chain(recovery).chain(laws);
    text.push_str(&format!("{:>20}{}\n", "", options.test));
    for (name, value) in entries {
        text.push_str(&format!("{name}{value}\n"));
    }
    text.push_str(LINE);
    for (side, keys) in [("local", &connection.local), ("remote", &connection.remote)] {
        for key in keys {
            text.push_str(&address(side, key));
        }
    }
    text.push_str(LINE);
    text.push_str(&match (is_latency, options.duration.is_some()) {
        (true, false) => {
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
             t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
                .to_owned()
        }
        (true, true) => " #bytes        #iterations       t_avg[usec]    tps average\n".to_owned(),
        (false, _) => {
            let unit = if options.gbits { "Gb/sec" } else { "MB/sec" };
            format!(" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n")
        }
    });
    text
}

fn address(side: &str, key: &Key) -> String {
    let Key { qpn, psn, rkey, address, .. } = key;
    format!(
        " {side} address: QPN {:#08x} PSN {:#08x} RKey {rkey:#010x} VAddr {address:#018x} GID {}\n",
        qpn,
        psn.get(),
        key.peer()
    )
}

/// The time of each message as perftest prints it.
fn each(times: &[f64]) -> String {
    let mut text = String::from("#, usec\n");
    for (number, time) in (1..).zip(times) {
        text.push_str(&format!("{number}, {time:.3}\n"));
    }
    text
}

/// A row as perftest prints it.
fn line(options: &Options, row: &Row) -> String {
    match row {
        Row::Bandwidth(row) => {
            let unit = options.unit();
            format!(
                " {:<7}    {:<10}       {:<7.2}            {:<7.2}\t\t   {:<7.6}\n",
                row.size,
                row.iterations,
                row.peak.unwrap_or(0.0) / unit,
                row.average / unit,
                row.messages / 1e6
            )
        }
        Row::Latency(row) => format!(
            " {:<7} {:<10}      {:<7.2}        {:<7.2}      {:<7.2}  \t       {:<7.2}     \t{:<7.2}\t\t{:<7.2} \t\t{:<7.2}\n",
            row.size,
            row.iterations,
            row.min,
            row.max,
            row.typical,
            row.average,
            row.deviation,
            row.percentile_99,
            row.percentile_99_9
        ),
        Row::Rate(row) => format!(
            " {:<7}       {:<10}      {:<7.2}        {:<7.2}\n",
            row.size, row.iterations, row.average, row.per_second
        ),
    }
}

/// One figure of a row, of a test that has it.
fn figure_of(figure: Figure, options: &Options, row: &Row) -> f64 {
    match (row, figure) {
        (Row::Bandwidth(row), Figure::MessageRate) => row.messages / 1e6,
        (Row::Bandwidth(row), _) => row.average / options.unit(),
        (Row::Latency(row), _) => row.average,
        (Row::Rate(row), _) => row.average,
    }
}

/// Which limit a row does not reach.
fn missed(asked: &Perf, options: &Options, row: &Row) -> Option<String> {
    let Row::Bandwidth(Bandwidth { size, .. }) = row else { return None };
    let unit = if options.gbits { "Gb/s" } else { "MiB/s" };
    let limits = [
        (asked.limit_bw, Figure::Bandwidth, "-w", unit),
        (asked.limit_msgrate, Figure::MessageRate, "-y", "million messages a second"),
    ];
    limits.into_iter().find_map(|(limit, figure, option, unit)| {
        let reached = figure_of(figure, options, row);
        let limit = limit.filter(|limit| reached < *limit)?;
        Some(format!("{reached:.6} {unit} of {size} octets each are below the limit, {option} {limit}"))
    })
}

/// Why a row has no peak; the table has perftest's zero there.
fn no_peak(options: &Options) -> &'static str {
    match options.iterations {
        _ if options.duration.is_some() => {
            "the peak is not measured in this run: a test that lasts a time (-D) has none, as in perftest"
        }
        20_001.. => {
            "the peak is not measured in this run: it is of at most 20000 messages (-n), as in perftest"
        }
        _ => "the peak is not measured in this run: by the end that sends alone, where it was not told -N",
    }
}

/// How many rates were said for hops.
fn rates(options: &Options) -> u64 {
    options.hop_rates.len() as u64
}

/// What happened on the way that a figure has to be read with; nothing where all went well.
fn troubles(options: &Options, counted: &Counted) -> String {
    let Counted { packets, retransmitted, timeouts, rnr, cnps, cnps_sent, ecn_marked, overflowed, .. } =
        *counted;
    let counts = [
        (retransmitted, format!("{retransmitted} of {packets} packets were sent again")),
        (timeouts, format!("{timeouts} timeouts")),
        (rnr, format!("{rnr} RNR NAKs heard")),
        (cnps, format!("{cnps} CNPs heard")),
        (ecn_marked, format!("{ecn_marked} packets came with CE")),
        (cnps_sent, format!("{cnps_sent} CNPs sent")),
        (overflowed, format!("{overflowed} packets were dropped by the socket")),
    ];
    let told: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    let told = if told.is_empty() { String::new() } else { format!(" {}\n", told.join(", ")) };
    if counted.beyond > 0 {
        return told + &format!(" {WRONG_RATES}\n");
    }
    if counted.short > 0 {
        return told + &format!(" {LOWER_RATES}\n");
    }
    if counted.unrated > 0 {
        let count = counted.unrated;
        return told + &format!(" {count} {}\n", other_hops(rates(options)));
    }
    if counted.told == Some(0) {
        return told
            + " No switch told anything, and the law has controlled nothing: `roci switch --set switch.int=true` writes telemetry\n";
    }
    told
}

/// The window that is named where none was given.
const LESS: u32 = 256 << 10;

/// What can be done about packets that were lost where nothing that was counted says why: where a buffer on the way or the peer's
/// socket is short, what is in flight at once overruns it. A law whose window was narrower than that does more than `--window` could.
fn remedy(options: &Options, counted: &Counted) -> &'static str {
    let Counted { retransmitted, timeouts, naks, rnr, cnps, overflowed, .. } = *counted;
    let is_bounded = matches!(options.test.verb, Verb::Write | Verb::Send);
    if retransmitted == 0 || rnr + cnps + overflowed > 0 || !is_bounded {
        return "";
    }
    // Who has a congestion window asks for what is missing by acknowledgements.
    if timeouts > 0 && naks == 0 && !options.recovery.owns_window() {
        return " Timeouts alone told of it: for a while nothing came back, or later than -u allows\n";
    }
    if counted.law_window.is_some_and(|window| window <= options.window.unwrap_or(LESS)) {
        return "";
    }
    match options.window {
        None if timeouts > 0 => {
            " They were lost on the way or at the peer, where less in flight (--window 256K) may lose fewer, or answered later than -u allows\n"
        }
        None => " They were lost on the way or at the peer: less in flight (--window 256K) may lose fewer\n",
        Some(_) => " They were lost on the way or at the peer: a smaller --window may lose fewer\n",
    }
}

/// What became of the messages of unreliable connections, in both directions; nothing where there were none.
fn messages(counted: &Counted) -> String {
    let Counted { sent, lost, taken, dropped, doubled, .. } = *counted;
    let ours = match (sent, lost) {
        (0, _) => String::new(),
        (_, Some(0)) => format!(" {sent} messages were sent, and all have arrived\n"),
        (_, Some(lost)) => {
            let percent = 100.0 * lost as f64 / sent as f64;
            format!(" {lost} of {sent} messages that were sent were lost ({percent:.2} %)\n")
        }
        (_, None) => {
            format!(" {sent} messages were sent, and their receiver does not say how many have arrived\n")
        }
    };
    if taken + dropped == 0 {
        return ours;
    }
    let twice = if doubled > 0 { format!(", {doubled} of them twice") } else { String::new() };
    let in_part = match dropped {
        0 => String::new(),
        _ => format!(", and {dropped} in part or where nothing could take them"),
    };
    format!("{ours} {taken} messages have come whole{twice}{in_part}\n")
}

fn counted_json(options: &Options, counted: &Counted) -> Value {
    let Counted {
        packets,
        retransmitted,
        timeouts,
        rnr,
        cnps,
        cnps_sent,
        ecn_marked,
        overflowed,
        told,
        unrated,
        beyond,
        short,
        sent,
        lost,
        taken,
        dropped,
        doubled,
        naks: _,
        law_window: _,
    } = *counted;
    let mut value = json!({
        "packets": packets,
        "retransmitted": retransmitted,
        "timeouts": timeouts,
        "rnr_naks": rnr,
        "cnps": cnps,
        "cnps_sent": cnps_sent,
        "ecn_marked": ecn_marked,
        "overflowed": overflowed,
    });
    if told.is_some() {
        value["telemetry"] = told.into();
        value["telemetry_unrated"] = unrated.into();
        value["telemetry_beyond"] = beyond.into();
        value["telemetry_short"] = short.into();
    }
    if options.service == Service::Uc {
        value["messages"] =
            json!({ "sent": sent, "lost": lost, "taken": taken, "dropped": dropped, "doubled": doubled });
    }
    value
}

fn row_json(row: &Row) -> Value {
    match row {
        Row::Bandwidth(row) => json!({
            "bytes": row.size,
            "iterations": row.iterations,
            "peak_bps": row.peak.map(|peak| peak * 8.0),
            "average_bps": row.average * 8.0,
            "messages_per_s": row.messages,
        }),
        Row::Latency(row) => json!({
            "bytes": row.size,
            "iterations": row.iterations,
            "min_us": row.min,
            "max_us": row.max,
            "typical_us": row.typical,
            "average_us": row.average,
            "stdev_us": row.deviation,
            "percentile_99_us": row.percentile_99,
            "percentile_99_9_us": row.percentile_99_9,
        }),
        Row::Rate(row) => json!({
            "bytes": row.size,
            "iterations": row.iterations,
            "average_us": row.average,
            "round_trips_per_s": row.per_second,
        }),
    }
}

fn connection_json(connection: &Connection) -> Value {
    let peer = connection.remote.first().map(|key| key.peer().to_string());
    json!({
        "device": connection.device.to_string(),
        "peer": peer,
        "mtu": connection.mtu.octets(),
        "peer_version": connection.version,
        "peer_control": connection.laws.as_ref().map(|[_, theirs]| theirs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_told_where_there_were_any() {
        let mut options = Options::new(perf::Test { verb: Verb::Write, metric: Metric::Bandwidth });
        options.hop_rates = vec![options.link; 3];
        let troubles = |counted: &Counted| troubles(&options, counted);
        assert_eq!(troubles(&Counted { packets: 100, ..Counted::default() }), "");
        let counted = Counted { packets: 100, retransmitted: 3, timeouts: 1, cnps: 7, ..Counted::default() };
        assert_eq!(troubles(&counted), " 3 of 100 packets were sent again, 1 timeouts, 7 CNPs heard\n");
        let counted = Counted { ecn_marked: 9, cnps_sent: 2, ..Counted::default() };
        assert_eq!(troubles(&counted), " 9 packets came with CE, 2 CNPs sent\n");
        let of = |told| troubles(&Counted { told, ..Counted::default() });
        let beyond = troubles(&Counted { told: Some(9), beyond: 1, ..Counted::default() });
        assert!(beyond.starts_with(" a hop has sent more than"), "{beyond}");
        let short = troubles(&Counted { told: Some(9), short: 1, ..Counted::default() });
        assert!(short.starts_with(" a hop has sent less for long than"), "{short}");
        assert!(of(Some(0)).contains("No switch told anything") && of(Some(1)).is_empty());
        let told = troubles(&Counted { told: Some(0), unrated: 9, ..Counted::default() });
        assert!(
            told.starts_with(" 9 packets told of more or fewer hops than the 3 rates of --hop-rate")
                && !told.contains("No switch"),
            "{told}"
        );
    }

    #[test]
    fn messages_of_unreliable_connections_are_told_of_in_both_directions() {
        let counted =
            |sent, lost, taken, dropped| Counted { sent, lost, taken, dropped, ..Counted::default() };
        assert_eq!(messages(&Counted::default()), "");
        let told = messages(&counted(1000, Some(5), 0, 0));
        assert_eq!(told, " 5 of 1000 messages that were sent were lost (0.50 %)\n");
        let told = messages(&counted(0, None, 995, 3));
        assert_eq!(told, " 995 messages have come whole, and 3 in part or where nothing could take them\n");
        let told = messages(&counted(7, Some(0), 6, 0));
        assert_eq!(told, " 7 messages were sent, and all have arrived\n 6 messages have come whole\n");
        assert!(messages(&counted(7, None, 0, 0)).contains("does not say"), "perftest");
        let told = messages(&Counted { doubled: 2, ..counted(0, None, 9, 1) });
        assert_eq!(
            told,
            " 9 messages have come whole, 2 of them twice, and 1 in part or where nothing could take them\n"
        );
    }

    #[test]
    fn what_was_lost_for_no_other_reason_names_the_window() {
        let lost = Counted { packets: 100, retransmitted: 3, timeouts: 1, naks: 1, ..Counted::default() };
        let options =
            |verb, window| Options { window, ..Options::new(perf::Test { verb, metric: Metric::Bandwidth }) };
        assert!(remedy(&options(Verb::Write, None), &lost).contains("(--window 256K)"));
        assert!(remedy(&options(Verb::Send, Some(65_536)), &lost).contains("a smaller --window"));
        assert_eq!(remedy(&options(Verb::Read, None), &lost), "", "a window bounds no READs");
        for counted in [
            Counted { retransmitted: 0, ..lost },
            Counted { cnps: 1, ..lost },
            Counted { rnr: 1, ..lost },
            Counted { overflowed: 1, ..lost },
        ] {
            assert_eq!(remedy(&options(Verb::Write, None), &counted), "", "{counted:?}");
        }
    }

    #[test]
    fn no_window_is_named_to_who_had_a_narrower_one_of_the_law_or_was_told_by_timeouts_alone() {
        let lost = Counted { packets: 100, retransmitted: 3, naks: 1, ..Counted::default() };
        let test = perf::Test { verb: Verb::Write, metric: Metric::Bandwidth };
        let mut options = Options::new(test);
        let law = |octets| Counted { law_window: Some(octets), ..lost };
        assert_eq!(remedy(&options, &law(125_000)), "");
        assert!(remedy(&options, &law(300_000)).contains("(--window 256K)"));
        let timeouts = Counted { naks: 0, timeouts: 2, ..lost };
        assert!(remedy(&options, &timeouts).starts_with(" Timeouts alone told of it"));
        options.recovery = Recovery::Sack;
        assert!(remedy(&options, &timeouts).contains("(--window 256K)"));
        options.window = Some(65_536);
        assert!(remedy(&options, &law(125_000)).contains("a smaller --window"));
        assert_eq!(remedy(&options, &law(65_536)), "");
    }
}
