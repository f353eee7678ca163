//! CRC-32 of a packet's payload on processors that multiply without carries in 512-bit registers.
//!
//! Payload is a kilobyte or four, far from the lengths at which a general CRC is at its best: `crc32fast` spends half of
//! its time on 1024 octets on bringing its streams together, one after the other. Here they are brought together at
//! once: a register's distance from the end is a constant, and so is a lane's. The method is Gopal et al., "Fast CRC
//! computation for generic polynomials using PCLMULQDQ instruction" (Intel, 2009); the constants are computed below.
#![expect(unsafe_code, reason = "instructions that not every processor has")]

/// Goes on with `crc` over as many octets as it can and gives the rest back: all of them where the processor lacks the
/// instructions or they are too few.
#[inline]
pub(crate) fn update(crc: u32, octets: &[u8]) -> (u32, &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if octets.len() >= STRIDE && wide::has_instructions() {
        // SAFETY: the processor has the instructions.
        return unsafe { wide::update(crc, octets) };
    }
    (crc, octets)
}

/// Goes on with `crc` over a packet: BTH, RETH where there is one, and payload. The BTH's octet with the marks counts as
/// ones. Gives back what is left of the payload; `None` where the processor lacks the instructions, the payload is too
/// short, or other headers stand before it.
///
/// BTH and register make up a lane, and a RETH is one: they are brought to the payload as its own lanes are, where tables
/// would have to be fetched again for each packet, as payload drives them from the cache.
#[inline]
pub(crate) fn packet<'a>(crc: u32, headers: &[u8], payload: &'a [u8]) -> Option<(u32, &'a [u8])> {
    #[cfg(target_arch = "x86_64")]
    if payload.len() >= STRIDE && wide::has_instructions() {
        let (bth, reth) = headers.split_first_chunk()?;
        let reth = if reth.is_empty() { None } else { Some(reth.try_into().ok()?) };
        // SAFETY: the processor has the instructions, and nothing is written.
        return Some(unsafe { wide::packet::<false>(crc, bth, reth, payload, std::ptr::null_mut()) });
    }
    let _ = (crc, headers, payload);
    None
}

/// The same, and copies what it has gone over to `to`. What is copied is what was gone over: each octet is read once.
///
/// # Panics
/// Where `to` is shorter than the payload.
#[inline]
pub(crate) fn copy_packet<'a>(
    crc: u32,
    headers: &[u8],
    payload: &'a [u8],
    to: &mut [u8],
) -> Option<(u32, &'a [u8])> {
    assert!(to.len() >= payload.len(), "there is room for all of it");
    #[cfg(target_arch = "x86_64")]
    if payload.len() >= STRIDE && wide::has_instructions() {
        let (bth, reth) = headers.split_first_chunk()?;
        let reth = if reth.is_empty() { None } else { Some(reth.try_into().ok()?) };
        // SAFETY: the processor has the instructions, and `to` has room.
        return Some(unsafe { wide::packet::<true>(crc, bth, reth, payload, to.as_mut_ptr()) });
    }
    let _ = (crc, headers, payload);
    None
}

/// Octets that the loop takes at once: four registers.
#[cfg(target_arch = "x86_64")]
const STRIDE: usize = 4 * 64;

#[cfg(target_arch = "x86_64")]
mod wide {
    use crate::icrc::power;
    use std::arch::x86_64::{
        __m128i, __m512i, _MM_HINT_T0, _mm_and_si128, _mm_clmulepi64_si128, _mm_cvtsi32_si128,
        _mm_extract_epi32, _mm_prefetch, _mm_set_epi64x, _mm_srli_si128, _mm_xor_si128,
        _mm512_castsi128_si512, _mm512_castsi512_si128, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
        _mm512_loadu_si512, _mm512_set_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
        _mm512_xor_si512,
    };

    use std::sync::atomic::{AtomicU8, Ordering};

    /// What moves 128 bits `bits` further from the end: x to `bits` + 32 for the half that comes first, x to `bits` - 32
    /// for the other, each reflected and with the place that a product of reflected factors lacks.
    const fn by(bits: u64) -> [i64; 2] {
        [reflected(bits + 32), reflected(bits - 32)]
    }

    const fn reflected(exponent: u64) -> i64 {
        (power(exponent) as i64) << 1
    }

    const BY_128: [i64; 2] = by(128);
    const BY_256: [i64; 2] = by(256);
    const BY_384: [i64; 2] = by(384);
    const BY_512: [i64; 2] = by(512);
    const BY_1024: [i64; 2] = by(1024);
    const BY_1536: [i64; 2] = by(1536);
    const BY_2048: [i64; 2] = by(2048);
    const X_64: i64 = reflected(64);
    /// The polynomial, reflected, and the quotient of x to 64 and it.
    const BARRETT: [i64; 2] = [0x1_db71_0641, 0x1_f701_1641];

