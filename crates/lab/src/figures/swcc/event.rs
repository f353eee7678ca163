//! What a program's events take on a core: the image is run by `hart`.

use roci_control::program::csr::{self, CONTEXT_WORDS, Side};
use roci_control::{Class, program::csr::OPEN};
use roci_hart::{CSR_WORDS, Core, Program, Stop};
use roci_nic::arch::spec::Cores;
use std::sync::Arc;

/// DCQCN that is asked before each packet and hears each one that arrives.
pub(super) const PACED: &[u8] = include_bytes!("../../../../../firmware/paced.elf");

/// More than any event takes; a program that takes more is a defect of this program.
const BUDGET: u64 = 100_000;

/// One core with a program on it.
pub(super) struct Bench {
    core: Core,
    block: [u32; CSR_WORDS],
}

impl Bench {
    /// A core of a NIC's that runs one side of `image` and waits for its first event.
    ///
    /// # Panics
    /// When the image, which is part of this program, is none, or the NIC has no cores.
    pub(super) fn new(image: &[u8], side: Side, cores: &Cores) -> Self {
        let machine = crate::program::machine_of(cores).expect("a NIC with cores");
        let program = Arc::new(Program::load(image, machine).expect("an image of ours"));
        let start = side.start(&program).expect("it has both sides");
        let mut core = Core::new(program);
        core.set_pc(start);
        let mut bench = Self { core, block: [0; CSR_WORDS] };
        bench.wait();
        bench
    }

    fn wait(&mut self) {
        loop {
            match self.core.run(&mut self.block, BUDGET) {
                Stop::Waiting { .. } => return,
                Stop::Written { .. } => {}
                other => panic!("an image of ours does not come to its poll: {other:?}"),
            }
            self.block[csr::EVENT] = 0;
        }
    }

    /// Cycles of an event of `class` about a packet with `length` octets of payload, from its poll to the next.
    pub(super) fn cycles(&mut self, class: Class, length: u32) -> u64 {
        let before = self.core.cycles();
        self.block[csr::EVENT] = class.0;
        self.block[csr::OPCODE] = class.0;
        self.block[csr::DETAIL] = 0;
        self.block[csr::LENGTH] = length;
        self.wait();
        self.core.cycles() - before
    }

    /// Makes the queue pair known to the program, on a link of so many kb/s.
    pub(super) fn open(mut self, link_kbps: u32) -> Self {
        self.block[csr::RATE] = link_kbps;
        self.cycles(OPEN, 0);
        self
    }

    /// The same core for a queue pair whose context is that of `other`, the other side of its pair.
    pub(super) fn beside(mut self, other: &Self) -> Self {
        self.block[..CONTEXT_WORDS].copy_from_slice(&other.block[..CONTEXT_WORDS]);
        self
    }

    /// Words of the program's context.
    pub(super) fn context_words(&self) -> u32 {
        self.core.program().symbol("context_octets").unwrap_or(0) / 4
    }
}
