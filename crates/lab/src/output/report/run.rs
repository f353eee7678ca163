//! The page of one run.

use super::collectives;
use super::completion::{completion, traffic};
use super::events;
use super::faults;
use super::goals;
use super::joint;
use super::lines::Readings;
use super::over_time;
use super::page::{Cell, Page, Section, Table, Tile, Unit};
use super::priorities;
use super::rpcs;
use crate::output::summary::FlowRecord;
use crate::program::class_name;
use crate::results::Deadlock;
use crate::results::cores::{self, Strained};
use crate::results::deadlock;
use crate::results::{FlowResult, HostResult, Offered, Results};
use roci_nic::ArchCounters;
use roci_nic::arch::counters::Cause;
use roci_units::Span;

/// Rows of the flow table and of the host table; whoever wants more reads `flows.csv` and `summary.json`.
const ROWS_MAX: usize = 200;

pub(crate) fn page(results: &Results) -> Page {
    let readings = Readings::of(results);
    let mut sections: Vec<Section> = results.deadlock.iter().map(deadlock).collect();
    sections.extend([fallen(results), unheard(results), strained(results), warnings(results)]);
    sections.push(events::of_run(results));
    sections.extend(over_time::sections(results, &readings));
    sections.extend([
        collectives::of_run(results),
        goals::of_run(results),
        joint::of_run(results),
        rpcs::of_run(results, &readings),
        faults::of_run(results),
        completion(results),
        traffic(results),
        flows(results),
    ]);
    sections.extend(priorities::of_run(results));
    sections.extend([switches(results), hosts(results), nics(results), about(results)]);
    sections.retain(|section| !section.is_empty());
    Page {
        title: results.name.clone(),
        subtitle: format!(
            "{}seed {}, {}, {}, {}{}{}{}{}",
            with(&results.overrides),
            results.seed,
            counted(results.flows.len(), "flow", "s"),
            counted(results.hosts.len(), if results.several_nics { "NIC" } else { "host" }, "s"),
            counted(results.switches.len(), "switch", "es"),
            if results.deadlock.is_some() { "; stood still in a deadlock" } else { "" },
            if results.fallen() > 0 { "; a program failed" } else { "" },
            if results.unheard() > 0 { "; a law did not hear of all" } else { "" },
            if results.packets_held_up() > 0 { "; cores fell behind" } else { "" }
        ),
        tiles: tiles(results),
        sections,
        marks: events::marks(results),
    }
}

/// `1 switch`, `2 switches`.
fn counted(count: usize, one: &str, plural: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { plural })
}

/// What was overridden, which tells the run from others of its scenario; the listing at the end has all of it.
fn with(overrides: &[(String, String)]) -> String {
    const EACH: usize = 80;
    const ALL: usize = 8;
    if overrides.is_empty() {
        return String::new();
    }
    let mut shown: Vec<String> =
        overrides.iter().take(ALL).map(|(path, value)| format!("{path}={value}")).collect();
    for text in shown.iter_mut().filter(|text| text.chars().count() > EACH) {
        *text = text.chars().take(EACH - 1).chain(['…']).collect();
    }
    let more = overrides.len() - shown.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("with {}{more}; ", shown.join(", "))
}

impl Section {
    pub(super) fn is_empty(&self) -> bool {
        let Self { note, plots, table, listing, .. } = self;
        note.is_empty() && plots.is_empty() && table.is_none() && listing.is_empty()
    }
}

/// What ended the run before its time.
fn deadlock(deadlock: &Deadlock) -> Section {
    let note = format!(
        "Found after {}: PAUSE of priority {} holds a cycle of ports, each of which waits for the next and the last for the first. Nothing that \
         crosses them moves any more. What to do: {}.",
        span(deadlock.at.as_secs_f64()),
        deadlock.priority,
        deadlock::REMEDY.replace('`', "")
    );
    let row = |(from, to): &(String, String)| vec![from.as_str().into(), to.as_str().into()];
    let columns = vec![("port of", Unit::Text), ("may not send to", Unit::Text)];
    let table = Table { columns, rows: deadlock.cycle.iter().map(row).collect() };
    Section { title: "Deadlock", note, table: Some(table), ..Section::default() }
}

