//! Reading and writing big-endian fields at fixed places.

/// The 16-bit field at octet `at`.
pub(crate) const fn be16<const N: usize>(octets: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// The 24-bit field at octet `at`.
pub(crate) const fn be24<const N: usize>(octets: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([0, octets[at], octets[at + 1], octets[at + 2]])
}

/// The 32-bit field at octet `at`.
pub(crate) const fn be32<const N: usize>(octets: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

/// The 64-bit field at octet `at`.
pub(crate) const fn be64<const N: usize>(octets: &[u8; N], at: usize) -> u64 {
    (be32(octets, at) as u64) << 32 | be32(octets, at + 4) as u64
}

/// `N` octets from octet `at` on.
pub(crate) const fn take<const M: usize, const N: usize>(octets: &[u8; M], at: usize) -> [u8; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = octets[at + i];
        i += 1;
    }
    out
}

/// Writes fields one after another. Whoever makes one has compared the buffer with the whole length first.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(buffer: &'a mut [u8]) -> Self {
        Self { rest: buffer }
    }

    /// The next `len` octets, to be written by the caller.
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) -> &'a mut [u8] {
        let (front, rest) = core::mem::take(&mut self.rest).split_at_mut(len);
        self.rest = rest;
        front
    }

    #[inline]
    pub(crate) fn put(&mut self, octets: &[u8]) {
        self.reserve(octets.len()).copy_from_slice(octets);
    }

    #[inline]
    pub(crate) fn put16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn put32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn put64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
}

/// Declares a view: a header of fixed length at the front of some octets, checked once and then read in place.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(&'a [u8; $len]);

        impl<'a> $name<'a> {
            /// Octets that it takes.
            pub const LEN: usize = $len;

            /// Splits it off the front of `octets`; after this no accessor can fail.
            ///
            /// # Errors
            /// [`PacketError::Truncated`](crate::PacketError::Truncated) when there are too few octets.
            pub fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), crate::PacketError> {
                match octets.split_first_chunk() {
                    Some((header, rest)) => Ok((Self(header), rest)),
                    None => Err(crate::PacketError::Truncated { got: octets.len(), need: $len }),
                }
            }
        }
    };
}
pub(crate) use view;
