//! Programs as host code, for speed: the same results as the interpreter's, to the last bit of state and to the cycle; but
//! for registers that nobody reads any more, where [`Translation::without_dead_registers`] was asked for.

mod emit;
mod flow;
mod operate;

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, default_libcall_names};

use crate::core::{Core, State, Stop};
use crate::csr::Csrs;
use crate::execute;
use crate::program::Program;

/// The most words of code that [`Translation::new`] translates: SwCC's ROM. More take the compiler long, for at every
/// instruction that may be left to the interpreter there is code that stores the registers.
const INSTRUCTIONS_MAX: usize = 1 << 12;

/// Why a program was not translated. It can still be interpreted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// The host's processor is not one that code can be made for.
    #[error("no translation for this host: {0}")]
    Host(String),
    /// The program is too long.
    #[error("{instructions} words of code, but at most {most} are translated")]
    TooLong {
        /// Its length.
        instructions: usize,
        /// The longest that is allowed.
        most: usize,
    },
    /// The compiler gave up.
    #[error("the code generator failed: {0}")]
    Compiler(String),
}

/// The longest code that is ever translated: whose instructions, each once and at the greatest cost, take 2³¹ cycles.
const CODE_MAX: usize = 1 << 15;

/// Translated code counts cycles in 32 bits. It comes back after so many at the next backward jump, before which it takes
/// no instruction twice.
const LEFT_MAX: u64 = 1 << 31;

/// `fn(state, csr block, memory, entry, cycles left) -> csr that stopped it, or BAIL`.
type Code = unsafe extern "C" fn(*mut State, *mut u32, *mut u32, u64, u32) -> u32;

/// Words of code that are translated once more, for [`Translation::events`].
const AGAIN_MAX: usize = 1 << 12;

/// A program in host code, shared by the cores that run it.
#[derive(Debug)]
pub struct Translation {
    program: Arc<Program>,
    /// All of it.
    code: Code,
    /// For each instruction, the number of the entry there, or [`NO_ENTRY`].
    entries: Box<[u32]>,
    /// For each instruction where a run is taken up that has stopped or waited, code for what follows until it stops again:
    /// so that an event does not pay, in registers to be saved and jumps to be found, for what the program does at other
    /// times.
    events: Box<[Event]>,
    code_start: u32,
    module: ManuallyDrop<Owner>,
    octets: usize,
}

const NO_ENTRY: u32 = u32::MAX;

/// Code for an event.
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    code: Option<Code>,
    /// What its clock begins with: cycles in the lower half, instructions in the upper.
    clock: u64,
}

/// Keeps the memory that the code lies in.
struct Owner(JITModule);

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JITModule")
    }
}

// SAFETY: nothing reaches the module through a shared reference: it is only kept, and freed by the one owner.
#[expect(unsafe_code, reason = "the code generator's owner of memory is not marked as shareable")]
unsafe impl Sync for Owner {}
// SAFETY: as above; its memory is ordinary mapped memory, bound to no thread.
#[expect(unsafe_code, reason = "the code generator's owner of memory is not marked as sendable")]
unsafe impl Send for Owner {}

impl Translation {
    /// Translates a program of at most 4096 words of code. A law takes milliseconds; the worst of hostile programs takes
    /// seconds.
    ///
    /// # Errors
    ///
    /// [`TranslateError`], when the host cannot run translated code or the program is too long.
    pub fn new(program: Arc<Program>) -> Result<Self, TranslateError> {
        Self::with_limit(program, INSTRUCTIONS_MAX)
    }

    /// As [`Translation::new`], for who looks at memory, registers of the CSR space and clocks, but not at a core's own
    /// registers: one that the program writes before it reads it again may be left as it was. A core is not to be run on, then, from
    /// anywhere but where it stopped, nor behind a trap. That takes up to a fifth less time.
    ///
    /// # Errors
    ///
    /// As [`Translation::new`].
    pub fn without_dead_registers(program: Arc<Program>) -> Result<Self, TranslateError> {
        Self::make(program, INSTRUCTIONS_MAX, false)
    }

    /// As [`Translation::new`], with another limit on the words of code, 2¹⁵ at most. The time it takes may grow with their
    /// square.
    ///
    /// # Errors
    ///
    /// As [`Translation::new`].
    pub fn with_limit(program: Arc<Program>, most: usize) -> Result<Self, TranslateError> {
        Self::make(program, most, true)
    }

