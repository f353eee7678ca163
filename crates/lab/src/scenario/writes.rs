//! `[[at]]`: registers of laws that are written during the run.

use super::keys;
use super::program::Loaded;
use super::read::Table;
use super::source::{Located, Origin, ScenarioError, Source};
use super::thresholds;
use super::topology::Names;
use super::traffic::{Reading, controls_of};
use super::transport::Control;
use super::tree::{Entry, Kind, Node};
use crate::traffic::Networks;
use crate::traffic::spec::ControlIndex;
use roci_units::{BitsPerSec, Instant};
use std::fmt;

/// A register of a law that is written during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterWrite {
    /// When.
    pub time: Instant,
    /// The name of the flow whose register it is; `None`: all flows, those that start later included.
    pub flow: Option<Located<String>>,
    /// The table of traffic whose flows' register it is; `None`: that of any.
    pub traffic: Option<usize>,
    /// The networks whose law's register it is; `None`: that of any.
    pub networks: Option<Written>,
    /// The register, without `transport.control.`.
    pub register: Located<String>,
    /// Its new value, without quotes.
    pub text: Located<String>,
    /// The program that takes the place of those that run, where the register is `elf`.
    pub program: Loaded,
    /// Whether it comes before the flow that it is for, so that nobody takes it.
    pub early: bool,
}

/// Networks with laws of their own that are written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The switches and NICs that name them.
    pub names: Vec<String>,
    /// Their laws.
    pub controls: Vec<ControlIndex>,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join(", "))
    }
}

const PREFIX: &str = "transport.control.";

impl RegisterWrite {
    /// Reads `[[at]]`, in the order of time and, for one time, of the text.
    pub(super) fn read_all(
        top: Table<'_>,
        traffic: &mut Reading<'_>,
        common: &Control,
        by_network: (&Networks, &Names<'_>),
    ) -> Result<Vec<Self>, ScenarioError> {
        let mut writes = Vec::new();
        for (index, table) in top.tables("at", &keys::AT)?.into_iter().enumerate() {
            let time = table.require("time", table.instant("time")?)?;
            let flow = table.text("flow")?;
            if let Some(flow) = &flow {
                traffic.find_flow(table, flow)?;
            }
            let of_table = match table.text("traffic")? {
                None => None,
                Some(_) if flow.is_some() => {
                    let message = "a flow is named, which is of one table anyway";
                    return Err(table.refuse("traffic", message, "leave out `flow`, or `traffic`"));
                }
                Some(name) => Some(traffic.find_table(table, &name)?),
            };
            let networks = written_networks(table, by_network)?;
            let registers = |traffic: &Reading<'_>| {
                Writable::of(table.source, traffic, common, flow.as_ref(), of_table, networks.as_ref())
            };
            let entries = what_is_set(table, || registers(traffic))?;
            if networks.is_some() && entries.iter().any(|entry| thresholds::is_of_switches(&entry.key)) {
                let message = "thresholds belong to switches, and not to laws of networks";
                let remedy = "give them an `[[at]]` of their own, which names `switches` or none, or leave `networks` out";
                return Err(table.refuse("networks", message, remedy));
            }
            if let Some(index) = of_table {
                if let Some(entry) = entries.iter().find(|entry| thresholds::is_of_switches(&entry.key)) {
                    let message = format!("`{}` belongs to no table of traffic", entry.key);
                    let remedy = "give it an `[[at]]` of its own, which names `switches` or none, or leave `traffic` out";
                    return Err(table.refuse("traffic", message, remedy));
                }
                traffic.set_apart(table, index, common)?;
            }
            let start = flow.as_ref().and_then(|flow| traffic.start_of(&flow.value));
            for entry in entries.iter().filter(|entry| !thresholds::is_of_switches(&entry.key)) {
                thresholds::refuse_unquoted(table.source, index, entry)?;
                let (register, text) = written(table.source, index, entry, || registers(traffic))?;
                writes.push(Self {
                    time,
                    flow: flow.clone(),
                    traffic: of_table,
                    networks: networks.clone(),
                    register: Located { value: register, origin: entry.key_origin },
                    text: Located { value: text, origin: entry.value.origin },
                    program: Loaded::default(),
                    early: start.is_some_and(|start| time < start),
                });
            }
        }
        writes.sort_by_key(|write| write.time);
        Ok(writes)
    }

