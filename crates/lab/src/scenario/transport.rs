//! `[transport]`: reliability and congestion control.

use super::devices;
use super::fill::Network;
use super::keys;
use super::paths;
use super::program::{Costs, Loaded, PROGRAM, REFUSED, sends};
use super::reach::Product;
use super::read::Table;
use super::reliability;
use super::source::{Located, Origin, ScenarioError, Source, listed, nearest};
use super::tree::{Entry, Kind, Node};
use crate::traffic::spec::ControlIndex;
use roci_control::{Context, Law, Scope, SettingError, Value};
use roci_nic::Spreading;
use roci_transport::{BITMAP_PACKETS, BITMAP_PACKETS_MAX, Recovery, Service};
use roci_units::{BitsPerSec, Bytes, Instant, Ratio, Span};
use roci_wire::Layout;
use roci_wire::layout::Cc;

/// The key that names a law's other values.
const PRESET: &str = "preset";

/// How the first parameter that is above one that it must not be above is told of, and the names of the two.
fn descent(law: &Law) -> Option<(String, [&'static str; 2])> {
    if let Law::Homa(homa) = law {
        let at = homa.params().first_descent()?;
        let cutoffs = &homa.params().cutoffs;
        let [low, high] = [at, at + 1].map(|at| (CUTOFFS[at], Bytes(cutoffs[at].into())));
        let message =
            format!("`{}` is {}, above `{}`, which is {}: cutoffs ascend", low.0, low.1, high.0, high.1);
        return Some((message, [low.0, high.0]));
    }
    let value = |name| law.get(&mut Context::None, name, Instant::ZERO);
    BOUNDS.iter().filter(|(name, _)| *name == law.name()).find_map(|(_, [low, high])| {
        let (least, most) = (value(low)?, value(high)?);
        let message = format!("`{low}` is {least}, above `{high}`, which is {most}");
        is_above(least, most).then_some((message, [*low, *high]))
    })
}

/// Homa's cutoffs between unscheduled priorities, which ascend.
const CUTOFFS: [&str; 3] = ["cutoff_1", "cutoff_2", "cutoff_3"];

/// Of laws, parameters that are not above others.
const BOUNDS: [(&str, [&str; 2]); 3] = [
    ("swift", ["min_cwnd", "max_cwnd"]),
    ("swift", ["fs_min_cwnd", "fs_max_cwnd"]),
    ("timely", ["t_low", "t_high"]),
];

/// Whether one value is greater than another of its kind.
fn is_above(one: Value, other: Value) -> bool {
    match (one, other) {
        (Value::Time(one), Value::Time(other)) => one > other,
        (Value::Fraction(one), Value::Fraction(other)) => {
            let product = |of: Ratio, by: Ratio| u64::from(of.numerator()) * u64::from(by.denominator());
            product(one, other) > product(other, one)
        }
        _ => false,
    }
}

/// What holds for every queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// The service of queue pairs, RC or UC.
    pub service: Service,
    /// The recovery program.
    pub recovery: Recovery,
    /// The local ACK timeout; zero: never.
    pub timeout: Span,
    /// Retransmissions without progress before a queue pair fails, 0 to 7.
    pub retry: u8,
    /// Retries after RNR NAKs, 0 to 7; 7: for ever.
    pub rnr_retry: u8,
    /// The wait that RNR NAKs ask for.
    pub min_rnr_timer: Span,
    /// Packets for each acknowledgement, at least 1.
    pub ack_every: u16,
    /// Segments generated ahead of sending, 1 to 15.
    pub ring: u8,
    /// Which headers the packets carry.
    pub layout: Layout,
    /// READs and atomics outstanding on a queue pair, at least 1.
    pub max_rd_atomic: u8,
    /// Packets that may be unacknowledged whatever the law says; zero: no such bound.
    pub max_in_flight: u32,
    /// Bitmaps that a host has for each side.
    pub bitmaps: u32,
    /// The first congestion window of recoveries that have one, in packets; at least 1.
    pub initial_window: u16,
    /// How each packet chooses among equal paths; `None`: as all of its queue pair.
    pub paths: Option<Spreading>,
    /// The congestion control.
    pub control: Control,
}