    fn make(program: Arc<Program>, most: usize, exact: bool) -> Result<Self, TranslateError> {
        if cfg!(target_endian = "big") {
            return Err(TranslateError::Host("it is big-endian".to_owned()));
        }
        let (instructions, most) = (program.code.len(), most.min(CODE_MAX));
        if instructions > most {
            return Err(TranslateError::TooLong { instructions, most });
        }
        let compiler = |error: &dyn std::fmt::Display| TranslateError::Compiler(error.to_string());
        let failed = |error: ModuleError| compiler(&error);
        let mut flags = settings::builder();
        for (name, value) in [("opt_level", "speed"), ("is_pic", "false"), ("enable_verifier", "false")] {
            flags.set(name, value).map_err(|error| compiler(&error))?;
        }
        let isa = cranelift_native::builder().map_err(|error| TranslateError::Host(error.to_owned()))?;
        let isa = isa.finish(settings::Flags::new(flags)).map_err(|error| compiler(&error))?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let flow = flow::Flow::new(&program, exact);
        let mut context = module.make_context();
        let target = module.target_config();
        let mut octets = 0;
        let mut compile = |module: &mut JITModule, region: &flow::Region, name: &str| {
            emit::signature(&mut context.func, target.pointer_type());
            emit::emit(&program, &flow, region, &mut context.func, target);
            let id = module.declare_function(name, Linkage::Export, &context.func.signature);
            let id = id.map_err(failed)?;
            module.define_function(id, &mut context).map_err(failed)?;
            octets += context.compiled_code().map_or(0, |code| code.code_buffer().len());
            module.clear_context(&mut context);
            Ok(id)
        };
        let whole = compile(&mut module, &flow.whole(&program), "whole")?;
        let (mut again, mut compiled, mut begun) = (AGAIN_MAX, BTreeMap::new(), Vec::new());
        for start in flow.starts(&program) {
            let id = match compiled.get(&start.block) {
                Some(&id) => id,
                None => {
                    let region = flow.event(&program, start.block);
                    let Some(left) = again.checked_sub(flow.instructions(&region)) else { continue };
                    again = left;
                    let name = format!("event {}", start.block);
                    let id = compile(&mut module, &region, &name)?;
                    compiled.insert(start.block, id);
                    id
                }
            };
            begun.push((flow.blocks[start.at].start, id, start.retired << 32 | start.cycles));
        }
        module.finalize_definitions().map_err(failed)?;
        let code = |id| {
            let address = module.get_finalized_function(id);
            // SAFETY: the address is that of a function just compiled with the signature of `Code`: three pointers, 64
            // bits and 32, one number of 32 bits returned, in the host's C calling convention, which is the module's default.
            #[expect(unsafe_code, reason = "compiled code is reached through its address")]
            unsafe {
                std::mem::transmute::<*const u8, Code>(address)
            }
        };
        let mut events = vec![Event::default(); instructions].into_boxed_slice();
        for (at, id, clock) in begun {
            events[at] = Event { code: Some(code(id)), clock };
        }
        let code = code(whole);
        let mut entries = vec![NO_ENTRY; instructions].into_boxed_slice();
        for (number, &block) in (0..).zip(&flow.entries) {
            entries[flow.blocks[block].start] = number;
        }
        let code_start = program.code_start;
        let module = ManuallyDrop::new(Owner(module));
        Ok(Self { program, code, entries, events, code_start, module, octets })
    }

    /// The program that was translated.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Octets of host code.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// As [`Core::run`], only faster. A core of another program is interpreted.
    #[inline]
    pub fn run<C: Csrs + ?Sized>(&self, core: &mut Core, csrs: &mut C, budget: u64) -> Stop {
        if !Arc::ptr_eq(&self.program, &core.program) {
            return core.run(csrs, budget);
        }
        let left = left(budget);
        let at = Program::index_from(self.code_start, core.state.pc);
        if let Some(&Event { code: Some(code), clock }) = self.events.get(at)
            // The jumps that its clock begins with are backward ones.
            && clock & u64::from(u32::MAX) < u64::from(left)
        {
            if let Some(stop) = enter(code, core, csrs, clock, left) {
                return stop;
            }
        } else {
            core.state.limit = core.state.cycles;
        }
        self.run_on(core, csrs, budget)
    }

    /// Goes on from wherever the core is, with a budget that counts from the clock in its `limit`.
    #[cold]
    #[inline(never)]
    fn run_on<C: Csrs + ?Sized>(&self, core: &mut Core, csrs: &mut C, budget: u64) -> Stop {
        let limit = core.state.limit.saturating_add(budget);
        loop {
            // Where translated code cannot be entered, or was just left, the interpreter carries out the instruction.
            let left = left(limit.saturating_sub(core.state.cycles));
            if let Some(&number) = self.entries.get(self.program.index(core.state.pc))
                && number != NO_ENTRY
                && let Some(stop) = enter(self.code, core, csrs, number.into(), left)
            {
                return stop;
            }
            core.state.limit = limit;
            if let Some(stop) = execute::step(core, csrs) {
                return stop;
            }
        }
    }
}

/// The cycles that translated code gets out of `budget`.
#[inline(always)]
fn left(budget: u64) -> u32 {
    budget.min(LEFT_MAX) as u32
}

/// Runs translated code until it stops or leaves the next instruction to the interpreter. The code must have been made for
/// the core's program.
#[inline(always)]
fn enter<C: Csrs + ?Sized>(code: Code, core: &mut Core, csrs: &mut C, way: u64, left: u32) -> Option<Stop> {
    let (state, memory) = (&raw mut core.state, core.memory.as_mut_ptr());
    let block = csrs.block().as_mut_ptr();
    // SAFETY: the code reads and writes through its three pointers only, and all three come from exclusive
    // references that outlive the call. `state` is a `State`, whose layout `repr(C)` fixes and whose fields are
    // named by `offset_of!`. `block` has CSR_WORDS words, and `CsrMap::with` lets no word lie beyond. `memory` has
    // as many octets as the memory map of the program, for the core was made for this very program; the code
    // compares each address with that map before it uses it. It calls nothing, and does not divide by zero.
    #[expect(unsafe_code, reason = "compiled code is called")]
    let csr = unsafe { code(state, block, memory, way, left) };
    u16::try_from(csr).ok().map(|csr| Stop::Written { csr })
}

impl Drop for Translation {
    fn drop(&mut self) {
        // SAFETY: `module` is taken once, here, and not used again.
        #[expect(unsafe_code, reason = "freeing the code takes its owner by value")]
        let Owner(module) = unsafe { ManuallyDrop::take(&mut self.module) };
        // SAFETY: the only pointers into the module's memory are `code` and those in `events`, which go with `self`; `run` borrows `self`, so
        // no thread is in it.
        #[expect(unsafe_code, reason = "freed code must not be called")]
        unsafe {
            module.free_memory();
        }
    }
}
