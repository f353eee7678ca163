//! Files that a scenario names.

use super::source::{Located, ScenarioError, Source};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file that is read: 1 GiB. A million flows take 40 MB.
const LONGEST: u64 = 1 << 30;

/// Where the file `name` of a scenario lies: beside the scenario.
pub(super) fn path(source: &Source, name: &str) -> PathBuf {
    Path::new(source.file()).parent().unwrap_or(Path::new("")).join(name)
}

/// The text of the file `name`, from this program where it came with the scenario. Only regular files are read, so that a scenario cannot make us wait on a device.
pub(super) fn read(source: &Source, name: &Located<String>) -> Result<String, ScenarioError> {
    if let Some(text) = source.beside(&name.value) {
        return Ok(text.to_owned());
    }
    read_at(source, &path(source, &name.value), name)
}

/// The octets of the file `name`, likewise.
pub(super) fn octets(source: &Source, name: &Located<String>) -> Result<Vec<u8>, ScenarioError> {
    match source.beside(&name.value) {
        Some(text) => Ok(text.as_bytes().to_vec()),
        None => octets_at(source, &path(source, &name.value), name),
    }
}

/// The text of the file at `path`, which the scenario names by `name`.
pub(super) fn read_at(source: &Source, path: &Path, name: &Located<String>) -> Result<String, ScenarioError> {
    let octets = octets_at(source, path, name)?;
    String::from_utf8(octets).map_err(|_| refuse(source, path, name, "it is no text in UTF-8"))
}

/// The octets of the file at `path`, which the scenario names by `name`.
pub(super) fn octets_at(
    source: &Source,
    path: &Path,
    name: &Located<String>,
) -> Result<Vec<u8>, ScenarioError> {
    let refuse = |why: &str| refuse(source, path, name, why);
    let metadata = std::fs::metadata(path).map_err(|error| refuse(&error.to_string()))?;
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file"));
    }
    let file = std::fs::File::open(path).map_err(|error| refuse(&error.to_string()))?;
    let mut octets = Vec::new();
    let length =
        file.take(LONGEST + 1).read_to_end(&mut octets).map_err(|error| refuse(&error.to_string()))?;
    if length as u64 > LONGEST {
        return Err(refuse("it is longer than 1 GiB"));
    }
    Ok(octets)
}

fn refuse(source: &Source, path: &Path, name: &Located<String>, why: &str) -> ScenarioError {
    source.error(
        name.origin,
        format!("cannot read {}: {why}", path.display()),
        "name a readable file; the path begins at the scenario's folder",
    )
}