/// The local ACK timeout where receivers say what is sent, Homa and NDP, and none is set: beyond all that Homa's ask for again,
/// and beyond the turns of some thousand senders whose packets one host pulls.
const RECEIVER_TIMEOUT: Span = Span::from_millis(10);
/// The local ACK timeout where none is set and nothing is lost, for PFC pauses: beyond what an acknowledgement waits behind
/// paused ports as a rule.
const LOSSLESS_TIMEOUT: Span = Span::from_millis(16);
/// The local ACK timeout where none is set and packets may be lost: many round trips of a data centre.
const LOSSY_TIMEOUT: Span = Span::from_micros(500);

impl Default for Transport {
    fn default() -> Self {
        Self {
            service: Service::Rc,
            recovery: Recovery::GoBackN,
            timeout: LOSSLESS_TIMEOUT,
            retry: 7,
            rnr_retry: 7,
            min_rnr_timer: Span::from_micros(10),
            ack_every: 1,
            ring: 4,
            layout: Layout::Standard,
            max_rd_atomic: 16,
            max_in_flight: 0,
            bitmaps: u32::MAX,
            initial_window: 10,
            paths: None,
            control: Control::default(),
        }
    }
}

/// A law and its settings, as they were written.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The law.
    pub law: Located<String>,
    /// Its settings, `preset` among them, in the order of the text; a key within a key is written with a dot.
    pub settings: Vec<Setting>,
    /// A program's image.
    pub(super) loaded: Loaded,
    /// What registers cost on the cores that run the program, where those are a NIC's.
    pub(super) core: Option<Costs>,
    /// The network that it is for, once that is known.
    pub(super) network: Option<Network>,
    /// Its index, where it is that of flows on some network (`[[transport.on]]`), and no flow names it.
    pub(super) of_network: Option<ControlIndex>,
}

/// One key of a law.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key.
    pub key: Located<String>,
    /// Its value, without quotes.
    pub text: Located<String>,
}

impl Default for Control {
    /// DCQCN as its paper has it.
    fn default() -> Self {
        let located = |text: &str| Located { value: text.to_owned(), origin: Origin::Default };
        let preset = Setting { key: located("preset"), text: located("sigcomm15") };
        Self { settings: vec![preset], ..Self::of(located("dcqcn")) }
    }
}

impl Transport {
    /// Packets that bitmaps of selective repeat cover: more where more are asked for in flight and no congestion window, which
    /// ends where the shortest bitmaps do, keeps them from it.
    pub(crate) fn bitmap_packets(&self) -> u32 {
        if self.recovery.owns_window() {
            return BITMAP_PACKETS;
        }
        self.max_in_flight.clamp(BITMAP_PACKETS, BITMAP_PACKETS_MAX).next_power_of_two()
    }

    /// What a user should know who asks for more packets in flight than bitmaps of selective repeat are long; `None` elsewhere.
    pub(super) fn bitmap_note(&self, product: Option<&Product>) -> Option<String> {
        let (set, bitmap) = (self.max_in_flight, self.bitmap_packets());
        // A flow that shorter ones keep from filling the link has a note of its own.
        let told = product.is_some_and(|product| product.packets > u64::from(bitmap));
        (self.recovery.keeps_out_of_order() && set > bitmap && !told).then(|| {
            format!(
                "`transport.max_in_flight = {set}` is more than bitmaps of selective repeat are long, {bitmap} packets, and no more \
                 are in flight"
            )
        })
    }

    /// What a user should know of IRN that may lose packets and whose bound on those in flight is missing or far from the
    /// network's product of bandwidth and delay; `None` elsewhere.
    pub(super) fn bound_note(&self, lossless: bool, product: Option<&Product>) -> Option<String> {
        if self.recovery != Recovery::Irn || self.layout == Layout::Homa || lossless {
            return None;
        }
        let set = u64::from(self.max_in_flight);
        match product {
            // Bitmaps are such a bound, and have a note of their own.
            Some(product) if product.packets > u64::from(self.bitmap_packets()) => None,
            _ if set == 0 => {
                let these = match product {
                    None => "these, rate times round trip over the packet".to_owned(),
                    Some(product) => format!("{}: {product}", product.packets),
                };
                Some(format!(
                    "`transport.recovery = \"irn\"` where packets may be lost is half of IRN: its other half, BDP-FC, keeps at most the \
                     packets of a round trip in flight. Set `transport.max_in_flight` to {these}"
                ))
            }
            Some(product) if set < product.packets => Some(format!(
                "`transport.max_in_flight = {set}` is below the product of bandwidth and delay, {} packets: {product}. A flow \
                 alone between these hosts does not fill the link",
                product.packets
            )),
            Some(product) if set > product.packets.saturating_mul(2) => Some(format!(
                "`transport.max_in_flight = {set}` is more than twice the product of bandwidth and delay, {} packets: {product}. \
                 IRN's BDP-FC keeps no more in flight",
                product.packets
            )),
            _ => None,
        }
    }

