//! Sets of priorities, one bit for each.

/// The most urgent priority of `set` (bit p: priority p is in it); `None` where it is empty.
///
/// It is `u8::checked_ilog2` by a table. Where processors without LZCNT are served that is BSR, whose result depends on what was
/// in its register before: a scheduler that asked by it waited with each turn until the turn before was over.
#[inline]
#[must_use]
pub const fn most_urgent(set: u8) -> Option<u8> {
    let bit = HIGHEST[set as usize];
    if bit == u8::MAX { None } else { Some(bit) }
}

/// The highest bit of each octet; of none 255.
static HIGHEST: [u8; 256] = {
    let mut highest = [u8::MAX; 256];
    let mut set = 1;
    while set < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "at most 7")]
        {
            highest[set] = set.ilog2() as u8;
        }
        set += 1;
    }
    highest
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_is_the_highest_bit() {
        for set in 0..=u8::MAX {
            assert_eq!(most_urgent(set).map(u32::from), set.checked_ilog2());
        }
    }
}