    /// What a user should know of `writes`, in the order of time, that come too late or too early for any effect.
    pub(super) fn notes(writes: &[Self], source: &Source, traffic: &Reading<'_>) -> Vec<String> {
        let idle = |write: &Self| {
            let time = write.time;
            let stop = traffic.stop.filter(|stop| Instant::ZERO + *stop < time);
            let flow = write.flow.as_ref().map(|flow| (&flow.value, traffic.start_of(&flow.value)));
            let why = match (stop, flow) {
                (Some(stop), _) => format!("the run stops at {stop}"),
                (None, Some((name, Some(start)))) if write.early => {
                    format!("flow `{name}` begins at {start} only")
                }
                _ => return None,
            };
            let place = source.place(write.register.origin).short();
            Some(format!("{place}: what `[[at]]` writes at {time} has no effect, for {why}"))
        };
        writes.iter().filter_map(idle).collect()
    }
}

/// The networks that an `[[at]]` names, if it names any.
fn written_networks(
    table: Table<'_>,
    (networks, names): (&Networks, &Names<'_>),
) -> Result<Option<Written>, ScenarioError> {
    let Some(patterns) = table.texts("networks")? else { return Ok(None) };
    if let Some(other) = ["flow", "traffic"].into_iter().find(|key| table.get(key).is_some()) {
        let message = format!(
            "`{other}` says whose it is as well, and the law of a network is that of all who send there"
        );
        return Err(table.refuse("networks", message, format!("leave out `{other}`, or `networks`")));
    }
    let controls = super::networks::named(table, &patterns, networks, names)?;
    Ok(Some(Written { names: patterns.into_iter().map(|name| name.value).collect(), controls }))
}

/// The entries of an `[[at]]`'s `set`; `registers` are those that it may write.
fn what_is_set<'a>(table: Table<'a>, registers: impl Fn() -> Writable) -> Result<&'a [Entry], ScenarioError> {
    let set = table.require("set", table.get("set"))?;
    match &set.kind {
        Kind::Table(entries) if entries.is_empty() => Err(table.refuse(
            "set",
            "nothing is set",
            format!("name what is to change, as {}, or leave out this `[[at]]`", registers().example()),
        )),
        Kind::Table(entries) => Ok(entries),
        _ => Err(table.refuse(
            "set",
            format!("`set` is {}, not a table", set.what()),
            format!("write {}", registers().example()),
        )),
    }
}

/// The register that `entry` of `[[at]]` number `index` writes, without its prefix, and the value; `registers` are those that it may
/// write.
fn written(
    source: &Source,
    index: usize,
    entry: &Entry,
    registers: impl Fn() -> Writable,
) -> Result<(String, String), ScenarioError> {
    let refused = |remedy: String| {
        let message = format!("`{}` cannot be written during a run", entry.key);
        Err(source.error(entry.key_origin, message, remedy))
    };
    let bare = entry.key.strip_prefix(PREFIX).unwrap_or(&entry.key);
    if let Some(word) = bare.strip_prefix("context.") {
        return refused(format!(
            "words of a program's context and its parameters have no `context.` here: write \"{PREFIX}{word}\""
        ));
    }
    let Some(register) = entry.key.strip_prefix(PREFIX) else {
        let registers = registers();
        let (last, value) = end_of(entry);
        return refused(match (entry.key_origin, registers.meant(last)) {
            (Origin::Override(_), Some(name)) if matches!(entry.value.kind, Kind::Table(_)) => {
                format!(
                    "put what holds dots in quotes: `'at.{index}.set.\"{PREFIX}{name}\"={}'`",
                    value.shown()
                )
            }
            (_, Some(name)) => format!("write \"{PREFIX}{name}\", with its quotes"),
            (_, None) => registers.named(),
        });
    };
    match entry.value.scalar() {
        Some(text) => Ok((register.to_owned(), text)),
        None => Err(source.error(
            entry.value.origin,
            format!("`{}` is {}", entry.key, entry.value.what()),
            "a register takes one value",
        )),
    }
}

