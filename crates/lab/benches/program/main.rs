//! The programs of `firmware/`, translated and interpreted, beside the same C compiled natively by the machine's own `cc`.
//!
//! `cargo bench -p roci-lab --bench program [-- [--typical] NAME…]`. Each program hears what 64 queue pairs hear, in turns
//! by chance, recorded register by register: the mix that DESIGN §4 prescribes (`Kind::Even`), 49 % packets to be sent, 49 %
//! data or acknowledgements, 2 % CNPs; with `--typical` the stream of `roci program profile`, in which each program has a
//! mix of its own. What was heard stands behind each row. All three executors are given the same registers, in
//! interleaved runs, and must come to the same answers, commands, credit and contexts; the two of the core also to the
//! same cycles, which are those that the law counts in a run. Times are medians of processor time per event.
//!
//! The columns, in ns per event unless they say otherwise:
//!
//! | column | what it is |
//! | --- | --- |
//! | alone: native | the C as `cc -O2` compiles it, called once per event; less what the harness in C takes by itself |
//! | alone: full | all of the image translated, `send` too; less what the harness in Rust takes by itself |
//! | alone: run | as a simulation and the wire run it: the same, but a `send` that answers by rote (`roci_hart::Rote`), which that of all five laws does, is not run at all; less the harness too |
//! | whole: native, full, run | the same three with their harness: the event's 32 registers brought in from the record, the program, its answer and commands taken; nothing is subtracted |
//! | of native | the column before it over the native time of its group |
//! | interpreted | all of the image interpreted, ns per instruction, less the harness |
//! | instructions, cycles | of the image per event, those of a `send` by rote too |
//!
//! The harness by itself answers each event at once. It touches the same registers, so that what "alone" leaves out is also what
//! a program does not pay that finds its registers in the cache; "whole" has no such allowance. No column holds what the
//! engine or a NIC does around an event.
#![expect(clippy::unwrap_used, reason = "a bench may give up")]
#![expect(clippy::cast_possible_truncation, reason = "streams are short")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use roci_control::program::{Image, Options, Programmed, csr};
use roci_control::{Class, Law};
use roci_hart::{Core, CsrBlock, Program, Rote, Stop, Translation};
use roci_lab::program::stream::{Kind, Stream};
use roci_lab::program::{Side, build, class_name, machine};
use roci_units::Random;
use rustix::time::{ClockId, clock_gettime};

/// The five laws, and the two programs that are asked about each packet.
const PROGRAMS: [&str; 7] = ["dcqcn", "timely", "hpcc", "swift", "homa", "paced", "credit"];
const PAIRS: usize = 64;
const ROUNDS: usize = 11;
/// Cycles that an event may take.
const BUDGET: u64 = 10_000;

/// What is to be reached: of the native time, ns per event, ns per instruction.
const RATIO: f64 = 2.0;
const TRANSLATED_NS: f64 = 20.0;
const INTERPRETED_NS: f64 = 2.5;

/// Nanoseconds of processor time that this thread has used.
fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// What one program hears.
#[derive(Default)]
struct Record {
    /// The contexts at the start.
    initial: Vec<CsrBlock>,
    places: Vec<Place>,
    /// The registers of header and event.
    told: Vec<[u32; 32]>,
    /// What commands to show other switches bring.
    shown: Vec<[u32; csr::HEADER_WORDS]>,
    /// Words of its own in each packet.
    own_words: u8,
    /// The cycles of all events, as the law counts them.
    cycles: u64,
    kinds: BTreeMap<u32, u32>,
}

/// What comes of the commands that programs give.
struct Taken {
    sum: u32,
    /// One of them asked to be shown other switches.
    shows: bool,
}

impl Taken {
    /// Takes those that wait in a core's queue.
    #[inline(always)]
    fn take(&mut self, core: &mut Core) {
        for &word in core.queue() {
            self.sum = self.sum.rotate_left(5) ^ word;
            self.shows |= word >> 28 == 11;
        }
        core.empty_queue();
    }
}

/// Where an event belongs.
#[derive(Clone, Copy)]
struct Place {
    pair: u16,
    sends: bool,
    /// The first of what it may ask to be shown.
    shown: u32,
}

