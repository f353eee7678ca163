//! A program in the form that cores run: decoded, costed, and with names for its addresses.

use core::fmt;

use crate::act::Act;
use crate::csr::CsrMap;
use crate::cycles::CycleModel;
use crate::decode::{Extensions, decode};
use crate::elf::{self, Symbol};
use crate::error::LoadError;
use crate::instruction::{Instruction, Op, Shape};
use crate::lines::Lines;
use crate::memory::{MemoryMap, Misaligned};

/// The kind of core that a program is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Where ROM, stack and data lie.
    pub memory: MemoryMap,
    /// What it has beside RV32I.
    pub extensions: Extensions,
    /// What becomes of misaligned accesses.
    pub misaligned: Misaligned,
    /// What instructions cost.
    pub cycles: CycleModel,
    /// Its control and status registers.
    pub csrs: CsrMap,
}

impl Machine {
    /// What an instruction costs in cycles; a branch, when it is not taken.
    pub fn cost(&self, instruction: &Instruction) -> u16 {
        let own = match instruction.op.shape() {
            Shape::Csr | Shape::CsrImmediate => self.csrs.cost(instruction.csr()),
            _ => None,
        };
        own.unwrap_or_else(|| self.cycles.cost(instruction.op))
    }
}

/// An instruction with its costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) instruction: Instruction,
    /// Cycles of all code before it.
    pub(crate) before: u64,
    /// What it jumps to, as an index into the code; of a CSR instruction, the word of the block, or what the
    /// words stay below that only join a queue.
    pub(crate) place: u32,
    /// Cycles when control goes on to the next instruction, or jumps.
    pub(crate) cost: u16,
    /// Cycles when a branch is taken.
    pub(crate) taken: u16,
    pub(crate) act: Act,
}

impl Step {
    /// The instruction at index `at`, behind code of so many cycles.
    fn new(instruction: Instruction, at: u32, before: u64, machine: &Machine) -> Self {
        let (act, csr) = Act::new(&instruction, &machine.csrs);
        let place = match instruction.op.shape() {
            Shape::Csr | Shape::CsrImmediate => csr,
            // Counted modulo 2³⁰, as addresses are modulo 2³².
            _ => at.wrapping_add_signed(instruction.imm >> 2) & (u32::MAX >> 2),
        };
        let (cost, taken) = (machine.cost(&instruction), machine.cycles.branch_taken);
        Self { instruction, before, place, cost, taken, act }
    }
}

/// A program for one kind of core, loaded once and shared by the cores that run it.
#[derive(Debug)]
pub struct Program {
    pub(crate) machine: Machine,
    pub(crate) entry: u32,
    pub(crate) code_start: u32,
    pub(crate) code: Box<[Step]>,
    /// Cycles of all of the code.
    pub(crate) sum: u64,
    pub(crate) image: Box<[u32]>,
    symbols: Vec<Symbol>,
    lines: Lines,
}

impl Program {
    /// Loads a linked ELF file for cores of the kind `machine`.
    ///
    /// # Errors
    ///
    /// [`LoadError`], which names the place in the file or in memory.
    pub fn load(file: &[u8], machine: Machine) -> Result<Self, LoadError> {
        machine.memory.check()?;
        let image = elf::read(file, &machine.memory)?;
        Self::new(machine, image, Lines::read(file))
    }

    /// Makes a program of bare instructions, which start at the origin of the memory, as does the run.
    ///
    /// # Errors
    ///
    /// As [`Program::load`]: there must be an instruction, and ROM for all of them.
    pub fn from_words(code: &[u32], machine: Machine) -> Result<Self, LoadError> {
        let map = machine.memory;
        map.check()?;
        let length = u32::try_from(4 * code.len()).unwrap_or(u32::MAX);
        if length > map.rom {
            let reason = "it lies outside the memory or across two regions";
            return Err(LoadError::Place { segment: 0, address: map.origin, length, reason });
        }
        if code.is_empty() {
            return Err(LoadError::NoCode);
        }
        let mut words = vec![0; map.length() as usize / 4].into_boxed_slice();
        words[..code.len()].copy_from_slice(code);
        let code = (map.origin, map.origin + length);
        let image = elf::Image { words, code, entry: map.origin, symbols: Vec::new() };
        Self::new(machine, image, Lines::default())
    }

    fn new(machine: Machine, image: elf::Image, lines: Lines) -> Result<Self, LoadError> {
        if !machine.cycles.is_positive() {
            return Err(LoadError::FreeInstruction);
        }
        let elf::Image { words: image, code: (start, end), entry, symbols } = image;
        let index = |address: u32| (address - machine.memory.origin) as usize / 4;
        let mut sum = 0;
        let code = (0..)
            .zip(&image[index(start)..index(end)])
            .map(|(at, &word)| {
                let step = Step::new(decode(word, machine.extensions), at, sum, &machine);
                sum += u64::from(step.cost);
                step
            })
            .collect();
        Ok(Self { machine, entry, code_start: start, code, sum, image, symbols, lines })
    }

    /// The kind of core it is for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Where a core starts.
    pub fn entry(&self) -> u32 {
        self.entry
    }

    /// The address of the first instruction and of what follows the last.
    pub fn code(&self) -> (u32, u32) {
        (self.code_start, self.code_start + 4 * u32::try_from(self.code.len()).unwrap_or(u32::MAX))
    }

    /// The instruction at `address`; `None` where there is no code.
    pub fn instruction(&self, address: u32) -> Option<Instruction> {
        self.step(address).map(|step| step.instruction)
    }

    pub(crate) fn step(&self, address: u32) -> Option<&Step> {
        self.code.get(self.index(address))
    }

    /// The index of the instruction at `address`, beyond the code when there is none.
    #[inline(always)]
    pub(crate) fn index(&self, address: u32) -> usize {
        Self::index_from(self.code_start, address)
    }

    /// The same of a program whose code starts at `start`.
    #[inline(always)]
    pub(crate) fn index_from(start: u32, address: u32) -> usize {
        // A misaligned address turns into an index that no code reaches.
        address.wrapping_sub(start).rotate_right(2) as usize
    }

    /// How many words of it are instructions.
    pub fn instructions(&self) -> usize {
        self.code.iter().filter(|step| step.instruction.op != Op::Illegal).count()
    }

    /// All symbols, by address.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The address or value of a symbol.
    pub fn symbol(&self, name: &str) -> Option<u32> {
        self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
    }

    /// What is known about `address`, to name it to a human.
    pub fn locate(&self, address: u32) -> Location<'_> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let (start, end) = self.code();
        let inside = (start..end).contains(&address);
        let symbol = self.symbols[..behind].iter().rev().find(|symbol| symbol.is_function);
        let function =
            symbol.filter(|_| inside).map(|symbol| (symbol.name.as_str(), address - symbol.address));
        Location { address, function, line: self.lines.find(address).filter(|_| inside) }
    }
}

/// An address with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// The address itself.
    pub address: u32,
    /// The function it lies in, and how far.
    pub function: Option<(&'a str, u32)>,
    /// The source file and line.
    pub line: Option<(&'a str, u32)>,
}

impl fmt::Display for Location<'_> {
    /// `0x80000010 (rx+0x10, dcqcn.c:42)`, or less where less is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.address)?;
        match (self.function, self.line) {
            (Some((name, offset)), Some((file, line))) => write!(f, " ({name}+{offset:#x}, {file}:{line})"),
            (Some((name, offset)), None) => write!(f, " ({name}+{offset:#x})"),
            (None, Some((file, line))) => write!(f, " ({file}:{line})"),
            (None, None) => Ok(()),
        }
    }
}
