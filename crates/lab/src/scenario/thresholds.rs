//! `[[at]]` on switches: thresholds that change while traffic runs.

use super::keys::{self, Section};
use super::read::Table;
use super::source::{Origin, ScenarioError, Source, listed};
use super::switch::{Switch, read_ecn, read_pfc};
use super::topology::Names;
use super::tree::{Entry, Kind, Node};
use roci_fabric::graph::Graph;
use roci_switch::config::{LinkSpec, SwitchConfig};
use roci_units::{Instant, Span};

/// Thresholds that switches go by from a moment of the run on.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchWrite {
    /// When.
    pub time: Instant,
    /// The switches meant, by their places in the graph, each with all that holds for it from then on.
    pub configs: Vec<(u32, SwitchConfig)>,
    /// What is written, as the text has it: thresholds with their values, and the switches where it names some.
    pub what: String,
    /// Where the first of them was written.
    pub(super) origin: Origin,
}

const PREFIX: &str = "switch.";

/// What may be written: each table of a switch, with those of its keys that are thresholds.
const WRITABLE: [(&str, &Section, &[&str]); 3] = [
    ("switch.ecn.", &keys::ECN, &["kmin", "kmax", "pmax", "step"]),
    ("switch.pfc.", &keys::PFC, &["alpha", "resume"]),
    (PREFIX, &keys::SWITCH_EACH, &["alpha"]),
];

