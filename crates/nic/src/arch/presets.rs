//! The architectures that come with this crate.

use super::file::{ArchitectureError, read};
use super::spec::Architecture;

/// Name and text of each, in the order in which they are listed.
const TEXTS: [(&str, &str); 9] = [
    ("srnic", include_str!("../../presets/srnic.toml")),
    ("tonic", include_str!("../../presets/tonic.toml")),
    ("swcc", include_str!("../../presets/swcc.toml")),
    ("swcc-naive", include_str!("../../presets/swcc-naive.toml")),
    ("hdl", include_str!("../../presets/hdl.toml")),
    ("bluefield3", include_str!("../../presets/bluefield3.toml")),
    ("soft-roce", include_str!("../../presets/soft-roce.toml")),
    ("cx5", include_str!("../../presets/cx5.toml")),
    ("cx6", include_str!("../../presets/cx6.toml")),
];

/// The names of the presets that are data. `ideal` and `delaying` are none: they take no time, and random times.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    TEXTS.iter().map(|(name, _)| *name)
}

/// The preset called `name`.
pub fn find(name: &str) -> Option<Architecture> {
    let (name, text) = TEXTS.iter().find(|(known, _)| *known == name)?;
    Some(parsed(name, text).unwrap_or_else(|error| unreachable!("{error}")))
}

/// The text of the preset called `name`.
pub fn text(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// All of them.
pub fn all() -> impl Iterator<Item = Architecture> {
    names().filter_map(find)
}

fn parsed(name: &str, text: &str) -> Result<Architecture, ArchitectureError> {
    read(&format!("{name}.toml"), text)
}

#[cfg(test)]
mod tests {
    use super::super::keys::KEYS;
    use super::super::spec::Source;
    use super::*;

    #[test]
    fn every_preset_is_read_and_says_where_each_number_comes_from() {
        for (name, text) in TEXTS {
            let preset = parsed(name, text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(preset.name, name);
            assert!(preset.about.ends_with('.'), "{name}: {}", preset.about);
            let default = Architecture::default();
            for key in KEYS.iter().filter(|key| key.show(&preset) != key.show(&default)) {
                let source = preset.sources.get(key.path);
                assert!(
                    source.is_some_and(|source| *source != Source::Given),
                    "{name}: {} has no source",
                    key.path
                );
            }
        }
    }
}
