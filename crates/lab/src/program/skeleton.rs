//! A new program: a skeleton in C that is a law already, and a scenario that runs it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const SOURCE: &str = include_str!("skeleton.c");
const SCENARIO: &str = include_str!("skeleton.toml");

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skeleton {
    /// The program.
    pub source: PathBuf,
    /// The image that it will be built into.
    pub image: PathBuf,
    /// A scenario that runs it.
    pub scenario: PathBuf,
}

/// Writes a program called `name` and its scenario into a new folder of that name in `parent`.
///
/// # Errors
/// A name that is not one of letters, digits, `-` and `_`, or a file that is there already.
pub fn write(parent: &Path, name: &str) -> io::Result<Skeleton> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) || name.starts_with('-') {
        let message = format!("`{name}` is no name for a program: take letters, digits, - and _");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let folder = parent.join(name);
    let file = |ending: &str| folder.join(format!("{name}.{ending}"));
    let skeleton = Skeleton { source: file("c"), image: file("elf"), scenario: file("toml") };
    if let Some(there) = [&skeleton.source, &skeleton.scenario].into_iter().find(|path| path.exists()) {
        let message = format!(
            "{} exists already, and nothing was written: choose another name, or remove {}",
            there.display(),
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    fs::create_dir_all(&folder)?;
    for (path, text) in [(&skeleton.source, SOURCE), (&skeleton.scenario, SCENARIO)] {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(named)?;
        file.write_all(text.replace("NAME", name).as_bytes()).map_err(named)?;
    }
    Ok(skeleton)
}
