//! `roci switch`: the emulated switch.

use crate::Failure;
use crate::args::switch::{Port, Switch};
use crate::execute::print;
use crate::format::{float, rate};
use crate::progress::{self, Line};
use crate::table;
use roci_endpoint::bridge::{
    self, Attachment, BridgeConfig, BridgeError, Classes, Link, NIC_SHARED, Served, Telemetry, Watch,
};
use roci_lab::scenario::Scenario;
use roci_units::{BitsPerSec, Span};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};

/// What a link is like where nobody says.
const RATE: BitsPerSec = BitsPerSec::from_gbps(1);
const DELAY: Span = Span::from_micros(1);

/// Serves until it was long enough.
pub(crate) fn switch(asked: &Switch) -> Result<(), Failure> {
    progress::listen()?;
    let names: Vec<_> = asked.ports.iter().map(Port::name).collect();
    let scenario = scenario(asked)?;
    let Some((like, link)) = scenario.edge() else {
        let what = "its first host is linked to another host, and no switch is there to be like";
        return Err(Failure::Request(format!("{}: {what}", scenario.source.file())));
    };
    let classes = scenario.switch.classes;
    let first = scenario.topology.graph.hosts.first();
    let nic_ets = first.and_then(|name| scenario.nic.config_of(name).ets);
    let plain = BridgeConfig::default();
    let telemetry = scenario.switch.int.then(|| Telemetry {
        dscp: asked.int_dscp.unwrap_or(Telemetry::DSCP),
        // Two such switches behind each other are to have two numbers, on whichever machines they are.
        number: (RandomState::new().hash_one(()) >> 32) as u32,
    });
    if asked.int_dscp.is_some() && telemetry.is_none() {
        return Err(Failure::Request(
            "--int-dscp says which packets have telemetry, which is written with --set switch.int=true"
                .into(),
        ));
    }
    let config = BridgeConfig {
        switch: like.clone(),
        classes: (!asked.trust_dscp).then_some(Classes {
            data: classes.data,
            ack: classes.ack,
            cnp: classes.cnp,
        }),
        loss: asked.loss,
        seed: asked.seed,
        telemetry,
        nic_buffer: if nic_ets.is_some() { NIC_SHARED } else { plain.nic_buffer },
        nic_ets,
    };
    let (rate, delay) = (asked.rate.unwrap_or(link.0), asked.delay.unwrap_or(link.1));
    let of = |port: &Port| {
        let pause_frames = asked.pause_frames && matches!(port.attachment, Attachment::Interface(_));
        (port.attachment.clone(), Link { rate: port.rate.unwrap_or(rate), delay, pause_frames })
    };
    let ports: Vec<_> = asked.ports.iter().map(of).collect();
    let screen = Screen {
        asked,
        line: Line::new(asked.quiet || asked.json),
        series: asked.series.as_ref().map(|path| Series::new(path)).transpose()?.map(RefCell::new),
        before: RefCell::default(),
        failed: Cell::default(),
        about: about(&ports, delay),
    };
    if let Some(Telemetry { dscp, .. }) = telemetry
        && !asked.quiet
        && !asked.json
    {
        screen.line.note(&format!(
            "telemetry is written into RoCEv2 packets of DSCP {dscp}, as `roci perf --control hpcc` sends them; no others are to have that"
        ));
    }
    let served = bridge::serve(&config, &ports, asked.mtu, asked.duration, &screen).map_err(failure)?;
    screen.line.clear();
    if let Some(series) = &screen.series {
        series.borrow_mut().finish(asked, &served).map_err(|error| unwritten(asked, &error))?;
    }
    if let Some(failure) = screen.failed.take() {
        return Err(failure);
    }
    if asked.json {
        print(&format!("{:#}\n", as_json(asked, &served)));
    } else if !asked.quiet {
        print(&table::bridge(&names, &served));
    }
    Ok(())
}

