//! Instructions to Cranelift's intermediate form.
//!
//! Translated code does what is plain, and leaves the rest: wherever an operand asks for a trap, a wait or the end of
//! the budget, it *bails out*. It puts the core's state back as it was before that instruction, and the interpreter
//! carries it out. So each rule that is not a fast path stands in one place only.

use core::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, Block as Label, BlockCall, Function, InstBuilder, JumpTableData, MemFlagsData,
    Type, Value, types::I32, types::I64,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch, Variable};

use super::flow::{Arrival, Block, Flow, Form, Region, address, definition};
use crate::core::State;
use crate::instruction::{Instruction, Op, Register};
use crate::memory::Misaligned;
use crate::program::Program;

/// What translated code returns when the interpreter shall go on; else it is the number of the CSR that stopped it.
pub(super) const BAIL: u32 = u32::MAX;

/// Beyond this many ways from jumps through registers, such jumps are left to the interpreter, for the code would grow
/// with their product.
const WAYS: usize = 1 << 14;

pub(super) fn signature(function: &mut Function, pointer: Type) {
    let signature = &mut function.signature;
    signature.params.extend([AbiParam::new(pointer), AbiParam::new(pointer), AbiParam::new(pointer)]);
    signature.params.extend([AbiParam::new(I64), AbiParam::new(I32)]);
    signature.returns.push(AbiParam::new(I32));
}

/// Fills `function` with a region of the program: `fn(state, csr block, memory, entry, cycles left) -> u32`. Where there
/// are several ways in, `entry` is the number of one; else it is what the clock shows there, see [`Emitter::clock`].
pub(super) fn emit(
    program: &Program,
    flow: &Flow,
    region: &Region,
    function: &mut Function,
    target: TargetFrontendConfig,
) {
    let mut context = FunctionBuilderContext::new();
    let mut regions = ["state", "csrs", "memory"].into_iter().zip(0..).map(|(description, user_id)| {
        let region = AliasRegionData { user_id, description: description.into() };
        MemFlagsData::trusted().with_alias_region(Some(function.dfg.alias_regions.insert(region)))
    });
    let mut flags = || regions.next().unwrap_or_else(MemFlagsData::trusted);
    let (of_state, of_csrs, mut of_memory) = (flags(), flags(), flags());
    drop(regions);
    if program.machine.misaligned == Misaligned::Allow {
        // Only a place that was checked may be promised to be aligned.
        of_memory = MemFlagsData::new().with_notrap().with_alias_region(of_memory.alias_region());
    }
    let mut builder = FunctionBuilder::new(function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let &[state, csrs, memory, way, left] = builder.block_params(entry) else { return };
    let x = core::array::from_fn(|_| builder.declare_var(I32));
    let clock = builder.declare_var(I64);
    let bail = builder.create_block();
    builder.set_cold_block(bail);
    builder.append_block_param(bail, I32);
    builder.append_block_param(bail, I64);
    let labels = flow.blocks.iter().map(|_| builder.create_block()).collect();
    let jumps = flow.forms.iter().filter(|form| **form == Form::JumpRegister).count();
    let follows_pointers = jumps * region.ways() <= WAYS;
    let base = Base { state, csrs, memory, of_state, of_csrs, of_memory, left };
    let mut emitter = Emitter {
        program,
        flow,
        region,
        builder,
        x,
        clock,
        labels,
        bail,
        base,
        follows_pointers,
        at: At::default(),
    };
    let zero = emitter.word(0);
    for variable in x {
        emitter.builder.def_var(variable, zero);
    }
    match region.entries[..] {
        [only] => {
            emitter.builder.def_var(clock, way);
            emitter.hand_over(only, region.arrivals[only].unwrap_or_default());
        }
        _ => emitter.entries(way),
    }
    for (block, arrival) in region.arrivals.iter().enumerate() {
        if let Some(arrival) = arrival {
            emitter.block(block, *arrival);
        }
    }
    emitter.bail();
    emitter.builder.seal_all_blocks();
    emitter.builder.finalize(target);
}

/// Pointers to what lives outside the registers, and what their accesses may be confused with.
pub(super) struct Base {
    pub(super) state: Value,
    pub(super) csrs: Value,
    pub(super) memory: Value,
    pub(super) of_state: MemFlagsData,
    pub(super) of_csrs: MemFlagsData,
    pub(super) of_memory: MemFlagsData,
    /// The cycles after which a backward jump is left to the interpreter.
    left: Value,
}

/// Where in a block the emitter is.
#[derive(Clone, Copy, Default)]
pub(super) struct At {
    pub(super) index: usize,
    /// Cycles and instructions of the block's earlier instructions, not yet in the variable.
    cycles: i64,
    retired: i64,
    /// Registers whose variables have their values.
    held: u32,
    /// Those of them that the state does not know.
    dirty: u32,
}

pub(super) struct Emitter<'a> {
    pub(super) program: &'a Program,
    flow: &'a Flow,
    region: &'a Region,
    pub(super) builder: FunctionBuilder<'a>,
    x: [Variable; 32],
    /// Since the entry: instructions in the upper half, cycles in the lower. There are fewer than 2³² of them, see
    /// [`LEFT_MAX`](super::LEFT_MAX).
    clock: Variable,
    labels: Vec<Label>,
    /// Leaves to the interpreter what comes next, with its address and the clock.
    bail: Label,
    pub(super) base: Base,
    follows_pointers: bool,
    pub(super) at: At,
}

