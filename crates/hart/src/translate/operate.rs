//! What single instructions do, in Cranelift's intermediate form.

use core::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types::I8, types::I16, types::I32, types::I64};

use super::emit::{Base, Emitter, offset};
use super::flow::Word;
use crate::core::{QUEUE_WORDS, Queue, State};
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::memory::Misaligned;

/// Where the state has the length of the queue, and its words.
const QUEUE: [usize; 2] = [
    offset_of!(State, queue) + offset_of!(Queue, length),
    offset_of!(State, queue) + offset_of!(Queue, words),
];

impl Emitter<'_> {
    pub(super) fn plain(&mut self, instruction: &Instruction) {
        let Instruction { op, rd, rs1, rs2, imm } = *instruction;
        match op.shape() {
            Shape::Upper => {
                let base = if op == Op::Auipc { self.address(self.at.index) } else { 0 };
                let value = self.word(base.wrapping_add(imm.cast_unsigned()));
                self.write(rd, value);
            }
            Shape::Load => self.load(op, rd, rs1, imm),
            Shape::Store => self.store(op, rs1, rs2, imm),
            Shape::Immediate => {
                let (a, b) = (self.read(rs1), self.word(imm.cast_unsigned()));
                let value = self.arithmetic(op.of_registers(), a, b);
                self.write(rd, value);
            }
            Shape::Register => {
                let (a, b) = (self.read(rs1), self.read(rs2));
                let value = self.arithmetic(op, a, b);
                self.write(rd, value);
            }
            // A fence orders nothing here.
            _ => {}
        }
    }

    /// The octet of memory that an access of `width` reaches, counted from `first` and once it is known to be one of
    /// the `length` octets from there.
    fn place(&mut self, base: Register, imm: i32, width: u32, first: u32, length: u32) -> Value {
        let address = self.read(base);
        let place = self.builder.ins().iadd_imm_s(address, i64::from(imm.wrapping_sub(first.cast_signed())));
        let good = if self.program.machine.misaligned == Misaligned::Trap && width > 1 {
            // A misaligned place turns into a number beyond all bounds.
            let turned = self.builder.ins().rotr_imm_u(place, i64::from(width.trailing_zeros()));
            self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, turned, i64::from(length / width))
        } else if length < width {
            self.word(0)
        } else {
            self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, place, i64::from(length - width))
        };
        self.require(good);
        self.builder.ins().uextend(I64, place)
    }

    fn load(&mut self, op: Op, rd: Register, base: Register, imm: i32) {
        let map = &self.program.machine.memory;
        let place = self.place(base, imm, op.width(), map.origin, map.length());
        let address = self.builder.ins().iadd(self.base.memory, place);
        let flags = self.base.of_memory;
        let ins = self.builder.ins();
        let value = match op {
            Op::Lb => ins.sload8(I32, flags, address, 0),
            Op::Lbu => ins.uload8(I32, flags, address, 0),
            Op::Lh => ins.sload16(I32, flags, address, 0),
            Op::Lhu => ins.uload16(I32, flags, address, 0),
            _ => ins.load(I32, flags, address, 0),
        };
        self.write(rd, value);
    }

    fn store(&mut self, op: Op, base: Register, source: Register, imm: i32) {
        let map = self.program.machine.memory;
        let first = map.origin.wrapping_add(map.rom);
        let place = self.place(base, imm, op.width(), first, map.length() - map.rom);
        let address = self.builder.ins().iadd(self.base.memory, place);
        let (flags, rom) = (self.base.of_memory, map.rom.cast_signed());
        let value = self.read(source);
        let value = match op {
            Op::Sb => self.builder.ins().ireduce(I8, value),
            Op::Sh => self.builder.ins().ireduce(I16, value),
            _ => value,
        };
        self.builder.ins().store(flags, value, address, rom);
    }

    /// An access to a register; behind one with a queue, whether the run stops.
    pub(super) fn csr(&mut self, instruction: &Instruction, word: Word) -> Option<Value> {
        let Base { csrs, of_csrs, .. } = self.base;
        let place = 4 * i32::from(word.index);
        // The old value is wanted unless this is a plain write.
        let swap = matches!(instruction.op, Op::Csrrw | Op::Csrrwi);
        let old =
            (instruction.reads_csr() || !swap).then(|| self.builder.ins().load(I32, of_csrs, csrs, place));
        if let Some(old) = old
            && word.waits
        {
            self.require(old);
        }
        let mut stops = None;
        if instruction.writes_csr() {
            let source = if instruction.op.shape() == Shape::CsrImmediate {
                self.word(u32::from(instruction.rs1.number()))
            } else {
                self.read(instruction.rs1)
            };
            let new = match (instruction.op, old) {
                (Op::Csrrs | Op::Csrrsi, Some(old)) => self.builder.ins().bor(old, source),
                (Op::Csrrc | Op::Csrrci, Some(old)) => self.builder.ins().band_not(old, source),
                _ => source,
            };
            match word.queues {
                Some(below) => stops = Some(self.push(new, below)),
                None => {
                    self.builder.ins().store(of_csrs, new, csrs, place);
                }
            }
        }
        if let Some(old) = old {
            self.write(instruction.rd, old);
        }
        stops
    }

    /// [`Queue::push`](crate::core::Queue::push).
    fn push(&mut self, word: Value, below: u32) -> Value {
        let Base { state, of_state, .. } = self.base;
        let [length, words] = QUEUE.map(offset);
        let at = self.builder.ins().load(I32, of_state, state, length);
        // A full one is the interpreter's matter.
        let room = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, at, QUEUE_WORDS as i64);
        self.require(room);
        let place = self.builder.ins().uextend(I64, at);
        let place = self.builder.ins().ishl_imm_u(place, 2);
        let place = self.builder.ins().iadd(state, place);
        self.builder.ins().store(of_state, word, place, words);
        let now = self.builder.ins().iadd_imm_s(at, 1);
        self.builder.ins().store(of_state, now, state, length);
        let far = self.builder.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, word, i64::from(below));
        let full = self.builder.ins().icmp_imm_u(IntCC::Equal, now, QUEUE_WORDS as i64);
        self.builder.ins().bor(far, full)
    }

    fn arithmetic(&mut self, op: Op, a: Value, b: Value) -> Value {
        let compare = |condition, emitter: &mut Self| {
            let bit = emitter.builder.ins().icmp(condition, a, b);
            emitter.builder.ins().uextend(I32, bit)
        };
        match op {
            Op::Slt => return compare(IntCC::SignedLessThan, self),
            Op::Sltu => return compare(IntCC::UnsignedLessThan, self),
            Op::Mulhsu => return self.multiply_mixed(a, b),
            Op::Div | Op::Divu | Op::Rem | Op::Remu => return self.divide(op, a, b),
            _ => {}
        }
        let ins = self.builder.ins();
        match op {
            Op::Add => ins.iadd(a, b),
            Op::Sub => ins.isub(a, b),
            Op::Sll => ins.ishl(a, b),
            Op::Xor => ins.bxor(a, b),
            Op::Srl => ins.ushr(a, b),
            Op::Sra => ins.sshr(a, b),
            Op::Or => ins.bor(a, b),
            Op::And => ins.band(a, b),
            Op::Mulh => ins.smulhi(a, b),
            Op::Mulhu => ins.umulhi(a, b),
            _ => ins.imul(a, b),
        }
    }

    /// The upper word of a signed times an unsigned number.
    fn multiply_mixed(&mut self, a: Value, b: Value) -> Value {
        let (a, b) = (self.builder.ins().sextend(I64, a), self.builder.ins().uextend(I64, b));
        let product = self.builder.ins().imul(a, b);
        let upper = self.builder.ins().ushr_imm_u(product, 32);
        self.builder.ins().ireduce(I32, upper)
    }

    /// Division that never faults: by 1 where RISC-V defines another result, which is then put in its place. The
    /// quotient of the one overflow, −2³¹ by −1, is −2³¹ with remainder 0: what division by 1 gives.
    fn divide(&mut self, op: Op, a: Value, b: Value) -> Value {
        let by_zero = self.builder.ins().icmp_imm_u(IntCC::Equal, b, 0);
        let mut special = by_zero;
        if matches!(op, Op::Div | Op::Rem) {
            let least = self.builder.ins().icmp_imm_u(IntCC::Equal, a, 1 << 31);
            let minus_one = self.builder.ins().icmp_imm_u(IntCC::Equal, b, i64::from(u32::MAX));
            let overflow = self.builder.ins().band(least, minus_one);
            special = self.builder.ins().bor(special, overflow);
        }
        let one = self.word(1);
        let b = self.builder.ins().select(special, one, b);
        let ins = self.builder.ins();
        let value = match op {
            Op::Div => ins.sdiv(a, b),
            Op::Divu => ins.udiv(a, b),
            Op::Rem => ins.srem(a, b),
            _ => ins.urem(a, b),
        };
        let otherwise = if matches!(op, Op::Div | Op::Divu) { self.word(u32::MAX) } else { a };
        self.builder.ins().select(by_zero, otherwise, value)
    }
}