/// The programs that failed, and with whom first: what the flows did then is not what they did.
fn fallen(results: &Results) -> Section {
    if results.fallen() == 0 {
        return Section::default();
    }
    let note = format!(
        "{} went over to a fallback law, which is in force there from then on. These failures came first.",
        counted(usize::try_from(results.fallen()).unwrap_or(usize::MAX), "queue pair", "s")
    );
    let rows = results.programs.iter().flat_map(|program| {
        program.failures.iter().map(|failure| {
            let fault = &failure.fault;
            vec![
                fault.image.as_str().into(),
                results.host(failure.host).into(),
                results.flow_of(failure).map_or_else(String::new, ToString::to_string).into(),
                fault.qpn.to_string().into(),
                fault.at.since(roci_units::Instant::ZERO).as_secs_f64().into(),
                fault.side.function().into(),
                class_name(fault.class).into(),
                fault.place.as_str().into(),
                fault.why.to_string().into(),
            ]
        })
    });
    let columns = vec![
        ("program", Unit::Text),
        ("host", Unit::Text),
        ("flow", Unit::Text),
        ("queue pair", Unit::Text),
        ("at", Unit::Time),
        ("in", Unit::Text),
        ("event", Unit::Text),
        ("place", Unit::Text),
        ("why", Unit::Text),
    ];
    let table = Table { columns, rows: rows.take(ROWS_MAX).collect() };
    Section { title: "Programs that failed", note, table: Some(table), ..Section::default() }
}

/// Hosts whose laws did not hear of all that they were to hear of.
fn unheard(results: &Results) -> Section {
    let hosts: Vec<_> = results.hosts.iter().filter(|host| host.unheard > 0).collect();
    if hosts.is_empty() {
        return Section::default();
    }
    let note = format!(
        "Laws were to hear of {} events more than they could: of a queue pair a limited number waits, and the others are lost to \
         its law.",
        grouped(results.unheard()),
    );
    let row = |host: &&crate::results::HostResult| vec![host.name.as_str().into(), host.unheard.into()];
    let columns = vec![("host", Unit::Text), ("events unheard", Unit::Count)];
    let table = Table { columns, rows: hosts.iter().take(ROWS_MAX).map(row).collect() };
    Section { title: "Laws that fell behind", note, table: Some(table), ..Section::default() }
}

/// Hosts whose cores did not keep up with what there was to do.
fn strained(results: &Results) -> Section {
    if results.strained().next().is_none() {
        return Section::default();
    }
    let what = match results.packets_held_up() {
        0 => "Cores were busy without a break, and may be what limits the rates".to_owned(),
        packets => format!("{} packets waited in receive FIFOs until a core had room", grouped(packets)),
    };
    let note = format!("{what}. What to do: {}.", cores::REMEDY.replace('`', ""));
    let row = |held: Strained<'_>| {
        vec![
            held.host.name.as_str().into(),
            held.cores.nic.as_str().into(),
            held.cores.to_string().into(),
            held.busiest.into(),
            held.packets.into(),
            held.waited.as_secs_f64().into(),
        ]
    };
    let columns = vec![
        ("host", Unit::Text),
        ("NIC", Unit::Text),
        ("cores", Unit::Text),
        ("busiest core busy", Unit::Share),
        ("packets held up", Unit::Count),
        ("waited, in sum", Unit::Time),
    ];
    let table = Table { columns, rows: results.strained().take(ROWS_MAX).map(row).collect() };
    Section { title: "Cores at their limit", note, table: Some(table), ..Section::default() }
}

/// What was asked for and not done, and what runs went on without.
fn warnings(results: &Results) -> Section {
    Section { title: "Warnings", note: results.warnings.join(". "), ..Section::default() }
}

