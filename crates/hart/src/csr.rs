//! The control and status registers, as the embedder declares and implements them.

use core::ops::Range;

/// How many words the block of plain registers has.
pub const CSR_WORDS: usize = 64;

/// The block of plain registers: executors read and write it as memory.
pub type CsrBlock = [u32; CSR_WORDS];

/// What happens when a program reads a word register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRead {
    /// It gets the word.
    #[default]
    Value,
    /// It gets the word, and while that is zero the core waits: `run` returns [`Stop::Waiting`](crate::Stop::Waiting)
    /// with the instruction neither retired nor charged, and the next `run` tries again.
    WaitWhileZero,
    /// The instruction traps.
    Refuse,
}

/// What happens when a program writes a word register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnWrite {
    /// The word is stored.
    #[default]
    Store,
    /// The word is stored, the instruction retires, and `run` returns [`Stop::Written`](crate::Stop::Written).
    StoreAndStop,
    /// The word joins the core's queue ([`Core::queue`](crate::Core::queue)), while the block stays as it is, and the
    /// instruction retires. Where the word is not `below` this one, or fills the queue, `run` returns
    /// [`Stop::Written`](crate::Stop::Written); else the program goes on, and whoever runs it finds the word at the next stop.
    Queue {
        /// What stops the run itself.
        below: u32,
    },
    /// The instruction traps.
    Refuse,
}

/// What stands at one number of the CSR space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Csr {
    /// Nothing: an access is an illegal instruction.
    #[default]
    Absent,
    /// A word of the block, with no side effect beside those named; the translator makes it a memory access.
    Word {
        /// Which word, below [`CSR_WORDS`].
        index: u8,
        /// What a read does.
        read: OnRead,
        /// What a write does.
        write: OnWrite,
    },
    /// A register behind [`Csrs::read`] and [`Csrs::write`]; the interpreter carries out its accesses.
    Device,
}

/// Which register stands at each of the 4096 numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrMap {
    registers: Box<[Csr]>,
    /// Those whose instructions have costs of their own; the last that fits counts.
    costs: Vec<(Range<u16>, u16)>,
}

impl Default for CsrMap {
    /// No register at all.
    fn default() -> Self {
        Self { registers: vec![Csr::Absent; 4096].into_boxed_slice(), costs: Vec::new() }
    }
}

impl CsrMap {
    /// Puts `csr` at `number`, of which 12 bits count.
    ///
    /// # Panics
    ///
    /// When it is a word beyond the block: an embedder's slip.
    #[must_use]
    pub fn with(mut self, number: u16, csr: Csr) -> Self {
        if let Csr::Word { index, .. } = csr {
            assert!(usize::from(index) < CSR_WORDS, "CSR {number:#x}: the block has no word {index}");
        }
        self.registers[usize::from(number & 0xfff)] = csr;
        self
    }

    /// Has an instruction on one of these registers take `cycles`, and not what
    /// [`CycleModel::csr`](crate::CycleModel::csr) says: those that stand in a slower place.
    ///
    /// # Panics
    ///
    /// When that is no cycle at all: an embedder's slip.
    #[must_use]
    pub fn with_cost(mut self, numbers: Range<u16>, cycles: u16) -> Self {
        assert!(cycles > 0, "CSR {:#x}: an instruction takes a cycle at least", numbers.start);
        self.costs.push((numbers, cycles));
        self
    }

    /// What an instruction on the register at `number` takes, where it has a cost of its own.
    pub fn cost(&self, number: u16) -> Option<u16> {
        self.costs.iter().rfind(|(numbers, _)| numbers.contains(&number)).map(|(_, cycles)| *cycles)
    }

    /// Puts plain words at `numbers`, from word `first` of the block on.
    ///
    /// # Panics
    ///
    /// When the block is too small for them.
    #[must_use]
    pub fn with_words(self, numbers: Range<u16>, first: u8) -> Self {
        let words = (first..).map(|index| Csr::Word { index, read: OnRead::Value, write: OnWrite::Store });
        numbers.zip(words).fold(self, |map, (number, csr)| map.with(number, csr))
    }

    /// What stands at `number`.
    #[inline(always)]
    pub fn at(&self, number: u16) -> Csr {
        self.registers.get(usize::from(number)).copied().unwrap_or_default()
    }
}

/// The answer to a read of a device register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceRead {
    /// The register's value.
    Value(u32),
    /// Not yet: the core waits, as for [`OnRead::WaitWhileZero`].
    Wait,
    /// The instruction traps.
    Refuse,
}

/// The answer to a write of a device register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceWrite {
    /// Go on.
    Done,
    /// The instruction retires, then the run stops.
    Stop,
    /// The instruction traps.
    Refuse,
}

/// The registers behind the numbers of a [`CsrMap`].
///
/// `cycle` is the core's clock before the instruction, so that a device can be a cycle counter or a timer.
pub trait Csrs {
    /// The plain words.
    fn block(&mut self) -> &mut CsrBlock;

    /// Reads a device register.
    fn read(&mut self, _number: u16, _cycle: u64) -> DeviceRead {
        DeviceRead::Refuse
    }

    /// Writes a device register.
    fn write(&mut self, _number: u16, _value: u32, _cycle: u64) -> DeviceWrite {
        DeviceWrite::Refuse
    }
}

/// Plain words and no device.
impl Csrs for CsrBlock {
    fn block(&mut self) -> &mut CsrBlock {
        self
    }
}
