//! What a program will do, found out before it runs: that each event ends, and within how many cycles.
//!
//! The checker carries the program out on ranges instead of numbers, from each *poll*, where it waits for an event,
//! to the next. A loop is gone through turn by turn, so one that counts ends when its counter must have; where ways
//! meet, their ranges are joined and the longer way counts. How far two registers are apart is known where one was
//! made of the other by adding constants, for compilers count by whichever they have at hand. A call is followed into the function; a return is
//! believed when the saved address is proved to be there still. What is known at a poll is joined over all events
//! until it no longer changes, so the bound holds for every one of them.
//!
//! What cannot be proved is refused, with the place and the reason: a loop without a bound, recursion, a computed
//! jump, an instruction or a register that is not allowed, a stack that is too deep, a store that can only miss.
//! Accesses that may miss are left to the core, which checks each.

mod arc;
mod evaluate;
mod gaps;
mod graph;
mod interval;
mod order;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use crate::csr::{Csr, OnRead, OnWrite};
use crate::instruction::Instruction;
use crate::program::{Machine, Program};
use evaluate::{Evaluation, Wrong};
use graph::Graph;
use state::State;

/// What a program may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Where cores start; empty stands for the program's entry point.
    pub starts: Vec<u32>,
    /// Reading one of these CSRs ends an event and begins the next.
    pub polls: BTreeSet<u16>,
    /// Writing one of these CSRs answers the event.
    pub answers: BTreeSet<u16>,
    /// Whether each event must be answered, and once.
    pub answers_once: bool,
    /// CSRs that may be read.
    pub readable: BTreeSet<u16>,
    /// CSRs that may be written.
    pub writable: BTreeSet<u16>,
    /// The most cycles that an event may take, and the start: from poll to poll, and from answer to answer where each event
    /// must be answered.
    pub cycles_max: u64,
    /// How many instructions the checker looks at before it gives up, for all events and again for each kind.
    pub work_max: u64,
    /// Kinds of events that are bounded each by itself as well.
    pub kinds: Vec<Kind>,
    /// CSRs of which is told what is written there ([`Bounds::values`], [`Bounds::written`]).
    pub watched: BTreeSet<u16>,
    /// What an answer may be, the least and the greatest; answers beyond are told of ([`Bounds::kind_wrong`]).
    pub valid: Option<(u32, u32)>,
    /// Functions that must not return, by their addresses: nothing waits behind them.
    pub endless: BTreeSet<u32>,
    /// Divisions by their addresses whose divisor is taken for granted not to be zero. Nothing is proved with that, but it tells
    /// whether a refusal comes of such a quotient.
    pub divisors: BTreeSet<u32>,
}

/// A kind of event, known by what CSRs hold when it begins: each is read as that until the program writes it.
pub type Kind = BTreeMap<u16, u32>;

impl Policy {
    /// All that the machine allows: polls are the registers that make their reader wait, an answer is written to one of
    /// these, any number of times, and an event may take 100,000 cycles.
    pub fn of(machine: &Machine) -> Self {
        let select = |want: fn(Csr) -> bool| (0..4096).filter(|&csr| want(machine.csrs.at(csr))).collect();
        Self {
            starts: Vec::new(),
            polls: select(|csr| matches!(csr, Csr::Word { read: OnRead::WaitWhileZero, .. })),
            answers: select(|csr| {
                matches!(
                    csr,
                    Csr::Word {
                        read: OnRead::WaitWhileZero,
                        write: OnWrite::StoreAndStop | OnWrite::Store,
                        ..
                    }
                )
            }),
            answers_once: false,
            readable: select(|csr| !matches!(csr, Csr::Absent | Csr::Word { read: OnRead::Refuse, .. })),
            writable: select(|csr| !matches!(csr, Csr::Absent | Csr::Word { write: OnWrite::Refuse, .. })),
            cycles_max: 100_000,
            work_max: 4_000_000,
            kinds: Vec::new(),
            watched: BTreeSet::new(),
            valid: None,
            endless: BTreeSet::new(),
            divisors: BTreeSet::new(),
        }
    }
}