fn tiles(results: &Results) -> Vec<Tile> {
    let tile = |label, value: Cell, unit, note: String| Tile { label, value, unit, note };
    let done = results.completed().count();
    let failed = results.failed().count();
    let slowdowns = results.slowdowns();
    let mut tiles = vec![tile(
        "flows completed",
        done.into(),
        Unit::Count,
        match failed {
            0 => format!("of {}", results.flows.len()),
            failed => format!("of {}; {failed} failed", results.flows.len()),
        },
    )];
    if let Some(goodput) = results.total_goodput_bps() {
        let (label, note) = match (results.offered, results.offered_bps()) {
            (Some(Offered { from, until }), Some(offered)) => {
                let [from, until] = [from, until].map(|at| span(at.as_secs_f64()));
                ("goodput while offered", format!("of {:.2} Gb/s offered, {from} to {until}", offered / 1e9))
            }
            _ => ("goodput, all flows", "from first start to last end".to_owned()),
        };
        tiles.push(tile(label, goodput.into(), Unit::Rate, note));
    }
    if let Some(fairness) = results.fairness() {
        tiles.push(tile(
            "fairness",
            fairness.into(),
            Unit::Number,
            "Jain's index of goodput; 1 is equal".into(),
        ));
    }
    if let (Some(median), Some(tail)) = (slowdowns.percentile(50), slowdowns.percentile(99)) {
        let of = if done < results.flows.len() { format!(", of {done} completed") } else { String::new() };
        tiles.push(tile("median slowdown", median.into(), Unit::Factor, format!("p99 {tail:.2}×{of}")));
    }
    if !results.switches.is_empty() {
        let sum =
            |what: fn(&crate::results::SwitchResult) -> u64| results.switches.iter().map(what).sum::<u64>();
        let paused = results.switches.iter().map(|switch| switch.paused);
        let paused = paused.chain(results.hosts.iter().map(|host| host.paused));
        let paused: Span = paused.fold(Span::ZERO, |sum, paused| sum + paused);
        let paused = format!("ports paused for {:.3} ms in sum", paused.as_secs_f64() * 1e3);
        tiles.push(tile("drops", sum(|s| s.drops).into(), Unit::Count, "in switches".into()));
        tiles.push(tile("CE marks", sum(|s| s.ecn_marks).into(), Unit::Count, "in switches".into()));
        let by_hosts: u64 = results.hosts.iter().map(|host| host.pause_sent).sum();
        tiles.push(tile("PAUSE frames", (sum(|s| s.pause_sent) + by_hosts).into(), Unit::Count, paused));
    }
    if let Some(faults) = results.faults {
        let lost = faults.dropped + faults.corrupted;
        let note = format!("{} of them corrupted; {} duplicated", faults.corrupted, faults.duplicated);
        tiles.push(tile("lost to faults", lost.into(), Unit::Count, note));
    }
    let simulated = results.simulated.as_secs_f64();
    tiles.push(tile(
        "simulated",
        simulated.into(),
        Unit::Time,
        format!("{} events", grouped(results.events)),
    ));
    if results.run.cpu_s > 0.0 {
        let speed = results.packet_hops_per_s();
        let note = format!("packet-hops a CPU second, {:.2} s", results.run.cpu_s);
        tiles.push(tile("speed", speed.into(), Unit::Speed, note));
    }
    tiles
}

