//! The core's memory: ROM, stack and data side by side, each access checked.

use crate::error::LoadError;

/// Where the regions lie: ROM from the origin up, then the stack, then data.
///
/// The stack lies between, and grows down towards the ROM: one that overflows runs into words that cannot be stored
/// to and traps, instead of spoiling data. Lengths are octets, multiples of 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryMap {
    /// The first address, a multiple of 4.
    pub origin: u32,
    /// Octets of ROM: code and constants.
    pub rom: u32,
    /// Octets of stack.
    pub stack: u32,
    /// Octets of data, initialised from the program's image.
    pub data: u32,
}

impl Default for MemoryMap {
    /// SwCC's core: 16 KiB of ROM at 2³¹, 4 KiB of stack, 4 KiB of data.
    fn default() -> Self {
        Self { origin: 0x8000_0000, rom: 16 << 10, stack: 4 << 10, data: 4 << 10 }
    }
}

/// One of the three regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Code and constants; no store reaches it.
    Rom,
    /// What `sp` points into.
    Stack,
    /// Variables.
    Data,
}

impl MemoryMap {
    /// The octets of a region: its first address and its length.
    pub const fn region(&self, region: Region) -> (u32, u32) {
        match region {
            Region::Rom => (self.origin, self.rom),
            Region::Stack => (self.origin + self.rom, self.stack),
            Region::Data => (self.origin + self.rom + self.stack, self.data),
        }
    }

    /// The region that holds all of `length` octets from `address` on.
    pub fn holds(&self, address: u32, length: u32) -> Option<Region> {
        [Region::Rom, Region::Stack, Region::Data].into_iter().find(|&region| {
            let (start, size) = self.region(region);
            address.checked_sub(start).is_some_and(|offset| offset <= size && length <= size - offset)
        })
    }

    /// Octets of all regions together.
    pub const fn length(&self) -> u32 {
        self.rom + self.stack + self.data
    }

    /// Where `sp` starts: behind the stack's last octet.
    pub const fn stack_top(&self) -> u32 {
        self.origin + self.rom + self.stack
    }

    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let Self { origin, rom, stack, data } = *self;
        let whole = (origin | rom | stack | data) & 3 == 0;
        let end = [rom, stack, data].iter().map(|&part| u64::from(part)).sum::<u64>() + u64::from(origin);
        if whole && end < 1 << 32 && end - u64::from(origin) <= 1 << 31 {
            Ok(())
        } else {
            Err(LoadError::Map(*self))
        }
    }
}

/// What the core does with an access that is not aligned to its width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misaligned {
    /// It traps, as on riscv-mini.
    #[default]
    Trap,
    /// It is carried out, at no extra cost.
    Allow,
}

/// Why an access was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The address is not a multiple of the width.
    Misaligned,
    /// It lies outside the memory, or is a store into ROM.
    OutOfBounds,
}

/// The words of one core, little-endian by value: octet `n` of a word is its bits `8n` to `8n + 7`.
#[derive(Clone, Debug)]
pub struct Memory {
    words: Box<[u32]>,
    origin: u32,
    rom_words: usize,
    misaligned: Misaligned,
}

impl Memory {
    pub(crate) fn new(map: &MemoryMap, misaligned: Misaligned, image: &[u32]) -> Self {
        debug_assert_eq!(image.len(), map.length() as usize / 4, "an image fills the memory");
        Self { words: image.into(), origin: map.origin, rom_words: map.rom as usize / 4, misaligned }
    }

    /// Reads `width` octets (1, 2 or 4), zero-extended.
    ///
    /// # Errors
    ///
    /// [`Refusal`], when the core would trap.
    #[inline(always)]
    pub fn load(&self, address: u32, width: u32) -> Result<u32, Refusal> {
        let offset = address.wrapping_sub(self.origin);
        // A misaligned word turns into an index of at least 2³⁰ and so fails the one test of bounds.
        let word = offset.rotate_right(2);
        if width == 4 {
            return match self.words.get(word as usize) {
                Some(&word) => Ok(word),
                None => self.load_slowly(offset, width),
            };
        }
        let shift = 8 * (offset & 3);
        match self.words.get((offset >> 2) as usize) {
            Some(&word) if width == 1 => Ok(word >> shift & 0xff),
            Some(&word) if offset & 1 == 0 => Ok(word >> shift & 0xffff),
            _ => self.load_slowly(offset, width),
        }
    }

    /// Writes the low `width` octets (1, 2 or 4) of `value`.
    ///
    /// # Errors
    ///
    /// [`Refusal`], when the core would trap; nothing is written then.
    #[inline(always)]
    pub fn store(&mut self, address: u32, width: u32, value: u32) -> Result<(), Refusal> {
        let offset = address.wrapping_sub(self.origin);
        let index = if width == 4 { offset.rotate_right(2) } else { offset >> 2 } as usize;
        let aligned = width != 2 || offset & 1 == 0;
        match self.words.get_mut(index) {
            Some(word) if index >= self.rom_words && aligned => {
                if width == 4 {
                    *word = value;
                } else {
                    let (shift, mask) = (8 * (offset & 3), if width == 1 { 0xff } else { 0xffff });
                    *word = *word & !(mask << shift) | (value & mask) << shift;
                }
                Ok(())
            }
            _ => self.store_slowly(offset, width, value),
        }
    }

