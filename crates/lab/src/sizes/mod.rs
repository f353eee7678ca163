//! How long flows are: distributions by name, from a file, or of one size.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`Sizes`] | a distribution and its arithmetic |
//! | `tables` | the distributions that have a name |
//! | `homa` | those of Homa |
//! | `file` | reading one from text |
//!
//! A distribution is a list of points *(size, share of flows that are no longer)* with straight lines between them,
//! as the field's generators read them. All arithmetic is on integers, so that a seed gives the same flows on
//! every machine.

mod file;
mod homa;
mod tables;
#[cfg(test)]
mod tests;

pub use file::FileError;
pub use tables::{NAMES, UnknownSizes};

use roci_units::Bytes;

/// All flows, in the unit in which shares of them are counted: a percent is 10¹⁰ of these parts.
pub const WHOLE: u64 = 1_000_000_000_000;

/// The largest size of a point, 2⁴⁰ octets.
pub const SIZE_MAX: Bytes = Bytes(1 << 40);

/// A corner of the cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// A size in octets.
    pub size: Bytes,
    /// How many flows are no longer than that, in parts of [`WHOLE`].
    pub cumulative: u64,
}

/// A distribution of flow sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    name: String,
    /// Neither coordinate ever falls; the first point's share is zero and the last one's is the whole.
    points: Vec<Point>,
}

/// Why points are not a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointsError {
    /// There are none.
    #[error("no points; write one \"size percent\" pair per line, the last with 100 percent")]
    Empty,
    /// A size is smaller than the one before it.
    #[error("the size falls from {before} to {after}; sort the points by size")]
    SizeFalls {
        /// The size before.
        before: Bytes,
        /// The size that is smaller.
        after: Bytes,
    },
    /// A share is smaller than the one before it.
    #[error("the cumulative share falls; each line's share includes all shorter flows")]
    ShareFalls,
    /// The last share is not all flows.
    #[error("the last share is not the whole; it must be 100 percent")]
    NotWhole,
    /// A size is out of range.
    #[error("a size of {0}; at most 1 TiB (2^40 octets)")]
    TooLarge(Bytes),
    /// All flows would be empty.
    #[error("all sizes are zero; at least the last must have an octet")]
    AllEmpty,
}

impl Sizes {
    /// The distribution that is called `name`: one of [`NAMES`], in any capitals, with or without `-` and `_`
    /// (`web-search`, `WebSearch`), or one that stands for the same.
    ///
    /// # Errors
    /// When there is none, with the names that there are.
    pub fn named(name: &str) -> Result<Self, UnknownSizes> {
        tables::find(name)
    }

    /// All flows have `size` octets; at least one.
    pub fn fixed(size: Bytes) -> Self {
        let size = Bytes(size.0.clamp(1, SIZE_MAX.0));
        let points = vec![Point { size, cumulative: 0 }, Point { size, cumulative: WHOLE }];
        Self { name: size.to_string(), points }
    }

    /// The distribution through `points`. Where the first one's share is above zero, that many flows have exactly
    /// its size.
    ///
    /// # Errors
    /// When a coordinate falls, a size is out of range, or the last share is not [`WHOLE`].
    pub fn from_points(name: &str, mut points: Vec<Point>) -> Result<Self, PointsError> {
        let first = *points.first().ok_or(PointsError::Empty)?;
        if first.cumulative > 0 {
            points.insert(0, Point { cumulative: 0, ..first });
        }
        for pair in points.windows(2) {
            if pair[1].size < pair[0].size {
                return Err(PointsError::SizeFalls { before: pair[0].size, after: pair[1].size });
            }
            if pair[1].cumulative < pair[0].cumulative {
                return Err(PointsError::ShareFalls);
            }
        }
        let last = points[points.len() - 1];
        if last.cumulative != WHOLE {
            return Err(PointsError::NotWhole);
        }
        if last.size > SIZE_MAX {
            return Err(PointsError::TooLarge(last.size));
        }
        if last.size == Bytes::ZERO {
            return Err(PointsError::AllEmpty);
        }
        Ok(Self { name: name.to_owned(), points })
    }

    /// The distribution that `text` lists: a line for each point with a size in octets and the cumulative share,
    /// in percent up to 100 or as a fraction up to 1. Empty lines and what follows a `#` are skipped.
    ///
    /// # Errors
    /// When a line is something else, with its number, or when the points are no distribution.
    pub fn read(name: &str, text: &str) -> Result<Self, FileError> {
        file::read(name, text)
    }

    /// What it is called in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its corners.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The size below which a share of `random` / 2⁶⁴ of all flows lies: the inverse of the distribution, rounded
    /// to the nearest octet, at least one octet.
    ///
    /// With `random` uniform over all `u64`, sizes follow the distribution.
    pub fn sample(&self, random: u64) -> Bytes {
        // Twenty more bits than a share has, so that a segment with few parts still yields all its sizes.
        const FINER: u32 = 20;
        let share = (u128::from(random) * u128::from(WHOLE)) >> (64 - FINER);
        let after = self.points.partition_point(|p| u128::from(p.cumulative) << FINER <= share);
        // The share is below the whole, so there is a point after it; the first point's is zero, so one before too.
        let (from, to) = (self.points[after - 1], self.points[after]);
        let width = u128::from(to.cumulative - from.cumulative) << FINER;
        let into = share - (u128::from(from.cumulative) << FINER);
        let climb = (u128::from(to.size.0 - from.size.0) * into + width / 2) / width;
        #[expect(clippy::cast_possible_truncation, reason = "at most the difference of two sizes")]
        Bytes((from.size.0 + climb as u64).max(1))
    }

    /// The exact mean, in parts of 1 / (2 · [`WHOLE`]) octet.
    pub fn mean_parts(&self) -> u128 {
        let area = |pair: &[Point]| {
            u128::from(pair[0].size.0 + pair[1].size.0) * u128::from(pair[1].cumulative - pair[0].cumulative)
        };
        self.points.windows(2).map(area).sum()
    }

    /// The mean, rounded to the nearest octet.
    pub fn mean(&self) -> Bytes {
        let whole = u128::from(WHOLE);
        #[expect(clippy::cast_possible_truncation, reason = "a mean is at most the largest size")]
        Bytes(((self.mean_parts() + whole) / (2 * whole)) as u64)
    }
}
