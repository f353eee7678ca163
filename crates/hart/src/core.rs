//! One core: its registers, its clock, its memory, and how a run of it ends.

use std::sync::Arc;

use crate::csr::Csrs;
use crate::execute;
use crate::instruction::Register;
use crate::memory::{Memory, Refusal};
use crate::program::Program;

/// What a program can see of its core, memory and CSRs apart.
///
/// The layout is fixed, because translated code reads and writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct State {
    pub(crate) x: [u32; 32],
    pub(crate) pc: u32,
    pub(crate) cycles: u64,
    pub(crate) retired: u64,
    /// The clock at which a backward jump stops the run. Translated code that leaves something to the interpreter puts
    /// here the clock at which it was entered.
    pub(crate) limit: u64,
    pub(crate) queue: Queue,
}

/// Words that were written to registers with a queue, and not yet taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Queue {
    pub(crate) length: u32,
    pub(crate) words: [u32; QUEUE_WORDS],
}

/// So many words fill a core's queue.
pub const QUEUE_WORDS: usize = LAST as usize + 1;

/// The place of the queue's last word.
const LAST: u32 = 6;

impl Queue {
    /// Adds a word; whether the run stops.
    #[inline(always)]
    pub(crate) fn push(&mut self, word: u32, below: u32) -> bool {
        // One that is full has stopped a run, after which nobody took it: the word is then its last.
        let at = self.length.min(LAST);
        self.words[at as usize] = word;
        self.length = at + 1;
        word >= below || at == LAST
    }
}

/// Why a run returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The core reads a register that has nothing yet. The instruction has not retired; the next run tries it again.
    Waiting {
        /// The register.
        csr: u16,
    },
    /// The core wrote a register that stops it, such as the one that posts an event. The instruction has retired.
    Written {
        /// The register.
        csr: u16,
    },
    /// The budget is used up; the core is at the target of a backward jump.
    Budget,
    /// The instruction cannot be carried out. It has not retired, and the next run meets it again.
    Trap(Trap),
}

/// An instruction that could not be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pc:#010x}: {cause}")]
pub struct Trap {
    /// The instruction's address.
    pub pc: u32,
    /// What was wrong.
    pub cause: Cause,
}

/// What kind of trap (RISC-V Instruction Set Manual, volume II, "mcause").
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// A jump to an address that is no multiple of 4.
    #[error("jump to the misaligned address {target:#010x}")]
    MisalignedFetch {
        /// Where it would have gone.
        target: u32,
    },
    /// There is no code here.
    #[error("no code at this address")]
    FetchFault,
    /// The word is no instruction of this core.
    #[error("illegal instruction {word:#010x}")]
    Illegal {
        /// The word.
        word: u32,
    },
    /// A CSR that is not there, or does not allow this access.
    #[error("access to CSR {csr:#05x} refused")]
    Csr {
        /// The register's number.
        csr: u16,
    },
    /// EBREAK.
    #[error("breakpoint")]
    Breakpoint,
    /// ECALL.
    #[error("environment call")]
    EnvironmentCall,
    /// A load from an address that is no multiple of its width.
    #[error("misaligned load from {address:#010x}")]
    MisalignedLoad {
        /// The address.
        address: u32,
    },
    /// A load from outside the memory.
    #[error("load from {address:#010x}, outside the memory")]
    LoadFault {
        /// The address.
        address: u32,
    },
    /// A store to an address that is no multiple of its width.
    #[error("misaligned store to {address:#010x}")]
    MisalignedStore {
        /// The address.
        address: u32,
    },
    /// A store into ROM or outside the memory.
    #[error("store to {address:#010x}, in ROM or outside the memory")]
    StoreFault {
        /// The address.
        address: u32,
    },
}

/// A core that runs a [`Program`].
#[derive(Clone, Debug)]
pub struct Core {
    pub(crate) state: State,
    /// Never lent out to be changed as a whole: translated code relies on its having the program's size.
    pub(crate) memory: Memory,
    pub(crate) program: Arc<Program>,
}

impl Core {
    /// A core at the program's entry: registers zero but for `sp`, which points behind the stack's last octet; memory
    /// as the image has it; the clock at 0.
    pub fn new(program: Arc<Program>) -> Self {
        let mut x = [0; 32];
        x[Register::SP.index()] = program.machine.memory.stack_top();
        let state = State { x, pc: program.entry, cycles: 0, retired: 0, limit: 0, queue: Queue::default() };
        let memory = Memory::new(&program.machine.memory, program.machine.misaligned, &program.image);
        Self { state, memory, program }
    }

    /// Runs by interpretation until the program waits, posts or traps, or until a backward jump finds `budget` cycles
    /// used up. A run goes over its budget by at most the code's longest way without a backward jump.
    pub fn run<C: Csrs + ?Sized>(&mut self, csrs: &mut C, budget: u64) -> Stop {
        self.state.limit = self.state.cycles.saturating_add(budget);
        execute::run(self, csrs)
    }

    /// Carries out one instruction; `None` when nothing stops the run behind it.
    pub fn step<C: Csrs + ?Sized>(&mut self, csrs: &mut C) -> Option<Stop> {
        self.state.limit = u64::MAX;
        execute::step(self, csrs)
    }

    /// The program that it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The address of the next instruction.
    pub fn pc(&self) -> u32 {
        self.state.pc
    }

    /// Sets the next instruction, as to start at another symbol than the entry.
    pub fn set_pc(&mut self, pc: u32) {
        self.state.pc = pc;
    }

    /// A register's value.
    pub fn register(&self, register: Register) -> u32 {
        self.state.x[register.index()]
    }

    /// Sets a register; `x0` stays zero.
    pub fn set_register(&mut self, register: Register, value: u32) {
        if !register.is_zero() {
            self.state.x[register.index()] = value;
        }
    }

    /// Cycles since the core was made.
    pub fn cycles(&self) -> u64 {
        self.state.cycles
    }

    /// Instructions retired since the core was made.
    pub fn retired(&self) -> u64 {
        self.state.retired
    }

    /// The words that the program has written to registers with a queue ([`OnWrite::Queue`](crate::OnWrite::Queue)) since it
    /// was emptied, the first first.
    #[inline(always)]
    pub fn queue(&self) -> &[u32] {
        let Queue { length, words } = &self.state.queue;
        &words[..(*length as usize).min(QUEUE_WORDS)]
    }

    /// Empties the queue.
    #[inline(always)]
    pub fn empty_queue(&mut self) {
        self.state.queue.length = 0;
    }

    /// Its memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes the low `width` octets (1, 2 or 4) of `value` to memory, as a store instruction would.
    ///
    /// # Errors
    ///
    /// [`Refusal`], when that instruction would trap.
    pub fn store(&mut self, address: u32, width: u32, value: u32) -> Result<(), Refusal> {
        self.memory.store(address, width, value)
    }
}
