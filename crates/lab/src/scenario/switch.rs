//! `[switch]`: how switches buffer, mark, pause and route.

use super::keys;
use super::read::{Detail, Table};
use super::source::{Located, ScenarioError, listed};
use super::topology::Names;
use roci_fabric::Balancing;
use roci_fabric::graph::Graph;
use roci_switch::config::{Buffering, Headroom, LinkSpec, Marking, Pfc, SwitchConfig, Trim};
use roci_switch::red::Red;
use roci_units::{BitsPerSec, Bytes, Ratio, Span};
use std::collections::BTreeSet;

/// All that a scenario says of switches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Switch {
    /// What holds for every switch that no rule is about.
    pub config: SwitchConfig,
    /// Which traffic travels on which priority.
    pub classes: Classes,
    /// Whether data packets gather telemetry.
    pub int: bool,
    /// How paths are chosen.
    pub routing: Balancing,
    /// Whether equal ports are chosen by what the paths through them carry.
    pub wcmp: bool,
    /// A key about flowlets that is set although none are formed.
    pub(super) idle_flowlet_key: Option<&'static str>,
    /// `[[switch.on]]`, in the order of the text: the last that is about a switch decides.
    pub rules: Vec<SwitchRule>,
}

/// Other values for some switches.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchRule {
    /// The switches meant, by name; empty: any.
    pub switches: Vec<Located<String>>,
    /// The rate of the fastest link of the switches meant; `None`: any.
    pub rate: Option<BitsPerSec>,
    /// What holds for them.
    pub config: SwitchConfig,
}

/// The most ports that a switch can route over.
const PORTS_MAX: usize = 65_534;

/// Priorities of the classes of traffic, each 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Data. Default 3.
    pub data: u8,
    /// Acknowledgements. Default: as data.
    pub ack: u8,
    /// CNPs. Default 6.
    pub cnp: u8,
    /// The lossless priorities, bit p for priority p. Default: that of data.
    pub pause: u8,
}

impl Default for Classes {
    fn default() -> Self {
        Self { data: 3, ack: 3, cnp: 6, pause: 1 << 3 }
    }
}

impl Classes {
    /// Whether PAUSE holds back data of `priority`; `None`: of the class for data.
    pub(super) fn pauses(&self, priority: Option<u8>) -> bool {
        self.pause >> priority.unwrap_or(self.data) & 1 != 0
    }
}

impl Switch {
    /// What holds for the switch `name` whose fastest link has `fastest`.
    pub fn config_of(&self, name: &str, fastest: BitsPerSec) -> &SwitchConfig {
        let meant = |rule: &&SwitchRule| {
            (rule.switches.is_empty() || rule.switches.iter().any(|other| other.value == name))
                && rule.rate.is_none_or(|rate| rate == fastest)
        };
        self.rules.iter().rfind(meant).map_or(&self.config, |rule| &rule.config)
    }

    /// What holds for any switch, and what rules say of some.
    pub fn configs(&self) -> impl Iterator<Item = &SwitchConfig> {
        [&self.config].into_iter().chain(self.rules.iter().map(|rule| &rule.config))
    }

    /// Has NDP's acknowledgements and pulls travel with trimmed headers (NDP §3.1), if `table`, which is `[switch]`, does not say otherwise: where
    /// headers and they together are more than a link carries, one of them leaves after ten of the others, and data is the third.
    pub(super) fn pull_with_headers(&mut self, table: Option<Table<'_>>) -> Result<(), ScenarioError> {
        let classes = table.map(|table| table.table("classes", &keys::CLASSES)).transpose()?.flatten();
        let trim = self.configs().find_map(|config| config.trim);
        if let Some(trim) = trim
            && classes.is_none_or(|classes| classes.get("cnp").is_none())
        {
            self.classes.cnp = trim.header_priority;
        }
        Ok(())
    }

    /// Has switches write the telemetry that `law` reads, if `table`, which is `[switch]`, does not forbid it.
    pub(super) fn write_telemetry_for(
        &mut self,
        law: &str,
        table: Option<Table<'_>>,
    ) -> Result<(), ScenarioError> {
        if let Some(table) = table.filter(|table| !self.int && table.get("int").is_some()) {
            let message = format!("`{law}` reads telemetry, which is switched off here");
            return Err(table.refuse("int", message, "leave `int` out, or set it to true"));
        }
        self.int = true;
        Ok(())
    }

