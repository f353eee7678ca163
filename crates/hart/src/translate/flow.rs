//! What the translator knows of a program before it emits code: its blocks, and which registers matter where.

use crate::csr::{Csr, OnRead, OnWrite};
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::program::Program;

/// How an instruction is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It falls through to the next, or is left to the interpreter where its operands ask for that.
    Plain,
    /// An access to a word of the CSR block.
    Csr(Word),
    /// A conditional branch to the instruction of this index.
    Branch(usize),
    /// A conditional branch over one copy of what it compares: the lesser or the greater of two, as compilers choose it
    /// for cores that have no instruction for it. Which it will be a host's predictor often cannot guess, so nothing
    /// branches there.
    Choice,
    /// The copy behind it.
    Chosen,
    /// A jump to the instruction of this index.
    Jump(usize),
    /// A jump through a register that the instruction before it loads, to the instruction of this index.
    Call(usize),
    /// Another jump through a register.
    JumpRegister,
    /// The interpreter carries it out.
    Left,
}

/// An access to a word of the CSR block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) index: u8,
    /// The interpreter takes over when the word is zero.
    pub(super) waits: bool,
    /// The run stops behind it.
    pub(super) stops: bool,
    /// What is written joins the core's queue, and stops the run unless it is below this number and the queue has room.
    pub(super) queues: Option<u32>,
}

impl Form {
    /// Whether the block ends behind the instruction.
    fn ends(self) -> bool {
        !matches!(self, Self::Plain | Self::Choice | Self::Chosen | Self::Csr(Word { stops: false, .. }))
    }

    /// Whether it goes elsewhere in any case.
    fn jumps(self) -> bool {
        matches!(self, Self::Jump(_) | Self::Call(_) | Self::JumpRegister)
    }
}

/// A straight run of instructions, entered only at its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
}

pub(super) struct Flow {
    pub(super) forms: Vec<Form>,
    pub(super) blocks: Vec<Block>,
    /// The block that starts at an instruction.
    pub(super) block_at: Vec<Option<usize>>,
    /// Blocks where translated code can be entered.
    pub(super) entries: Vec<usize>,
    /// Those where it is entered once an event: where a run waited, or behind where it stopped.
    fresh: Vec<usize>,
    /// Those of them where every run has stopped or waited.
    stopped: Vec<usize>,
    /// Blocks that a return may go to.
    returns: Vec<usize>,
    /// Blocks that another jump through a register may go to.
    pointed: Vec<usize>,
    /// For each instruction, the registers that the state has to know before it.
    wanted: Vec<u32>,
}

/// Blocks that become one function of host code.
pub(super) struct Region {
    /// Those where it is entered.
    pub(super) entries: Vec<usize>,
    /// For each block of the program, what it counts on; `None` where it does not belong to the region.
    pub(super) arrivals: Vec<Option<Arrival>>,
    /// As in [`Flow`], of these blocks.
    returns: Vec<usize>,
    pointed: Vec<usize>,
}

/// What the code of a block counts on when control arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Registers whose values have been loaded or computed. All others are as the core's state has them, and are loaded
    /// where they are read.
    pub(super) held: u32,
    /// Those of them that the core's state does not know.
    pub(super) dirty: u32,
}

/// Where an event begins.
pub(super) struct Start {
    /// The block where a run is taken up.
    pub(super) at: usize,
    /// The block to which it jumps from there at once, if it does.
    pub(super) block: usize,
    /// Jumps on the way, and the cycles that they take.
    pub(super) retired: u64,
    pub(super) cycles: u64,
}

impl Region {
    /// The most ways that a jump through a register has.
    pub(super) fn ways(&self) -> usize {
        self.returns.len().max(self.pointed.len())
    }

    /// The blocks that a jump through a register may go to without the interpreter's help.
    pub(super) fn targets(&self, instruction: &Instruction) -> &[usize] {
        if is_return(instruction) { &self.returns } else { &self.pointed }
    }
}