    /// The timeout that nobody wrote is that of lossy networks.
    pub(super) fn expect_losses(&mut self) {
        if self.timeout == LOSSLESS_TIMEOUT {
            self.timeout = LOSSY_TIMEOUT;
        }
    }

    /// Reads `[transport]`; `lossless`: switches pause rather than drop, and links lose nothing.
    pub(super) fn read(table: Option<Table<'_>>, lossless: bool) -> Result<Self, ScenarioError> {
        let timeout = if lossless { LOSSLESS_TIMEOUT } else { LOSSY_TIMEOUT };
        let default = Self { timeout, ..Self::default() };
        let Some(table) = table else { return Ok(default) };
        let byte = |number: Option<u64>, default: u8| {
            number.and_then(|number| u8::try_from(number).ok()).unwrap_or(default)
        };
        let usual = Control::usual(Some(table))?;
        let control = Control::read(table, &usual.law)?.unwrap_or(usual);
        let homa = control.is_granted();
        // Homa's priorities let packets of one message overtake each other.
        let plainest = if homa { Recovery::Irn } else { default.recovery };
        let recovery = reliability::recovery(table)?.unwrap_or(plainest);
        // What is granted or pulled may wait behind others for long, and receivers ask for what is lost sooner than that (Homa
        // §3.7), or tell of what was trimmed at once.
        let receiver_driven = homa || recovery == Recovery::Ndp;
        let timeout = if receiver_driven { RECEIVER_TIMEOUT } else { default.timeout };
        Ok(Self {
            service: reliability::service(table)?,
            recovery,
            timeout: table.span("timeout")?.unwrap_or(timeout),
            retry: byte(table.number("retry", 0..=7)?, default.retry),
            rnr_retry: byte(table.number("rnr_retry", 0..=7)?, default.rnr_retry),
            min_rnr_timer: table.span("min_rnr_timer")?.unwrap_or(default.min_rnr_timer),
            ack_every: table
                .number("ack_every", 1..=65_535)?
                .and_then(|number| u16::try_from(number).ok())
                .unwrap_or(default.ack_every),
            ring: byte(table.number("ring", 1..=15)?, default.ring),
            layout: layout_for(recovery, homa, control.own_header(), table)?,
            max_rd_atomic: byte(table.number("max_rd_atomic", 1..=255)?, default.max_rd_atomic),
            max_in_flight: table.count("max_in_flight", 0..=1 << 23)?.unwrap_or(default.max_in_flight),
            bitmaps: table.count("bitmaps", 0..=1 << 24)?.unwrap_or(default.bitmaps),
            initial_window: table
                .number("initial_window", 1..=2048)?
                .and_then(|number| u16::try_from(number).ok())
                .unwrap_or(default.initial_window),
            paths: paths::read(table, recovery)?,
            control,
        })
    }
}