/// The last key of a path that stands as tables within tables, or of one with dots, and its value.
fn end_of(entry: &Entry) -> (&str, &Node) {
    match &entry.value.kind {
        Kind::Table(entries) if !entries.is_empty() => end_of(&entries[entries.len() - 1]),
        _ => (entry.key.rsplit('.').next().unwrap_or(&entry.key), &entry.value),
    }
}

/// The registers that may be written of the laws that `[[at]]` is for.
struct Writable(Vec<&'static str>);

impl Writable {
    fn of(
        source: &Source,
        traffic: &Reading<'_>,
        common: &Control,
        flow: Option<&Located<String>>,
        table: Option<usize>,
        networks: Option<&Written>,
    ) -> Self {
        let own = |index: ControlIndex| traffic.controls.get(usize::try_from(index.0).ok()?);
        let of = |index: Option<ControlIndex>| index.and_then(own).unwrap_or(common);
        let controls: Vec<&Control> = match (flow, table) {
            (Some(flow), _) => controls_of(&traffic.traffic, &flow.value).into_iter().map(of).collect(),
            (None, Some(table)) => traffic.traffic[table].controls().map(of).collect(),
            (None, None) => match networks {
                Some(networks) => networks.controls.iter().filter_map(|index| own(*index)).collect(),
                None => [common].into_iter().chain(&traffic.controls).collect(),
            },
        };
        // What is wrong with a law is said where it is made.
        let laws = controls
            .into_iter()
            .filter_map(|control| control.make(source, BitsPerSec::from_gbps(100), 1024).ok());
        let registers = laws.flat_map(|law| law.registers().iter().filter(|register| register.writable));
        Self(registers.map(|register| register.name).collect())
    }

    /// The one that `key` means.
    fn meant(&self, key: &str) -> Option<&'static str> {
        self.0.iter().copied().find(|name| *name == key)
    }

    /// The one to show how it is done.
    fn first(&self) -> Option<&'static str> {
        self.meant("g").or_else(|| self.0.first().copied())
    }

    fn example(&self) -> String {
        match self.first() {
            Some("g") | None => format!("{{ \"{PREFIX}g\" = \"1/128\" }}"),
            Some(name) => format!("{{ \"{PREFIX}{name}\" = … }}"),
        }
    }

    fn named(&self) -> String {
        match self.first() {
            Some(name) => format!("name a register of the law, such as \"{PREFIX}{name}\""),
            None => {
                format!("name a register of a law, such as \"{PREFIX}g\" of `dcqcn`; the law here has none")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, ScenarioError};

    /// Two flows, the second of which begins after a millisecond, two more, and a load of chance; with a register written.
    fn with_write(time: &str, flow: &str) -> Result<Scenario, ScenarioError> {
        with(time, "transport.control.g", flow)
    }

    fn with_key(key: &str) -> Result<Scenario, ScenarioError> {
        with("2ms", key, "")
    }

    fn with(time: &str, key: &str, flow: &str) -> Result<Scenario, ScenarioError> {
        let text = format!(
            "stop = \"10ms\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
             [[traffic]]\nkind = \"flows\"\nflows = [\n\
             {{ name = \"board\", src = \"h0\", dst = \"h1\", size = \"1MB\" }},\n\
             {{ src = \"h2\", dst = \"h1\", size = \"1MB\", start = \"1ms\" }},\n]\n\
             [[traffic]]\nkind = \"incast\"\nsenders = 2\nsize = \"1MB\"\nevery = \"4ms\"\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"10KB\"\nload = 0.1\n\
             [[at]]\ntime = \"{time}\"\nset = {{ \"{key}\" = \"1/128\" }}\n{flow}"
        );
        Scenario::parse(&text, "here.toml", &[])
    }

    fn of_flow(name: &str) -> Result<Scenario, ScenarioError> {
        with_write("2ms", &format!("flow = \"{name}\"\n"))
    }

    #[test]
    fn a_register_of_a_flow_that_cannot_be_is_refused_with_those_that_are() {
        for name in ["board", "0.1", "1.0", "1.5", "2.0", "2.123456"] {
            assert!(of_flow(name).is_ok(), "{name}: {}", of_flow(name).unwrap_err());
        }
        for (name, remedy) in [
            ("bord", "did you mean `board`? flows with a name are `board`"),
            ("0.0", "that flow has a name of its own, `board`"),
            ("0.2", "[[traffic]] 0 has 2 flows, `0.0` to `0.1`"),
            ("1.6", "[[traffic]] 1 has 6 flows, `1.0` to `1.5`"),
            ("3.0", "there are 3 [[traffic]] tables, counted from 0"),
            ("1.+1", "flows with a name are `board`"),
            ("1.01", "flows with a name are `board`"),
        ] {
            let error = of_flow(name).unwrap_err();
            assert_eq!(
                (error.message, error.remedy.as_str()),
                (format!("there is no flow `{name}`"), remedy)
            );
            let error = of_flow(name).unwrap_err().to_string();
            assert!(error.starts_with("here.toml:25:8: "), "{error}");
        }
    }

    #[test]
    fn a_table_that_is_called_a_flow_is_said_to_be_one() {
        let text = "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
            [[traffic]]\nname = \"burst\"\nkind = \"incast\"\nsenders = 2\nsize = \"1MB\"\n\
            [[at]]\ntime = \"1us\"\nflow = \"burst\"\nset = { \"transport.control.g\" = \"1/128\" }\n";
        let error = Scenario::parse(text, "here.toml", &[]).unwrap_err();
        let remedy = "that is a [[traffic]] table: write `traffic = \"burst\"` in place of `flow` for all of its flows";
        assert_eq!((error.message.as_str(), error.remedy.as_str()), ("there is no flow `burst`", remedy));
        let meant = text.replace("flow = ", "traffic = ");
        assert!(Scenario::parse(&meant, "here.toml", &[]).is_ok());
    }

    #[test]
    fn a_register_is_named_in_full_and_in_quotes_by_the_words_of_the_law() {
        let law = |control: &str, set: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
                 [[traffic]]\nkind = \"incast\"\nsenders = 1\nsize = \"1MB\"\n[transport]\ncontrol = {control}\n[[at]]\ntime = \"2ms\"\nset = {set}\n"
            );
            Scenario::parse(&text, "here.toml", &[]).unwrap_err().remedy
        };
        let program = "{ law = \"program\", elf = \"firmware/credit.elf\" }";
        let full = "write \"transport.control.total_credit\", with its quotes";
        for set in [
            "{ total_credit = 1 }",
            "{ \"control.total_credit\" = 1 }",
            "{ transport.control.total_credit = 1 }",
            "{ transport.control = { total_credit = 1 } }",
        ] {
            assert_eq!(law(program, set), full, "{set}");
        }
        assert_eq!(law("\"swift\"", "{ beta = 0.5 }"), "write \"transport.control.beta\", with its quotes");
        assert_eq!(
            law(program, "{ g = 1 }"),
            "name a register of the law, such as \"transport.control.total_credit\""
        );
        assert_eq!(law(program, "1"), "write { \"transport.control.total_credit\" = … }");
        assert_eq!(
            law("\"dcqcn\"", "{ x = 1 }"),
            "name a register of the law, such as \"transport.control.g\""
        );
        assert_eq!(law("\"dcqcn\"", "1"), "write { \"transport.control.g\" = \"1/128\" }");
        assert!(law("\"none\"", "{ g = 1 }").ends_with("the law here has none"));
    }

    #[test]
    fn a_word_of_a_context_has_its_bare_name() {
        for key in ["context.credit", "transport.control.context.credit"] {
            let error = with_key(key).unwrap_err();
            assert_eq!(error.message, format!("`{key}` cannot be written during a run"));
            assert!(error.remedy.ends_with("write \"transport.control.credit\""), "{}", error.remedy);
        }
    }

    #[test]
    fn a_table_is_named_by_its_name_or_index_and_gets_a_law_of_its_own() {
        let of = |rest: &str| with_write("2ms", rest);
        let scenario = of("traffic = \"1\"\n").unwrap();
        assert_eq!(scenario.writes[0].traffic, Some(1));
        // The common one, which all tables have, and another one like it.
        assert_eq!(scenario.controls, std::slice::from_ref(&scenario.transport.control));
        let own = |table: usize| scenario.traffic[table].controls().all(|control| control.is_some());
        assert_eq!([own(0), own(1), own(2)], [false, true, false]);
        assert!(of("").unwrap().controls.is_empty());
        let refused = |rest: &str| {
            let error = of(rest).unwrap_err();
            (error.message, error.remedy)
        };
        let exist = "the [[traffic]] tables are `0`, `1` and `2`";
        let unknown = |name: &str| (format!("there is no [[traffic]] table `{name}`"), exist.to_owned());
        assert_eq!(refused("traffic = \"storage\"\n"), unknown("storage"));
        let (message, remedy) = refused("traffic = \"0\"\nflow = \"board\"\n");
        assert_eq!(message, "a flow is named, which is of one table anyway");
        assert!(remedy.contains("leave out `flow`"), "{remedy}");
    }

    #[test]
    fn a_law_that_keeps_something_for_its_port_is_not_written_to_for_one_of_several_tables() {
        let refused = |control: &str, own: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 3\nrate = \"10Gb/s\"\ndelay = \"1us\"\n[transport]\ncontrol = {control}\n\
                 [[traffic]]\nname = \"a\"\nkind = \"incast\"\nsenders = 1\nsize = \"1MB\"\n{own}\n\
                 [[traffic]]\nkind = \"incast\"\nsenders = 1\nsize = \"1MB\"\n\
                 [[at]]\ntime = \"2ms\"\ntraffic = \"a\"\nset = {{ \"transport.control.rai\" = \"80Mb/s\" }}\n"
            );
            Scenario::parse(&text, "here.toml", &[]).err().map(|error| error.message)
        };
        for (key, told) in
            [("limiter", "they share one limiter"), ("cnp_scope", "one gap between their CNPs")]
        {
            let control = format!("{{ law = \"dcqcn\", {key} = \"port\" }}");
            let message = refused(&control, "").unwrap();
            assert!(message.starts_with("other tables have the same law, `dcqcn`, and "), "{message}");
            assert!(message.contains(told), "{message}");
            assert_eq!(refused(&control, &format!("control = {control}")), None, "a law of its own");
        }
        assert!(refused("\"homa\"", "").unwrap().contains("grants to all of them"));
        assert_eq!(refused("\"dcqcn\"", ""), None);
    }

    #[test]
    fn a_table_that_sets_nothing_is_refused() {
        for key in ["flow = \"board\"\n", ""] {
            let text = with_write("2ms", key).unwrap().source.as_run();
            let text = text.replace("{ \"transport.control.g\" = \"1/128\" }", "{}");
            let error = Scenario::parse(&text, "here.toml", &[]).unwrap_err();
            assert_eq!(error.message, "nothing is set", "{key}");
            assert!(error.remedy.contains("{ \"transport.control.g\" = \"1/128\" }"), "{}", error.remedy);
        }
    }

    #[test]
    fn a_write_without_effect_is_told() {
        let notes = |scenario: Scenario| scenario.notes().map(str::to_owned).collect::<Vec<_>>();
        let effect = "has no effect, for";
        assert_eq!(
            notes(with_write("20ms", "").unwrap()),
            [format!("line 24: what `[[at]]` writes at 20ms {effect} the run stops at 10ms")]
        );
        assert_eq!(
            notes(with_write("10us", "flow = \"0.1\"\n").unwrap()),
            [format!("line 24: what `[[at]]` writes at 10us {effect} flow `0.1` begins at 1ms only")]
        );
        for flow in ["", "flow = \"0.1\"\n", "flow = \"board\"\n"] {
            assert!(notes(with_write("1ms", flow).unwrap()).is_empty(), "{flow}");
        }
    }
}