/// What a program needs at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Cycles from the start to the first poll.
    pub startup_cycles: u64,
    /// For each poll by its address, the cycles from there to the next poll: that of this poll's own instruction
    /// counts, that of the next does not.
    pub event_cycles: BTreeMap<u32, u64>,
    /// The most cycles of an event of each of [`Policy::kinds`], in their order.
    pub kind_cycles: Vec<u64>,
    /// The most cycles from the poll to the answer of an event of each of [`Policy::kinds`].
    pub kind_answers: Vec<u64>,
    /// Of each of [`Policy::kinds`], the answers by their addresses that are not [`Policy::valid`] whatever way leads there,
    /// as the least and the greatest that they can be. An answer that may be valid is not among them.
    pub kind_wrong: Vec<BTreeMap<u32, (u32, u32)>>,
    /// Of each of [`Policy::kinds`], the answers by their addresses.
    pub kind_answered: Vec<BTreeMap<u32, Answered>>,
    /// Of each of [`Policy::kinds`], the writes to [`Policy::watched`], by the register and their own addresses.
    pub kind_written: Vec<BTreeSet<(u16, u32)>>,
    /// The most cycles from an answer to the next poll. From answer to answer an event takes at most this, left over
    /// from the one before, and its own cycles up to the answer.
    pub after_answer: u64,
    /// The most cycles from the poll of any event to its answer.
    pub to_answer: u64,
    /// What is written to each of [`Policy::watched`], the start included, as the least and the greatest of each write;
    /// `None`: perhaps anything.
    pub values: BTreeMap<u16, Option<BTreeSet<(u32, u32)>>>,
    /// Stores by their addresses whose place is not proved to be in stack or data, with the first and the last address
    /// that it may be. Where it is neither, the core traps.
    pub stray_stores: BTreeMap<u32, (u32, u32)>,
    /// Loads alike, that are not proved to be in stack, data or ROM.
    pub stray_loads: BTreeMap<u32, (u32, u32)>,
    /// Stores of events that may be in data, by their addresses: the first octet that they may write, and the one after the last.
    pub data_stores: BTreeMap<u32, (u32, u32)>,
    /// Writes to each of [`Policy::watched`], by the register and their own addresses.
    pub written: BTreeMap<(u16, u32), Written>,
    /// Octets of stack.
    pub stack: u32,
    /// CSRs that it reads.
    pub reads: BTreeSet<u16>,
    /// CSRs that it writes.
    pub writes: BTreeSet<u16>,
    /// Instructions that it can reach.
    pub instructions: usize,
}

/// An answer, over all ways that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The least that it can be.
    pub low: u32,
    /// The greatest.
    pub high: u32,
    /// Those of the CSRs that the event's kind gives that hold it still, whatever way leads there.
    pub untouched: BTreeSet<u16>,
}

/// A write to a CSR, over all ways that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The least that is written.
    pub low: u32,
    /// The greatest.
    pub high: u32,
    /// Whether it is only carried out before the first event.
    pub at_start: bool,
}

impl Bounds {
    /// The most cycles of an event as those see it who post and wait for the answer: from one answer to the next.
    pub fn from_answer_to_answer(&self) -> u64 {
        self.after_answer + self.to_answer
    }

    /// The cycles of the longest event, from poll to poll.
    pub fn longest_event(&self) -> u64 {
        self.event_cycles.values().copied().max().unwrap_or(0)
    }
}

/// Why a program was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Refused {
    /// The address that is wrong.
    pub address: u32,
    /// The same with its function and source line, where they are known.
    pub place: String,
    /// The addresses of the calls that led there, the innermost first; calls in whose place a compiler has put the function
    /// itself are not among them ([`crate::inlined()`]).
    pub calls: Vec<u32>,
    /// What is wrong there.
    pub reason: Reason,
}

