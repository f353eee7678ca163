//! Whether presets fit the links: steps that were chosen for one rate are crumbs at ten times that.

use super::transport::Control;
use crate::traffic::spec::{ControlIndex, Traffic};
use roci_fabric::topology::Topology;
use roci_units::BitsPerSec;

/// A preset whose steps are absolute rates.
struct Absolute {
    law: &'static str,
    preset: &'static str,
    /// The links that it was chosen for.
    made_for: BitsPerSec,
    /// The key of its step: who sets it knows the links.
    step: &'static str,
}

const fn absolute(law: &'static str, preset: &'static str, gbps: u64, step: &'static str) -> Absolute {
    Absolute { law, preset, made_for: BitsPerSec::from_gbps(gbps), step }
}

/// The links of the papers' test beds. The presets that scale with the link are not among them, nor those of which their
/// authors do not say what for.
static ABSOLUTE: [Absolute; 5] = [
    absolute("dcqcn", "sigcomm15", 40, "rai"),
    absolute("dcqcn", "swcc", 100, "rai"),
    absolute("dcqcn", "lst-table2", 10, "rai"),
    absolute("timely", "sigcomm15", 10, "delta"),
    absolute("timely", "swcc", 100, "delta"),
];

/// Programs that come with Rocinante, and the preset that their parameters are.
static PROGRAMS: [(&str, &str, &str); 2] =
    [("firmware/dcqcn.elf", "dcqcn", "sigcomm15"), ("firmware/timely.elf", "timely", "sigcomm15")];

/// The preset of these laws that scales with the link.
const SCALES: &str = "hpcc";

impl Absolute {
    /// Whether links of `rate` have outgrown it: from two and a half times on what it was made for.
    fn is_outgrown(&self, rate: BitsPerSec) -> bool {
        rate.0.saturating_mul(2) >= self.made_for.0.saturating_mul(5)
    }
}

/// The controls that some flow of `traffic` has, or may have on a network that has one of its own: the `common` one, or of `own`.
pub(super) fn used<'a>(
    traffic: &'a [Traffic],
    common: &'a Control,
    own: &'a [Control],
) -> impl Iterator<Item = &'a Control> {
    named(move || traffic.iter().flat_map(Traffic::controls), common, own)
}

/// Whether a law slows down for packets that switches or hosts have marked; of a program nothing is known.
pub(super) fn heeds_marks(control: &Control) -> bool {
    control.is_program() || matches!(control.law.value.as_str(), "dcqcn" | "dctcp" | "nscc")
}

/// Those of them under which traffic READs.
pub(super) fn used_by_reads<'a>(
    traffic: &'a [Traffic],
    common: &'a Control,
    own: &'a [Control],
) -> impl Iterator<Item = &'a Control> {
    let has_reads = traffic.iter().flat_map(Traffic::controls_of_reads).next().is_some();
    named(move || traffic.iter().flat_map(Traffic::controls_of_reads), common, own)
        .filter(move |control| has_reads || control.of_network.is_none())
}

/// Of `common` and `own`, what `names` name, and those of networks.
fn named<'a, I: Iterator<Item = Option<ControlIndex>>>(
    names: impl Fn() -> I + 'a,
    common: &'a Control,
    own: &'a [Control],
) -> impl Iterator<Item = &'a Control> {
    let has = move |index: Option<ControlIndex>| names().any(|it| it == index);
    let first = has(None).then_some(common);
    let is_meant = move |(n, own): &(u32, &Control)| own.of_network.is_some() || has(Some(ControlIndex(*n)));
    let others = (0u32..).zip(own).filter(is_meant).map(|(_, own)| own);
    first.into_iter().chain(others)
}

