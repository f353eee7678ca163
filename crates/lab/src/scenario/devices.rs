//! What keys are called on devices: whoever brings settings of a switch or a NIC is told the key here, and what the value means there.

use super::keys::Section;
use super::source::listed;

/// A name of a device, the table and the key that it is here, and where values differ, what the key takes and what the name has there.
type Name = (&'static str, &'static str, &'static str, Option<(&'static str, &'static str)>);

const ECN: &str = "switch.ecn";
const PFC: &str = "switch.pfc";
const CLASSES: &str = "switch.classes";
const CONTROL: &str = "transport.control";

const SIZE: Option<(&str, &str)> = Some(("a size with its unit", "is in octets"));
const RATE: Option<(&str, &str)> = Some(("a rate with its unit", "is in Mb/s"));
const TIME: Option<(&str, &str)> = Some(("a time with its unit", "is in microseconds"));

/// Those of SONiC's tables, and of mlx5's `cc_params`. `docs/guide/operate.md` has them the other way round.
const NAMES: [Name; 24] = [
    ("wred_profile", "switch", "ecn", None),
    ("green_min_threshold", ECN, "kmin", SIZE),
    ("green_max_threshold", ECN, "kmax", SIZE),
    ("green_drop_probability", ECN, "pmax", Some(("a share", "is in percent"))),
    ("dynamic_th", PFC, "alpha", Some(("a factor", "is the exponent of two: -3 is 1/8"))),
    ("xoff", PFC, "headroom", SIZE),
    ("xon", PFC, "resume", Some(("how far below the threshold a port must fall", "is what it then holds"))),
    ("xon_offset", PFC, "resume", SIZE),
    ("pfc_enable", CLASSES, "pause", None),
    ("np_cnp_prio", CLASSES, "cnp", None),
    ("np_min_time_between_cnps", CONTROL, "cnp_gap", TIME),
    ("rp_ai_rate", CONTROL, "rai", RATE),
    ("rp_hai_rate", CONTROL, "rhai", RATE),
    ("rp_min_rate", CONTROL, "rmin", RATE),
    ("rp_time_reset", CONTROL, "increase_timer", TIME),
    ("rp_threshold", CONTROL, "threshold", None),
    (
        "rp_byte_reset",
        CONTROL,
        "byte_counter",
        Some(("a size with its unit", "has one that differs from device to device")),
    ),
    (
        "rp_dce_tcp_g",
        CONTROL,
        "g",
        Some(("the weight of what is new", "is 1024 times that of the alpha before: 1019 is 5/1024")),
    ),
    ("rp_initial_alpha_value", CONTROL, "first_alpha", Some(("a share", "is in 1/1024"))),
    ("rp_dce_tcp_rtt", CONTROL, "alpha_timer", TIME),
    ("rp_rate_reduce_monitor_period", CONTROL, "decrease_interval", TIME),
    ("rp_rate_to_set_on_first_cnp", CONTROL, "first_rate", Some(("a share", "is a rate"))),
    ("rp_clamp_tgt_rate", CONTROL, "clamp", Some(("`true` or `false`", "is 1 or 0"))),
    ("wred", "switch", "ecn", None),
];

/// The entry of `name`, in capitals or not; of mlx5's also as older drivers have it (`rpg_`), and without what stands before it.
fn find(name: &str) -> Option<&'static Name> {
    let name = name.to_lowercase();
    let bare = |name: &str| {
        let prefix = ["rpg_", "rp_", "np_"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
        prefix.unwrap_or(name).to_owned()
    };
    NAMES.iter().find(|(theirs, ..)| bare(theirs) == bare(&name))
}

fn remedy(name: &str, ours: &str, differ: Option<(&str, &str)>) -> String {
    match differ {
        Some((takes, theirs)) => format!("did you mean `{ours}`? it takes {takes}, where `{name}` {theirs}"),
        None => format!("did you mean `{ours}`?"),
    }
}

/// What to do about `name`, which is no key of `section`, where it is a device's name of a key.
pub(super) fn in_section(name: &str, section: &Section) -> Option<String> {
    let &(_, path, key, differ) = find(name)?;
    let here = path == section.path && section.key(key).is_some();
    Some(remedy(name, &if here { key.to_owned() } else { format!("{path}.{key}") }, differ))
}

/// The same of a law that has the keys `valid`. A name of mlx5's that no key stands for leads to no key that only looks like it.
pub(super) fn in_law(name: &str, valid: &[&str]) -> Option<String> {
    let Some(&(_, path, key, differ)) = find(name) else {
        let lower = name.to_lowercase();
        let theirs = ["rpg_", "rp_", "np_"].iter().any(|prefix| lower.starts_with(prefix));
        return theirs.then(|| {
            format!(
                "no key here does what `{name}` does on a NIC; those that exist are {}",
                listed(valid.iter().copied())
            )
        });
    };
    (path == CONTROL && valid.contains(&key)).then(|| remedy(name, key, differ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::scenario::keys::SECTIONS;

    const TEXT: &str = "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"1Gb/s\"\ndelay = \"1us\"\n\
        [transport]\ncontrol = { law = \"dcqcn\" }\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n";

    fn refused(key: &str) -> String {
        let set = [(key.to_owned(), "3".to_owned())];
        Scenario::parse(TEXT, "test.toml", &set).expect_err("it is no key").remedy
    }

    #[test]
    fn names_of_devices_lead_to_the_key_and_say_what_differs() {
        assert_eq!(
            refused("transport.control.rp_time_reset"),
            "did you mean `increase_timer`? it takes a time with its unit, where `rp_time_reset` is in microseconds"
        );
        for name in ["rpg_threshold", "RP_THRESHOLD"] {
            assert_eq!(refused(&format!("transport.control.{name}")), "did you mean `threshold`?");
        }
        let gap = refused("transport.control.min_time_between_cnps");
        assert!(gap.starts_with("did you mean `cnp_gap`?"), "{gap}");
        let pmax = refused("switch.ecn.green_drop_probability");
        assert_eq!(
            pmax,
            "did you mean `pmax`? it takes a share, where `green_drop_probability` is in percent"
        );
        assert!(refused("switch.green_min_threshold").starts_with("did you mean `switch.ecn.kmin`? "));
        assert!(refused("rp_ai_rate").starts_with("did you mean `transport.control.rai`? "));
        assert_eq!(refused("switch.WRED_PROFILE"), "did you mean `ecn`?");
        assert_eq!(refused("switch.pfc.pfc_enable"), "did you mean `switch.classes.pause`?");
        // What is a key of ours elsewhere is that.
        assert!(!refused("switch.threshold").contains("control"), "{}", refused("switch.threshold"));
        let none = refused("transport.control.rp_min_dec_fac");
        assert!(
            none.starts_with(
                "no key here does what `rp_min_dec_fac` does on a NIC; those that exist are `preset`, `g`"
            ),
            "{none}"
        );
        // A law without such a key is told its own.
        assert!(in_law("rp_ai_rate", &["beta"]).is_none());
    }

    #[test]
    fn every_name_leads_to_a_key_that_there_is_and_stands_on_the_operators_page() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/operate.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        for (name, path, key, _) in NAMES {
            if path == CONTROL {
                let told = refused(&format!("{CONTROL}.{name}"));
                assert!(told.starts_with(&format!("did you mean `{key}`?")), "{name}: {told}");
            } else {
                let section = SECTIONS.iter().find(|section| section.path == path).expect("a table");
                assert!(section.key(key).is_some(), "{path}.{key}");
            }
            assert!(page.to_lowercase().contains(name), "{name}");
        }
    }
}