/// A length of time as people say it, to three digits.
pub(super) fn span(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

fn flows(results: &Results) -> Section {
    let mut section = Section { title: "Flows", ..Section::default() };
    if results.flows.is_empty() {
        section.note = "The scenario has no flows.".into();
        return section;
    }
    let mut flows: Vec<&FlowResult> = results.flows.iter().collect();
    if flows.len() > ROWS_MAX {
        // The unfinished first, then the slowest: what one looks for among many.
        flows.sort_by(|a, b| {
            let key = |flow: &FlowResult| flow.slowdown().unwrap_or(f64::INFINITY);
            key(b).total_cmp(&key(a))
        });
        flows.truncate(ROWS_MAX);
        section.note = format!(
            "The {ROWS_MAX} slowest of {}; all are in flows.csv.",
            grouped(results.flows.len() as u64)
        );
    }
    let rows = flows.into_iter().map(|flow| {
        let record = FlowRecord::new(flow, results);
        vec![
            record.name.into(),
            record.src.into(),
            record.dst.into(),
            record.op.into(),
            record.control.into(),
            record.bytes.into(),
            record.start_s.into(),
            record.status.into(),
            record.fct_s.into(),
            record.slowdown.into(),
            record.goodput_bps.into(),
            record.packets.into(),
            record.retransmitted.into(),
            record.timeouts.into(),
            record.naks.into(),
            record.rnr_naks.into(),
            record.cnps.into(),
            record.ecn_marked.into(),
            record.reordered.into(),
        ]
    });
    section.table = Some(Table {
        columns: vec![
            ("flow", Unit::Text),
            ("from", Unit::Text),
            ("to", Unit::Text),
            ("op", Unit::Text),
            ("control", Unit::Text),
            ("size", Unit::Bytes),
            ("start", Unit::Time),
            ("status", Unit::Text),
            ("FCT", Unit::Time),
            ("slowdown", Unit::Factor),
            ("goodput", Unit::Rate),
            ("packets", Unit::Count),
            ("sent again", Unit::Count),
            ("timeouts", Unit::Count),
            ("NAKs", Unit::Count),
            ("RNR NAKs", Unit::Count),
            ("CNPs", Unit::Count),
            ("CE", Unit::Count),
            ("reordered", Unit::Count),
        ],
        rows: rows.collect(),
    });
    section
}

fn switches(results: &Results) -> Section {
    let chooses = results.switches.iter().any(|switch| switch.imbalance.is_some());
    let rows: Vec<Vec<Cell>> = results
        .switches
        .iter()
        .take(ROWS_MAX)
        .map(|switch| {
            let mut row = vec![
                switch.name.as_str().into(),
                switch.drops.into(),
                switch.ecn_marks.into(),
                switch.pause_sent.into(),
                switch.pause_received.into(),
                switch.paused.as_secs_f64().into(),
                switch.max_buffer_bytes.into(),
            ];
            row.extend(chooses.then(|| switch.imbalance.into()));
            row
        })
        .collect();
    let mut columns = vec![
        ("switch", Unit::Text),
        ("drops", Unit::Count),
        ("CE marks", Unit::Count),
        ("PAUSE sent", Unit::Count),
        ("PAUSE received", Unit::Count),
        ("paused", Unit::Time),
        ("most buffered", Unit::Bytes),
    ];
    columns.extend(chooses.then_some(("imbalance", Unit::Number)));
    Section {
        title: "Switches",
        note: first_rows(rows.len(), results.switches.len()),
        table: (!rows.is_empty()).then_some(Table { columns, rows }),
        ..Section::default()
    }
}

fn hosts(results: &Results) -> Section {
    let rows: Vec<Vec<Cell>> = results
        .hosts
        .iter()
        .take(ROWS_MAX)
        .map(|host| {
            vec![
                host.name.as_str().into(),
                host.tx_bytes.into(),
                host.rx_bytes.into(),
                host.pause_sent.into(),
                host.pause_received.into(),
                host.paused.as_secs_f64().into(),
            ]
        })
        .collect();
    Section {
        title: if results.several_nics { "Hosts, by NIC" } else { "Hosts" },
        note: first_rows(rows.len(), results.hosts.len()),
        table: (!rows.is_empty()).then(|| Table {
            columns: vec![
                ("host", Unit::Text),
                ("sent", Unit::Bytes),
                ("received", Unit::Bytes),
                ("PAUSE sent", Unit::Count),
                ("PAUSE received", Unit::Count),
                ("paused", Unit::Time),
            ],
            rows,
        }),
        ..Section::default()
    }
}

/// What NICs made of parts looked up and moved over PCIe: where a run of many queue pairs loses its throughput.
fn nics(results: &Results) -> Section {
    let of_parts = || results.hosts.iter().filter_map(|host| Some((host, host.nic.as_deref()?)));
    let rows: Vec<Vec<Cell>> =
        of_parts().take(ROWS_MAX).map(|(host, nic)| nic_row(results, host, nic)).collect();
    let told: String = results.misses().take(4).map(|misses| format!("{misses}. ")).collect();
    let mut columns = vec![("host", Unit::Text)];
    columns.extend(
        ["context lookups", "translation lookups", "request lookups"].into_iter().zip([Unit::Count; 3]),
    );
    columns.extend(
        ["contexts missed", "translations missed", "requests missed"].into_iter().zip([Unit::Share; 3]),
    );
    columns.extend(Cause::ALL.map(|cause| (over_pcie(cause), Unit::Bytes)));
    columns.push(("units waited", Unit::Share));
    Section {
        title: "NICs",
        note: told + &first_rows(rows.len(), of_parts().count()),
        table: (!rows.is_empty()).then_some(Table { columns, rows }),
        ..Section::default()
    }
}

fn nic_row(results: &Results, host: &HostResult, nic: &ArchCounters) -> Vec<Cell> {
    let caches = [nic.context, nic.mtt, nic.wqe];
    let mut row: Vec<Cell> = vec![host.name.as_str().into()];
    row.extend(caches.map(|lookups| (lookups.hits + lookups.misses).into()));
    row.extend(caches.map(|lookups| lookups.missed().into()));
    row.extend(Cause::ALL.map(|cause| nic.pcie_of(cause).into()));
    let time = results.simulated.as_secs_f64() * f64::from(nic.units);
    row.push(if time > 0.0 { (nic.units_waited.as_secs_f64() / time).into() } else { "–".into() });
    row
}

/// What a column is called that counts octets over PCIe.
const fn over_pcie(cause: Cause) -> &'static str {
    match cause {
        Cause::Payload => "PCIe: payload",
        Cause::Context => "PCIe: contexts",
        Cause::Wqe => "PCIe: requests",
        Cause::ReceiveWqe => "PCIe: receive requests",
        Cause::Mtt => "PCIe: translations",
        Cause::Completion => "PCIe: completions",
        Cause::Recovery => "PCIe: recovery",
    }
}