/// What a user should know of presets among `controls` that the fastest host of `topology` has outgrown.
pub(super) fn outgrown<'a>(
    controls: impl Iterator<Item = &'a Control>,
    topology: &Topology,
    of_network: impl Fn(&Control) -> Option<BitsPerSec>,
) -> Vec<String> {
    let Some(fastest) = topology.capacities().into_iter().max() else { return Vec::new() };
    let of_program = |control: &Control, rate: BitsPerSec| {
        let elf = control.elf()?;
        let (_, law, preset) = PROGRAMS.iter().find(|(known, ..)| *known == elf)?;
        let is_meant = |it: &&Absolute| it.law == *law && it.preset == *preset;
        let Absolute { made_for, step, .. } =
            ABSOLUTE.iter().find(is_meant).filter(|it| it.is_outgrown(rate))?;
        (!control.sets(&format!("context.{step}"))).then(|| {
            format!(
                "`{elf}` has the steps of preset `{preset}` of `{law}`, made for {made_for} links, and hosts here have {rate}: \
                 rates recover slowly. Set `context.{step}`, and what else is an absolute rate"
            )
        })
    };
    let note = |control: &Control| {
        let rate = of_network(control).unwrap_or(fastest);
        if control.is_program() {
            return of_program(control, rate);
        }
        let preset = control.preset()?;
        let is_meant = |it: &&Absolute| it.law == control.law.value && it.preset == preset;
        let Absolute { law, made_for, step, .. } =
            ABSOLUTE.iter().find(is_meant).filter(|it| it.is_outgrown(rate) && !control.sets(it.step))?;
        Some(format!(
            "preset `{preset}` of `{law}` has the steps of {made_for} links, and hosts here have {rate}: rates recover slowly. \
             Preset `{SCALES}` scales with the link; or set `{step}`"
        ))
    };
    let mut notes: Vec<String> = controls.filter_map(note).collect();
    notes.dedup();
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::scenario::program::shipped;
    use roci_control::program::Options;
    use roci_control::{Context, Image, Law, Programmed, Value};
    use roci_units::Instant;
    use std::sync::Arc;

    fn notes(rate: &str, control: &str) -> Vec<String> {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"{rate}\"\ndelay = \"1us\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n{control}\n"
        );
        Scenario::parse(&text, "here.toml", &[]).unwrap().notes().map(str::to_owned).collect()
    }

    #[test]
    fn a_preset_that_the_links_have_outgrown_is_named_with_the_one_that_scales() {
        let told = notes("100Gb/s", "");
        assert_eq!(
            told,
            [
                "preset `sigcomm15` of `dcqcn` has the steps of 40Gb/s links, and hosts here have 100Gb/s: rates recover \
             slowly. Preset `hpcc` scales with the link; or set `rai`"
            ]
        );
        assert_eq!(notes("100Gb/s", "control = \"dcqcn\""), told, "the first preset is the default");
        assert!(notes("25Gb/s", "control = \"timely\"")[0].contains("of 10Gb/s links"));
        for (rate, control) in [
            ("99Gb/s", ""),
            ("40Gb/s", "control = { law = \"dcqcn\", preset = \"sigcomm15\" }"),
            ("10Gb/s", "control = \"timely\""),
            ("400Gb/s", "control = { law = \"dcqcn\", preset = \"hpcc\" }"),
            ("400Gb/s", "control = { law = \"timely\", preset = \"hpcc\" }"),
            ("400Gb/s", "control = { law = \"dcqcn\", rai = \"400Mb/s\" }"),
            ("400Gb/s", "control = \"swift\""),
        ] {
            assert!(notes(rate, control).is_empty(), "{rate}, {control}: {:?}", notes(rate, control));
        }
    }

    #[test]
    fn programs_with_the_steps_of_other_links_are_named_too() {
        let timely = "control = { law = \"program\", elf = \"firmware/timely.elf\" }";
        let told = notes("25Gb/s", timely);
        assert!(told.len() == 1 && told[0].contains("`firmware/timely.elf`"), "{told:?}");
        assert!(told[0].contains("made for 10Gb/s links, and hosts here have 25Gb/s"), "{told:?}");
        assert!(notes("10Gb/s", timely).is_empty());
        let set = timely.replace(" }", ", context = { delta = \"1Gb/s\" } }");
        assert!(notes("25Gb/s", &set).is_empty());
        assert!(notes("100Gb/s", &timely.replace("timely", "swift")).is_empty());
    }

    #[test]
    fn the_parameters_of_programs_are_those_of_their_presets() {
        for (elf, law, preset) in PROGRAMS {
            let step = ABSOLUTE.iter().find(|it| it.law == law && it.preset == preset).unwrap().step;
            let native = Law::from_settings(law, &[("preset", preset)], BitsPerSec::from_gbps(10)).unwrap();
            let image = Image::new(elf, shipped(elf).unwrap(), &Options::default()).unwrap();
            let program = Programmed::new(Arc::new(image), Law::None).unwrap();
            let (state, _) = program.open(10_000_000, 0, Instant::ZERO);
            let rate = native.get(&mut Context::None, step, Instant::ZERO);
            assert!(matches!(rate, Some(Value::Rate(_))), "{law}: {rate:?}");
            assert_eq!(program.get(&state, step, Instant::ZERO), rate, "{elf}");
        }
    }

    #[test]
    fn every_preset_that_is_named_here_exists() {
        for Absolute { law, preset, step, .. } in &ABSOLUTE {
            for preset in [*preset, SCALES] {
                let settings = [("preset", preset), (*step, "1Gb/s")];
                assert!(
                    Law::from_settings(law, &settings, BitsPerSec::from_gbps(100)).is_ok(),
                    "{law} {preset}"
                );
            }
        }
    }
}