impl Flow {
    /// With `exact` the state has to know every register, else only those that the program may read before it writes them.
    pub(super) fn new(program: &Program, exact: bool) -> Self {
        let mut forms: Vec<Form> = (0..program.code.len()).map(|at| form(program, at)).collect();
        find_choices(program, &mut forms);
        let mut marks = Marks::of(program, &forms);
        let pointed: Vec<usize> = marks.pointed.clone();
        let returns: Vec<usize> = marks.returns.clone();
        for &at in pointed.iter().chain(&returns) {
            marks.leads[at] = true;
        }
        let mut blocks = Vec::new();
        let mut block_at = vec![None; forms.len()];
        let mut at = 0;
        while at < forms.len() {
            if !marks.reached[at] {
                at += 1;
                continue;
            }
            let start = at;
            while !forms[at].ends() && at + 1 < forms.len() && !marks.leads[at + 1] {
                at += 1;
            }
            at += 1;
            block_at[start] = Some(blocks.len());
            blocks.push(Block { start, end: at });
        }
        let blocks_of = |set: &[usize]| set.iter().filter_map(|&at| block_at[at]).collect::<Vec<_>>();
        let (returns, pointed) = (blocks_of(&returns), blocks_of(&pointed));
        let marked =
            |marks: &[bool]| (0..forms.len()).filter(|&at| marks[at]).filter_map(|at| block_at[at]).collect();
        let (entries, fresh, stopped) =
            (marked(&marks.enters), marked(&marks.resumes), marked(&marks.stopped));
        let wanted = vec![u32::MAX; forms.len()];
        let mut flow = Self { forms, blocks, block_at, entries, fresh, stopped, returns, pointed, wanted };
        if !exact {
            flow.wanted = flow.read_later(program);
        }
        flow
    }

    /// The registers that may be read behind the start of each block before they are written, by whomever control goes to:
    /// all, where an address or the interpreter decides on that.
    fn read_later(&self, program: &Program) -> Vec<u32> {
        let successors = Vec::from_iter((0..self.blocks.len()).map(|block| {
            let Block { start, end } = self.blocks[block];
            let last = end - 1;
            let behind = || self.block_at.get(last + 1).copied().flatten();
            match self.forms[last] {
                Form::Csr(Word { stops: true, .. }) => behind().map(|next| vec![next]),
                Form::Branch(target) => Some(vec![self.block_at[target]?, behind()?]),
                // Jumped to by itself, it goes where an address says that was not loaded before it.
                Form::Call(_) if last == start => None,
                Form::JumpRegister | Form::Left => None,
                _ => Some(self.near(block)).filter(|next| !next.is_empty()),
            }
        }));
        let live = self.live(program, &successors);
        let mut wanted = vec![u32::MAX; self.forms.len()];
        for (block, next) in self.blocks.iter().zip(&successors) {
            let mut set = behind(next.as_deref(), &live);
            for index in (block.start..block.end).rev() {
                set = read_before(set, self.effect(program, index));
                wanted[index] = set;
            }
        }
        wanted
    }

    /// The registers that the state has to know before the instruction at `index`, where a run may be taken up.
    pub(super) fn wanted(&self, index: usize) -> u32 {
        self.wanted.get(index).copied().unwrap_or(u32::MAX)
    }

    /// All of the program.
    pub(super) fn whole(&self, program: &Program) -> Region {
        let members = vec![true; self.blocks.len()];
        self.region(program, &members, self.entries.clone(), self.returns.clone(), self.pointed.clone())
    }

    /// What can be reached from `start` up to where the run stops, in so far as no address decides on the way.
    pub(super) fn event(&self, program: &Program, start: usize) -> Region {
        let (mut members, mut returns, mut open) = (vec![false; self.blocks.len()], Vec::new(), vec![start]);
        while let Some(block) = open.pop() {
            if std::mem::replace(&mut members[block], true) {
                continue;
            }
            open.extend(self.near(block));
            let last = self.blocks[block].end - 1;
            if self.forms[last].jumps() && links(program.code[last].instruction.rd) {
                // What is called comes back.
                let behind = self.block_at.get(last + 1).copied().flatten();
                returns.extend(behind);
                open.extend(behind);
            }
        }
        returns.sort_unstable();
        self.region(program, &members, vec![start], returns, Vec::new())
    }

