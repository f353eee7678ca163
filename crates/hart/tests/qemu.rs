//! Asks qemu's user-mode emulator (Debian's qemu-user) whether the recorded vectors are right:
//! `cargo test -p roci-hart --features outside-tools --test qemu`. With `ROCI_UPDATE_VECTORS=1` it records them.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

#[path = "support/elf.rs"]
mod elf;
#[path = "support/suite.rs"]
mod suite;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

#[test]
fn qemu_gives_the_recorded_vectors() {
    let suite::Suite { elf, names } = suite::suite();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite.elf");
    std::fs::write(&path, elf).expect("the scratch directory can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("the file is ours");
    let output = Command::new("qemu-riscv32").arg(&path).output().expect("qemu-riscv32 is installed");
    assert!(output.status.success(), "{output:?}");
    let values: Vec<u32> =
        output.stdout.as_chunks::<4>().0.iter().map(|octets| u32::from_le_bytes(*octets)).collect();
    let found = suite::listing(&names, &values);
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors.txt");
    if std::env::var_os("ROCI_UPDATE_VECTORS").is_some() {
        std::fs::write(&recorded, &found).expect("the repository can be written");
    }
    let recorded = std::fs::read_to_string(recorded).expect("the vectors are there");
    for (found, recorded) in found.lines().zip(recorded.lines()) {
        assert_eq!(found, recorded);
    }
    assert_eq!(found.lines().count(), recorded.lines().count());
}
