//! Asks qemu's user-mode emulator (Debian's qemu-user) whether the recorded vectors are right, and whether random programs
//! end on our core as they do there: `cargo test -p roci-hart --features outside-tools --test qemu`. With
//! `ROCI_UPDATE_VECTORS=1` it records the vectors; `ROCI_WANDER=1000..9000` says the seeds of the programs.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

#[path = "support/elf.rs"]
mod elf;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/suite.rs"]
mod suite;
#[cfg(feature = "translate")]
#[path = "support/wander.rs"]
mod wander;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What the program in `elf` writes when qemu runs it.
fn answer(name: &str, elf: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, elf).expect("the scratch directory can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("the file is ours");
    let output = Command::new("qemu-riscv32").arg(&path).output().expect("qemu-riscv32 is installed");
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn qemu_gives_the_recorded_vectors() {
    let suite::Suite { elf, names } = suite::suite();
    let written = answer("suite.elf", &elf);
    let values: Vec<u32> =
        written.as_chunks::<4>().0.iter().map(|octets| u32::from_le_bytes(*octets)).collect();
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

/// Registers and memory are what qemu leaves, in the interpreter and translated, at one go and in short turns; and both of
/// ours have taken the same cycles.
#[cfg(feature = "translate")]
#[test]
fn random_programs_end_as_they_do_in_qemu() {
    use roci_hart::{
        CSR_WORDS, Cause, Core, Extensions, Machine, Misaligned, Program, Stop, Translation, Trap,
    };
    use std::sync::Arc;

    let seeds = std::env::var("ROCI_WANDER").unwrap_or_else(|_| "0..100".to_owned());
    let (first, end) = seeds.split_once("..").expect("two numbers and two points");
    let [first, end]: [u64; 2] = [first, end].map(|number| number.parse().expect("a number"));
    let extensions = Extensions { multiply: true, csr: true };
    let machine =
        Machine { memory: suite::MAP, extensions, misaligned: Misaligned::Allow, ..Machine::default() };
    for seed in first..end {
        let elf = wander::program(seed);
        let expected = answer("wander.elf", &elf);
        let program = Arc::new(Program::load(&elf, machine.clone()).expect("the file is right"));
        let exact = Translation::new(program.clone()).expect("the host is known");
        let fast = Translation::without_dead_registers(program.clone()).expect("the host is known");
        let mut clocks = None;
        for (translation, turn) in [None, Some(&exact), Some(&fast)]
            .into_iter()
            .flat_map(|one| [(one, u64::MAX), (one, 1), (one, 7)])
        {
            let mut core = Core::new(program.clone());
            let csrs = &mut [0; CSR_WORDS];
            let trap = loop {
                let stop = match translation {
                    Some(translation) => translation.run(&mut core, csrs, turn),
                    None => core.run(csrs, turn),
                };
                match stop {
                    Stop::Budget => {}
                    Stop::Trap(trap) => break trap,
                    other => panic!("seed {seed}: {other:?}"),
                }
            };
            assert!(matches!(trap, Trap { cause: Cause::EnvironmentCall, .. }), "seed {seed}: {trap:?}");
            let found: Vec<u8> = (0..wander::SEEN)
                .map(|at| core.memory().load(wander::seen_from() + at, 1).expect("it is in data") as u8)
                .collect();
            assert!(
                found == expected,
                "seed {seed}, {turn} cycles a turn, translated {}",
                translation.is_some()
            );
            let clock = (trap.pc, core.cycles(), core.retired());
            assert_eq!(*clocks.get_or_insert(clock), clock, "seed {seed}");
        }
    }
}
