//! Why a program was refused when it was loaded.

use crate::memory::MemoryMap;

/// Why no program could be made of a file. Each names the place that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file does not start as an ELF file does.
    #[error("not an ELF file: it does not start with 7f 45 4c 46")]
    NotElf,
    /// The file ends too early, or a count or an offset in it is too large.
    #[error("the file of {length} octets ends within its {what}")]
    Truncated {
        /// The part that is cut off.
        what: &'static str,
        /// The file's length.
        length: usize,
    },
    /// The file ends before its table of sections does.
    #[error("it is cut off at octet {length}: its table of sections goes to octet {need}")]
    CutOff {
        /// The file's length.
        length: usize,
        /// How long it was before, at least.
        need: u64,
    },
    /// The file is for 64-bit processors.
    #[error("ELF class {found} (octet 4); a 32-bit program has class 1")]
    Class {
        /// The class octet: 2 for 64 bits.
        found: u8,
    },
    /// The file is big-endian.
    #[error("ELF data encoding {found} (octet 5); a little-endian program has encoding 1")]
    Encoding {
        /// The encoding octet: 2 for big-endian.
        found: u8,
    },
    /// The file is for another kind of processor.
    #[error("ELF machine {found}; RISC-V is 243")]
    Machine {
        /// The machine number.
        found: u16,
    },
    /// The file is an object, a library or position-independent, and has no place in memory yet.
    #[error("ELF type {found}; a linked program of fixed addresses has type 2")]
    Kind {
        /// The type number.
        found: u16,
    },
    /// The file uses what the core does not have.
    #[error("ELF flags {flags:#x} ask for {what}, which the core does not have")]
    Flags {
        /// All flags.
        flags: u32,
        /// What the first refused one means.
        what: &'static str,
    },
    /// The file has no code.
    #[error("no segment is executable")]
    NoCode,
    /// A segment holds more in the file than in memory.
    #[error("segment {segment} at {address:#x}: {in_file} octets in the file, but {in_memory} in memory")]
    Size {
        /// Which program header.
        segment: usize,
        /// Its first address.
        address: u32,
        /// Octets in the file.
        in_file: u32,
        /// Octets in memory.
        in_memory: u32,
    },
    /// A segment lies where the core has no memory for it.
    #[error("segment {segment} at {address:#x}, {length} octets: {reason}")]
    Place {
        /// Which program header.
        segment: usize,
        /// Its first address.
        address: u32,
        /// Its octets in memory.
        length: u32,
        /// What is wrong there.
        reason: &'static str,
    },
    /// Two segments claim the same memory.
    #[error("segments {first} and {second} overlap at {address:#x}")]
    Overlap {
        /// The program header of the lower one.
        first: usize,
        /// The program header of the other.
        second: usize,
        /// The first address that both claim.
        address: u32,
    },
    /// The program does not start on an instruction.
    #[error("the entry point {address:#x} is not the address of an instruction")]
    Entry {
        /// The entry point.
        address: u32,
    },
    /// The embedder's memory map is unusable.
    #[error("{0:?}: addresses and lengths must be multiples of 4, 2³¹ octets at most, and end below 2³²")]
    Map(MemoryMap),
    /// The embedder's cycle model has a free instruction.
    #[error("every instruction must cost at least one cycle")]
    FreeInstruction,
}