    /// How many instructions a region has.
    pub(super) fn instructions(&self, region: &Region) -> usize {
        let members = self.blocks.iter().zip(&region.arrivals).filter(|(_, arrival)| arrival.is_some());
        members.map(|(block, _)| block.end - block.start).sum()
    }

    /// Where events begin, and again and again: what a program does once is not among it. A run that was stopped mostly
    /// goes back to the poll first.
    pub(super) fn starts<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = Start> + 'a {
        /// More jumps in a row than a compiler makes.
        const JUMPS_MAX: u64 = 4;
        /// More places than a law stops at.
        const PLACES_MAX: usize = 128;
        self.fresh.iter().take(PLACES_MAX).filter(|&&at| self.recurs(program, at)).map(move |&at| {
            let mut start = Start { at, block: at, retired: 0, cycles: 0 };
            while let Block { start: only, end } = self.blocks[start.block]
                && only + 1 == end
                && let Form::Jump(target) = self.forms[only]
                && definition(&program.code[only].instruction) == 0
                && let Some(block) = self.block_at[target]
                && start.retired < JUMPS_MAX
            {
                start.block = block;
                start.retired += 1;
                start.cycles += u64::from(program.code[only].cost);
            }
            start
        })
    }

    /// Whether runs that begin at `start` lead to another one that does.
    fn recurs(&self, program: &Program, start: usize) -> bool {
        let (mut met, mut open) = (vec![false; self.blocks.len()], vec![start]);
        while let Some(block) = open.pop() {
            let last = self.blocks[block].end - 1;
            let behind = self.block_at.get(last + 1).copied().flatten();
            let stops = matches!(self.forms[last], Form::Csr(Word { stops: true, .. }));
            let calls = self.forms[last].jumps() && links(program.code[last].instruction.rd);
            for next in self.near(block).into_iter().chain(behind.filter(|_| stops || calls)) {
                if next == start {
                    return true;
                }
                if !std::mem::replace(&mut met[next], true) {
                    open.push(next);
                }
            }
        }
        false
    }

    /// The blocks that may follow block `block`, but for those that an address decides on.
    fn near(&self, block: usize) -> Vec<usize> {
        let end = self.blocks[block].end;
        let next = || self.block_at.get(end).copied().flatten();
        match self.forms[end - 1] {
            Form::Branch(target) => self.block_at[target].into_iter().chain(next()).collect(),
            Form::Jump(target) | Form::Call(target) => self.block_at[target].into_iter().collect(),
            Form::JumpRegister | Form::Left | Form::Csr(Word { stops: true, .. }) => Vec::new(),
            Form::Plain | Form::Choice | Form::Chosen | Form::Csr(_) => next().into_iter().collect(),
        }
    }

    /// Agrees for each block on what its predecessors hand over: the emitter loads and stores on the way from one to the
    /// other what they do otherwise, so any agreement would be right.
    ///
    /// Where ways meet, only what is dirty on all of them stays so. An event is to pay for the registers of its own way
    /// through the program, and not for those of all ways that come together behind it. Where a loop closes, all that its
    /// turns write stays dirty, lest each store it; and where an event begins, nothing is held.
    ///
    /// A value that nobody reads any more, and that not every way ahead replaces, is stored at once: its store has to come, and
    /// until then the value would take one of the host's few registers.
    fn region(
        &self,
        program: &Program,
        members: &[bool],
        entries: Vec<usize>,
        returns: Vec<usize>,
        pointed: Vec<usize>,
    ) -> Region {
        let arrivals = members.iter().map(|member| member.then(Arrival::default)).collect();
        let mut region = Region { entries, arrivals, returns, pointed };
        let count = self.blocks.len();
        let (mut successors, mut predecessors) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for block in (0..count).filter(|&block| members[block]) {
            let last = self.blocks[block].end - 1;
            successors[block] = self.near(block);
            if self.forms[last] == Form::JumpRegister {
                successors[block].extend_from_slice(region.targets(&program.code[last].instruction));
            }
            successors[block].iter().for_each(|&next| predecessors[next].push(block));
        }
        let known: Vec<_> = successors.iter().cloned().map(Some).collect();
        let live = self.live(program, &known);
        let used = |block: &Block| {
            let effects = (block.start..block.end).map(|index| self.effect(program, index));
            effects.fold((0, 0), |all, one| (all.0 | one.0, all.1 | one.1))
        };
        let used: Vec<(u32, u32)> = self.blocks.iter().map(used).collect();
        let replaced = replaced(&used, members, &successors);
        let heads = heads(&region.entries, &successors);
        let mut changed = true;
        while changed {
            changed = false;
            for (block, predecessors) in predecessors.iter().enumerate() {
                let Some(before) = region.arrivals[block] else { continue };
                if self.stopped.binary_search(&block).is_ok() {
                    continue;
                }
                let handed = predecessors.iter().map(|&before| {
                    let Arrival { held, dirty } = region.arrivals[before].unwrap_or_default();
                    let (read, written) = used[before];
                    (held | read | written, dirty | written)
                });
                let meet = |a: (u32, u32), b: (u32, u32)| {
                    if heads[block] { (a.0 | b.0, a.1 | b.1) } else { (a.0 & b.0, a.1 & b.1) }
                };
                let (held, dirty) = handed.reduce(meet).unwrap_or_default();
                let dirty = dirty & (live[block] | replaced[block]) & self.wanted(self.blocks[block].start);
                let after = Arrival { held: held & live[block] | dirty, dirty };
                changed |= after != before;
                region.arrivals[block] = Some(after);
            }
        }
        region
    }

    /// The registers that an instruction reads, and those that it writes. One that may be passed over reads what it would
    /// leave as it is.
    fn effect(&self, program: &Program, index: usize) -> (u32, u32) {
        let instruction = &program.code[index].instruction;
        let written = definition(instruction);
        let left = if self.forms[index] == Form::Chosen { written } else { 0 };
        (instruction.sources() | left, written)
    }

    /// The registers that are read behind the start of each block before they are written; `None` stands for who knows where,
    /// where all are.
    fn live(&self, program: &Program, successors: &[Option<Vec<usize>>]) -> Vec<u32> {
        let mut live = vec![0; self.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for (block, next) in successors.iter().enumerate().rev() {
                let before = behind(next.as_deref(), &live);
                let Block { start, end } = self.blocks[block];
                let effects = (start..end).rev().map(|index| self.effect(program, index));
                let before = effects.fold(before, read_before);
                changed |= before != live[block];
                live[block] = before;
            }
        }
        live
    }
}

