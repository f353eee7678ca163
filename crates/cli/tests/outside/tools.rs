//! Finding and running tools that are not ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A folder for this run of the tests, emptied when it begins.
pub(crate) fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a scratch folder");
        path
    })
}

/// What `command` prints; it must be there and succeed. `remedy` says how to install it.
pub(crate) fn output_of(command: &mut Command, remedy: &str) -> String {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot run {name}: {error}. To install it: {remedy}"),
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed ({}): {error}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A Python that has pyarrow: the system's, or one in a virtual environment made for these tests.
pub(crate) fn python_with_pyarrow() -> PathBuf {
    let has_pyarrow = |python: &Path| {
        let tried = Command::new(python).args(["-c", "import pyarrow.parquet"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let system = PathBuf::from("python3");
    if has_pyarrow(&system) {
        return system;
    }
    // Beside the scratch folder, so that it outlives it.
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pyarrow");
    let python = environment.join("bin/python");
    if !has_pyarrow(&python) {
        let mut make = Command::new(&system);
        make.args(["-m", "venv", "--clear"]).arg(&environment);
        output_of(&mut make, "apt-get install python3 python3-venv");
        let mut install = Command::new(&python);
        output_of(install.args(["-m", "pip", "install", "--quiet", "pyarrow"]), "pip install pyarrow");
    }
    python
}
