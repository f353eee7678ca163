//! Their congestion-control laws, `CC_MODE`, as our tables of laws.

use super::Made;
use super::config::ConfigError;
use super::paths::Paths;
use roci_units::{BitsPerSec, Span};
use std::fmt::Write as _;

/// `CC_MODE` of the laws that both have.
mod mode {
    pub(super) const DCQCN: u64 = 1;
    pub(super) const HPCC: u64 = 3;
    pub(super) const TIMELY: u64 = 7;
    pub(super) const DCTCP: u64 = 8;
}

/// What several laws take. A configuration may have all of it, whichever its law is.
struct Given {
    /// `MIN_RATE`.
    least: BitsPerSec,
    /// `RATE_AI` and `RATE_HAI`.
    slow: Option<BitsPerSec>,
    fast: Option<BitsPerSec>,
    /// `DCTCP_RATE_AI`.
    steps: BitsPerSec,
    /// `EWMA_GAIN`.
    g: Option<f64>,
}

impl Given {
    fn g(&self) -> Option<String> {
        self.g.map(|g| format!("g = {g}"))
    }

    fn rmin(&self) -> String {
        format!("rmin = \"{}\"", self.least)
    }

    fn timely(&self) -> Vec<String> {
        let mut keys = Vec::new();
        keys.extend(self.slow.map(|rate| format!("delta = \"{rate}\"")));
        keys.extend(self.fast.map(|rate| format!("hai = \"{rate}\"")));
        keys.push(self.rmin());
        keys
    }
}

/// What `rate` moves in a round trip; an octet at least.
fn octets(rate: BitsPerSec, base_rtt: Span) -> u64 {
    rate.octets_in(base_rtt).max(1)
}