impl Record {
    /// The first `events` events of all.
    fn new(name: &str, file: &[u8], kind: Kind, events: usize) -> Self {
        let options = Options { machine: machine("swcc").unwrap(), ..Options::default() };
        let mut law =
            Programmed::new(Arc::new(Image::new(name, file, &options).unwrap()), Law::None).unwrap();
        if name == "credit" {
            law.set_initial("total_credit", "64KiB").unwrap();
        }
        let own_words = law.image().header_words();
        let stream = |seed| Stream::new(Law::Program(Box::new(law.clone())), kind, seed);
        let mut streams: Vec<Stream> = (0..PAIRS as u64).map(stream).collect();
        let mut random = Random::new(1, 0);
        let mut record = Self { initial: vec![[0; 64]; PAIRS], own_words, ..Self::default() };
        let mut met = [false; PAIRS];
        while record.places.len() < events {
            let pair = random.below(PAIRS as u64) as usize;
            streams[pair].packet(&mut |heard| {
                if record.places.len() == events {
                    return;
                }
                let run = heard.run;
                if !std::mem::replace(&mut met[pair], true) {
                    record.initial[pair] = run.registers;
                }
                let shown = record.shown.len() as u32;
                record.places.push(Place { pair: pair as u16, sends: run.class == Class::TRANSMIT, shown });
                record.told.push(run.registers[32..].try_into().unwrap());
                record.shown.extend(run.shown);
                record.cycles += run.cycles;
                *record.kinds.entry(run.class.0).or_default() += 1;
            });
            assert_eq!(streams[pair].failure(), None);
        }
        record.shown.push([0; csr::HEADER_WORDS]);
        record
    }

    /// As `native.c` reads it.
    fn write(&self, path: &Path) {
        let counts = [self.initial.len(), self.places.len(), self.shown.len()].map(|count| count as u32);
        let places = self
            .places
            .iter()
            .flat_map(|place| [u32::from(place.pair) | u32::from(place.sends) << 16, place.shown]);
        let words = counts.into_iter().chain(self.initial.as_flattened().iter().copied()).chain(places);
        let words = words.chain(self.told.as_flattened().iter().copied());
        let words = words.chain(self.shown.as_flattened().iter().copied());
        std::fs::write(path, words.flat_map(u32::to_ne_bytes).collect::<Vec<u8>>()).unwrap();
    }

    /// All events once, each by `run`. Returns the time, and the checksum of what came of them.
    #[inline(always)]
    fn replay(
        &self,
        blocks: &mut [CsrBlock],
        mut run: impl FnMut(Place, &mut CsrBlock, &mut Taken) -> Stop,
    ) -> (f64, u32) {
        const EVENT: u16 = csr::number(csr::EVENT);
        let start = cpu_ns();
        blocks.copy_from_slice(&self.initial);
        let mut taken = Taken { sum: 0, shows: false };
        for (&place, told) in self.places.iter().zip(&self.told) {
            let block = &mut blocks[usize::from(place.pair) % PAIRS];
            block[32..].copy_from_slice(told);
            let mut shown = place.shown as usize;
            loop {
                let stop = run(place, block, &mut taken);
                if std::mem::take(&mut taken.shows) {
                    block[csr::HEADER..csr::EVENT].copy_from_slice(&self.shown[shown]);
                    shown += 1;
                }
                match stop {
                    Stop::Written { csr: EVENT } => break,
                    Stop::Written { .. } => {}
                    stop => panic!("{stop:?}"),
                }
            }
            let answer = block[csr::EVENT] ^ block[csr::OPCODE];
            taken.sum = taken.sum.rotate_left(1)
                ^ answer
                ^ block[csr::RATE]
                ^ block[csr::WINDOW]
                ^ block[csr::TOKENS];
        }
        let spent = cpu_ns() - start;
        let contexts = blocks.iter().flat_map(|block| &block[..32]);
        (spent / self.places.len() as f64, contexts.fold(taken.sum, |sum, word| sum.rotate_left(1) ^ word))
    }

    fn mix(&self) -> String {
        let mut kinds: Vec<_> = self.kinds.iter().map(|(&class, &count)| (count, class)).collect();
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        let share = |count: u32| f64::from(count) * 100.0 / self.places.len() as f64;
        let kinds =
            kinds.iter().map(|&(count, class)| format!("{} {:.1}", class_name(Class(class)), share(count)));
        kinds.collect::<Vec<_>>().join(", ")
    }
}

/// Both sides' cores of a program, each at its first poll.
fn cores(program: &Arc<Program>) -> [Core; 2] {
    Side::ALL.map(|side| {
        let mut core = Core::new(program.clone());
        core.set_pc(side.start(program).unwrap());
        let mut block = [0; 64];
        while let Stop::Written { .. } = core.run(&mut block, BUDGET) {}
        core.empty_queue();
        core
    })
}

/// Cycles and instructions of both sides.
fn clocks(cores: &[Core; 2]) -> [u64; 2] {
    [cores[0].cycles() + cores[1].cycles(), cores[0].retired() + cores[1].retired()]
}

/// What a `send` answers by rote, if it does, once `core` has answered its first event: as a law finds it out.
fn rote(program: &Program, mut core: Core) -> Option<Rote> {
    let mut block = [0; 64];
    block[csr::EVENT] = Class::TRANSMIT.0;
    core.run(&mut block, BUDGET);
    let sends = |rote: &Rote| rote.csr == csr::number(csr::EVENT) && rote.value == 1;
    program.rote(core.pc()).filter(sends)
}

