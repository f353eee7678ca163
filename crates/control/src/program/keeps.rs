//! Whether a core keeps anything from one event for the next one: what its static variables say, or a local one that
//! outlives the loop.
//!
//! Each pair of cores has a memory of its own. Where nothing in it can tell one event of another, pairs can share one, which
//! then takes no more room with many pairs than with one. Such a program is the rule: what is a queue pair's stands in its
//! context.
//!
//! A word of the stack that no store reaches from here on holds what it holds: an address, often, that the compiler put aside
//! before the first event. A load whose address does not follow from the code counts as one of any word of the stack. So does a look-up in a table
//! of constants, such as libgcc's for divisions of 64 bits, by an index that the values decide.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use roci_hart::{Core, Csr, Instruction, OnRead, Op, Program, Region, Register, Shape};

/// What each register is known to hold before an instruction, whatever way has led there.
type Known = [Option<u32>; 32];

/// Words of the stack that are told apart; a program that uses more counts as one that keeps something.
const SLOTS_MAX: usize = 96;

/// Whether `core`, which waits for an event, may find something at a later event that one before it left there, other than
/// its registers of the NIC. What cannot be told counts as kept.
pub fn keeps(core: &Core) -> bool {
    keeps_beside(core, &|_| false)
}

/// The same, where loads that stand at addresses which are `tables` are known to be of constants.
pub fn keeps_beside(core: &Core, tables: &dyn Fn(u32) -> bool) -> bool {
    carries(core, tables).unwrap_or(true)
}

/// The same; `None` where the code does not tell.
fn carries(core: &Core, tables: &dyn Fn(u32) -> bool) -> Option<bool> {
    let program = core.program();
    let stored = stored(program, &ways(core, &|_| None)?)?;
    let constant = |address| {
        let of_stack = program.machine().memory.holds(address, 4) == Some(Region::Stack);
        let stays = of_stack && !stored.contains(&address);
        stays.then(|| core.memory().load(address, 4).ok()).flatten()
    };
    let before = ways(core, &constant)?;
    let mut slots = Slots::default();
    let mut steps = Vec::with_capacity(before.len());
    for (&place, known) in &before {
        let Some(instruction) = program.instruction(place.at) else { continue };
        let writes = instruction.destination().map_or(0, |register| 1 << register.index());
        let mut step = Step {
            place,
            instruction,
            reads: instruction.sources().into(),
            writes,
            slots: 0,
            anywhere: false,
        };
        match instruction.op.shape() {
            Shape::Load => match known[instruction.rs1.index()] {
                Some(base) => step.reads |= slots.load(program, &instruction, base)?,
                None => step.anywhere = !tables(place.at),
            },
            Shape::Store => {
                let whole;
                (whole, step.slots) = slots.store(program, &instruction, known)?;
                step.writes |= if whole { step.slots } else { 0 };
            }
            _ => {}
        }
        steps.push(step);
    }
    // What is written before the first event alone is the same at each.
    let polls: Vec<Place> =
        steps.iter().filter(|step| waits(program, &step.instruction)).map(|step| step.place).collect();
    let again = onwards(&polls, program, &before)?;
    let written =
        steps.iter().filter(|step| again.contains(&step.place)).fold(0, |set, step| set | step.slots);
    // A load whose address is not known may be of any word of the stack.
    for step in steps.iter_mut().filter(|step| step.anywhere) {
        step.reads |= written;
    }
    // What is read later, before it is written: backwards from the end of each way, until nothing is added.
    let mut live = BTreeMap::<Place, u128>::new();
    loop {
        let mut grown = false;
        for step in steps.iter().rev() {
            let next = successors(step.place, &step.instruction, &before[&step.place])?.into_iter().flatten();
            let later = next.filter_map(|next| live.get(&next)).fold(0, |all, set| all | set);
            let now = step.reads | (later & !step.writes);
            grown |= live.insert(step.place, now) != Some(now);
        }
        if !grown {
            break;
        }
    }
    Some(polls.iter().any(|place| {
        let known = &before[place];
        let varies = (1..32).filter(|&register| known[register].is_none());
        let registers = varies.fold(0, |set, register| set | 1 << register);
        live[place] & (registers | written) != 0
    }))
}

/// What an instruction does to registers and to words of the stack, one bit each.
struct Step {
    place: Place,
    instruction: Instruction,
    reads: u128,
    /// What it writes in whole.
    writes: u128,
    /// Words of the stack that it writes, in whole or in part.
    slots: u128,
    /// It loads from an address that is not known.
    anywhere: bool,
}

/// Where the code may come to from `starts` on, those among it.
fn onwards(starts: &[Place], program: &Program, before: &BTreeMap<Place, Known>) -> Option<BTreeSet<Place>> {
    let mut open = starts.to_vec();
    let mut found = BTreeSet::new();
    while let Some(place) = open.pop() {
        let Some(instruction) = program.instruction(place.at) else { continue };
        if found.insert(place) {
            open.extend(successors(place, &instruction, &before[&place])?.into_iter().flatten());
        }
    }
    Some(found)
}

/// An instruction, in what was called last: a function that is called from several places is gone through for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: u32,
    /// Where it returns to; 0: it was not called.
    called: u32,
}

/// The words that stores reach from here on; `None` where one may reach any.
fn stored(program: &Program, before: &BTreeMap<Place, Known>) -> Option<BTreeSet<u32>> {
    let mut stored = BTreeSet::new();
    for (place, known) in before {
        let Some(instruction) = program.instruction(place.at) else { continue };
        if instruction.op.shape() == Shape::Store {
            let address = known[instruction.rs1.index()]?.wrapping_add_signed(instruction.imm);
            let last = address.wrapping_add(instruction.op.width() - 1);
            stored.extend([address & !3, last & !3]);
        }
    }
    Some(stored)
}