/// The blocks where a loop closes: to which a way leads back that came from them.
fn heads(entries: &[usize], successors: &[Vec<usize>]) -> Vec<bool> {
    /// How far a walk through all ways has come with a block.
    #[derive(Clone, Copy, PartialEq)]
    enum Met {
        No,
        OnTheWay,
        Behind,
    }
    let mut heads = vec![false; successors.len()];
    let mut met = vec![Met::No; successors.len()];
    for &entry in entries {
        let mut way = Vec::from_iter((met[entry] == Met::No).then_some((entry, 0)));
        while let Some((block, tried)) = way.last_mut() {
            met[*block] = Met::OnTheWay;
            match successors[*block].get(*tried) {
                Some(&next) => {
                    *tried += 1;
                    match met[next] {
                        Met::No => way.push((next, 0)),
                        Met::OnTheWay => heads[next] = true,
                        Met::Behind => {}
                    }
                }
                None => {
                    met[*block] = Met::Behind;
                    way.pop();
                }
            }
        }
    }
    heads
}

/// The registers that every way from the start of each block writes before it leaves the `members`; `used` are those that each
/// block reads and those that it writes.
fn replaced(used: &[(u32, u32)], members: &[bool], successors: &[Vec<usize>]) -> Vec<u32> {
    let mut replaced = vec![u32::MAX; used.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (block, &(_, written)) in used.iter().enumerate().rev() {
            let ahead = successors[block].iter().map(|&next| if members[next] { replaced[next] } else { 0 });
            let before = written | ahead.reduce(|a, b| a & b).unwrap_or_default();
            changed |= before != replaced[block];
            replaced[block] = before;
        }
    }
    replaced
}