/// Compiles the yardstick; `None` where there is no C compiler that takes it.
fn native(name: &str, folder: &Path) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let header = build::HEADER.replacen("#define Event ", "#define Event BEGIN ", 1).replacen(
        "#define pollEvent(",
        "#define pollBegun(",
        1,
    );
    assert!(header.contains("#define Event BEGIN ") && header.contains("#define pollBegun("));
    std::fs::write(folder.join("program.h"), header).unwrap();
    let binary = folder.join(name);
    let source = repository.join("firmware").join(format!("{name}.c"));
    let status = Command::new("cc")
        .args(["-O2", "-fno-strict-aliasing", "-w", "-o"])
        .arg(&binary)
        .arg(format!("-DPROGRAM=\"{}\"", source.display()))
        .arg("-I")
        .arg(folder)
        .arg(repository.join("crates/lab/benches/program/native.c"))
        .status();
    status.is_ok_and(|status| status.success()).then_some(binary)
}

/// The median; not a number where there are none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What one executor took, in nanoseconds per event; not a number where there is no C compiler.
#[derive(Clone, Copy)]
struct Took {
    /// The program by itself: the harness is subtracted.
    alone: f64,
    /// With its registers brought in and its answer taken.
    whole: f64,
}

/// What the rounds of one program came to.
struct Times {
    native: Took,
    translated: Took,
    in_a_run: Took,
    interpreted: Took,
    instructions: f64,
    cycles: f64,
}

/// The rounds of one executor.
#[derive(Default)]
struct Rounds {
    alone: Vec<f64>,
    whole: Vec<f64>,
}

impl Rounds {
    fn note(&mut self, harness: f64, whole: f64) {
        self.alone.push(whole - harness);
        self.whole.push(whole);
    }

    fn took(self) -> Took {
        Took { alone: median(self.alone), whole: median(self.whole) }
    }
}

fn measure(name: &str, record: &Record, passes: usize, folder: &Path) -> Times {
    let file = roci_lab::program::shipped(&format!("firmware/{name}.elf")).unwrap();
    let program = Arc::new(Program::load(file, machine("swcc").unwrap()).unwrap());
    let translation = Translation::without_dead_registers(program.clone()).unwrap();
    let stream = folder.join(format!("{name}.stream"));
    record.write(&stream);
    let native = native(name, folder);
    let [mut translated, mut in_a_run, mut interpreted] = [(); 3].map(|()| cores(&program));
    let rote = rote(&program, translated[1].clone()).filter(|_| record.own_words == 0);
    let begun = clocks(&translated);
    let mut blocks = vec![[0; 64]; PAIRS];
    // What an event takes depends a little on the one before it, so here each queue pair has cores of its own, as it had when
    // the law was recorded.
    let mut own = vec![cores(&program); PAIRS];
    record.replay(&mut blocks, |place, block, taken| {
        let core = &mut own[usize::from(place.pair)][usize::from(place.sends)];
        let stop = core.run(block, BUDGET);
        taken.take(core);
        stop
    });
    let own: u64 = own.iter().map(|cores| clocks(cores)[0] - begun[0]).sum();
    assert_eq!(own, record.cycles, "{name}: the law counts other cycles");
    let [mut fast_rounds, mut run_rounds, mut slow_rounds, mut native_rounds]: [Rounds; 4] =
        Default::default();
    let mut cycles_by_rote = 0;
    for _ in 0..ROUNDS {
        let mut spent = [0.0; 4];
        let mut sum = 0;
        for _ in 0..passes {
            let alone = record.replay(&mut blocks, |_, block, _| {
                block[csr::EVENT] = 3;
                Stop::Written { csr: csr::number(csr::EVENT) }
            });
            std::hint::black_box(alone.1);
            let fast = record.replay(&mut blocks, |place, block, taken| {
                let core = &mut translated[usize::from(place.sends)];
                let stop = translation.run(core, block, BUDGET);
                taken.take(core);
                stop
            });
            let running = record.replay(&mut blocks, |place, block, taken| {
                let core = &mut in_a_run[usize::from(place.sends)];
                match &rote {
                    Some(rote) if place.sends && core.pc() == rote.pc => {
                        block[csr::EVENT] = rote.value;
                        cycles_by_rote += rote.cycles;
                        Stop::Written { csr: rote.csr }
                    }
                    _ => {
                        let stop = translation.run(core, block, BUDGET);
                        taken.take(core);
                        stop
                    }
                }
            });
            let slow = record.replay(&mut blocks, |place, block, taken| {
                let core = &mut interpreted[usize::from(place.sends)];
                let stop = core.run(block, BUDGET);
                taken.take(core);
                stop
            });
            assert_eq!((fast.1, running.1), (slow.1, slow.1), "{name}: translated and interpreted");
            sum = slow.1;
            for (spent, (time, _)) in spent.iter_mut().zip([alone, fast, running, slow]) {
                *spent += time / passes as f64;
            }
        }
        assert_eq!(clocks(&translated), clocks(&interpreted), "{name}: cycles and instructions");
        let with_rote = clocks(&in_a_run)[0] + cycles_by_rote;
        assert_eq!(with_rote, clocks(&interpreted)[0], "{name}: cycles, of answers by rote too");
        let [harness, others @ ..] = spent;
        for (rounds, whole) in [&mut fast_rounds, &mut run_rounds, &mut slow_rounds].into_iter().zip(others) {
            rounds.note(harness, whole);
        }
        if let Some(native) = &native {
            let output = Command::new(native).arg(&stream).arg(passes.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let [harness, whole, checksum] = text.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{name}: the native program failed, {}", output.status)
            };
            assert_eq!(checksum.parse(), Ok(sum), "{name}: native and translated");
            native_rounds.note(harness.parse().unwrap(), whole.parse().unwrap());
        }
    }
    let [cycles, instructions] = [0, 1].map(|at| clocks(&translated)[at] - begun[at]);
    let replays = (ROUNDS * passes) as u64;
    let per_event = |count: u64| count as f64 / (replays * record.places.len() as u64) as f64;
    Times {
        native: native_rounds.took(),
        translated: fast_rounds.took(),
        in_a_run: run_rounds.took(),
        interpreted: slow_rounds.took(),
        instructions: per_event(instructions),
        cycles: per_event(cycles),
    }
}