/// The layout, which must be one that the recovery program speaks; by default the plainest such.
fn layout_for(
    recovery: Recovery,
    homa: bool,
    own: Option<Cc>,
    table: Table<'_>,
) -> Result<Layout, ScenarioError> {
    let plainest = match (recovery, own) {
        _ if homa => Layout::Homa,
        (Recovery::GoBackN, Some(cc)) => Layout::Cc(cc),
        _ => recovery.layout(),
    };
    let chosen = layout(table)?.unwrap_or(plainest);
    match (chosen, recovery) {
        (other, _) if homa && other != Layout::Homa => Err(table.refuse(
            "layout",
            "only layout \"homa\" names the messages that law \"homa\" is about",
            "leave `layout` out",
        )),
        (_, Recovery::Ndp) if homa => Err(table.refuse(
            "recovery",
            "law \"homa\" and recovery \"ndp\" each need a header layout of their own, and a packet has one",
            "leave `recovery` out or choose \"irn\" or \"go-back-n\"; for NDP choose law \"ndp\" or another one",
        )),
        (Layout::Ndp, Recovery::Ndp) => Ok(chosen),
        (_, Recovery::Ndp) => Err(table.refuse(
            "layout",
            "only layout \"ndp\" says what NDP's recovery needs to know",
            "leave `layout` out",
        )),
        (Layout::Homa, other) if !matches!(other, Recovery::GoBackN | Recovery::Irn) => Err(table.refuse(
            "recovery",
            "this recovery does not work with Homa: its packets have layout \"homa\", which has no fields for what this recovery \
             writes into packets",
            "leave `recovery` out or choose \"irn\" or \"go-back-n\"; or leave law and layout \"homa\" out",
        )),
        (Layout::Homa, _) => Ok(chosen),
        (Layout::Irn | Layout::Srnic, _) | (Layout::Standard | Layout::Cc(_), Recovery::GoBackN) => {
            Ok(chosen)
        }
        (Layout::Ndp, _) => Err(table.refuse(
            "layout",
            "only NDP's recovery speaks this layout",
            "choose \"standard\", \"irn\", \"srnic\", \"homa\" or \"cc\"; or set `recovery` to \"ndp\"",
        )),
        _ => Err(table.refuse(
            "layout",
            "this layout does not say where a packet out of order goes, nor which packet drew a NAK",
            "leave `layout` out, or set it to \"irn\" or \"srnic\"; or set `recovery` to \"go-back-n\"",
        )),
    }
}

/// The key `layout`: a word, or a table that says what the CC header holds.
fn layout(table: Table<'_>) -> Result<Option<Layout>, ScenarioError> {
    let layouts = [
        ("standard", Layout::Standard),
        ("irn", Layout::Irn),
        ("srnic", Layout::Srnic),
        ("ndp", Layout::Ndp),
        ("homa", Layout::Homa),
        ("cc", Cc::new(true, false, 0).map_or(Layout::Standard, Layout::Cc)),
    ];
    if !table.get("layout").is_some_and(|node| matches!(node.kind, Kind::Table(_))) {
        return table.word("layout", &layouts);
    }
    let Some(cc) = table.table("layout", &keys::LAYOUT)? else { return Ok(None) };
    let words = cc.number("words", 0..=16)?.and_then(|words| u8::try_from(words).ok()).unwrap_or(0);
    match Cc::new(cc.flag("time")?.unwrap_or(true), false, words) {
        Some(cc) => Ok(Some(Layout::Cc(cc))),
        None => Err(table.refuse(
            "layout",
            "this CC header takes more than 16 words",
            "`time`, which is there unless it is false, takes 2 words: set `time = false`, or `words` to 14 or fewer",
        )),
    }
}

/// The value of `layout` that has so many words of a program's own; times beside them, where there is room.
fn room_for(words: u8) -> String {
    let times = Cc::new(true, false, words).is_some();
    format!("{{ words = {words}{} }}", if times { "" } else { ", time = false" })
}

impl Control {
    /// The control where none is set, as the recovery has it that the table `transport` names.
    pub(super) fn usual(transport: Option<Table<'_>>) -> Result<Self, ScenarioError> {
        let named = transport.map(|table| table.text("recovery")).transpose()?.flatten();
        // NDP's law belongs to its recovery; SRNIC's paper runs DCTCP over its own (§5, "Congestion Control").
        Ok(match named.as_ref().map(|name| name.value.as_str()) {
            Some("ndp") => Self::plain("ndp"),
            Some("srnic") => Self::plain("dctcp"),
            _ => Self::default(),
        })
    }

    /// Reads the key `control` of `table`: the name of a law, or a table, whose law is the `usual` one where it names none. The
    /// law must exist and take its settings.
    pub(super) fn read(table: Table<'_>, usual: &Located<String>) -> Result<Option<Self>, ScenarioError> {
        let Some(node) = table.get("control") else { return Ok(None) };
        let control = match &node.kind {
            Kind::Text(law) => {
                let law = Located { value: law.clone(), origin: node.origin };
                Self { law, ..Self::plain("") }
            }
            _ => {
                let table = Table::open_some(table.source, &keys::CONTROL, node)?;
                let law = table.text("law")?.unwrap_or_else(|| usual.clone());
                let mut settings = Vec::new();
                for entry in table.entries().iter().filter(|entry| entry.key != "law") {
                    flatten(table.source, "", entry, &mut settings)?;
                }
                Self { settings, ..Self::of(law) }
            }
        };
        // Which link it runs on decides values, but not whether they are valid.
        match control.law(table.source, node.origin, BitsPerSec::from_gbps(100)) {
            Ok(_) => Ok(Some(control)),
            Err(error) if control.law.origin == Origin::Default => {
                let remedy = format!(
                    "{}. No `law` is named here, so it is `{}`, the recovery's own; name one for another",
                    error.remedy, usual.value
                );
                Err(ScenarioError { remedy, ..error })
            }
            Err(error) => Err(error),
        }
    }