/// Every instruction that `core` may come to, with what is known of the registers before it; `constant` is what a word of
/// the stack always holds. `None` where the code does not say where it goes on.
fn ways(core: &Core, constant: &dyn Fn(u32) -> Option<u32>) -> Option<BTreeMap<Place, Known>> {
    let program = core.program();
    let mut known = [None; 32];
    for (register, known) in (0..).zip(&mut known) {
        *known = Some(core.register(Register::new(register)));
    }
    let start = Place { at: core.pc(), called: 0 };
    let mut before = BTreeMap::from([(start, known)]);
    let mut open = Vec::from([start]);
    while let Some(place) = open.pop() {
        let Some(instruction) = program.instruction(place.at) else { continue };
        let known = before[&place];
        let mut after = known;
        if let Some(register) = instruction.destination() {
            after[register.index()] = result(place.at, &instruction, &known, constant);
        }
        for next in successors(place, &instruction, &known)?.into_iter().flatten() {
            let mut changed = false;
            let there = before.entry(next).or_insert_with(|| {
                changed = true;
                after
            });
            for (old, new) in there.iter_mut().zip(after) {
                if old.is_some() && *old != new {
                    (*old, changed) = (None, true);
                }
            }
            if changed {
                open.push(next);
            }
        }
    }
    Some(before)
}

/// What an instruction puts into its register, where that follows from the code.
fn result(
    at: u32,
    instruction: &Instruction,
    known: &Known,
    constant: &dyn Fn(u32) -> Option<u32>,
) -> Option<u32> {
    match instruction.op {
        Op::Lw => {
            let address = known[instruction.rs1.index()]?.wrapping_add_signed(instruction.imm);
            if address.is_multiple_of(4) { constant(address) } else { None }
        }
        Op::Lui => Some(instruction.imm.cast_unsigned()),
        Op::Auipc => Some(at.wrapping_add_signed(instruction.imm)),
        Op::Addi => known[instruction.rs1.index()].map(|source| source.wrapping_add_signed(instruction.imm)),
        Op::Jal | Op::Jalr => Some(at.wrapping_add(4)),
        _ => None,
    }
}

/// Where it goes on behind the instruction at `place`; `None` where the code does not tell.
fn successors(place: Place, instruction: &Instruction, known: &Known) -> Option<[Option<Place>; 2]> {
    let Place { at, called } = place;
    let behind = at.wrapping_add(4);
    let here = |at| Some(Place { at, called });
    let jump = |target| {
        let called = match instruction.destination() {
            Some(_) => behind,
            None if target == called => 0,
            None => called,
        };
        [Some(Place { at: target, called }), None]
    };
    Some(match instruction.op.shape() {
        Shape::Jump => jump(at.wrapping_add_signed(instruction.imm)),
        Shape::JumpRegister => {
            jump(known[instruction.rs1.index()]?.wrapping_add_signed(instruction.imm) & !1)
        }
        Shape::Branch => [here(behind), here(at.wrapping_add_signed(instruction.imm))],
        // A trap: the core starts over.
        Shape::Illegal => [None, None],
        Shape::Bare if matches!(instruction.op, Op::Ecall | Op::Ebreak) => [None, None],
        _ => [here(behind), None],
    })
}

/// Whether the instruction waits for the next event.
fn waits(program: &Program, instruction: &Instruction) -> bool {
    let waits = |csr| matches!(program.machine().csrs.at(csr), Csr::Word { read: OnRead::WaitWhileZero, .. });
    instruction.reads_csr() && waits(instruction.csr())
}

/// Words of the stack, one bit each behind those of the registers.
#[derive(Default)]
struct Slots(Vec<u32>);

impl Slots {
    fn bit(&mut self, address: u32) -> Option<u128> {
        let word = address & !3;
        let place = self.0.iter().position(|known| *known == word).unwrap_or_else(|| {
            self.0.push(word);
            self.0.len() - 1
        });
        (place < SLOTS_MAX).then(|| 1 << (32 + place))
    }

    /// What a load reads whose address counts from `base`.
    fn load(&mut self, program: &Program, instruction: &Instruction, base: u32) -> Option<u128> {
        let (address, width) = (base.wrapping_add_signed(instruction.imm), instruction.op.width());
        match program.machine().memory.holds(address, width) {
            Some(Region::Stack) => self.word(address, width),
            // Data stays as it is, for a store there is not passed over.
            _ => Some(0),
        }
    }

    /// What a store writes, and whether that is a whole word; `None` where it is a variable or may be.
    fn store(&mut self, program: &Program, instruction: &Instruction, known: &Known) -> Option<(bool, u128)> {
        let base = known[instruction.rs1.index()]?;
        let (address, width) = (base.wrapping_add_signed(instruction.imm), instruction.op.width());
        match program.machine().memory.holds(address, width) {
            Some(Region::Stack) => self.word(address, width).map(|set| (width == 4, set)),
            Some(Region::Data) => None,
            // A trap.
            Some(Region::Rom) | None => Some((false, 0)),
        }
    }

    /// The word that holds so many octets; `None` where they lie in two.
    fn word(&mut self, address: u32, width: u32) -> Option<u128> {
        if address.is_multiple_of(width) { self.bit(address) } else { None }
    }
}