fn first_rows(shown: usize, all: usize) -> String {
    if shown < all { format!("The first {shown} of {all}; all are in summary.json.") } else { String::new() }
}

/// What the run was and what it cost.
fn about(results: &Results) -> Section {
    let run = results.run;
    let mut note = format!(
        "{} packets crossed {} links in {} events.",
        grouped(results.packets),
        grouped(results.packet_hops),
        grouped(results.events),
    );
    if let Some(faults) = results.faults {
        note += &format!(
            " Faults on links dropped {} packets, damaged {}, duplicated {}, held back {}, and forged {} CNPs.",
            grouped(faults.dropped),
            grouped(faults.corrupted),
            grouped(faults.duplicated),
            grouped(faults.reordered),
            grouped(faults.forged_cnps),
        );
        if faults.dropped_in_switches > 0 {
            let in_switches = grouped(faults.dropped_in_switches);
            note += &format!(
                " Of those dropped, {in_switches} were lost in switches that failed or knew no way on."
            );
        }
    }
    if run.cpu_s > 0.0 {
        note += &format!(
            " The event loop took {} of CPU time ({} by the wall clock) after {} of set-up; the process needed {:.1} MB \
             of memory at most.",
            span(run.cpu_s),
            span(run.wall_s),
            span(run.setup_s),
            Cost(run.peak_rss_bytes).megabytes(),
        );
    }
    Section { title: "This run", note, listing: results.scenario.clone(), ..Section::default() }
}

/// Octets of memory.
struct Cost(u64);

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    fn megabytes(&self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// `number` with thin spaces between groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_nic::arch::counters::Lookups;

    #[test]
    fn a_variant_is_told_from_its_scenario() {
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        assert_eq!(with(&[]), "");
        let two = [pair("switch.ecn", "false"), pair("nic.mtu", "4096")];
        assert_eq!(with(&two), "with switch.ecn=false, nic.mtu=4096; ");
        let many = vec![pair("traffic", &"x".repeat(200)); 10];
        assert!(with(&many).chars().count() < 8 * 82 + 30 && with(&many).ends_with("…, and 2 more; "));
    }

    #[test]
    fn nics_of_parts_have_a_table_of_what_they_looked_up_and_why_pcie_was_busy() {
        let nic = ArchCounters {
            context: Lookups { hits: 25, misses: 75, evictions: 75 },
            pcie: [1, 2, 3, 4, 5, 6, 7],
            units: 8,
            units_waited: Span::from_micros(400),
            ..ArchCounters::default()
        };
        let of_parts = HostResult { name: "h1".into(), nic: Some(Box::new(nic)), ..HostResult::default() };
        let simulated = roci_units::Instant::ZERO + Span::from_micros(100);
        let results =
            Results { hosts: vec![HostResult::default(), of_parts], simulated, ..Results::default() };
        let section = nics(&results);
        assert!(section.note.starts_with("h1: 75 % of context lookups missed; PCIe "), "{}", section.note);
        let table = section.table.expect("a NIC is made of parts");
        let number = |heading: &str| {
            let place = table.columns.iter().position(|(name, _)| *name == heading).expect("a column");
            match table.rows[0][place] {
                Cell::Number(number) => number,
                _ => f64::NAN,
            }
        };
        assert_eq!(table.rows.len(), 1, "an ideal NIC has no parts");
        assert_eq!([number("context lookups"), number("contexts missed")], [100.0, 0.75]);
        assert_eq!(
            [number("PCIe: contexts"), number("PCIe: recovery"), number("units waited")],
            [2.0, 7.0, 0.5]
        );
        assert!(nics(&Results { hosts: vec![HostResult::default()], ..Results::default() }).is_empty());
    }

    #[test]
    fn numbers_and_spans_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(span(0.002), "2 ms");
        assert_eq!(span(0.0001234), "123 µs");
        assert_eq!(span(1.5), "1.5 s");
        assert_eq!(span(100.0), "100 s");
    }
}