    /// A law without settings.
    pub(super) fn plain(law: &str) -> Self {
        Self::of(Located { value: law.to_owned(), origin: Origin::Default })
    }

    fn of(law: Located<String>) -> Self {
        Self {
            law,
            settings: Vec::new(),
            loaded: Loaded::default(),
            core: None,
            network: None,
            of_network: None,
        }
    }

    /// Refuses a law that needs another layout than the queue pairs have.
    pub(super) fn fits(&self, source: &Source, layout: Layout) -> Result<(), ScenarioError> {
        let words = self.header_words();
        if words > 0 && !matches!(layout, Layout::Cc(cc) if cc.own(&cc.empty()).len() >= usize::from(words)) {
            return Err(source.error(
                self.law.origin,
                format!("this program puts {words} words of its own into each packet, and the layout has no room for them"),
                format!("set `transport.layout = {}`, with recovery \"go-back-n\"", room_for(words)),
            ));
        }
        if let Some(image) = self.loaded.image() {
            sends(image, layout)
                .map_err(|(message, remedy)| source.error(self.law.origin, message, remedy))?;
        }
        let (needs, remedy) = match self.law.value.as_str() {
            _ if self.is_granted() => (Layout::Homa, "set it in `transport.control`, for all flows"),
            "ndp" => (
                Layout::Ndp,
                "it is the law of NDP's recovery: set `transport.recovery` to \"ndp\" as well; to compare it with others, give `roci compare` a scenario file of its own for it",
            ),
            _ => return Ok(()),
        };
        let message = "this law needs a header layout of its own, which all queue pairs share";
        if needs == layout { Ok(()) } else { Err(source.error(self.law.origin, message, remedy)) }
    }

    /// What it is called in results: the law, its preset, and what else is set, such as `dcqcn preset=hpcc rai=1Gb/s`.
    pub fn name(&self) -> String {
        let law = &self.law.value;
        let preset = self.preset().map(|preset| format!(" preset={preset}"));
        let others = self.settings.iter().filter(|setting| setting.key.value != PRESET);
        let others = others.map(|setting| format!(" {}={}", setting.key.value, setting.text.value));
        std::iter::once(law.clone()).chain(preset).chain(others).collect()
    }

    /// Its preset: the one that is set, or else the law's first; `None` for a law without presets.
    pub(super) fn preset(&self) -> Option<String> {
        let given = self.settings.iter().rfind(|setting| setting.key.value == PRESET);
        // The law was made when the scenario was read; on which link is all the same for the names of its presets.
        let first = || {
            let law = Law::from_settings(&self.law.value, &[], BitsPerSec::from_gbps(100)).ok()?;
            law.presets().first().map(|preset| (*preset).to_owned())
        };
        given.map(|setting| setting.text.value.clone()).or_else(first)
    }

    /// Whether it sets `key` itself, whatever its preset says.
    pub(super) fn sets(&self, key: &str) -> bool {
        self.settings.iter().any(|setting| setting.key.value == key)
    }

    /// The law, on links of `link` with packets of `mtu` octets of payload.
    ///
    /// # Errors
    /// When there is no such law, or it does not take these settings.
    pub fn make(&self, source: &Source, link: BitsPerSec, mtu: u16) -> Result<Law, ScenarioError> {
        let mut law = self.law(source, self.law.origin, link)?;
        self.fit_packets(source, &mut law, mtu)?;
        self.fit_network(&mut law);
        Ok(law)
    }

    fn law(&self, source: &Source, table: Origin, link: BitsPerSec) -> Result<Law, ScenarioError> {
        if self.is_program() { self.program(source, table, link) } else { self.native(source, table, link) }
    }

