//! How many octets each rank of an all-to-all has for each, where these differ: as a matrix, or drawn by the seed of a run.

use roci_units::{Random, Ratio};
use std::fmt;
use std::sync::Arc;

/// What is sent in an all-to-all whose ranks have different amounts for one another, as `MPI_Alltoallv` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amounts {
    /// These.
    Matrix(Arc<Matrix>),
    /// Drawn when a run begins.
    Skewed(Skew),
}

/// Ranks whose data are dealt out in tokens, each of them to a rank that is drawn by Zipf's law, as the experts of a mixture are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// The rank that is asked for k-th most is drawn in proportion to k to the power of minus this.
    pub exponent: Ratio,
    /// Into so many parts the data of each rank are cut, as equal as may be; at least 1.
    pub tokens: u32,
}

/// The greatest exponent: of the second rank there is a thousandth of what the first has.
pub const EXPONENT_MAX: u32 = 10;

/// Octets that each rank has for each.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Matrix {
    ranks: u32,
    /// Row by row, each with what one rank sends.
    octets: Vec<u64>,
    /// What each rank sends to others, and what it receives from them.
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl fmt::Debug for Matrix {
    /// Without its numbers, of which there may be millions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({0}x{0}, {1} octets)", self.ranks, self.sent.iter().sum::<u64>())
    }
}

/// Why numbers are no matrix of what ranks send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// It is not square.
    #[error(
        "row {row} has {columns} numbers, and there are {rows} rows; write one for each rank, what this row's rank sends to it"
    )]
    NotSquare {
        /// The first row that is of another length, counted from 0.
        row: usize,
        /// How many numbers it has.
        columns: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// Octets of a rank are more than can be counted with.
    #[error("rank {0} sends or receives more than 1TiB, which is the most; split it up")]
    TooMuch(usize),
    /// No rank sends anything to another.
    #[error("no rank sends anything to another; write above zero what some do")]
    Nothing,
}

/// The most octets that a rank sends or receives, its own included: 1 TiB.
const SUM_MAX: u64 = 1 << 40;

impl Matrix {
    /// That of these rows, each of which says what one rank sends.
    ///
    /// # Errors
    /// When rows differ in length from their number, or sums are too great.
    pub fn new(rows: &[Vec<u64>]) -> Result<Self, MatrixError> {
        if let Some((row, columns)) =
            rows.iter().map(Vec::len).enumerate().find(|(_, len)| *len != rows.len())
        {
            return Err(MatrixError::NotSquare { row, columns, rows: rows.len() });
        }
        let ranks = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        for (rank, row) in rows.iter().enumerate() {
            let sum = |octets: &mut dyn Iterator<Item = u64>| octets.fold(0, u64::saturating_add);
            let sums = [sum(&mut row.iter().copied()), sum(&mut rows.iter().map(|row| row[rank]))];
            if sums.into_iter().any(|sum| sum > SUM_MAX) {
                return Err(MatrixError::TooMuch(rank));
            }
        }
        Ok(Self::of(ranks, rows.concat()))
    }

    fn of(ranks: u32, octets: Vec<u64>) -> Self {
        let (mut sent, mut received) = (vec![0; ranks as usize], vec![0; ranks as usize]);
        for (from, row) in octets.chunks(ranks.max(1) as usize).enumerate() {
            for (to, octets) in row.iter().enumerate().filter(|(to, _)| *to != from) {
                sent[from] += octets;
                received[to] += octets;
            }
        }
        Self { ranks, octets, sent, received }
    }

    /// The same with its ranks in this order.
    #[must_use]
    pub fn ordered(&self, ranks: &[u32]) -> Self {
        let octets = ranks.iter().flat_map(|from| ranks.iter().map(|to| self.octets(*from, *to)));
        Self::of(u32::try_from(ranks.len()).unwrap_or(u32::MAX), octets.collect())
    }

    /// How many ranks there are.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// What a rank has for another, or for itself.
    pub fn octets(&self, from: u32, to: u32) -> u64 {
        self.octets[from as usize * self.ranks as usize + to as usize]
    }

    /// What a rank has for each.
    pub fn row(&self, from: u32) -> &[u64] {
        let ranks = self.ranks as usize;
        &self.octets[from as usize * ranks..(from as usize + 1) * ranks]
    }

    /// The most that a rank sends to others or receives from them.
    pub fn busiest(&self) -> u64 {
        self.sent.iter().chain(&self.received).copied().max().unwrap_or(0)
    }

    /// The same with what a rank has for itself, the most of them all: what compares with the size of an all-to-all whose ranks all send as much.
    pub fn size(&self) -> u64 {
        let own = (0..self.ranks).map(|rank| self.octets(rank, rank));
        let sums = self.sent.iter().zip(&self.received).zip(own);
        sums.map(|((sent, received), own)| sent.max(received) + own).max().unwrap_or(0)
    }

    /// The fewest octets that a rank has for another, of those that have any; `None` where none has.
    pub fn least(&self) -> Option<u64> {
        let others = (0..self.ranks).flat_map(|from| (0..self.ranks).map(move |to| (from, to)));
        others
            .filter(|(from, to)| from != to)
            .map(|(from, to)| self.octets(from, to))
            .filter(|it| *it > 0)
            .min()
    }

