//! NICs by name: the presets, and what a user's file describes.

pub use roci_nic::arch::keys::{KEYS, Key};
pub use roci_nic::arch::memory::{Account, Structure, account};
pub use roci_nic::arch::spec::Source;
pub use roci_nic::arch::{Architecture, presets};

use crate::scenario::source::nearest;
use roci_nic::arch::file;

/// What the two models are that are made of no parts.
pub const WITHOUT_PARTS: [(&str, &str); 2] = [
    ("ideal", "An ideal NIC: takes no time, and has room for everything."),
    ("delaying", "Returns everything that can be deferred after a random 0 to 5 µs: for tests."),
];

/// Why there is no such NIC.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No preset has that name.
    #[error(
        "there is no NIC `{name}`{near}; `roci nic list` lists those that exist, and a name ending in `.toml` is a file"
    )]
    Unknown {
        /// The name.
        name: String,
        /// What was perhaps meant.
        near: String,
    },
    /// It is made of no parts.
    #[error(
        "`{0}` is made of no parts, and so has no memory and no values: {1} Name one that is made of parts, as in `roci nic show srnic`: {parts}",
        parts = presets::names().collect::<Vec<_>>().join(", ")
    )]
    WithoutParts(&'static str, &'static str),
    /// The file cannot be read.
    #[error("cannot read {path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The file is wrong.
    #[error(transparent)]
    Wrong(#[from] roci_nic::arch::ArchitectureError),
}

/// The architecture called `name`: a preset, or the file of that name where it ends in `.toml`.
///
/// # Errors
/// [`LoadError`] says why there is none.
pub fn load(name: &str) -> Result<Architecture, LoadError> {
    if let Some(preset) = presets::find(name) {
        return Ok(preset);
    }
    if let Some((name, about)) = WITHOUT_PARTS.into_iter().find(|(known, _)| *known == name) {
        return Err(LoadError::WithoutParts(name, about));
    }
    if !name.ends_with(".toml") {
        let near = nearest(name, presets::names()).map(|near| format!(" (did you mean `{near}`?)"));
        return Err(LoadError::Unknown { name: name.to_owned(), near: near.unwrap_or_default() });
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| LoadError::File { path: name.to_owned(), why: error.to_string() })?;
    Ok(file::read(name, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nic_is_found_by_its_name_and_what_is_near_is_offered() {
        assert_eq!(load("srnic").unwrap().name, "srnic");
        let message = |name| load(name).unwrap_err().to_string();
        assert!(message("srnik").contains("did you mean `srnic`?"));
        let ideal = message("ideal");
        assert!(ideal.contains("no memory") && ideal.contains("An ideal NIC"), "{ideal}");
        assert!(
            ideal.ends_with("srnic, tonic, swcc, swcc-naive, hdl, bluefield3, soft-roce, cx5, cx6"),
            "{ideal}"
        );
        assert!(message("there-is-none.toml").contains("cannot read there-is-none.toml"));
    }
}