    /// Tells all switches of the greatest frame of the run.
    pub(super) fn set_max_frame(&mut self, octets: u32) {
        let configs = self.rules.iter_mut().map(|rule| &mut rule.config);
        configs.chain([&mut self.config]).for_each(|config| config.max_frame = octets);
    }

    /// What a user should know of ECN that never marks: without PFC a queue drops packets before it is as long as kmin. A
    /// queue that has α times what is free holds at most α / (1 + α) of the buffer.
    pub(super) fn unmarked_note(&self) -> Option<String> {
        let SwitchConfig {
            buffer,
            pfc: None,
            alpha,
            ecn: Some(Red { kmin, .. }),
            ecn_rate: None,
            trim: None,
            ..
        } = &self.config
        else {
            return None;
        };
        let (upper, lower) = (u128::from(alpha.numerator()), u128::from(alpha.denominator()));
        let most = u128::from(buffer.0) * upper / (upper + lower);
        let most = Bytes(u64::try_from(most).unwrap_or(u64::MAX));
        (kmin.0 >= most.0).then(|| {
            format!(
                "ECN marks nothing: without PFC a queue drops packets at {most} (`switch.buffer` {buffer} with `switch.alpha`), and \
                 `switch.ecn.kmin` is {kmin}"
            )
        })
    }

    /// What a user should know of ECN that comes too late for PFC: every port that may feed a queue is paused before the queue is as long as
    /// kmin. DCQCN §4 sets thresholds so that marks come first. With m ports that each hold a threshold t, t is α times what they leave of the shared
    /// buffer s: t = α·s / (1 + m·α), and m·t is the longest queue of what they sent before they were told to stop.
    pub(super) fn late_marks_note(&self, graph: &Graph) -> Option<String> {
        if !self.classes.pauses(None) {
            return None;
        }
        graph.switches.iter().zip(graph.switch_links()).find_map(|(name, links)| {
            let fastest = links.iter().map(|link| link.rate).max()?;
            let config = self.config_of(name, fastest);
            let (Some(pfc), None, Buffering::PerPriority) = (&config.pfc, config.trim, config.queues) else {
                return None;
            };
            // A port may have a lower kmin than others, by `ecn.rate`: where one marks in time, nothing is said.
            let kmin = links.iter().filter_map(|link| config.marking_at(link.rate)).map(|red| red.kmin).min()?;
            let feeding = u128::from(u64::try_from(links.len().checked_sub(1)?).ok()?);
            let specs: Vec<LinkSpec> =
                links.iter().map(|link| LinkSpec { rate: link.rate, delay: link.delay }).collect();
            let shared = u128::from(config.buffer.0.checked_sub(config.set_aside(&specs))?);
            let (upper, lower) = (u128::from(pfc.alpha.numerator()), u128::from(pfc.alpha.denominator()));
            // Of the α of all ports, which are those of `pfc.rate`, that of the slowest one feeds no queue.
            let each = || links.iter().map(|link| upper << pfc.doublings(link.rate));
            let all = each().sum::<u128>() - each().min()?;
            let most = u128::from(pfc.reserve.0) * feeding + shared * all / (lower + all);
            let most = Bytes(u64::try_from(most).unwrap_or(u64::MAX));
            (feeding > 0 && kmin >= most).then(|| {
                let paused = if feeding == 1 {
                    format!("the one port that can feed a queue is paused by the time that it holds {most}")
                } else {
                    format!(
                        "the {feeding} ports that can feed a queue are all paused by the time that it holds {most} of theirs"
                    )
                };
                format!(
                    "PFC stops senders before ECN marks: at switch `{name}` {paused}, and `switch.ecn.kmin` is {kmin}. Make `kmin` smaller, \
                     or `switch.pfc.alpha` or `switch.buffer` greater"
                )
            })
        })
    }

    /// What a user should know of a rule in which no switch of `graph` is meant: the fastest link of none that it names has its rate.
    pub(super) fn idle_rule_note(&self, graph: &Graph) -> Option<String> {
        let fastest = graph.fastest_rates();
        self.rules.iter().zip(1..).find_map(|(rule, number)| {
            let named = |name: &String| {
                rule.switches.is_empty() || rule.switches.iter().any(|other| other.value == *name)
            };
            let of_them = graph.switches.iter().zip(&fastest).filter(|(name, _)| named(name));
            let found: BTreeSet<BitsPerSec> = of_them.map(|(_, rate)| *rate).collect();
            let rate = rule.rate.filter(|rate| !found.contains(rate))?;
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            Some(format!(
                "rule {number} of `[[switch.on]]` is about no switch: its `rate` is {rate}, and the fastest links of those that it may be \
                 about have {}",
                listed(found.iter().map(String::as_str))
            ))
        })
    }