/// What is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A jump to an address that is no multiple of 4.
    #[error("jumps to the misaligned address {target:#010x}")]
    MisalignedJump {
        /// Where to.
        target: u32,
    },
    /// Control goes where no code is.
    #[error("goes on at {target:#010x}, where there is no code")]
    NoCode {
        /// Where to.
        target: u32,
    },
    /// A word that is no instruction of this core.
    #[error("{word:#010x} is no instruction of this core")]
    Illegal {
        /// The word.
        word: u32,
    },
    /// ECALL.
    #[error("calls an environment that is not there")]
    EnvironmentCall,
    /// EBREAK, which compilers also leave where they found undefined behaviour.
    #[error("breaks into a debugger that is not there")]
    Breakpoint,
    /// The machine has no such CSR.
    #[error("there is no CSR {csr:#05x}")]
    NoCsr {
        /// The register.
        csr: u16,
    },
    /// The CSR may not be read.
    #[error("CSR {csr:#05x} may not be read")]
    CsrRead {
        /// The register.
        csr: u16,
    },
    /// The CSR may not be written.
    #[error("CSR {csr:#05x} may not be written")]
    CsrWrite {
        /// The register.
        csr: u16,
    },
    /// A jump through a register whose value is not set just before.
    #[error("jumps to a computed address (compile with -fno-jump-tables, and call no function by pointer)")]
    ComputedJump,
    /// A return from where no call led.
    #[error("returns to where no call came from")]
    ReturnToNowhere,
    /// A return from a function that the core is to stay in ([`Policy::endless`]).
    #[error(
        "returns from {function}, and the program ends there: wait for the next event in an endless loop instead, `while (true) {{ … }}`"
    )]
    Ends {
        /// The function's name, or its address where it has none.
        function: String,
    },
    /// A return whose saved address may have been lost.
    #[error("returns, but not provably to its caller{}", .blur.as_ref().map(|at| format!(": the store at {at} may overwrite the saved address")).unwrap_or_default())]
    UnprovedReturn {
        /// The place of a store that may have overwritten it.
        blur: Option<String>,
    },
    /// A function that calls itself, at once or by way of others.
    #[error(
        "recursion: calls {function}, which has not returned yet; its depth cannot be bounded, so write a loop with a bound in its place"
    )]
    Recursion {
        /// The function's name, or its address where it has none.
        function: String,
    },
    /// A loop that changes nothing that its end depends on, as far as can be seen.
    #[error("the loop that starts here has no bound that can be proved")]
    EndlessLoop,
    /// A loop that was still going at the limit.
    #[error("the loop that starts here is not proved to end within {cycles} cycles")]
    LongLoop {
        /// The limit.
        cycles: u64,
    },
    /// An event that takes too long.
    #[error("an event can take more than {cycles} cycles")]
    TooLong {
        /// The limit.
        cycles: u64,
    },
    /// Control comes to the next poll, and there is a way on which the event was not answered.
    #[error("waits for the next event, and may not have answered this one")]
    Unanswered,
    /// An answer to an event that may have one.
    #[error("answers an event that may have been answered before")]
    AnsweredAgain,
    /// A CSR is read or written between an answer and the next poll, when the registers may be those of the next event.
    #[error(
        "uses CSR {csr:#x} after the event may have been answered, when it is the next event's: post the event last"
    )]
    AfterAnswer {
        /// Which.
        csr: u16,
    },
    /// The checker gave up.
    #[error("too many turns and ways to follow")]
    NotFollowed,
    /// The program is too large, with each call counted as a copy of the function.
    #[error("too many calls to follow")]
    TooLarge,
    /// Loops within loops within loops.
    #[error("loops nest too deep here")]
    DeepLoops,
    /// The stack does not suffice.
    #[error("uses {octets} octets of stack, but there are {available}")]
    StackOverflow {
        /// What it uses.
        octets: u32,
        /// What there is.
        available: u32,
    },
    /// The stack pointer could point anywhere.
    #[error("uses a stack pointer that is not proved to point into the stack")]
    StackPointer,
    /// An access that can only trap.
    #[error("accesses the misaligned address {address:#010x}")]
    MisalignedAccess {
        /// The address.
        address: u32,
    },
    /// A load that can only trap.
    #[error("loads from {address:#010x}, outside the memory")]
    LoadOutside {
        /// The lowest address.
        address: u32,
    },
    /// A store that can only trap.
    #[error("stores to {address:#010x}, outside the memory")]
    StoreOutside {
        /// The lowest address.
        address: u32,
    },
    /// A store into ROM, perhaps into its own code.
    #[error("stores to {address:#010x}, in ROM")]
    StoreToRom {
        /// The lowest address.
        address: u32,
    },
}

