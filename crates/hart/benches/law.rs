//! A law in C: interpreted, translated, and as native code, in interleaved runs of one mix of events (49 % packets to
//! send, 49 % data and ACKs, 2 % CNPs) over 64 queue pairs.
//!
//! `cargo bench -p roci-hart`. The yardstick is compiled by the machine's own `cc`; all three must end in the same
//! contexts.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may give up")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use roci_hart::{
    CSR_WORDS, Core, Csr, CsrBlock, CsrMap, Extensions, Machine, OnRead, OnWrite, Program, Stop, Translation,
};
use rustix::time::{ClockId, clock_gettime};

const ELF: &[u8] = include_bytes!("law/law.elf");
const QPS: usize = 64;
const KIND: usize = 32;
const LENGTH: usize = 33;
const ECN: usize = 34;
const EVENT: usize = 48;
const NOW: usize = 49;
const ROUNDS: usize = 7;

fn program() -> Arc<Program> {
    let event = Csr::Word { index: 48, read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop };
    let csrs = CsrMap::default().with_words(0x800..0x840, 0).with(0x830, event);
    let extensions = Extensions { multiply: true, csr: true };
    Arc::new(Program::load(ELF, Machine { extensions, csrs, ..Machine::default() }).unwrap())
}

/// Nanoseconds of processor time that this thread has used.
fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// What one run of the mix took, and where it ended.
struct Outcome {
    ns_per_event: f64,
    checksum: u32,
    instructions: u64,
    cycles: u64,
}

/// Feeds `events` events to two cores through `run`, as `law/native.c` does to its functions.
fn mix(
    program: &Arc<Program>,
    events: u32,
    mut run: impl FnMut(&mut Core, &mut CsrBlock) -> Stop,
) -> Outcome {
    let mut blocks = vec![[0; CSR_WORDS]; QPS];
    for block in &mut blocks {
        (block[0], block[1]) = (100_000, 100_000);
    }
    let [mut tx, mut rx] = ["tx", "rx"].map(|name| {
        let mut core = Core::new(program.clone());
        core.set_pc(program.symbol(name).unwrap());
        core
    });
    let (mut random, mut now) = (1u32, 0u32);
    let start = cpu_ns();
    for _ in 0..events {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let block = &mut blocks[random as usize % QPS];
        let draw = (random >> 8) % 100;
        now = now.wrapping_add(40);
        block[NOW] = now;
        block[EVENT] = 1;
        block[LENGTH] = 1024;
        let stop = if draw < 49 {
            run(&mut tx, block)
        } else {
            block[KIND] = if draw < 98 { 1 + (draw & 1) } else { 3 };
            block[ECN] = if (random >> 20).is_multiple_of(50) { 3 } else { 2 };
            run(&mut rx, block)
        };
        assert_eq!(stop, Stop::Written { csr: 0x830 });
    }
    let spent = cpu_ns() - start;
    let checksum = blocks.as_flattened().iter().fold(0u32, |sum, word| sum.rotate_left(1) ^ word);
    let instructions = tx.retired() + rx.retired();
    Outcome {
        ns_per_event: spent / f64::from(events),
        checksum,
        instructions,
        cycles: tx.cycles() + rx.cycles(),
    }
}

/// Compiles the yardstick; `None` where there is no C compiler.
fn native() -> Option<std::path::PathBuf> {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-law");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/law");
    let status = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&binary)
        .args([sources.join("law.c"), sources.join("native.c")])
        .status();
    status.is_ok_and(|status| status.success()).then_some(binary)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds of processor time per instruction, interpreted, in a loop that computes (`counted` of the tests' image):
/// what an instruction costs where events do not end after a dozen.
fn interpreted_loop(events: u32) -> f64 {
    const IMAGE: &[u8] = include_bytes!("../tests/images/events.elf");
    let event = Csr::Word { index: 0, read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop };
    let csrs = CsrMap::default().with(0x800, event).with_words(0x801..0x802, 1);
    let program = Arc::new(Program::load(IMAGE, Machine { csrs, ..Machine::default() }).unwrap());
    let mut core = Core::new(program.clone());
    core.set_pc(program.symbol("counted").unwrap());
    let mut block = [0; CSR_WORDS];
    let start = cpu_ns();
    for event in 1..=events {
        block[0] = event;
        assert_eq!(core.run(&mut block, u64::MAX), Stop::Written { csr: 0x800 });
    }
    (cpu_ns() - start) / core.retired() as f64
}

fn main() {
    let events: u32 = if std::env::args().any(|argument| argument == "--test") { 1_000 } else { 2_000_000 };
    let program = program();
    let start = cpu_ns();
    let translation = Translation::new(program.clone()).unwrap();
    let translating = (cpu_ns() - start) / 1e6;
    let native = native();
    let (mut natively, mut fast, mut slow, mut loops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut counts = (0, 0);
    for _ in 0..ROUNDS {
        let interpreted = mix(&program, events, |core, block| core.run(block, u64::MAX));
        let translated = mix(&program, events, |core, block| translation.run(core, block, u64::MAX));
        assert_eq!(translated.checksum, interpreted.checksum);
        counts = (interpreted.instructions, interpreted.cycles);
        assert_eq!((translated.instructions, translated.cycles), counts);
        slow.push(interpreted.ns_per_event);
        loops.push(interpreted_loop(events / 10));
        fast.push(translated.ns_per_event);
        if let Some(native) = &native {
            let output = Command::new(native).arg(events.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let (ns, checksum) = text.trim().split_once(' ').unwrap();
            assert_eq!(checksum.parse(), Ok(translated.checksum));
            natively.push(ns.parse().unwrap());
        }
    }
    let (instructions, cycles) = (counts.0 as f64 / f64::from(events), counts.1 as f64 / f64::from(events));
    let (slow, fast) = (median(slow), median(fast));
    println!("a law in C, {instructions:.1} instructions and {cycles:.1} cycles per event");
    println!(
        "interpreted  {slow:6.2} ns per event, {:.2} ns per instruction, events included",
        slow / instructions
    );
    println!("interpreted  {:6.2} ns per instruction in a loop (goal 2.5)", median(loops));
    let octets = translation.octets();
    println!(
        "translated   {fast:6.2} ns per event (goal 20), {octets} octets of code made in {translating:.1} ms"
    );
    if natively.is_empty() {
        println!("native       no C compiler");
    } else {
        let natively = median(natively);
        println!(
            "native       {natively:6.2} ns per event; translated takes {:.2} of it (goal 2)",
            fast / natively
        );
    }
}