/// How many ports there are, their rates and how far away they are: what `--like` took is seen nowhere else.
fn about(ports: &[(Attachment, Link)], delay: Span) -> String {
    let rates = || ports.iter().map(|(_, link)| link.rate);
    let rate = match (rates().min(), rates().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.map_or_else(String::new, |rate| rate.to_string()),
    };
    format!("{} ports of {rate}, {delay} away", ports.len())
}

/// What says what the switch is like.
fn scenario(asked: &Switch) -> Result<Scenario, Failure> {
    let set = super::assignments(&asked.set)?;
    let has = |key: &str| {
        ["switch", "nic.ets"]
            .iter()
            .any(|own| key.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    if let Some((key, _)) = set.iter().find(|(key, _)| !has(key)) {
        let what = "a switch on a real network has the keys of [switch], and nic.ets; links are what --rate and --delay say";
        return Err(Failure::Request(format!("--set {key}: {what}")));
    }
    let read = match &asked.like {
        Some(path) => Scenario::load(path, &set),
        None => {
            // Hosts of its own, which send nothing: no timeout of theirs is too short for a long link.
            let hosts = asked.ports.len();
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"{}\"\ndelay = \"{}\"\n\
                 [transport]\ntimeout = \"0s\"\ncontrol = \"none\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1B\"\n",
                asked.rate.unwrap_or(RATE),
                asked.delay.unwrap_or(DELAY)
            );
            Scenario::parse(&text, "roci switch", &set)
        }
    };
    read.map_err(|error| Failure::Request(error.to_string()))
}

fn failure(error: BridgeError) -> Failure {
    match error {
        BridgeError::System(_) => Failure::Run(error.to_string()),
        error => Failure::Request(error.to_string()),
    }
}

fn unwritten(asked: &Switch, error: &std::io::Error) -> Failure {
    let path = asked.series.as_deref().unwrap_or_else(|| std::path::Path::new("the series"));
    Failure::Run(format!("cannot write {}: {error}", path.display()))
}

/// What is shown.
struct Screen<'a> {
    asked: &'a Switch,
    line: Line,
    series: Option<RefCell<Series>>,
    /// What was counted when the line was last drawn.
    before: RefCell<Served>,
    failed: Cell<Option<Failure>>,
    about: String,
}

impl Watch for Screen<'_> {
    fn up(&self) {
        if self.asked.quiet || self.asked.json {
            return;
        }
        let taps = self.asked.ports.iter().filter(|port| matches!(port.attachment, Attachment::Tap(_)));
        let taps: Vec<_> = taps.map(Port::name).collect();
        let ready = match &taps[..] {
            [] => String::new(),
            [first, ..] => format!(
                "; {} {} there: `ip link set {first} netns HOST` gives one to a host, `ip link set {first} up` and an address make it usable",
                taps.join(", "),
                if taps.len() == 1 { "is" } else { "are" },
            ),
        };
        self.line.note(&format!("{}{ready}; Ctrl-C ends it", self.about));
    }

    fn gone(&self, place: usize) {
        if !self.asked.quiet
            && let Some(port) = self.asked.ports.get(place)
        {
            let why = match port.attachment {
                Attachment::Tap(_) => "somebody deleted it, or the namespace that it was in",
                Attachment::Interface(_) => "somebody deleted it, or moved it into another namespace",
            };
            self.line.note(&format!("{} is gone: {why}; its port carries nothing any more", port.name()));
        }
    }

    fn every(&self) -> Span {
        self.asked.every.min(Span::from_millis(100))
    }

    fn look(&self, served: &Served) -> bool {
        if let Some(series) = &self.series
            && let Err(error) = series.borrow_mut().look(self.asked, served)
        {
            self.failed.set(Some(unwritten(self.asked, &error)));
            return false;
        }
        let mut before = self.before.borrow_mut();
        let passed = served.passed.saturating_sub(before.passed);
        if passed >= Span::from_millis(450) {
            self.line.tell(|| now(self.asked, &before, served, passed.as_secs_f64()));
            *before = served.clone();
        }
        !progress::interrupted()
    }
}