/// Checks a program.
///
/// # Errors
///
/// [`Refused`], with the first place that is wrong or cannot be proved right.
pub fn check(program: &Program, policy: &Policy) -> Result<Bounds, Refused> {
    let refused = |address, calls, reason| {
        let place = program.locate(address).to_string();
        Refused { address, place, calls, reason }
    };
    let polls =
        |instruction: &Instruction| instruction.reads_csr() && policy.polls.contains(&instruction.csr());
    let starts = if policy.starts.is_empty() { vec![program.entry] } else { policy.starts.clone() };
    let (graph, roots) = Graph::new(program, &starts, &policy.endless, polls)
        .map_err(|(address, reason)| refused(address, Vec::new(), reason))?;
    bounds(program, policy, &graph, &roots)
        .map_err(|(node, reason)| refused(graph.nodes[node].address, graph.calls(node), reason))
}

fn bounds(program: &Program, policy: &Policy, graph: &Graph<'_>, roots: &[usize]) -> Result<Bounds, Wrong> {
    let order = order::order(graph).map_err(|head| (head, Reason::DeepLoops))?;
    let mut evaluation = Evaluation::new(program, policy, graph, &order);
    evaluation.at_start = true;
    // What is known at each poll, over all events so far.
    let mut known: BTreeMap<usize, (State, u32)> = BTreeMap::new();
    let mut open: Vec<usize> = Vec::new();
    let (mut startup_cycles, mut cycles_from) = (0, BTreeMap::new());
    let mut after_answer = 0;
    for &root in roots {
        if graph.nodes[root].polls {
            evaluation.reached.insert(root, State::reset(program));
        } else {
            evaluation.from(root, State::reset(program), &order)?;
        }
        startup_cycles = gather(&mut evaluation, &mut known, &mut open).max(startup_cycles);
    }
    evaluation.at_start = false;
    while let Some(poll) = open.pop() {
        let Some(state) = known.get(&poll).map(|(state, _)| state.afresh()) else { continue };
        evaluation.from(poll, state, &order)?;
        let after = evaluation.reached.values().filter_map(|state| state.answered).max();
        after_answer = after.unwrap_or(0).max(after_answer);
        let cycles = gather(&mut evaluation, &mut known, &mut open);
        // On the way it is looked at before each instruction, so the last one may go beyond.
        if cycles > policy.cycles_max {
            return Err((poll, Reason::TooLong { cycles: policy.cycles_max }));
        }
        let longest: &mut u64 = cycles_from.entry(graph.nodes[poll].address).or_default();
        *longest = cycles.max(*longest);
    }
    let to_answer = evaluation.answer_cycles;
    if policy.answers_once && after_answer + to_answer > policy.cycles_max {
        return Err((evaluation.answer, Reason::TooLong { cycles: policy.cycles_max }));
    }
    let kind_cycles = policy.kinds.iter().map(|kind| longest_of(&mut evaluation, kind, &known, &order));
    let mut kind_cycles: Vec<Longest> = kind_cycles.collect::<Result<_, _>>()?;
    // Where less is known, another way through may be the one that is followed closely, and what it proves holds for each kind.
    let longest = cycles_from.values().copied().max().unwrap_or(0);
    for kind in &mut kind_cycles {
        (kind.cycles, kind.to_answer) = (kind.cycles.min(longest), kind.to_answer.min(to_answer));
    }
    let visited = || graph.nodes.iter().zip(&evaluation.visited).filter(|(_, visited)| **visited);
    let csrs = |uses: fn(&Instruction) -> bool| {
        visited()
            .filter(|(node, _)| uses(&node.instruction))
            .map(|(node, _)| node.instruction.csr())
            .collect()
    };
    Ok(Bounds {
        startup_cycles,
        event_cycles: cycles_from,
        kind_cycles: kind_cycles.iter().map(|kind| kind.cycles).collect(),
        kind_answers: kind_cycles.iter().map(|kind| kind.to_answer).collect(),
        kind_wrong: kind_cycles.iter().map(|kind| kind.wrong(policy.valid)).collect(),
        kind_answered: kind_cycles.iter_mut().map(|kind| std::mem::take(&mut kind.answers)).collect(),
        kind_written: kind_cycles.iter_mut().map(|kind| std::mem::take(&mut kind.written)).collect(),
        after_answer,
        to_answer,
        values: std::mem::take(&mut evaluation.values),
        stray_stores: std::mem::take(&mut evaluation.stray),
        stray_loads: std::mem::take(&mut evaluation.stray_loads),
        data_stores: std::mem::take(&mut evaluation.data_stores),
        written: std::mem::take(&mut evaluation.written),
        stack: program.machine.memory.stack_top() - evaluation.lowest,
        reads: csrs(Instruction::reads_csr),
        writes: csrs(Instruction::writes_csr),
        instructions: visited().map(|(node, _)| node.address).collect::<BTreeSet<u32>>().len(),
    })
}