/// Whether a goal is met; it is open where there is no C compiler.
fn met(value: f64, goal: f64) -> &'static str {
    match value.is_nan() {
        true => "?",
        false if value <= goal => "yes",
        false => "no",
    }
}

/// A time, what it is of the native one, and whether that and its own goal are met.
fn beside(time: f64, native: f64) -> String {
    let ratio = time / native;
    format!(
        "{time:>6.2} {:>9} {:>3} {:>4}",
        format!("{ratio:.2}"),
        met(ratio, RATIO),
        met(time, TRANSLATED_NS)
    )
}

fn main() {
    let (options, asked): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let is_set = |name: &str| options.iter().any(|option| option == name);
    let (events, passes) = if is_set("--test") { (1_000, 1) } else { (32_768, 32) };
    let kind = if is_set("--typical") { Kind::Typical } else { Kind::Even };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program");
    std::fs::create_dir_all(&folder).unwrap();
    println!(
        "ns per event, medians of {ROUNDS} rounds of {} events; goals: translated at most {RATIO} of native and \
         {TRANSLATED_NS} ns, interpreted at most {INTERPRETED_NS} ns per instruction",
        events * passes
    );
    println!(
        "{}",
        match kind {
            Kind::Even =>
                "mix: 49 % Transmit, 49 % data or acknowledgements, 2 % CNP; for who hears no CNP, what else is \
                 rarest, or nothing; and timers as they run out",
            _ => "mix: each program's own in the stream of `roci program profile`; no goal is set for it",
        }
    );
    let verdicts = "of native ≤ 2 ≤ 20";
    println!(
        "{:<8} {:^58} {:^58}\n{:<8} {:>6} {:>6} {verdicts} {:>6} {verdicts} {:>6} {:>6} {verdicts} {:>6} {verdicts} \
         {:>11} {:>5} {:>12} {:>6}",
        "",
        "alone",
        "whole",
        "program",
        "native",
        "full",
        "run",
        "native",
        "full",
        "run",
        "interpreted",
        "≤ 2.5",
        "instructions",
        "cycles",
    );
    for name in PROGRAMS.iter().filter(|name| asked.is_empty() || asked.iter().any(|one| one == *name)) {
        let file = roci_lab::program::shipped(&format!("firmware/{name}.elf")).unwrap();
        let record = Record::new(name, file, kind, events);
        let Times { native, translated, in_a_run, interpreted, instructions, cycles } =
            measure(name, &record, passes, &folder);
        let per_instruction = interpreted.alone / instructions;
        println!(
            "{name:<8} {:>6.2} {} {} {:>6.2} {} {} {per_instruction:>11.2} {:>5} {instructions:>12.1} {cycles:>6.1}  {}",
            native.alone,
            beside(translated.alone, native.alone),
            beside(in_a_run.alone, native.alone),
            native.whole,
            beside(translated.whole, native.whole),
            beside(in_a_run.whole, native.whole),
            met(per_instruction, INTERPRETED_NS),
            record.mix(),
        );
    }
}
