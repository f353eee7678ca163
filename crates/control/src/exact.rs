//! Rational numbers, in which the tests of laws have their papers' equations.

use core::fmt;
use core::ops::{Add, Div, Mul, Neg, Sub};
use num_rational::BigRational;
use roci_units::{Ratio, Span};

/// Of numbers that no fraction is, or whose fractions grow with each step, so many bits behind the point are kept.
const BITS: i32 = 128;

/// A number, without error where nothing says otherwise.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exact(BigRational);

impl Exact {
    /// `numerator / denominator`.
    pub(crate) fn over(numerator: impl Into<Self>, denominator: impl Into<Self>) -> Self {
        numerator.into() / denominator.into()
    }

    /// A span in nanoseconds.
    pub(crate) fn nanos(span: Span) -> Self {
        Self::over(span.as_ps(), 1_000u32)
    }

    pub(crate) fn abs(self) -> Self {
        if self < Self::default() { -self } else { self }
    }

    pub(crate) fn floor(&self) -> Self {
        Self(self.0.floor())
    }

    /// Cut at 2⁻¹²⁸.
    pub(crate) fn cut(&self) -> Self {
        let one = Self::units_of_one();
        Self((&self.0 * &one).floor() / one)
    }

    /// The square root of one that is not negative, cut at 2⁻¹²⁸.
    pub(crate) fn root(&self) -> Self {
        let one = Self::units_of_one();
        let root = (&self.0 * &one * &one).to_integer().sqrt();
        Self(BigRational::from_integer(root) / one)
    }

    fn units_of_one() -> BigRational {
        BigRational::from_integer(2.into()).pow(BITS)
    }
}

macro_rules! from {
    ($($whole:ty)*) => {$(
        impl From<$whole> for Exact {
            fn from(it: $whole) -> Self {
                Self(BigRational::from_integer(it.into()))
            }
        }
    )*};
}

from!(u32 i32 u64);

impl From<Ratio> for Exact {
    fn from(it: Ratio) -> Self {
        Self::over(it.numerator(), it.denominator())
    }
}

impl From<&Self> for Exact {
    fn from(it: &Self) -> Self {
        it.clone()
    }
}

macro_rules! operator {
    ($($operator:ident $method:ident)*) => {$(
        impl<T: Into<Exact>> $operator<T> for Exact {
            type Output = Exact;
            fn $method(self, other: T) -> Exact {
                Exact(self.0.$method(other.into().0))
            }
        }

        impl<T: Into<Exact>> $operator<T> for &Exact {
            type Output = Exact;
            fn $method(self, other: T) -> Exact {
                self.clone().$method(other)
            }
        }
    )*};
}

operator!(Add add Sub sub Mul mul Div div);

impl Neg for Exact {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl fmt::Debug for Exact {
    /// To a millionth.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}e-6", (self * 1_000_000u32).0.round())
    }
}

#[test]
fn roots_and_cuts_are_as_near_as_they_say() {
    let unit = Exact::over(1u32, Exact(Exact::units_of_one()));
    for whole in [2u32, 3, 10_000, u32::MAX] {
        let root = Exact::over(whole, 7u32).root();
        assert!(&root * &root <= Exact::over(whole, 7u32));
        let above = root + &unit;
        assert!(&above * &above > Exact::over(whole, 7u32));
        let third = Exact::over(whole, 3u32);
        assert!((&third - third.cut()) < unit && third.cut() <= third);
    }
    assert_eq!(Exact::from(49u32).root(), Exact::from(7u32));
}