/// The registers that are read at the end of a block or later, of those that are where it goes; all, if who knows where.
fn behind(next: Option<&[usize]>, live: &[u32]) -> u32 {
    next.map_or(u32::MAX, |next| next.iter().fold(0, |set, &next| set | live[next]))
}

/// The registers that are read before they are written by an instruction and what follows: by its [`Flow::effect`], and those
/// of what follows.
fn read_before(later: u32, (read, written): (u32, u32)) -> u32 {
    later & !written | read
}

/// The register that an instruction writes, as a set.
pub(super) fn definition(instruction: &Instruction) -> u32 {
    instruction.destination().map_or(0, |register| 1 << register.number())
}

/// Whether a jump goes back to where a call came from (volume I, "return-address prediction stack").
fn is_return(instruction: &Instruction) -> bool {
    instruction.rd.is_zero() && links(instruction.rs1)
}

/// Whether a jump that writes the register is a call.
fn links(register: Register) -> bool {
    matches!(register.number(), 1 | 5)
}

fn form(program: &Program, at: usize) -> Form {
    let instruction = &program.code[at].instruction;
    let target = || {
        let distance = instruction.imm;
        let target = (distance & 3 == 0).then(|| at.checked_add_signed((distance >> 2) as isize)).flatten();
        target.filter(|&target| target < program.code.len())
    };
    match instruction.op.shape() {
        Shape::Branch => target().map_or(Form::Left, Form::Branch),
        Shape::Jump => target().map_or(Form::Left, Form::Jump),
        Shape::JumpRegister => loaded_target(program, at).map_or(Form::JumpRegister, Form::Call),
        Shape::Csr | Shape::CsrImmediate => {
            let (reads, writes) = (instruction.reads_csr(), instruction.writes_csr());
            match program.machine.csrs.at(instruction.csr()) {
                Csr::Word { index, read, write }
                    if !(reads && read == OnRead::Refuse || writes && write == OnWrite::Refuse) =>
                {
                    let waits = reads && read == OnRead::WaitWhileZero;
                    let queues = match write {
                        OnWrite::Queue { below } if writes => Some(below),
                        _ => None,
                    };
                    Form::Csr(Word { index, waits, stops: writes && write == OnWrite::StoreAndStop, queues })
                }
                _ => Form::Left,
            }
        }
        Shape::Bare if !matches!(instruction.op, Op::Fence | Op::FenceI) => Form::Left,
        Shape::Illegal => Form::Left,
        _ => Form::Plain,
    }
}

/// Finds the branches that are a [`Form::Choice`]: nothing else goes to the copy, as far as that is known. What goes
/// there unknown is left to the interpreter.
fn find_choices(program: &Program, forms: &mut [Form]) {
    let marks = Marks::of(program, forms);
    let mut met = marks.enters;
    marks.returns.iter().chain(&marks.pointed).for_each(|&at| met[at] = true);
    for form in forms.iter() {
        if let Form::Branch(target) | Form::Jump(target) | Form::Call(target) = *form {
            met[target] = true;
        }
    }
    for at in 0..forms.len() {
        let (branch, copied) = (at, at + 1);
        if forms[branch] == Form::Branch(at + 2)
            && !met[copied]
            && chooses(&program.code[branch].instruction, &program.code[copied].instruction)
        {
            (forms[branch], forms[copied]) = (Form::Choice, Form::Chosen);
        }
    }
}

/// Whether `branch` orders two registers, and `copy` is one of either. Other instructions that a branch passes over are worth
/// a branch: their results wait for one that is often guessed.
fn chooses(branch: &Instruction, copy: &Instruction) -> bool {
    matches!(branch.op, Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu)
        && (copy.op, copy.imm) == (Op::Addi, 0)
        && [branch.rs1, branch.rs2].contains(&copy.rs1)
}

