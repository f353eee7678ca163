//! Reading a distribution from text, as the traffic generators of HPCC and ConWeave do.

use super::{Point, PointsError, SIZE_MAX, Sizes, WHOLE};
use roci_units::Bytes;

/// Why a text is not a distribution of sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A line is not a pair of numbers.
    #[error("line {line}: {text:?} is not \"size percent\", two numbers such as \"10000 15\"")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A line contradicts the one before it, or its size is out of range.
    #[error("line {line}: {reason}")]
    Point {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        reason: PointsError,
    },
    /// The lines together are no distribution.
    #[error(transparent)]
    Points(#[from] PointsError),
}

/// The digits that a share may have after the point; as a fraction, a unit of the last is one part of [`WHOLE`].
const PLACES: usize = 12;

pub(super) fn read(name: &str, text: &str) -> Result<Sizes, FileError> {
    let mut raw: Vec<(Bytes, u128)> = Vec::new();
    for (number, full) in text.lines().enumerate() {
        let line = number + 1;
        let content = full.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let (size, share) = pair(content).ok_or_else(|| FileError::Line { line, text: shorten(content) })?;
        let bad = |reason| Err(FileError::Point { line, reason });
        if size > SIZE_MAX {
            return bad(PointsError::TooLarge(size));
        }
        if let Some(&(before, share_before)) = raw.last() {
            if size < before {
                return bad(PointsError::SizeFalls { before, after: size });
            }
            if share < share_before {
                return bad(PointsError::ShareFalls);
            }
        }
        raw.push((size, share));
    }
    let last = raw.last().ok_or(PointsError::Empty)?.1;
    // The whole is written as 100 or as 1; the last line tells which.
    let one = u128::from(WHOLE);
    let divisor = match last {
        l if l == one => 1,
        l if l == 100 * one => 100,
        _ => return Err(PointsError::NotWhole.into()),
    };
    let point = |(size, share): (Bytes, u128)| {
        let cumulative = u64::try_from((share + divisor / 2) / divisor).unwrap_or(u64::MAX);
        Point { size, cumulative }
    };
    Ok(Sizes::from_points(name, raw.into_iter().map(point).collect())?)
}

/// The two numbers of a line: a whole size (a point and zeros after it are let pass), and a share in units of
/// 10⁻¹², rounded down.
fn pair(line: &str) -> Option<(Bytes, u128)> {
    let mut fields = line.split(|c: char| c.is_whitespace() || c == ',').filter(|f| !f.is_empty());
    let (size, share) = (fields.next()?, fields.next()?);
    if fields.next().is_some() {
        return None;
    }
    let (whole, part) = size.split_once('.').unwrap_or((size, ""));
    if !part.bytes().all(|b| b == b'0') {
        return None;
    }
    Some((Bytes(digits(whole)?), decimal(share)?))
}

fn digits(text: &str) -> Option<u64> {
    // `parse` alone would also take a plus sign.
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn decimal(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    if !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = part.bytes().chain(std::iter::repeat(b'0')).take(PLACES);
    let fraction = part.fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    Some(u128::from(whole) * u128::from(WHOLE) + u128::from(fraction))
}

/// At most the first forty characters, so that a message stays one line.
fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}