impl Made {
    /// Writes the law's table, and gives the law's name.
    pub(super) fn law(&mut self, paths: &Paths) -> Result<&'static str, ConfigError> {
        let (line, mode) = self.config.whole("CC_MODE")?.unwrap_or((0, mode::DCQCN));
        let given = self.given()?;
        let base_rtt = self.base_rtt(mode, paths);
        if self.config.flag("RATE_BOUND")? == Some(false) {
            self.note("RATE_BOUND 0: flows are paced by their laws here, and do not send at the link's rate within a window");
        }
        self.note_missing(mode);
        let (law, keys) = match mode {
            mode::DCQCN => ("dcqcn", self.dcqcn(&given)?),
            mode::HPCC => ("hpcc", self.hpcc(&given, base_rtt)?),
            mode::TIMELY => ("timely", given.timely()),
            mode::DCTCP => ("dctcp", self.dctcp(&given, base_rtt)),
            mode => {
                return Err(ConfigError::at(
                    line,
                    format!(
                        "CC_MODE {mode} is not known; take 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP), and set the law that you mean in \
                         the scenario then"
                    ),
                ));
            }
        };
        let _ =
            writeln!(self.text, "control = {{ law = \"{law}\", preset = \"hpcc\", {} }}", keys.join(", "));
        Ok(law)
    }

    /// The longest round trip, within what `base_rtt` of the law can be.
    fn base_rtt(&mut self, mode: u64, paths: &Paths) -> Span {
        let longest = if mode == mode::DCTCP { Span::from_millis(67) } else { Span::from_millis(1) };
        let base_rtt = paths.round_trip.clamp(Span::from_micros(1), longest);
        if base_rtt != paths.round_trip && matches!(mode, mode::HPCC | mode::DCTCP) {
            self.note(format!(
                "The longest round trip is {}: base_rtt is {base_rtt}, and steps are those of that",
                paths.round_trip
            ));
        }
        base_rtt
    }

    /// What the configuration should say of the law and does not.
    fn note_missing(&mut self, mode: u64) {
        let wanted = match mode {
            mode::DCQCN => &["EWMA_GAIN", "RP_TIMER", "RATE_AI", "RATE_HAI"][..],
            mode::HPCC => &["RATE_AI"],
            mode::TIMELY => &["RATE_AI", "RATE_HAI"],
            _ => &["EWMA_GAIN"],
        };
        let missing: Vec<&str> = wanted.iter().copied().filter(|key| !self.config.has(key)).collect();
        if !missing.is_empty() {
            self.note(format!("Missing: {}; the law's preset `hpcc` has a value", missing.join(", ")));
        }
    }

    fn given(&mut self) -> Result<Given, ConfigError> {
        Ok(Given {
            least: self.config.rate("MIN_RATE")?.unwrap_or(BitsPerSec::from_mbps(100)),
            slow: self.config.rate("RATE_AI")?,
            fast: self.config.rate("RATE_HAI")?,
            steps: self.config.rate("DCTCP_RATE_AI")?.unwrap_or(BitsPerSec::from_mbps(1000)),
            g: self.config.number("EWMA_GAIN")?.map(|(_, g)| g),
        })
    }

    fn dcqcn(&mut self, given: &Given) -> Result<Vec<String>, ConfigError> {
        let mut keys = Vec::new();
        // Those of its `third.cc` where they are missing; one has none there.
        for (key, of, default) in [
            ("ALPHA_RESUME_INTERVAL", "alpha_timer", Some(55.0)),
            ("RATE_DECREASE_INTERVAL", "decrease_interval", Some(4.0)),
            ("RP_TIMER", "increase_timer", None),
        ] {
            let given = self.config.number(key)?.map(|(_, micros)| micros);
            keys.extend(given.or(default).map(|micros| format!("{of} = \"{micros}us\"")));
        }
        keys.extend(given.g());
        let (_, times) = self.config.whole("FAST_RECOVERY_TIMES")?.unwrap_or((0, 5));
        keys.push(format!("threshold = {times}"));
        keys.extend(given.slow.map(|rate| format!("rai = \"{rate}\"")));
        keys.extend(given.fast.map(|rate| format!("rhai = \"{rate}\"")));
        keys.push(given.rmin());
        keys.extend(self.config.flag("CLAMP_TARGET_RATE")?.map(|clamp| format!("clamp = {clamp}")));
        Ok(keys)
    }

    fn hpcc(&mut self, given: &Given, base_rtt: Span) -> Result<Vec<String>, ConfigError> {
        let mut keys = Vec::new();
        let (_, eta) = self.config.number("U_TARGET")?.unwrap_or((0, 0.95));
        let (_, stages) = self.config.whole("MI_THRESH")?.unwrap_or((0, 5));
        keys.push(format!("eta = {eta}, max_stage = {stages}"));
        keys.push(format!("base_rtt = \"{base_rtt}\""));
        keys.extend(given.slow.map(|rate| format!("w_ai = \"{}B\"", octets(rate, base_rtt))));
        keys.push(format!("wmin = \"{}B\"", octets(given.least, base_rtt)));
        let has_window = self.config.flag("HAS_WIN")?.unwrap_or(true);
        if has_window && !self.config.flag("VAR_WIN")?.unwrap_or(false) {
            keys.push("fixed_window = true".into());
        }
        if self.config.flag("MULTI_RATE")?.unwrap_or(true) {
            self.note(
                "MULTI_RATE: one window for the fullest link, as in the paper, and not one for each link",
            );
        }
        if self.config.flag("SAMPLE_FEEDBACK")?.unwrap_or(false) {
            self.note("SAMPLE_FEEDBACK: each acknowledgement has its telemetry read, as in the paper");
        }
        if self.config.flag("FAST_REACT")? == Some(false) {
            self.note("FAST_REACT 0: the window answers each acknowledgement, as in the paper");
        }
        Ok(keys)
    }

    fn dctcp(&mut self, given: &Given, base_rtt: Span) -> Vec<String> {
        let mut keys = Vec::new();
        keys.extend(given.g());
        keys.push(format!("base_rtt = \"{base_rtt}\""));
        keys.push(format!("step = \"{}B\"", octets(given.steps, base_rtt)));
        if self.config.has("MIN_RATE") {
            self.note("MIN_RATE: DCTCP's least window is a packet");
        }
        keys
    }
}
