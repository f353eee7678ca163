//! A small RISC-V core in software: RV32I with Zicsr, and M as an option. It knows nothing of networking.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`instruction`], [`mod@decode`] | the decoded form that all others share, and the words it comes from |
//! | [`disassemble`] | instructions as text |
//! | [`cycles`] | what each costs |
//! | [`csr`] | control and status registers, which the embedder declares |
//! | [`memory`] | ROM, stack and data, each access checked |
//! | [`elf`], [`program`], `error` | ELF files and their symbols; a program ready to run, or why there is none |
//! | `lines`, [`mod@inlined`] | which source line an instruction comes from, and which functions stand in place of their calls |
//! | [`mod@fields`] | the fields of a program's types, by name |
//! | [`core`] | a core's state, how a run ends, traps |
//! | `act`, `execute` | the interpreter, which says what a program means, and what it knows beforehand |
//! | [`mod@check`], [`rote`] | what a program can do, proved before it runs; those that always answer the same |
//! | [`translate`] | host code that does the same, faster (feature `translate`) |
//!
//! An embedder describes the core as a [`Machine`], loads an ELF file for it into a [`Program`], which any number of
//! [`Core`]s share, and runs each up to the next [`Stop`]:
//!
//! ```
//! use std::sync::Arc;
//! use roci_hart::{CSR_WORDS, Core, Csr, CsrMap, Machine, OnRead, OnWrite, Program, Stop};
//!
//! // One register that waits for a number and takes the answer, at 0x800, word 0 of the block.
//! let mailbox = Csr::Word { index: 0, read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop };
//! let machine = Machine { csrs: CsrMap::default().with(0x800, mailbox), ..Machine::default() };
//! // loop: csrr a0, 0x800; slli a0, a0, 1; csrw 0x800, a0; j loop
//! let code = [0x8000_2573, 0x0015_1513, 0x8005_1073, 0xff5f_f06f];
//! let mut core = Core::new(Arc::new(Program::from_words(&code, machine)?));
//! let mut csrs = [0; CSR_WORDS];
//! assert_eq!(core.run(&mut csrs, 1000), Stop::Waiting { csr: 0x800 });
//! csrs[0] = 21;
//! assert_eq!(core.run(&mut csrs, 1000), Stop::Written { csr: 0x800 });
//! assert_eq!((csrs[0], core.cycles()), (42, 2 + 1 + 2));
//! # Ok::<(), roci_hart::LoadError>(())
//! ```
//!
//! What a CSR is, the embedder says number by number: a *word* of a block of [`CSR_WORDS`], which costs a memory access
//! to reach and may make its reader wait or stop its writer, or a *device* behind [`Csrs`], whose accesses are calls.
//!
//! Programs are hostile: whatever stands in a file or in the code, loading ends with a [`LoadError`] and running with a
//! [`Stop`], within the budget of cycles.
#![cfg_attr(not(feature = "translate"), forbid(unsafe_code))]

mod act;
pub mod check;
pub mod core;
pub mod csr;
pub mod cycles;
pub mod decode;
pub mod disassemble;
pub mod elf;
mod error;
mod execute;
pub mod fields;
pub mod inlined;
pub mod instruction;
mod lines;
pub mod memory;
pub mod program;
pub mod rote;
#[cfg(feature = "translate")]
pub mod translate;

pub use crate::core::{Cause, Core, QUEUE_WORDS, Stop, Trap};
pub use check::{Answered, Bounds, Kind, Policy, Reason, Refused, Written, check};
pub use csr::{CSR_WORDS, Csr, CsrBlock, CsrMap, Csrs, DeviceRead, DeviceWrite, OnRead, OnWrite};
pub use cycles::CycleModel;
pub use decode::{Extensions, decode};
pub use elf::{Symbol, printable, section};
pub use error::LoadError;
pub use fields::{Field, fields, variables};
pub use inlined::{Inlined, inlined};
pub use instruction::{Instruction, Op, Register, Shape};
pub use memory::{Memory, MemoryMap, Misaligned, Refusal, Region};
pub use program::{Location, Machine, Program};
pub use rote::Rote;
#[cfg(feature = "translate")]
pub use translate::{TranslateError, Translation};