    /// Refuses a switch with more ports than can be routed over, or with too small a buffer: the ports that it has in
    /// `graph` decide its headroom. `table` is `[switch]`, where there is one.
    pub(super) fn fits(
        &self,
        table: Option<Table<'_>>,
        top: Table<'_>,
        graph: &Graph,
    ) -> Result<(), ScenarioError> {
        for (name, links) in graph.switches.iter().zip(graph.switch_links()) {
            if links.len() > PORTS_MAX {
                return Err(top.refuse(
                    "topology",
                    format!("switch `{name}` has {} links", links.len()),
                    format!("give it at most {PORTS_MAX}: spread the hosts over more switches"),
                ));
            }
            let fastest = links.iter().map(|link| link.rate).max().unwrap_or(BitsPerSec(0));
            let config = self.config_of(name, fastest);
            let specs: Vec<LinkSpec> =
                links.iter().map(|link| LinkSpec { rate: link.rate, delay: link.delay }).collect();
            let needed = config.set_aside(&specs);
            if needed < config.buffer.0 {
                Self::resumes(config, needed, name, table)?;
                continue;
            }
            let message = format!(
                "the headroom and reserve of the {} ports of switch `{name}` take {}, which leaves nothing of its \
                 buffer of {}",
                links.len(),
                Bytes(needed),
                config.buffer
            );
            let remedy =
                "enlarge `switch.buffer`, make `switch.pfc.headroom` smaller, or turn `switch.pfc` off";
            return Err(match table {
                None => top.source.error(top.origin_of("topology"), message, remedy),
                Some(table) => {
                    let key = ["buffer", "pfc", "on"].into_iter().find(|key| table.get(key).is_some());
                    table.refuse(key.unwrap_or("buffer"), message, remedy)
                }
            });
        }
        Ok(())
    }

    /// Refuses `resume` where no threshold is as high, even while the shared buffer is empty: a port would wait until it
    /// held nothing. `needed` is what is not shared. What nobody wrote is left alone: the usual value is for usual buffers.
    fn resumes(
        config: &SwitchConfig,
        needed: u64,
        name: &str,
        table: Option<Table<'_>>,
    ) -> Result<(), ScenarioError> {
        let (Some(table), Some(pfc), Some(most)) = (table, &config.pfc, Self::never_resumes(config, needed))
        else {
            return Ok(());
        };
        let message = format!(
            "`switch.pfc.resume`, {}, is not below the highest threshold of switch `{name}`, {most}: its neighbours could \
             only send again once it held nothing of theirs",
            pfc.resume
        );
        let remedy = format!(
            "make it less than {most}: `switch.pfc.reserve` and `switch.pfc.alpha` times the buffer that is shared"
        );
        Err(match table.switch("pfc", &keys::PFC)? {
            Some(Detail::Table(pfc)) if pfc.get("resume").is_some() => pfc.refuse("resume", message, remedy),
            _ => table.refuse("on", message, remedy),
        })
    }

    /// The highest threshold of a switch, where `resume` is not below it; `needed` of its buffer is not shared.
    pub(super) fn never_resumes(config: &SwitchConfig, needed: u64) -> Option<Bytes> {
        let pfc = config.pfc.as_ref()?;
        let shared = u128::from(config.buffer.0.saturating_sub(needed));
        let share = shared * u128::from(pfc.alpha.numerator()) / u128::from(pfc.alpha.denominator());
        let most = u128::from(pfc.reserve.0) + share;
        let never = pfc.resume != Pfc::default().resume && u128::from(pfc.resume.0) >= most;
        never.then(|| Bytes(u64::try_from(most).unwrap_or(u64::MAX)))
    }