    /// A law that is no program.
    pub(super) fn native(
        &self,
        source: &Source,
        table: Origin,
        link: BitsPerSec,
    ) -> Result<Law, ScenarioError> {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|s| (s.key.value.as_str(), s.text.value.as_str())).collect();
        let law = Law::from_settings(&self.law.value, &settings, link)
            .map_err(|error| self.refusal(source, table, &error))?;
        if let Some((message, names)) = descent(&law) {
            let is_either = |setting: &&Setting| names.contains(&setting.key.value.as_str());
            let origin = self.settings.iter().rfind(is_either).map_or(table, |setting| setting.text.origin);
            return Err(source.error(
                origin,
                message,
                "set them in ascending order; those that are not set have their defaults, and may need a value too",
            ));
        }
        Ok(law)
    }

    /// What to know where the command line names the recovery, at `recovery`, and nobody a law: each has its own.
    pub(super) fn brought_note(&self, recovery: Option<Origin>) -> Option<String> {
        let is_brought = matches!(recovery, Some(Origin::Override(_))) && self.law.origin == Origin::Default;
        is_brought.then(|| {
            format!(
                "no law is named, and this recovery brings `{}`. To compare recoveries under one law, set `transport.control`",
                self.law.value
            )
        })
    }

    /// What to know of settings that the command line has for a law that nobody named.
    pub(super) fn unnamed_note(&self) -> Option<String> {
        let of_line = |setting: &&Setting| matches!(setting.key.origin, Origin::Override(_));
        let setting = self.settings.iter().find(of_line)?;
        (self.law.origin == Origin::Default).then(|| {
            format!(
                "no law is named beside `{}`, which is set by `--set`: it holds for `{}`, this recovery's law where none is named. To be \
                 sure, add `--set …control.law={}`, or the law that is meant",
                setting.key.value, self.law.value, self.law.value
            )
        })
    }

    /// Refuses `writes`, in the order of time, that leave Homa's cutoffs descending once all those of one instant are made.
    ///
    /// # Errors
    /// At the last write of that instant that has a part in it.
    pub(super) fn try_cutoffs<'a>(
        &self,
        source: &Source,
        mut law: Law,
        writes: impl Iterator<Item = &'a super::RegisterWrite>,
    ) -> Result<(), ScenarioError> {
        if !matches!(law, Law::Homa(_)) {
            return Ok(());
        }
        let writes: Vec<_> = writes.collect();
        for together in writes.chunk_by(|write, next| write.time == next.time) {
            for write in together {
                // What is no parameter of this law has no part in it.
                let _ = law.set(&write.register.value, &write.text.value);
            }
            let Some((message, names)) = descent(&law) else { continue };
            let has_part = |write: &&&super::RegisterWrite| {
                let register = write.register.value.as_str();
                register == "priorities" || names.contains(&register)
            };
            let last = together.iter().rfind(has_part).expect("they ascended before these writes");
            return Err(source.error(
                last.text.origin,
                format!("from {} on {message}", last.time),
                "write them in ascending order; those of one `time` are judged together",
            ));
        }
        Ok(())
    }

    /// The refusal of writing a register during the run.
    pub(super) fn refuse_write(
        &self,
        source: &Source,
        write: &super::RegisterWrite,
        error: &SettingError,
    ) -> ScenarioError {
        let setting = Setting { key: write.register.clone(), text: write.text.clone() };
        Self { settings: vec![setting], ..self.clone() }.refusal(source, write.register.origin, error)
    }

    /// What of this law its flows on one port have in common, if anything, so that it is not the same for some of them alone.
    pub(super) fn keeps_for_a_port(&self, source: &Source) -> Result<Option<&'static str>, ScenarioError> {
        if self.is_granted() {
            return Ok(Some("a receiver grants to all of them in one order"));
        }
        Ok(match self.make(source, BitsPerSec::from_gbps(100), 1024)? {
            law if law.limiter() == Scope::Port => Some("they share one limiter (`limiter = \"port\"`)"),
            Law::Dcqcn(law) if law.params().cnp_scope == Scope::Port => {
                Some("a receiver keeps one gap between their CNPs (`cnp_scope = \"port\"`)")
            }
            Law::Ndp(_) => Some("a receiver pulls for all of them"),
            _ => None,
        })
    }

    /// Whether this law has a register `name`.
    fn has_register(&self, name: &str) -> bool {
        let law = Law::from_settings(&self.law.value, &[], BitsPerSec::from_gbps(100));
        law.is_ok_and(|law| law.registers().iter().any(|register| register.name == name))
    }

    /// `error` at the setting that it is about.
    fn refusal(&self, source: &Source, table: Origin, error: &SettingError) -> ScenarioError {
        let law = &self.law.value;
        let setting = |name: &str| self.settings.iter().rfind(|setting| setting.key.value == name);
        let (origin, name) = match error {
            SettingError::Law { name, .. } => (self.law.origin, name.as_str()),
            SettingError::Preset { name, .. } => {
                (setting("preset").map_or(table, |setting| setting.text.origin), name.as_str())
            }
            SettingError::Key { name, .. } => {
                (setting(name).map_or(table, |setting| setting.key.origin), name.as_str())
            }
            SettingError::Value { name, .. }
            | SettingError::Refused { name, .. }
            | SettingError::ReadOnly { name } => {
                (setting(name).map_or(table, |setting| setting.text.origin), *name)
            }
            // Nothing has failed before a run.
            SettingError::Fallen { .. } => (table, law.as_str()),
        };
        let valid = error.valid();
        let exist = match (error, valid) {
            (SettingError::Law { .. }, _) => {
                format!("the laws that exist are {}", listed(valid.iter().copied().chain([PROGRAM])))
            }
            (SettingError::Preset { .. }, _) => {
                format!("the presets of `{law}` are {}", listed(valid.iter().copied()))
            }
            (SettingError::Key { .. }, []) => format!("`{law}` has no keys; leave it out"),
            (SettingError::Key { .. }, _) => {
                format!("the keys of `{law}` are {}", listed(valid.iter().copied()))
            }
            (SettingError::Value { range, .. }, _) => format!("`{name}` takes {range}"),
            (SettingError::Refused { .. }, _) => REFUSED.to_owned(),
            (SettingError::Fallen { .. } | SettingError::ReadOnly { .. }, _) => {
                "choose a register that can be written".to_owned()
            }
        };
        let is_recovery = |name| Recovery::NAMED.iter().any(|(recovery, _)| *recovery == name);
        let message = match error {
            SettingError::Law { .. } if is_recovery(name) => {
                let message = format!("`{name}` is a recovery and no law");
                let remedy = format!(
                    "set `transport.recovery` to \"{name}\", or several with `roci sweep --set transport.recovery=go-back-n,{name}`; {exist}"
                );
                return source.error(origin, message, remedy);
            }
            SettingError::Key { .. } if self.has_register(name) => {
                let message = format!("`{name}` is a register of each queue pair, and no key of `{law}`");
                let remedy =
                    format!("`[[at]]` writes it at a time of the run, if it can be written; {exist}");
                return source.error(origin, message, remedy);
            }
            SettingError::Law { .. } => format!("there is no law `{name}`"),
            SettingError::Preset { .. } => format!("`{law}` has no preset `{name}`"),
            SettingError::Key { .. } => format!("`{law}` has no key `{name}`"),
            SettingError::Value { text, why, .. } => match why {
                roci_control::ValueError::Text(error) => format!("`{name} = {text}`: {error}"),
                roci_control::ValueError::Range => format!("`{name} = {text}` is out of range"),
            },
            SettingError::Refused { .. } | SettingError::Fallen { .. } | SettingError::ReadOnly { .. } => {
                error.to_string()
            }
        };
        // `[[at]]` writes words and parameters by their names alone, which `context` gives.
        let bare = name.strip_prefix("context.").filter(|bare| valid.contains(bare));
        let near = bare.or_else(|| nearest(name, valid.iter().copied()));
        let remedy = devices::in_law(name, valid).unwrap_or_else(|| match near {
            Some(near) => format!("did you mean `{near}`? {exist}"),
            None => exist,
        });
        source.error(origin, message, remedy)
    }
}

/// Adds `entry` to `settings`, and where it is a table, its entries.
fn flatten(
    source: &Source,
    prefix: &str,
    entry: &Entry,
    settings: &mut Vec<Setting>,
) -> Result<(), ScenarioError> {
    let key = format!("{prefix}{}", entry.key);
    let Node { kind, origin } = &entry.value;
    if let Kind::Table(entries) = kind {
        let prefix = format!("{key}.");
        return entries.iter().try_for_each(|entry| flatten(source, &prefix, entry, settings));
    }
    let Some(text) = entry.value.scalar() else {
        return Err(source.error(*origin, format!("`{key}` is a list"), "a law's key takes one value"));
    };
    settings.push(Setting {
        key: Located { value: key, origin: entry.key_origin },
        text: Located { value: text, origin: *origin },
    });
    Ok(())
}