/// Whether `key` of a `set` is about switches.
pub(super) fn is_of_switches(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// Refuses an entry of a `set`, that of the table at `index`, whose path stands as tables within tables.
pub(super) fn refuse_unquoted(source: &Source, index: usize, entry: &Entry) -> Result<(), ScenarioError> {
    if format!("{}.", entry.key) != PREFIX {
        return Ok(());
    }
    let shown = "{ \"switch.ecn.kmin\" = \"50KB\" }";
    let remedy = match entry.key_origin {
        Origin::Override(_) => {
            format!("put what holds dots in quotes, as in `'at.{index}.set.\"switch.ecn.kmin\"=50KB'`")
        }
        _ => format!("write the path in quotes, as in `{shown}`"),
    };
    Err(source.error(entry.key_origin, "`switch` is no threshold", remedy))
}

impl SwitchWrite {
    /// Reads what `[[at]]` writes to the switches of `graph`, in the order of time and, for one time, of the text. Each is judged with
    /// what holds for its switches by then.
    pub(super) fn read_all(
        top: Table<'_>,
        switch: &Switch,
        graph: &Graph,
        names: &Names<'_>,
    ) -> Result<Vec<Self>, ScenarioError> {
        let mut tables = Vec::new();
        for table in top.tables("at", &keys::AT)? {
            let time = table.require("time", table.instant("time")?)?;
            let set = table.require("set", table.get("set"))?;
            let Kind::Table(entries) = &set.kind else { continue };
            let of_switches: Vec<&Entry> = entries.iter().filter(|it| is_of_switches(&it.key)).collect();
            let named = table.texts("switches")?;
            if let Some(first) = of_switches.first() {
                if of_switches.len() == entries.len() && table.get("flow").is_some() {
                    let message = format!("`{}` belongs to no flow", first.key);
                    return Err(table.refuse("flow", message, "name `switches`, or leave `flow` out"));
                }
                tables.push((time, table, of_switches, named));
            } else if named.is_some() {
                let message = "nothing in `set` is about switches";
                return Err(table.refuse("switches", message, format!("write some of {}", all_writable())));
            }
        }
        if tables.is_empty() {
            return Ok(Vec::new());
        }
        tables.sort_by_key(|(time, ..)| *time);
        let fastest = graph.fastest_rates();
        let mut now: Vec<SwitchConfig> = graph
            .switches
            .iter()
            .zip(fastest)
            .map(|(name, rate)| switch.config_of(name, rate).clone())
            .collect();
        let links = graph.switch_links();
        let mut writes = Vec::new();
        for (time, table, entries, named) in tables {
            let mut meant: Vec<u32> = match &named {
                None => (0..).zip(&graph.switches).map(|(place, _)| place).collect(),
                Some(patterns) => {
                    let like = patterns.iter().map(|pattern| names.switches_like(table.source, pattern));
                    like.collect::<Result<Vec<_>, _>>()?.concat()
                }
            };
            meant.sort_unstable();
            meant.dedup();
            let mut configs = Vec::with_capacity(meant.len());
            for place in meant {
                let at = place as usize;
                let (name, before) = (&graph.switches[at], &now[at]);
                // Switches are alike, but for a few: what holds for one that was the same does for this one.
                let alike = configs.iter().find(|(other, _)| now[*other as usize] == *before);
                let config = match alike {
                    Some((_, config)) => SwitchConfig::clone(config),
                    None => written(table.source, &entries, before, name)?,
                };
                let specs: Vec<LinkSpec> =
                    links[at].iter().map(|link| LinkSpec { rate: link.rate, delay: link.delay }).collect();
                can_resume(table.source, &entries, &config, &specs, name)?;
                configs.push((place, config));
            }
            for (place, config) in &configs {
                now[*place as usize].clone_from(config);
            }
            let values = entries.iter().map(|entry| format!("{} = {}", entry.key, plain(entry)));
            let of = named.map_or_else(String::new, |named| {
                format!(" of {}", named.iter().map(|it| it.value.as_str()).collect::<Vec<_>>().join(", "))
            });
            let what = values.collect::<Vec<_>>().join(", ") + &of;
            writes.push(Self { time, configs, what, origin: entries[0].key_origin });
        }
        Ok(writes)
    }

    /// What a user should know of `writes` that come after the run's end.
    pub(super) fn notes(writes: &[Self], source: &Source, stop: Option<Span>) -> Vec<String> {
        let Some(stop) = stop else { return Vec::new() };
        let late = writes.iter().filter(|write| Instant::ZERO + stop < write.time);
        late.map(|Self { time, origin, .. }| {
            let place = source.place(*origin).short();
            format!("{place}: what `[[at]]` writes at {time} has no effect, for the run stops at {stop}")
        })
        .collect()
    }
}

/// A value as it was written, a text without its quotes.
fn plain(entry: &Entry) -> String {
    entry.value.scalar().unwrap_or_else(|| entry.value.shown())
}

/// What holds for switch `name`, for which `before` held, once all of `entries` are written.
fn written(
    source: &Source,
    entries: &[&Entry],
    before: &SwitchConfig,
    name: &str,
) -> Result<SwitchConfig, ScenarioError> {
    let mut config = before.clone();
    let mut tables = WRITABLE.map(|_| Vec::new());
    for entry in entries {
        let place = WRITABLE.iter().zip(0..).find_map(|((prefix, _, keys), place)| {
            let key = entry.key.strip_prefix(prefix).filter(|key| keys.contains(key))?;
            Some((place, key.to_owned()))
        });
        let Some((place, key)) = place else {
            let message = format!("`{}` cannot be written during a run", entry.key);
            let remedy = format!("of switches there are {}", all_writable());
            return Err(source.error(entry.key_origin, message, remedy));
        };
        let (key_origin, value): (Origin, Node) = (entry.key_origin, entry.value.clone());
        tables[place].push(Entry { key, key_origin, value });
    }
    for ((prefix, section, _), entries) in WRITABLE.into_iter().zip(tables) {
        let Some(first) = entries.first() else { continue };
        let origin = first.key_origin;
        let off = |key: &str| {
            let message = format!("`{prefix}…` is written at a time when `{key}` of switch `{name}` is off");
            let remedy = format!("turn `{key}` on from the beginning, or name the `switches` that have it");
            source.error(origin, message, remedy)
        };
        let node = Node { kind: Kind::Table(entries), origin };
        let table = Table::open(source, section, &node)?;
        match prefix {
            "switch.ecn." => {
                config.ecn = Some(read_ecn(table, config.ecn.ok_or_else(|| off("switch.ecn"))?)?)
            }
            "switch.pfc." => {
                let pfc = config.pfc.take().ok_or_else(|| off("switch.pfc"))?;
                config.pfc = Some(read_pfc(table, pfc)?);
            }
            _ => config.alpha = table.factor("alpha")?.unwrap_or(config.alpha),
        }
    }
    Ok(config)
}

/// Refuses what makes paused neighbours of switch `name` wait until it holds nothing of theirs, as `[switch]` does.
fn can_resume(
    source: &Source,
    entries: &[&Entry],
    config: &SwitchConfig,
    links: &[LinkSpec],
    name: &str,
) -> Result<(), ScenarioError> {
    let of_pfc = entries.iter().find(|entry| entry.key.starts_with("switch.pfc."));
    let (Some(entry), Some(most)) = (of_pfc, Switch::never_resumes(config, config.set_aside(links))) else {
        return Ok(());
    };
    let message = format!(
        "`switch.pfc.resume` is not below the highest threshold of switch `{name}` then, {most}: its neighbours could only send \
         again once it held nothing of theirs"
    );
    Err(source.error(entry.value.origin, message, format!("write `switch.pfc.resume` below {most} with it")))
}

/// All that may be written, for messages.
fn all_writable() -> String {
    let names =
        WRITABLE.iter().flat_map(|(prefix, _, keys)| keys.iter().map(move |key| format!("{prefix}{key}")));
    let names: Vec<String> = names.collect();
    listed(names.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use roci_units::Bytes;

    fn with(tables: &str) -> Result<Scenario, ScenarioError> {
        let text = format!(
            "stop = \"10ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\nrate = \"10Gb/s\"\n\
             delay = \"1us\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[[switch.on]]\nswitches = [\"spine0\"]\necn = false\n{tables}"
        );
        Scenario::parse(&text, "here.toml", &[])
    }

    fn at(time: &str, switches: &str, set: &str) -> String {
        format!("[[at]]\ntime = \"{time}\"\n{switches}\nset = {{ {set} }}\n")
    }

    /// The switches of each write, with kmin and kmax.
    fn lines(scenario: &Scenario) -> Vec<Vec<(u32, Bytes, Bytes)>> {
        let of = |(place, config): &(u32, SwitchConfig)| {
            let red = config.ecn.expect("it is on");
            (*place, red.kmin, red.kmax)
        };
        scenario.switch_writes.iter().map(|write| write.configs.iter().map(of).collect()).collect()
    }

    #[test]
    fn each_write_goes_on_from_the_one_before_it_switch_by_switch() {
        let leaves = "switches = [\"leaf*\"]";
        let late = at("2ms", leaves, "\"switch.ecn.kmax\" = \"400KB\"");
        let early = at("1ms", "switches = [\"leaf1\"]", "\"switch.ecn.kmin\" = \"20KB\"");
        let [five, twenty, most] = [5_000, 20_000, 400_000].map(Bytes);
        assert_eq!(
            lines(&with(&(late + &early)).unwrap()),
            [vec![(1, twenty, Bytes(200_000))], vec![(0, five, most), (1, twenty, most)]]
        );
        // All of one table are judged together.
        let both = at("1ms", leaves, "\"switch.ecn.kmin\" = \"300KB\", \"switch.ecn.kmax\" = \"400KB\"");
        assert_eq!(lines(&with(&both).unwrap())[0][0], (0, Bytes(300_000), most));
        let others =
            at("1ms", "", "\"switch.alpha\" = 2, \"switch.pfc.alpha\" = 1, \"switch.pfc.resume\" = \"5KB\"");
        assert_eq!(with(&others).unwrap().switch_writes[0].configs.len(), 3, "all switches");
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        let refused = |tables: &str| {
            let error = with(tables).unwrap_err();
            (error.message, error.remedy)
        };
        let leaves = "switches = [\"leaf*\"]";
        let (message, _) = refused(&at("1ms", leaves, "\"switch.ecn.kmin\" = \"300KB\""));
        assert_eq!(message, "kmin, 300KB, is more than kmax, 200KB");
        let (message, remedy) = refused(&at("1ms", "", "\"switch.ecn.kmin\" = \"10KB\""));
        assert_eq!(
            message,
            "`switch.ecn.…` is written at a time when `switch.ecn` of switch `spine0` is off"
        );
        assert!(remedy.ends_with("or name the `switches` that have it"), "{remedy}");
        let (message, remedy) = refused(&at("1ms", leaves, "\"switch.buffer\" = \"1MB\""));
        assert_eq!(message, "`switch.buffer` cannot be written during a run");
        assert!(remedy.contains("`switch.ecn.kmin`") && remedy.contains("`switch.alpha`"), "{remedy}");
        let (message, _) = refused(&at("1ms", leaves, "\"switch.ecn.pmax\" = 2"));
        assert!(message.contains("pmax"), "{message}");
        let (message, _) = refused(&at("1ms", "switches = [\"leef0\"]", "\"switch.alpha\" = 2"));
        assert!(message.contains("`leef0`"), "{message}");
        let (message, _) = refused(&at("1ms", leaves, "\"transport.control.g\" = \"1/128\""));
        assert_eq!(message, "nothing in `set` is about switches");
        let (message, _) = refused(&at("1ms", "flow = \"0.0\"", "\"switch.alpha\" = 2"));
        assert_eq!(message, "`switch.alpha` belongs to no flow");
        let (message, remedy) = refused(&at("1ms", "traffic = \"0\"", "\"switch.alpha\" = 2"));
        assert_eq!(message, "`switch.alpha` belongs to no table of traffic");
        assert!(remedy.ends_with("or leave `traffic` out"), "{remedy}");
        let (message, _) = refused(&at("1ms", leaves, ""));
        assert_eq!(message, "nothing is set");
        let (message, remedy) = refused(&at("1ms", "", "switch.ecn.kmin = \"10KB\""));
        assert_eq!(message, "`switch` is no threshold");
        assert!(remedy.starts_with("write the path in quotes"), "{remedy}");
        let (message, _) = refused(&at("1ms", leaves, "\"switch.pfc.resume\" = \"2MB\""));
        assert!(
            message.starts_with("`switch.pfc.resume` is not below the highest threshold of switch `leaf0`"),
            "{message}"
        );
    }

    #[test]
    fn a_write_after_the_end_is_told() {
        let notes = |time| {
            let scenario = with(&at(time, "", "\"switch.alpha\" = 2")).unwrap();
            scenario.notes().filter(|note| note.contains("[[at]]")).count()
        };
        assert_eq!([notes("9ms"), notes("11ms")], [0, 1]);
    }
}