    /// Reads `[switch]`, whose rules are about switches of `names`.
    pub(super) fn read(table: Option<Table<'_>>, names: &Names<'_>) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        let classes = match table.table("classes", &keys::CLASSES)? {
            Some(classes) => Classes::read(classes)?,
            None => Classes::default(),
        };
        let mut base = SwitchConfig::default();
        if let Some(pfc) = &mut base.pfc {
            pfc.classes = classes.pause;
        }
        let mut config = config(table, &base)?;
        if config.trim.is_some() && table.get("pfc").is_none() {
            config.pfc = None;
        }
        let mut rules = Vec::new();
        for rule in table.tables("on", &keys::SWITCH_ON)? {
            let switches = rule.texts("switches")?.unwrap_or_default();
            let rate = rule.rate("rate")?;
            if switches.is_empty() && rate.is_none() {
                return Err(rule.source.error(
                    rule.origin,
                    "this rule does not say which switches it is about",
                    "name `switches`, or give the `rate` of their fastest link",
                ));
            }
            rules.push(SwitchRule { switches, rate, config: self::config(rule, &config)? });
        }
        let routing = routing(table)?;
        let is_flowlet = matches!(routing, Balancing::Flowlet { .. });
        let switch = Self {
            config,
            classes,
            int: table.flag("int")?.unwrap_or(false),
            routing,
            wcmp: table.flag("wcmp")?.unwrap_or(false),
            idle_flowlet_key: FLOWLET_KEYS.into_iter().find(|key| !is_flowlet && table.get(key).is_some()),
            rules,
        };
        for name in switch.rules.iter().flat_map(|rule| &rule.switches) {
            names.switch(table.source, name)?;
        }
        Ok(switch)
    }
}

/// How paths are chosen.
fn routing(table: Table<'_>) -> Result<Balancing, ScenarioError> {
    let gap = table.period("flowlet_gap")?.unwrap_or(Span::from_micros(16));
    let size = table.count("flowlet_table", 1..=65_535)?.unwrap_or(4_096);
    let flowlet = Balancing::Flowlet { gap, table: u16::try_from(size).unwrap_or(u16::MAX) };
    let words = [
        ("ecmp", Balancing::Hash),
        ("spray", Balancing::InTurn),
        ("adaptive", Balancing::Adaptive),
        ("flowlet", flowlet),
    ];
    Ok(table.word("routing", &words)?.unwrap_or_default())
}

const FLOWLET_KEYS: [&str; 2] = ["flowlet_gap", "flowlet_table"];

impl Classes {
    fn read(table: Table<'_>) -> Result<Self, ScenarioError> {
        let data = table.priority("data")?.unwrap_or(3);
        let mut pause = 1 << data;
        if let Some(list) = table.list("pause")? {
            pause = 0;
            for item in list {
                pause |= 1 << table.number_of("pause", item, 0..=7)?;
            }
        }
        Ok(Self {
            data,
            ack: table.priority("ack")?.unwrap_or(data),
            cnp: table.priority("cnp")?.unwrap_or(6),
            pause,
        })
    }
}

/// The configuration that `table` describes; what it leaves out is as in `base`.
fn config(table: Table<'_>, base: &SwitchConfig) -> Result<SwitchConfig, ScenarioError> {
    let mut config = base.clone();
    if let Some(buffer) = table.bytes("buffer", 4_000..=4_000_000_000)? {
        config.buffer = buffer;
    }
    if let Some(alpha) = table.factor("alpha")? {
        config.alpha = alpha;
    }
    let queues = [("priority", Buffering::PerPriority), ("per-flow", Buffering::PerFlow)];
    if let Some(queues) = table.word("queues", &queues)? {
        config.queues = queues;
    }
    config.ets = super::ets::read(table, base.ets)?;
    let classes = base.pfc.as_ref().map_or(Classes::default().pause, |pfc| pfc.classes);
    let pfc_on = || Pfc { classes, ..Pfc::default() };
    match table.switch("pfc", &keys::PFC)? {
        None => {}
        Some(Detail::Off) => config.pfc = None,
        Some(Detail::On) => config.pfc = Some(base.pfc.clone().unwrap_or_else(pfc_on)),
        Some(Detail::Table(pfc)) => {
            config.pfc = Some(read_pfc(pfc, base.pfc.clone().unwrap_or_else(pfc_on))?);
        }
    }
    match table.switch("ecn", &keys::ECN)? {
        None => {}
        Some(Detail::Off) => config.ecn = None,
        Some(Detail::On) => config.ecn = Some(base.ecn.unwrap_or_default()),
        Some(Detail::Table(ecn)) => {
            config.ecn = Some(read_ecn(ecn, base.ecn.unwrap_or_default())?);
            let at = [("dequeue", Marking::Departure), ("enqueue", Marking::Arrival)];
            config.marking = ecn.word("at", &at)?.unwrap_or(base.marking);
            config.ecn_rate = ecn.rate("rate")?.or(base.ecn_rate);
        }
    }
    let trim_on = Trim {
        threshold: None,
        headers: None,
        return_to_sender: true,
        header_priority: 7,
        random_tail: true,
        headers_per_packet: Trim::HEADERS_PER_PACKET,
    };
    match table.switch("trimming", &keys::TRIMMING)? {
        None => {}
        Some(Detail::Off) => config.trim = None,
        Some(Detail::On) => config.trim = Some(base.trim.unwrap_or(trim_on)),
        Some(Detail::Table(trim)) => {
            let base = base.trim.unwrap_or(trim_on);
            let threshold = trim.bytes("threshold", 1_000..=4_000_000_000)?;
            config.trim = Some(Trim {
                threshold: threshold.or(base.threshold),
                headers: trim.bytes("headers", 100..=4_000_000_000)?.or(threshold).or(base.headers),
                return_to_sender: trim.flag("return_to_sender")?.unwrap_or(base.return_to_sender),
                header_priority: trim.priority("priority")?.unwrap_or(base.header_priority),
                random_tail: trim.flag("random_tail")?.unwrap_or(base.random_tail),
                headers_per_packet: trim
                    .count("headers_per_packet", 0..=255)?
                    .map_or(base.headers_per_packet, |n| u8::try_from(n).unwrap_or(u8::MAX)),
            });
        }
    }
    super::ets::beside_headers(table, &config)?;
    Ok(config)
}