    /// The most that a rank has for another.
    pub fn most(&self) -> u64 {
        let others = (0..self.ranks).flat_map(|from| (0..self.ranks).map(move |to| (from, to)));
        others.filter(|(from, to)| from != to).map(|(from, to)| self.octets(from, to)).max().unwrap_or(0)
    }
}

impl Skew {
    /// What each of `ranks`, which have `size` octets each, has for each. Which rank is asked for most is drawn as well, and is the same for all.
    pub fn draw(self, ranks: u32, size: u64, mut random: Random) -> Matrix {
        let mut popular: Vec<u32> = (0..ranks).collect();
        for place in (1..popular.len()).rev() {
            #[expect(clippy::cast_possible_truncation, reason = "below a place")]
            popular.swap(place, random.below(place as u64 + 1) as usize);
        }
        // Where each begins on a line that they divide among themselves.
        let mut ends = Vec::with_capacity(popular.len());
        let mut end = 0;
        for place in 0..ranks {
            end += self.weight(place);
            ends.push(end);
        }
        let (all, tokens) = (end.max(1), u64::from(self.tokens));
        let mut octets = vec![0; popular.len() * popular.len()];
        for row in octets.chunks_mut(popular.len().max(1)) {
            for token in 0..tokens {
                let at = random.below(all);
                let place = ends.partition_point(|end| *end <= at);
                // As equal as may be; the product fits, as sizes have 40 bits.
                row[popular[place] as usize] += size * (token + 1) / tokens - size * token / tokens;
            }
        }
        Matrix::of(ranks, octets)
    }

    /// How often the rank at a place, counted from 0, is drawn beside others. The power is `libm`'s, which is the same everywhere.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 2^40, and above zero"
    )]
    fn weight(self, place: u32) -> u64 {
        let of_first = libm::pow(f64::from(place + 1), -self.exponent.as_f64());
        ((of_first * (1_u64 << 40) as f64) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_ranks_send_and_columns_what_they_receive() {
        let matrix = Matrix::new(&[vec![5, 1, 0], vec![2, 0, 3], vec![0, 0, 9]]).unwrap();
        assert_eq!((matrix.octets(1, 2), matrix.octets(2, 1)), (3, 0));
        assert_eq!(matrix.row(1), [2, 0, 3]);
        // Rank 1 sends five octets, and rank 2 has twelve with its own.
        assert_eq!((matrix.busiest(), matrix.size()), (5, 12));
        assert_eq!((matrix.least(), matrix.most()), (Some(1), 3));
        let own = Matrix::new(&[vec![5, 0], vec![0, 7]]).unwrap();
        assert_eq!((own.busiest(), own.least()), (0, None));
    }

    #[test]
    fn what_is_no_matrix_is_told_with_what_helps() {
        let told = |rows: &[Vec<u64>]| Matrix::new(rows).unwrap_err().to_string();
        assert!(
            told(&[vec![0, 1], vec![1]]).starts_with("row 1 has 1 numbers, and there are 2 rows; write one")
        );
        assert!(told(&[vec![0, 1, 2], vec![1, 0, 2]]).starts_with("row 0 has 3 numbers"));
        let most = 1 << 40;
        assert!(Matrix::new(&[vec![0, most], vec![0, 0]]).is_ok());
        assert!(told(&[vec![0, most], vec![0, 1]]).starts_with("rank 1 sends or receives more than 1TiB"));
        assert!(told(&[vec![1, most], vec![0, 0]]).starts_with("rank 0 sends"));
        assert!(told(&[vec![0, u64::MAX], vec![0, u64::MAX]]).starts_with("rank 0 sends"));
    }

    #[test]
    fn tokens_go_to_few_ranks_where_the_law_is_steep_and_to_all_alike_where_it_is_flat() {
        let draw = |exponent, seed| {
            let skew = Skew { exponent, tokens: 1000 };
            skew.draw(8, 1_000_003, Random::new(seed, 1))
        };
        let columns = |matrix: &Matrix| -> Vec<u64> {
            let mut sums: Vec<u64> =
                (0..8).map(|to| (0..8).map(|from| matrix.octets(from, to)).sum()).collect();
            sums.sort_unstable();
            sums
        };
        for seed in 0..4 {
            let steep = draw(Ratio::new(12, 10), seed);
            assert!((0..8).all(|rank| steep.row(rank).iter().sum::<u64>() == 1_000_003));
            assert_eq!(steep, draw(Ratio::new(12, 10), seed));
            // Of 8 ranks the first has 1 of 2.263 parts, and the last 8 to the power of -1.2.
            let of = columns(&steep);
            let share = |octets: u64| octets as f64 / 8_000_024.0;
            assert!((share(of[7]) - 0.442).abs() < 0.03 && (share(of[0]) - 0.036).abs() < 0.015, "{of:?}");
            let flat = columns(&draw(Ratio::ZERO, seed));
            assert!(flat.iter().all(|octets| (share(*octets) - 0.125).abs() < 0.02), "{flat:?}");
        }
        // Another seed has another rank asked for most.
        let first = |seed| {
            let matrix = draw(Ratio::new(2, 1), seed);
            (0..8).max_by_key(|to| (0..8).map(|from| matrix.octets(from, *to)).sum::<u64>())
        };
        assert!((1..8).any(|seed| first(seed) != first(0)));
    }
}