    /// The first word, for translated code.
    #[cfg(feature = "translate")]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u32 {
        self.words.as_mut_ptr()
    }

    /// The loads that the fast path gave up on: refused, or misaligned and allowed.
    #[cold]
    fn load_slowly(&self, offset: u32, width: u32) -> Result<u32, Refusal> {
        self.admit(offset, width, 0)?;
        Ok((0..width).fold(0, |value, n| {
            let at = offset + n;
            value | (self.words[at as usize >> 2] >> (8 * (at & 3)) & 0xff) << (8 * n)
        }))
    }

    #[cold]
    fn store_slowly(&mut self, offset: u32, width: u32, value: u32) -> Result<(), Refusal> {
        self.admit(offset, width, self.rom_words)?;
        for n in 0..width {
            let at = offset + n;
            let (word, shift) = (&mut self.words[at as usize >> 2], 8 * (at & 3));
            *word = *word & !(0xff << shift) | (value >> (8 * n) & 0xff) << shift;
        }
        Ok(())
    }

    /// Whether `width` octets at `offset` may be touched, and none below word `first`.
    fn admit(&self, offset: u32, width: u32, first: usize) -> Result<(), Refusal> {
        if self.misaligned == Misaligned::Trap && !offset.is_multiple_of(width) {
            return Err(Refusal::Misaligned);
        }
        let end = u64::from(offset) + u64::from(width);
        let fits = offset as usize >= 4 * first && end <= 4 * self.words.len() as u64;
        if fits { Ok(()) } else { Err(Refusal::OutOfBounds) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAP: MemoryMap = MemoryMap { origin: 0x1000, rom: 16, stack: 16, data: 16 };

    fn memory(misaligned: Misaligned) -> Memory {
        Memory::new(&MAP, misaligned, &[0x0302_0100; 12])
    }

    #[test]
    fn a_store_into_rom_is_refused_and_changes_nothing() {
        let mut memory = memory(Misaligned::Allow);
        for (address, width) in [(0x1000, 4), (0x100c, 4), (0x100f, 1), (0x100f, 2), (0x100d, 4)] {
            assert_eq!(memory.store(address, width, u32::MAX), Err(Refusal::OutOfBounds), "{address:#x}");
        }
        assert!((0..12).all(|n| memory.load(0x1000 + 4 * n, 4) == Ok(0x0302_0100)));
        assert_eq!(memory.store(0x1010, 4, 7), Ok(()));
    }

    #[test]
    fn the_address_space_has_two_ends() {
        let memory = memory(Misaligned::Allow);
        for address in [0, 0xfff, 0x1000 - 3, 0x1030 - 3, 0x1030, u32::MAX, u32::MAX - 3] {
            assert_eq!(memory.load(address, 4), Err(Refusal::OutOfBounds), "{address:#x}");
        }
        assert_eq!(memory.load(0x102f, 1), Ok(3));
        assert_eq!(memory.load(0x102f, 2), Err(Refusal::OutOfBounds));
    }

    #[test]
    fn a_misaligned_access_traps_before_its_bounds_are_looked_at() {
        let mut memory = memory(Misaligned::Trap);
        assert_eq!(memory.load(0x1001, 4), Err(Refusal::Misaligned));
        assert_eq!(memory.load(0x1, 2), Err(Refusal::Misaligned));
        assert_eq!(memory.store(0x1012, 4, 0), Err(Refusal::Misaligned));
        assert_eq!(memory.store(0x1001, 2, 0), Err(Refusal::Misaligned));
    }

    proptest! {
        #[test]
        fn memory_behaves_as_an_array_of_octets(
            accesses in prop::collection::vec((0u16..60, 0u32..3, any::<u32>(), any::<bool>()), 0..100),
            trap: bool,
        ) {
            let misaligned = if trap { Misaligned::Trap } else { Misaligned::Allow };
            let mut memory = memory(misaligned);
            let mut octets: Vec<u8> = [0, 1, 2, 3].repeat(12);
            for (offset, log, value, store) in accesses {
                let (address, width) = (0x1000 + u32::from(offset), 1 << log);
                let (offset, end) = (usize::from(offset), usize::from(offset) + width as usize);
                let fits = end <= 48 && (!store || offset >= 16);
                let expected = if trap && !address.is_multiple_of(width) {
                    Err(Refusal::Misaligned)
                } else if fits {
                    Ok(())
                } else {
                    Err(Refusal::OutOfBounds)
                };
                if store {
                    prop_assert_eq!(memory.store(address, width, value), expected);
                    if expected.is_ok() {
                        octets[offset..end].copy_from_slice(&value.to_le_bytes()[..end - offset]);
                    }
                } else {
                    let expected = expected.map(|()| {
                        octets[offset..end].iter().rev().fold(0, |value, &octet| value << 8 | u32::from(octet))
                    });
                    prop_assert_eq!(memory.load(address, width), expected);
                }
            }
        }
    }
}