pub(super) fn read_pfc(table: Table<'_>, base: Pfc) -> Result<Pfc, ScenarioError> {
    let words = [("usual", Headroom::Usual), ("exact", Headroom::Exact)];
    let word = table.get("headroom").and_then(super::tree::Node::scalar);
    let headroom = match words.iter().find(|(name, _)| word.as_deref() == Some(name)) {
        Some((_, headroom)) => *headroom,
        None => table.bytes("headroom", 0..=1_000_000_000)?.map_or(base.headroom, Headroom::Octets),
    };
    Ok(Pfc {
        alpha: table.factor("alpha")?.unwrap_or(base.alpha),
        rate: table.rate("rate")?.or(base.rate),
        headroom,
        reserve: table.bytes("reserve", 0..=1_000_000_000)?.unwrap_or(base.reserve),
        resume: table.bytes("resume", 0..=1_000_000_000)?.unwrap_or(base.resume),
        classes: base.classes,
    })
}

pub(super) fn read_ecn(table: Table<'_>, base: Red) -> Result<Red, ScenarioError> {
    const MOST: u64 = 4_000_000_000;
    if let Some(step) = table.bytes("step", 0..=MOST)? {
        if let Some(line) = ["kmin", "kmax", "pmax"].into_iter().find(|key| table.get(key).is_some()) {
            return Err(table.refuse(
                line,
                format!("`{line}` and `step` exclude each other"),
                "leave out `step` to mark along a line, or the three others to mark by a step",
            ));
        }
        return Ok(Red { kmin: step, kmax: step, pmax: Ratio::ONE });
    }
    let red = Red {
        kmin: table.bytes("kmin", 0..=MOST)?.unwrap_or(base.kmin),
        kmax: table.bytes("kmax", 0..=MOST)?.unwrap_or(base.kmax),
        pmax: table.share("pmax")?.unwrap_or(base.pmax),
    };
    if red.kmin > red.kmax {
        let key = if table.get("kmin").is_some() { "kmin" } else { "kmax" };
        return Err(table.refuse(
            key,
            format!("kmin, {}, is more than kmax, {}", red.kmin, red.kmax),
            "marking rises from kmin to kmax: make kmin the smaller one",
        ));
    }
    Ok(red)
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use roci_units::BitsPerSec;

    #[test]
    fn the_share_of_pfc_grows_with_a_port_s_rate_where_it_is_said_which_it_is_for() {
        let doublings = |switch: &str, gbps| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gb/s\"\ndelay = \"1us\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[switch]\n{switch}\n"
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            scenario.switch.config.pfc.unwrap().doublings(BitsPerSec::from_gbps(gbps))
        };
        let of_100 = "pfc = { rate = \"100Gb/s\" }";
        assert_eq!(
            [25, 100, 101, 200, 400, 800, 1_600].map(|gbps| doublings(of_100, gbps)),
            [0, 0, 1, 1, 2, 3, 3]
        );
        assert_eq!(doublings("pfc = true", 400), 0);
        assert_eq!(doublings("pfc = { rate = \"100Gb/s\", alpha = 1 }", 400), 0, "no more than one");
    }

    #[test]
    fn ecn_that_a_lossy_queue_is_too_short_for_is_told() {
        let notes = |switch: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[switch]\nbuffer = \"200KB\"\n{switch}\n"
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            scenario.notes().map(str::to_owned).collect::<Vec<_>>()
        };
        let short = "pfc = false\necn = { kmin = \"100KB\", kmax = \"400KB\", pmax = 0.1 }";
        assert!(notes(short)[0].starts_with("ECN marks nothing: without PFC a queue drops packets at 100KB"));
        assert!(notes(&short.replace("100KB", "99KB")).is_empty());
        assert!(notes(&format!("{short}\nalpha = 2")).is_empty(), "two thirds of the buffer");
        let held = notes(&short.replace("false", "true"));
        assert!(held[0].starts_with("PFC stops senders before ECN marks"), "it drops nothing: {held:?}");
        assert_eq!(held.len(), 1, "{held:?}");
        let off = notes("pfc = false\necn = false");
        assert!(off.iter().all(|note| note.contains("`switch.ecn` is off")), "{off:?}");
    }

    /// Eight ports of 100 Gb/s and 1 us set 45 920 octets aside each; of 1 MB 632 640 are left to share. Seven that hold
    /// 1/8 of what they leave have 1/15 of that each, 295 232 together.
    #[test]
    fn ecn_that_pfc_forestalls_is_told() {
        let late = |switch: &str, control: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[transport]\ncontrol = \"{control}\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[switch]\nbuffer = \"1MB\"\n{switch}\n"
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            scenario.notes().find(|note| note.starts_with("PFC stops senders")).map(str::to_owned)
        };
        let told = late("ecn = { kmin = \"295240B\", kmax = \"1MB\" }", "dcqcn").unwrap();
        assert!(told.contains("at switch `s0` the 7 ports"), "{told}");
        assert!(told.contains("holds 295232B of theirs, and `switch.ecn.kmin` is 295240B"), "{told}");
        let quiet =
            |switch: &str, control: &str| assert_eq!(late(switch, control), None, "{switch}, {control}");
        quiet("ecn = { kmin = \"295230B\", kmax = \"1MB\" }", "dcqcn");
        let long = "ecn = { kmin = \"400KB\", kmax = \"1MB\" }";
        assert!(late(long, "dctcp").is_some());
        quiet(long, "swift");
        quiet(&format!("{long}\npfc = {{ alpha = 1 }}"), "dcqcn");
        quiet(&format!("{long}\npfc = {{ reserve = \"60KB\", headroom = \"0B\" }}"), "dcqcn");
        quiet(&format!("{long}\nclasses = {{ pause = [4] }}"), "dcqcn");
        quiet(&format!("{long}\ntrimming = true\npfc = true"), "dcqcn");
        quiet("ecn = { kmin = \"400KB\", kmax = \"1MB\", rate = \"400Gb/s\" }", "dcqcn");
        // Of 25 Gb/s their share is 1/2, and seven ports hold 7/9.
        quiet(&format!("{long}\npfc = {{ rate = \"25Gb/s\" }}"), "dcqcn");
        assert!(
            late("ecn = { kmin = \"493KB\", kmax = \"1MB\" }\npfc = { rate = \"25Gb/s\" }", "dcqcn")
                .is_some()
        );

        // One port alone has 1/9.
        let pair = "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[[traffic]]\nkind = \"permutation\"\n\
                    size = \"1MB\"\n[switch]\nbuffer = \"1MB\"\necn = { kmin = \"400KB\", kmax = \"1MB\" }\n";
        let scenario = Scenario::parse(pair, "here.toml", &[]).unwrap();
        let one = "at switch `s0` the one port that can feed a queue is paused by the time that it holds 100906B, and `switch.ecn.kmin` is 400KB.";
        assert!(
            scenario.notes().any(|note| note.contains(one)),
            "{:?}",
            scenario.notes().collect::<Vec<_>>()
        );
        quiet("ecn = false", "dcqcn");
    }

    #[test]
    fn a_rule_that_is_about_no_switch_is_told() {
        let notes = |rule: &str| {
            let text = format!(
                "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n[[switch.on]]\n{rule}\n\
                 ecn = {{ kmin = \"1KB\" }}\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            scenario.notes().map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(notes("rate = \"10Gb/s\"").is_empty());
        assert!(notes("switches = [\"s0\"]").is_empty());
        let idle = notes("rate = \"25Gb/s\"");
        assert!(idle[0].starts_with("rule 1 of `[[switch.on]]` is about no switch"), "{idle:?}");
        assert!(idle[0].ends_with("`10Gb/s`"), "{idle:?}");
    }
}