/// What was found of the events of a kind.
struct Longest {
    /// The cycles of the longest, to the next poll.
    cycles: u64,
    /// To its answer.
    to_answer: u64,
    /// Its answers.
    answers: BTreeMap<u32, Answered>,
    /// Its writes to CSRs that are watched.
    written: BTreeSet<(u16, u32)>,
}

impl Longest {
    /// Answers that are wrong on every way.
    fn wrong(&self, valid: Option<(u32, u32)>) -> BTreeMap<u32, (u32, u32)> {
        let reach = self.answers.iter().map(|(&address, &Answered { low, high, .. })| (address, (low, high)));
        reach
            .filter(|(_, (low, high))| valid.is_some_and(|(least, most)| *low > most || *high < least))
            .collect()
    }
}

/// The longest event of `kind`, which finds the core as any events may have left it.
fn longest_of(
    evaluation: &mut Evaluation<'_>,
    kind: &Kind,
    known: &BTreeMap<usize, (State, u32)>,
    order: &[order::Element],
) -> Result<Longest, Wrong> {
    evaluation.begin(kind);
    for (&poll, (state, _)) in known {
        evaluation.from(poll, state.afresh(), order)?;
    }
    let reached = std::mem::take(&mut evaluation.reached);
    let cycles = reached.values().map(|state| state.cycles).max().unwrap_or(0);
    let answers = std::mem::take(&mut evaluation.answers);
    let written = std::mem::take(&mut evaluation.kind_written);
    Ok(Longest { cycles, to_answer: evaluation.answer_cycles, answers, written })
}

/// Joins what was reached with what is known, and opens the polls where that is new. Returns the cycles of the longest
/// way.
fn gather(
    evaluation: &mut Evaluation<'_>,
    known: &mut BTreeMap<usize, (State, u32)>,
    open: &mut Vec<usize>,
) -> u64 {
    /// So many events may narrow what is known one by one, before it is widened.
    const PATIENCE: u32 = 3;
    let mut cycles = 0;
    for (poll, reached) in std::mem::take(&mut evaluation.reached) {
        cycles = cycles.max(reached.cycles);
        match known.get_mut(&poll) {
            Some((state, joins)) => {
                if !reached.within(state) {
                    *joins += 1;
                    if *joins > PATIENCE {
                        state.widen(&reached)
                    } else {
                        state.join(&reached)
                    }
                    open.push(poll);
                }
            }
            None => {
                known.insert(poll, (reached, 0));
                open.push(poll);
            }
        }
    }
    cycles
}
