//! A folder of its own for each test of the command, and what tests look at there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Four hosts that each send to one other.
pub(crate) const SMALL: &str = r#"
[topology]
kind = "star"
hosts = 4
rate = "10Gb/s"
delay = "1us"

[[traffic]]
kind = "permutation"
size = "200KB"

[measure]
sample = "10us"
"#;

/// An empty folder for one test, removed with its content when the test is over.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("roci-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn scenario(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    pub(crate) fn roci(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_roci")).args(arguments).current_dir(&self.0).output().unwrap()
    }

    /// The names of all files below the folder, with their paths, and of folders that hold nothing, which end in `/`.
    pub(crate) fn files(&self) -> Vec<String> {
        fn walk(folder: &Path, name: &str, names: &mut Vec<String>) {
            let before = names.len();
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = format!("{name}{}", path.file_name().unwrap().to_string_lossy());
                if path.is_dir() { walk(&path, &(name + "/"), names) } else { names.push(name) }
            }
            if names.len() == before && !name.is_empty() {
                names.push(name.to_owned());
            }
        }
        let mut names = Vec::new();
        walk(&self.0, "", &mut names);
        names.sort();
        names
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A summary without what may differ between two runs.
    pub(crate) fn summary(&self, name: &str) -> serde_json::Value {
        let mut summary: serde_json::Value = serde_json::from_slice(&self.read(name)).unwrap();
        assert!(summary.as_object_mut().unwrap().remove("host").is_some());
        summary
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}
