//! Division by a number that is known long before: by its reciprocal, and exact.

/// A divisor, at least 1, with its reciprocal: a division by it is a multiplication and one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    value: u64,
    reciprocal: u64,
}

impl Divisor {
    /// The divisor `value`; 1 for none.
    pub(super) const fn new(value: u64) -> Self {
        let value = if value == 0 { 1 } else { value };
        Self { value, reciprocal: u64::MAX / value }
    }

    /// The number itself.
    pub(super) const fn get(self) -> u64 {
        self.value
    }

    /// The quotient and the remainder of `number`.
    #[inline]
    pub(super) const fn divide(self, number: u64) -> (u64, u64) {
        // Rounded down twice, the reciprocal and the product, by less than one in all: the quotient, or one less.
        let quotient = ((number as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = number - quotient * self.value;
        if rest >= self.value { (quotient + 1, rest - self.value) } else { (quotient, rest) }
    }
}

/// A ratio of numbers known before, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    pub(super) over: u64,
    pub(super) under: Divisor,
}

impl Factor {
    /// `over / under`; zero under counts as one.
    pub(super) const fn new(over: u64, under: u64) -> Self {
        let (mut a, mut b) = (over, under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let common = if a == 0 { 1 } else { a };
        Self { over: over / common, under: Divisor::new(under / common) }
    }

    /// `number` times the ratio, rounded down; the largest number where it would be larger.
    #[inline]
    pub(super) fn of(self, number: u64) -> u64 {
        match number.checked_mul(self.over) {
            Some(product) => self.under.divide(product).0,
            None => self.wide(number, 0),
        }
    }

    /// The same rounded up.
    #[inline]
    pub(super) fn of_up(self, number: u64) -> u64 {
        match number.checked_mul(self.over) {
            Some(product) => {
                let (quotient, rest) = self.under.divide(product);
                quotient + u64::from(rest > 0)
            }
            None => self.wide(number, self.under.get() - 1),
        }
    }

    #[cold]
    fn wide(self, number: u64, more: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.over) + u128::from(more);
        u64::try_from(product / u128::from(self.under.get())).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_divides_as_the_processor_does(
            number in any::<u64>(), value in any::<u64>(), shift in 0u32..64, less in 0u32..64,
        ) {
            let (number, value) = (number >> less, (value >> shift).max(1));
            prop_assert_eq!(Divisor::new(value).divide(number), (number / value, number % value));
            let multiple = value.saturating_mul(number >> 32);
            for number in [multiple, multiple.saturating_sub(1), multiple.saturating_add(1), u64::MAX] {
                prop_assert_eq!(Divisor::new(value).divide(number), (number / value, number % value));
            }
        }

        #[test]
        fn a_ratio_rounds_as_asked(number in any::<u64>(), over in any::<u64>(), under in any::<u64>(), shift in 0u32..64) {
            let (number, over, under) = (number >> shift, over >> (63 - shift), (under >> shift).max(1));
            let product = u128::from(number) * u128::from(over);
            let saturated = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
            let factor = Factor::new(over, under);
            prop_assert_eq!(factor.of(number), saturated(product / u128::from(under)));
            prop_assert_eq!(factor.of_up(number), saturated(product.div_ceil(u128::from(under))));
        }
    }
}