/// Where the jump at `at` goes when control comes from the instruction before it, an AUIPC: so compilers call what may be
/// far.
fn loaded_target(program: &Program, at: usize) -> Option<usize> {
    let jump = &program.code[at].instruction;
    let upper = &program.code[at.checked_sub(1)?].instruction;
    let fits = upper.op == Op::Auipc && upper.rd == jump.rs1 && !jump.rs1.is_zero();
    let target = address(program, at - 1).wrapping_add_signed(upper.imm).wrapping_add_signed(jump.imm) & !1;
    Some(program.index(target)).filter(|&target| fits && target < program.code.len())
}

/// The address of an instruction.
pub(super) fn address(program: &Program, at: usize) -> u32 {
    program.code_start.wrapping_add(u32::try_from(4 * at).unwrap_or(u32::MAX))
}

/// What is known of each instruction's role.
struct Marks {
    reached: Vec<bool>,
    leads: Vec<bool>,
    enters: Vec<bool>,
    /// Where a run goes on that has stopped or waited.
    resumes: Vec<bool>,
    /// And where no run comes to without having stopped or waited.
    stopped: Vec<bool>,
    returns: Vec<usize>,
    pointed: Vec<usize>,
}

impl Marks {
    /// Follows the code from the entry point, from every function that has a name, and from every address of code that
    /// stands in memory as a word.
    fn of(program: &Program, forms: &[Form]) -> Self {
        let count = forms.len();
        let mut marks = Self {
            reached: vec![false; count],
            leads: vec![false; count],
            enters: vec![false; count],
            resumes: vec![false; count],
            stopped: vec![false; count],
            returns: Vec::new(),
            pointed: Vec::new(),
        };
        let named = program.symbols().iter().filter(|symbol| symbol.is_function).map(|symbol| symbol.address);
        let words = program.image.iter().copied();
        let mut pointed: Vec<usize> =
            named.chain(words).map(|address| program.index(address)).filter(|&at| at < count).collect();
        pointed.sort_unstable();
        pointed.dedup();
        let mut open = pointed.clone();
        open.push(program.index(program.entry));
        for &at in &open {
            marks.enters[at] = true;
            marks.leads[at] = true;
        }
        marks.pointed = pointed;
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut marks.reached[at], true) {
                marks.follow(program, forms, at, &mut open);
            }
        }
        marks.returns.sort_unstable();
        marks
    }

    fn follow(&mut self, program: &Program, forms: &[Form], at: usize, open: &mut Vec<usize>) {
        let instruction = &program.code[at].instruction;
        let next = Some(at + 1).filter(|&next| next < forms.len());
        let lead = |marks: &mut Self, at: usize, enters: bool, open: &mut Vec<usize>| {
            marks.leads[at] = true;
            marks.enters[at] |= enters;
            open.push(at);
        };
        match forms[at] {
            Form::Plain
            | Form::Choice
            | Form::Chosen
            | Form::Csr(Word { waits: false, stops: false, queues: None, .. }) => open.extend(next),
            Form::Csr(Word { waits, stops, queues, .. }) => {
                // A run that waited is taken up here, one that stopped behind here.
                self.leads[at] |= waits;
                self.enters[at] |= waits;
                self.resumes[at] |= waits;
                self.stopped[at] |= waits;
                match next {
                    Some(next) if stops || queues.is_some() => {
                        self.resumes[next] = true;
                        self.stopped[next] |= stops;
                        lead(self, next, true, open);
                    }
                    next => open.extend(next),
                }
            }
            Form::Branch(target) => {
                lead(self, target, target <= at, open);
                if let Some(next) = next {
                    lead(self, next, false, open);
                }
            }
            Form::Jump(target) => {
                lead(self, target, target <= at, open);
                self.call(instruction, next, open);
            }
            Form::Call(target) => {
                lead(self, target, false, open);
                self.call(instruction, next, open);
            }
            Form::JumpRegister => self.call(instruction, next, open),
            Form::Left => {
                if let Some(next) = next {
                    lead(self, next, true, open);
                }
            }
        }
    }

    /// A call comes back behind itself.
    fn call(&mut self, instruction: &Instruction, next: Option<usize>, open: &mut Vec<usize>) {
        if let Some(next) = next
            && links(instruction.rd)
        {
            self.returns.push(next);
            self.leads[next] = true;
            self.enters[next] = true;
            open.push(next);
        }
    }
}