    /// Whether the processor has the instructions. That is asked for each packet, so the answer is one octet.
    #[inline]
    pub(super) fn has_instructions() -> bool {
        static KNOWN: AtomicU8 = AtomicU8::new(0);
        match KNOWN.load(Ordering::Relaxed) {
            0 => find_out(&KNOWN),
            known => known == 2,
        }
    }

    #[cold]
    fn find_out(known: &AtomicU8) -> bool {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("sse4.1");
        known.store(if has { 2 } else { 1 }, Ordering::Relaxed);
        has
    }

    #[target_feature(enable = "avx512f")]
    fn lanes(a: [i64; 2], b: [i64; 2], c: [i64; 2], d: [i64; 2]) -> __m512i {
        _mm512_set_epi64(d[1], d[0], c[1], c[0], b[1], b[0], a[1], a[0])
    }

    #[target_feature(enable = "avx512f")]
    fn load(octets: &[u8; 64]) -> __m512i {
        // SAFETY: it reads 64 octets, wherever they begin.
        unsafe { _mm512_loadu_si512(octets.as_ptr().cast()) }
    }

    /// `register`, moved by what `by` says, and `other` added.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    fn fold(register: __m512i, by: __m512i, other: __m512i) -> __m512i {
        let first = _mm512_clmulepi64_epi128::<0x00>(register, by);
        let second = _mm512_clmulepi64_epi128::<0x11>(register, by);
        // The sum of all three.
        _mm512_ternarylogic_epi64::<0x96>(first, second, other)
    }

    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.1")]
    pub(super) fn update(crc: u32, octets: &[u8]) -> (u32, &[u8]) {
        let (blocks, rest) = octets.as_chunks::<64>();
        let Some((first, blocks)) = blocks.split_first() else { return (crc, octets) };
        let register = _mm512_castsi128_si512(_mm_cvtsi32_si128((!crc).cast_signed()));
        // The cast leaves the upper lanes undefined by contract; clear them.
        let register = clear_upper(register);
        let first = _mm512_xor_si512(load(first), register);
        // SAFETY: nothing is written.
        match unsafe { through::<false>(first, blocks, std::ptr::null_mut()) } {
            Some(crc) => (crc, rest),
            None => (crc, octets),
        }
    }

    /// # Safety
    /// Where it copies, there is room for `octets` at `to`.
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.1")]
    pub(super) unsafe fn packet<'a, const COPIES: bool>(
        crc: u32,
        bth: &[u8; 12],
        reth: Option<&[u8; 16]>,
        octets: &'a [u8],
        to: *mut u8,
    ) -> (u32, &'a [u8]) {
        let (words, _) = bth.as_chunks::<4>();
        let word = |index: usize| u32::from_le_bytes(words[index]);
        // Four octets of zero before the first change nothing.
        let (low, high) =
            (u64::from(word(0) ^ !crc) << 32, u64::from(word(1) | 0xff) | u64::from(word(2)) << 32);
        let (low, high) = (low.cast_signed(), high.cast_signed());
        let before = match reth {
            None => lanes([0, 0], [0, 0], [0, 0], [low, high]),
            Some(reth) => {
                let (halves, _) = reth.as_chunks::<8>();
                let half = |index: usize| i64::from_le_bytes(halves[index]);
                lanes([0, 0], [0, 0], [low, high], [half(0), half(1)])
            }
        };
        let (blocks, rest) = octets.as_chunks::<64>();
        // The caller has seen to it that there are enough. No closure here: it would be a function of its own, without
        // these instructions, that takes registers by way of memory.
        let Some((first, blocks)) = blocks.split_first() else { return (crc, octets) };
        let loaded = load(first);
        if COPIES {
            // SAFETY: there is room by the caller's word.
            unsafe { store(to, loaded) };
        }
        let first = fold(before, lanes(BY_512, BY_512, BY_512, BY_512), loaded);
        // SAFETY: there is room for what follows as well.
        let Some(crc) = (unsafe { through::<COPIES>(first, blocks, to.wrapping_add(64)) }) else {
            return (crc, octets);
        };
        (crc, rest)
    }

    /// Writes 64 octets.
    ///
    /// # Safety
    /// There is room for them at `to`.
    #[target_feature(enable = "avx512f")]
    unsafe fn store(to: *mut u8, register: __m512i) {
        // SAFETY: by the caller's word; it writes wherever they begin.
        unsafe { _mm512_storeu_si512(to.cast(), register) };
    }

    /// The CRC of a first block, with what came before it, and of `blocks`; `None` where these are too few. It copies
    /// `blocks` to `to`, if it `COPIES`.
    ///
    /// # Safety
    /// Where it copies, there is room for `blocks` at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.1")]
    unsafe fn through<const COPIES: bool>(
        mut a: __m512i,
        blocks: &[[u8; 64]],
        mut to: *mut u8,
    ) -> Option<u32> {
        let ([b, c, d], blocks) = blocks.split_first_chunk()?;
        let (strides, blocks) = blocks.as_chunks::<4>();
        let (mut b, mut c, mut d) = (load(b), load(c), load(d));
        if COPIES {
            // SAFETY: there is room by the caller's word.
            unsafe {
                store(to, b);
                store(to.add(64), c);
                store(to.add(128), d);
            }
            to = to.wrapping_add(192);
        }
        let by_2048 = lanes(BY_2048, BY_2048, BY_2048, BY_2048);
        for [e, f, g, h] in strides {
            // What comes after a page is nowhere near the cache, and packets follow each other.
            for line in [e, f, g, h] {
                _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(AHEAD).cast());
            }
            let (e, f, g, h) = (load(e), load(f), load(g), load(h));
            if COPIES {
                // SAFETY: as above.
                unsafe {
                    store(to, e);
                    store(to.add(64), f);
                    store(to.add(128), g);
                    store(to.add(192), h);
                }
                to = to.wrapping_add(256);
            }
            a = fold(a, by_2048, e);
            b = fold(b, by_2048, f);
            c = fold(c, by_2048, g);
            d = fold(d, by_2048, h);
        }
        let by_512 = lanes(BY_512, BY_512, BY_512, BY_512);
        let a = fold(a, lanes(BY_1536, BY_1536, BY_1536, BY_1536), d);
        let b = fold(b, lanes(BY_1024, BY_1024, BY_1024, BY_1024), a);
        let mut all = fold(c, by_512, b);
        for block in blocks {
            let loaded = load(block);
            if COPIES {
                // SAFETY: as above.
                unsafe { store(to, loaded) };
                to = to.wrapping_add(64);
            }
            all = fold(all, by_512, loaded);
        }
        // The last lane stays where it is, the others come to it.
        let moved =
            fold(all, lanes(BY_384, BY_256, BY_128, [0, 0]), _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, 0));
        let first = _mm_xor_si128(_mm512_castsi512_si128(moved), _mm512_extracti32x4_epi32::<1>(moved));
        let second =
            _mm_xor_si128(_mm512_extracti32x4_epi32::<2>(moved), _mm512_extracti32x4_epi32::<3>(all));
        Some(reduce(_mm_xor_si128(first, second)))
    }

    /// So many octets ahead the cache is told to fetch.
    const AHEAD: usize = 2048;

    #[target_feature(enable = "avx512f")]
    fn clear_upper(register: __m512i) -> __m512i {
        use std::arch::x86_64::_mm512_maskz_mov_epi64;
        _mm512_maskz_mov_epi64(0b11, register)
    }

    /// The CRC of 128 bits.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn reduce(octets: __m128i) -> u32 {
        let low = _mm_set_epi64x(0, 0xffff_ffff);
        // To 96 bits, to 64, and by Barrett's method to 32.
        let by_128 = _mm_set_epi64x(BY_128[1], BY_128[0]);
        let octets = _mm_xor_si128(_mm_clmulepi64_si128::<0x10>(octets, by_128), _mm_srli_si128::<8>(octets));
        let octets = _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(_mm_and_si128(octets, low), _mm_set_epi64x(0, X_64)),
            _mm_srli_si128::<4>(octets),
        );
        let barrett = _mm_set_epi64x(BARRETT[1], BARRETT[0]);
        let quotient = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(octets, low), barrett);
        let product = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(quotient, low), barrett);
        !_mm_extract_epi32::<1>(_mm_xor_si128(octets, product)).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_crc_of_a_packet_is_that_of_its_parts(
            before: u32, headers in proptest::collection::vec(any::<u8>(), 28), long: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..5000),
        ) {
            let mut headers = headers[..if long { 28 } else { 12 }].to_vec();
            let found = packet(before, &headers, &payload);
            #[cfg(target_arch = "x86_64")]
            prop_assert_eq!(found.is_some(), wide::has_instructions() && payload.len() >= STRIDE);
            let mut copy = vec![0; payload.len()];
            prop_assert_eq!(copy_packet(before, &headers, &payload, &mut copy), found);
            if let Some((crc, rest)) = found {
                let covered = payload.len() - rest.len();
                prop_assert_eq!((&copy[..covered], &copy[covered..]), (&payload[..covered], &vec![0; rest.len()][..]));
                headers[4] = 0xff;
                let mut hasher = crc32fast::Hasher::new_with_initial(before);
                hasher.update(&headers);
                hasher.update(&payload[..payload.len() - rest.len()]);
                prop_assert_eq!((crc, rest.len()), (hasher.finalize(), payload.len() % 64));
            }
        }

        #[test]
        fn the_quick_crc_is_that_of_crc32fast(
            before: u32, octets in proptest::collection::vec(any::<u8>(), 0..5000),
        ) {
            let (crc, rest) = update(before, &octets);
            #[cfg(target_arch = "x86_64")]
            if wide::has_instructions() && octets.len() >= STRIDE {
                prop_assert!(rest.len() < 64, "{} octets are left of {}", rest.len(), octets.len());
            }
            let finish = |crc, octets: &[u8]| {
                let mut hasher = crc32fast::Hasher::new_with_initial(crc);
                hasher.update(octets);
                hasher.finalize()
            };
            prop_assert_eq!(finish(crc, rest), finish(before, &octets));
        }
    }
}