/// What each port does just now.
fn now(asked: &Switch, before: &Served, served: &Served, seconds: f64) -> String {
    let one = |(place, port): (usize, &Port)| {
        let now = &served.report.ports[place];
        let before = before.report.ports.get(place).copied().unwrap_or_default();
        let sent = float(now.sent_octets - before.sent_octets) * 8.0 / seconds;
        let (marked, dropped) = (now.marked - before.marked, now.dropped - before.dropped);
        let more = [(marked, "marked"), (dropped, "dropped")].into_iter().filter(|(count, _)| *count > 0);
        let more: String = more.map(|(count, what)| format!(", {count} {what}")).collect();
        format!("{} {}{more}", port.name(), rate(sent))
    };
    asked.ports.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}

fn as_json(asked: &Switch, served: &Served) -> serde_json::Value {
    let ports: Vec<_> = asked
        .ports
        .iter()
        .zip(&served.report.ports)
        .zip(served.untaken.iter().zip(&served.missed).zip(&served.gone))
        .map(|((port, counts), ((untaken, missed), gone))| {
            json!({
                "name": port.name(),
                "received": counts.received,
                "received_bytes": counts.received_octets,
                "sent": counts.sent,
                "sent_bytes": counts.sent_octets,
                "lost": counts.lost,
                "dropped": counts.dropped,
                "ecn_marked": counts.marked,
                "pauses": counts.pauses,
                "paused_s": counts.paused.as_secs_f64(),
                "max_queue_bytes": counts.peak,
                "refused": counts.refused,
                "untaken": untaken,
                "missed": missed,
                "gone": gone,
            })
        })
        .collect();
    json!({
        "seconds": served.passed.as_secs_f64(),
        "ports": ports,
        "max_buffer_bytes": served.report.peak,
        "late_mean_s": served.late.0.as_secs_f64(),
        "late_max_s": served.late.1.as_secs_f64(),
    })
}

/// A file with a line for each port and look.
struct Series(BufWriter<File>, Span);

impl Series {
    fn new(path: &std::path::Path) -> Result<Self, Failure> {
        let cannot = |error| Failure::Request(format!("cannot write {}: {error}", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(cannot)?;
        }
        let mut file = BufWriter::new(File::create(path).map_err(cannot)?);
        writeln!(file, "t_s,port,received_bytes,sent_bytes,queued_bytes,ecn_marked,dropped,pauses,paused_s")
            .map_err(cannot)?;
        Ok(Self(file, Span::ZERO))
    }

    /// Writes, if it is time.
    fn look(&mut self, asked: &Switch, served: &Served) -> std::io::Result<()> {
        if served.passed.saturating_sub(self.1) < asked.every {
            return Ok(());
        }
        self.1 = served.passed;
        self.write(asked, served)
    }

    /// Writes what it has come to.
    fn finish(&mut self, asked: &Switch, served: &Served) -> std::io::Result<()> {
        if self.1 < served.passed {
            self.write(asked, served)?;
        }
        self.0.flush()
    }

    fn write(&mut self, asked: &Switch, served: &Served) -> std::io::Result<()> {
        let t = served.passed.as_secs_f64();
        for (port, counts) in asked.ports.iter().zip(&served.report.ports) {
            writeln!(
                self.0,
                "{t:.6},{},{},{},{},{},{},{},{:.6}",
                port.name(),
                counts.received_octets,
                counts.sent_octets,
                counts.queued,
                counts.marked,
                counts.dropped,
                counts.pauses,
                counts.paused.as_secs_f64(),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        switch: Switch,
    }

    #[test]
    fn a_link_is_as_long_as_it_is_said_to_be() {
        let asked = Command::parse_from(["switch", "tap:a", "tap:b", "--delay", "20ms", "--rate", "100Mb/s"]);
        let scenario = scenario(&asked.switch).unwrap_or_else(|_| panic!("20 ms are no delay"));
        assert_eq!(scenario.transport.timeout, Span::ZERO);
    }
}