/// Offsets in the state are small.
pub(super) fn offset(octets: usize) -> i32 {
    i32::try_from(octets).unwrap_or(i32::MAX)
}

const REGISTERS: usize = offset_of!(State, x);

impl Emitter<'_> {
    /// The ways in: each loads the registers that the entered block counts on, and jumps there.
    fn entries(&mut self, number: Value) {
        let zero = self.builder.ins().iconst(I64, 0);
        self.builder.def_var(self.clock, zero);
        let stubs: Vec<Label> = self.region.entries.iter().map(|_| self.builder.create_block()).collect();
        let nowhere = self.builder.create_block();
        self.builder.set_cold_block(nowhere);
        let pool = &mut self.builder.func.dfg.value_lists;
        let default = BlockCall::new(nowhere, [], pool);
        let table: Vec<BlockCall> = stubs.iter().map(|&stub| BlockCall::new(stub, [], pool)).collect();
        let table = self.builder.create_jump_table(JumpTableData::new(default, &table));
        let number = self.builder.ins().ireduce(I32, number);
        self.builder.ins().br_table(number, table);
        self.builder.switch_to_block(nowhere);
        let bail = self.word(BAIL);
        self.builder.ins().return_(&[bail]);
        for (&block, &stub) in self.region.entries.iter().zip(&stubs) {
            self.builder.switch_to_block(stub);
            self.at = At::default();
            self.hand_over(block, self.region.arrivals[block].unwrap_or_default());
        }
    }

    /// Jumps to a block, with the registers as it counts on them.
    fn hand_over(&mut self, block: usize, Arrival { held, dirty }: Arrival) {
        self.write_back(self.at.dirty & !dirty & self.flow.wanted(self.flow.blocks[block].start));
        self.hold(held & !self.at.held);
        self.builder.ins().jump(self.labels[block], &[]);
    }

    /// Has the state know registers.
    fn write_back(&mut self, registers: u32) {
        let Base { state, of_state, .. } = self.base;
        for register in members(registers) {
            let value = self.builder.use_var(self.x[register]);
            self.builder.ins().store(of_state, value, state, offset(REGISTERS + 4 * register));
        }
    }

    /// Loads registers from the state.
    fn hold(&mut self, registers: u32) {
        let Base { state, of_state, .. } = self.base;
        for register in members(registers) {
            let value = self.builder.ins().load(I32, of_state, state, offset(REGISTERS + 4 * register));
            self.builder.def_var(self.x[register], value);
        }
        self.at.held |= registers;
    }

    fn block(&mut self, block: usize, Arrival { held, dirty }: Arrival) {
        self.builder.switch_to_block(self.labels[block]);
        let Block { start, end } = self.flow.blocks[block];
        self.at = At { index: start, cycles: 0, retired: 0, held, dirty };
        for index in start..end {
            self.at.index = index;
            let step = &self.program.code[index];
            match self.flow.forms[index] {
                Form::Plain => self.plain(&step.instruction),
                Form::Choice => {
                    self.choose(index);
                    continue;
                }
                // With the branch before it.
                Form::Chosen => continue,
                Form::Csr(word) => {
                    let stops = self.csr(&step.instruction, word);
                    if let Some(stops) = stops {
                        self.retire(step.cost);
                        self.at.dirty |= definition(&step.instruction);
                        self.stop_if(stops, index + 1, step.instruction.csr());
                        continue;
                    }
                    if word.stops {
                        self.retire(step.cost);
                        self.at.dirty |= definition(&step.instruction);
                        let number = u32::from(step.instruction.csr());
                        return self.leave(index + 1, number);
                    }
                }
                Form::Branch(target) => return self.branch(&step.instruction, target),
                Form::Jump(target) => return self.jump(&step.instruction, target),
                Form::Call(target) => {
                    if index == start {
                        // It may have been jumped to.
                        self.require_target(&step.instruction, target);
                    }
                    self.require_budget(step.cost);
                    return self.jump(&step.instruction, target);
                }
                Form::JumpRegister => return self.jump_register(&step.instruction),
                Form::Left => return self.leave(index, BAIL),
            }
            self.retire(step.cost);
            self.at.dirty |= definition(&step.instruction);
        }
        self.tally();
        self.go_on(end);
    }

    /// Jumps to the block at `index`, or out when the code ends there.
    fn go_on(&mut self, index: usize) {
        let block = self.flow.block_at.get(index).copied().flatten();
        match block.and_then(|block| Some((block, self.region.arrivals[block]?))) {
            Some((block, arrival)) => self.hand_over(block, arrival),
            None => self.leave(index, BAIL),
        }
    }

    fn retire(&mut self, cost: u16) {
        self.at.cycles += i64::from(cost);
        self.at.retired += 1;
    }

    /// The clock as it is here.
    fn now(&mut self) -> Value {
        let now = self.builder.use_var(self.clock);
        self.builder.ins().iadd_imm_s(now, self.at.retired << 32 | self.at.cycles)
    }

    /// Brings the clock's variable up to here.
    fn tally(&mut self) {
        let now = self.now();
        self.builder.def_var(self.clock, now);
        (self.at.cycles, self.at.retired) = (0, 0);
    }

    /// Returns to the caller, with the state as it is before the instruction at `index`.
    fn leave(&mut self, index: usize, code: u32) {
        self.write_back(self.at.dirty & self.flow.wanted(index));
        let pc = self.address(index);
        let (pc, now) = (self.word(pc), self.now());
        if code == BAIL {
            self.builder.ins().jump(self.bail, &[pc.into(), now.into()]);
        } else {
            self.end(pc, now, code);
        }
    }

    /// Leaves to the interpreter, which is told when it was entered.
    fn bail(&mut self) {
        self.builder.switch_to_block(self.bail);
        let Base { state, of_state, .. } = self.base;
        let entered = self.builder.ins().load(I64, of_state, state, offset(offset_of!(State, cycles)));
        self.builder.ins().store(of_state, entered, state, offset(offset_of!(State, limit)));
        if let &[pc, now] = self.builder.block_params(self.bail) {
            self.end(pc, now, BAIL);
        }
    }

    /// Returns to the caller.
    fn end(&mut self, pc: Value, now: Value, code: u32) {
        let Base { state, of_state, .. } = self.base;
        self.builder.ins().store(of_state, pc, state, offset(offset_of!(State, pc)));
        let cycles = self.builder.ins().ireduce(I32, now);
        let cycles = self.builder.ins().uextend(I64, cycles);
        let retired = self.builder.ins().ushr_imm_u(now, 32);
        for (more, field) in [(cycles, offset_of!(State, cycles)), (retired, offset_of!(State, retired))] {
            let value = self.builder.ins().load(I64, of_state, state, offset(field));
            let value = self.builder.ins().iadd(value, more);
            self.builder.ins().store(of_state, value, state, offset(field));
        }
        let code = self.word(code);
        self.builder.ins().return_(&[code]);
    }

    /// Goes on when `good`, else leaves the current instruction to the interpreter.
    pub(super) fn require(&mut self, good: Value) {
        let (fine, bad) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(bad);
        self.builder.ins().brif(good, fine, &[], bad, &[]);
        self.builder.switch_to_block(bad);
        self.leave(self.at.index, BAIL);
        self.builder.switch_to_block(fine);
    }

    /// Stops before the instruction at `index`, for the write of a register, if `stops`.
    fn stop_if(&mut self, stops: Value, index: usize, csr: u16) {
        let (on, out) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(out);
        self.builder.ins().brif(stops, out, &[], on, &[]);
        self.builder.switch_to_block(out);
        self.leave(index, csr.into());
        self.builder.switch_to_block(on);
    }

    /// Requires that there are cycles left when `cost` more have passed.
    fn require_budget(&mut self, cost: u16) {
        let now = self.builder.use_var(self.clock);
        let now = self.builder.ins().ireduce(I32, now);
        let now = self.builder.ins().iadd_imm_s(now, self.at.cycles + i64::from(cost));
        let good = self.builder.ins().icmp(IntCC::UnsignedLessThan, now, self.base.left);
        self.require(good);
    }

    /// Requires that a jump through a register goes to the instruction of this index.
    fn require_target(&mut self, instruction: &Instruction, target: usize) {
        let base = self.read(instruction.rs1);
        let goes = self.builder.ins().iadd_imm_s(base, i64::from(instruction.imm));
        let goes = self.builder.ins().band_imm_u(goes, i64::from(!1u32));
        let target = i64::from(self.address(target));
        let good = self.builder.ins().icmp_imm_u(IntCC::Equal, goes, target);
        self.require(good);
    }

    pub(super) fn address(&self, index: usize) -> u32 {
        address(self.program, index)
    }

    pub(super) fn word(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(I32, i64::from(value))
    }

    pub(super) fn read(&mut self, register: Register) -> Value {
        if register.is_zero() {
            return self.word(0);
        }
        self.hold(1 << register.number() & !self.at.held);
        self.builder.use_var(self.x[register.index()])
    }

    pub(super) fn write(&mut self, register: Register, value: Value) {
        if !register.is_zero() {
            self.builder.def_var(self.x[register.index()], value);
            self.at.held |= 1 << register.number();
        }
    }

    /// A branch over a copy, and the copy.
    fn choose(&mut self, index: usize) {
        let [branch, copy] = [index, index + 1].map(|at| &self.program.code[at]);
        let Instruction { rd, rs1, .. } = copy.instruction;
        let taken = self.condition(&branch.instruction);
        let (copied, left) = (self.read(rs1), self.read(rd));
        let value = self.builder.ins().select(taken, left, copied);
        self.write(rd, value);
        self.at.dirty |= definition(&copy.instruction);
        // What a branch that is taken counts, and the difference where it is not.
        self.retire(branch.taken);
        let more = (1 << 32) + i64::from(branch.cost) + i64::from(copy.cost);
        let [none, more] =
            [0, more - i64::from(branch.taken)].map(|count| self.builder.ins().iconst(I64, count));
        let more = self.builder.ins().select(taken, none, more);
        let now = self.builder.use_var(self.clock);
        let now = self.builder.ins().iadd(now, more);
        self.builder.def_var(self.clock, now);
    }

    /// Whether a conditional branch is taken.
    fn condition(&mut self, instruction: &Instruction) -> Value {
        let condition = match instruction.op {
            Op::Beq => IntCC::Equal,
            Op::Bne => IntCC::NotEqual,
            Op::Blt => IntCC::SignedLessThan,
            Op::Bge => IntCC::SignedGreaterThanOrEqual,
            Op::Bltu => IntCC::UnsignedLessThan,
            _ => IntCC::UnsignedGreaterThanOrEqual,
        };
        let (a, b) = (self.read(instruction.rs1), self.read(instruction.rs2));
        self.builder.ins().icmp(condition, a, b)
    }

    fn branch(&mut self, instruction: &Instruction, target: usize) {
        let step = &self.program.code[self.at.index];
        let condition = self.condition(instruction);
        let (taken, untaken) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(condition, taken, &[], untaken, &[]);
        let at = self.at;
        self.builder.switch_to_block(taken);
        if target <= at.index {
            self.require_budget(step.taken);
        }
        self.retire(step.taken);
        self.tally();
        self.go_on(target);
        self.at = at;
        self.builder.switch_to_block(untaken);
        self.retire(step.cost);
        self.tally();
        self.go_on(at.index + 1);
    }

    fn jump(&mut self, instruction: &Instruction, target: usize) {
        let cost = self.program.code[self.at.index].cost;
        if target <= self.at.index {
            self.require_budget(cost);
        }
        let link = self.address(self.at.index + 1);
        let link = self.word(link);
        self.write(instruction.rd, link);
        self.at.dirty |= definition(instruction);
        self.retire(cost);
        self.tally();
        self.go_on(target);
    }

    fn jump_register(&mut self, instruction: &Instruction) {
        let targets = self.region.targets(instruction);
        if targets.is_empty() || !self.follows_pointers {
            return self.leave(self.at.index, BAIL);
        }
        let cost = self.program.code[self.at.index].cost;
        self.require_budget(cost);
        let base = self.read(instruction.rs1);
        let address = self.builder.ins().iadd_imm_s(base, i64::from(instruction.imm));
        let address = self.builder.ins().band_imm_u(address, i64::from(!1u32));
        let unknown = self.builder.create_block();
        self.builder.set_cold_block(unknown);
        let mut switch = Switch::new();
        let mut stubs = Vec::new();
        for &block in targets {
            let stub = self.builder.create_block();
            switch.set_entry(u128::from(self.address(self.flow.blocks[block].start)), stub);
            stubs.push((block, stub));
        }
        switch.emit(&mut self.builder, address, unknown);
        self.builder.switch_to_block(unknown);
        self.leave(self.at.index, BAIL);
        let link = self.address(self.at.index + 1);
        self.retire(cost);
        let at = self.at;
        for (block, stub) in stubs {
            self.builder.switch_to_block(stub);
            self.at = at;
            let link = self.word(link);
            self.write(instruction.rd, link);
            self.at.dirty |= definition(instruction);
            self.tally();
            self.hand_over(block, self.region.arrivals[block].unwrap_or_default());
        }
    }
}

/// The members of a set of registers.
fn members(set: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |register| set >> register & 1 == 1)
}
