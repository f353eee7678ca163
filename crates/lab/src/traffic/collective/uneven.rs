//! All-to-alls whose ranks have different amounts for one another: their schedule is that of equal ones, without the messages that would
//! bring nothing.
//!
//! Each rank's octets for another are cut into channels and chunks by themselves. Over rails a rank waits for those ranks of its server alone that
//! have something for the same one, and for nobody where none has.

use super::amounts::{Amounts, Matrix};
use super::pairs::Carried;
use super::{Algorithm, Collective, CollectiveFault, MESSAGE_MAX, Message};
use roci_units::{Bytes, Random};
use std::ops::Range;
use std::sync::Arc;

impl Collective {
    /// How many octets each rank has for each, where these differ and are known.
    pub fn matrix(&self) -> Option<&Matrix> {
        match &self.amounts {
            Some(Amounts::Matrix(matrix)) => Some(matrix),
            Some(Amounts::Skewed(_)) | None => None,
        }
    }

    /// Whether what its ranks have for one another is drawn when a run begins.
    pub const fn is_drawn(&self) -> bool {
        matches!(self.amounts, Some(Amounts::Skewed(_)))
    }

    /// The most octets that a rank sends to others or receives from them, where that differs from rank to rank.
    pub fn busiest(&self) -> Option<u64> {
        self.matrix().map(Matrix::busiest)
    }

    /// The same with these amounts.
    #[must_use]
    pub fn with_matrix(&self, matrix: Arc<Matrix>) -> Self {
        Self { size: Bytes(matrix.size()), amounts: Some(Amounts::Matrix(matrix)), ..self.clone() }
    }

    /// The same with what its ranks have for one another in a run, where that is drawn.
    #[must_use]
    pub fn drawn(&self, random: Random) -> Self {
        match self.amounts {
            Some(Amounts::Skewed(skew)) => {
                self.with_matrix(Arc::new(skew.draw(self.count(), self.size.0, random)))
            }
            Some(Amounts::Matrix(_)) | None => self.clone(),
        }
    }

    /// Whether these amounts can be sent.
    pub(super) fn check_amounts(&self) -> Result<(), CollectiveFault> {
        let parts = u64::from(self.channels) * u64::from(self.chunks);
        let mut too_few = None;
        let longest = match &self.amounts {
            Some(Amounts::Matrix(matrix)) => {
                if matrix.ranks() != self.count() {
                    return Err(CollectiveFault::OtherRanks(matrix.ranks(), self.count()));
                }
                let least = matrix.least().ok_or(CollectiveFault::Nothing)?;
                too_few = (least < parts).then_some(CollectiveFault::TooFew(Bytes(least), parts));
                self.carried(0).iter().map(|it| it.sizes.1).max().unwrap_or(0)
            }
            Some(Amounts::Skewed(skew)) => {
                if self.size.0 / u64::from(skew.tokens.max(1)) < parts {
                    let (size, tokens) = (self.size, skew.tokens);
                    return Err(CollectiveFault::SmallTokens { size, tokens, messages: parts });
                }
                // All of a rank may be for one other, and of all ranks of a server.
                let together = if self.algorithm == Algorithm::Pxn { self.per_server } else { 1 };
                self.size.0.div_ceil(parts) * u64::from(together)
            }
            None => 0,
        };
        if longest > MESSAGE_MAX {
            return Err(CollectiveFault::TooLong { length: Bytes(longest), chunks: self.chunks.into() });
        }
        too_few.map_or(Ok(()), Err)
    }

    /// What a message brings of each rank that it brings something of, before it is cut up.
    pub(super) fn entries<'a>(
        &'a self,
        matrix: &'a Matrix,
        channel: u32,
        message: &Message,
    ) -> impl Iterator<Item = u64> + 'a {
        let (from, _) = self.schedule().ends(message.edge);
        let sources = if message.sources > 1 {
            let first = from / self.per_server * self.per_server;
            first..first + self.per_server
        } else {
            from..from + 1
        };
        let to = self.rank_at(channel, message.shards.start);
        sources.map(move |place| matrix.octets(self.rank_at(channel, place), to))
    }

    /// What the rank at `place` sends in `step` of a channel, if it sends anything.
    pub fn message(&self, channel: u32, place: u32, step: u32) -> Option<Message> {
        let message = self.schedule().message(place, step)?;
        match self.matrix() {
            Some(matrix) => {
                self.entries(matrix, channel, &message).any(|octets| octets > 0).then_some(message)
            }
            None => Some(message),
        }
    }

    /// The steps of a channel whose messages `rank` sends without having received any.
    pub fn at_once(&self, channel: u32, rank: u32) -> Vec<u32> {
        let (schedule, place) = (self.schedule(), self.place_of(channel, rank));
        let mut steps: Vec<u32> = schedule.at_once(place).collect();
        if let Some(matrix) = self.matrix() {
            if self.algorithm == Algorithm::Pxn {
                let pxn = schedule.pxn();
                let free = (0..pxn.waits()).filter(|round| self.awaited(matrix, channel, place, *round) == 0);
                steps.extend(free.map(|round| pxn.within() + round));
            }
            steps.retain(|step| self.message(channel, place, *step).is_some());
        }
        steps
    }

    /// How many messages of each chunk of a channel `rank` receives.
    pub fn receives(&self, channel: u32, rank: u32) -> u32 {
        let (schedule, place) = (self.schedule(), self.place_of(channel, rank));
        let Some(matrix) = self.matrix() else { return schedule.receives(place) };
        let has = |from: u32, to: u32| matrix.octets(from, to) > 0;
        let ranks = || 0..matrix.ranks();
        let count = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        if self.algorithm != Algorithm::Pxn {
            return count(ranks().filter(|from| *from != rank && has(*from, rank)).count());
        }
        let (own, rail) = (self.server(rank), rank % self.per_server);
        let on_rail = (rail..matrix.ranks()).step_by(self.per_server as usize);
        let within = own.clone().filter(|from| *from != rank);
        let within = within.map(|from| on_rail.clone().filter(|to| has(from, *to)).count()).sum();
        let from_server = |first: u32| self.server(first).any(|from| has(from, rank));
        let servers = ranks().step_by(self.per_server as usize).filter(|first| !own.contains(first));
        count(within) + count(servers.filter(|first| from_server(*first)).count())
    }

    /// The ranks of the server that `rank` is on.
    fn server(&self, rank: u32) -> Range<u32> {
        let first = rank / self.per_server * self.per_server;
        first..first + self.per_server
    }

    /// From how many others of its server the rank at a place has something to send on in a round over rails.
    fn awaited(&self, matrix: &Matrix, channel: u32, place: u32, round: u32) -> u32 {
        let pxn = self.schedule().pxn();
        let to = self.rank_at(channel, pxn.to(place, pxn.others() + round));
        let rank = self.rank_at(channel, place);
        let others = self.server(rank).filter(|from| *from != rank && matrix.octets(*from, to) > 0);
        u32::try_from(others.count()).unwrap_or(u32::MAX)
    }

    /// The steps whose messages `rank` may send of a chunk of a channel now that it has received that of `step`, as
    /// [`Schedule::follows`](super::Schedule::follows) has them.
    pub fn follows(&self, channel: u32, rank: u32, received: &mut [u32], step: u32) -> Range<u32> {
        let (schedule, place) = (self.schedule(), self.place_of(channel, rank));
        let Some(matrix) = self.matrix() else { return schedule.follows(place, received, step) };
        if self.algorithm != Algorithm::Pxn || step >= schedule.pxn().within() {
            return 0..0;
        }
        let pxn = schedule.pxn();
        let round = step / pxn.others();
        let Some(count) = received.get_mut(round as usize) else { return 0..0 };
        *count += 1;
        let next = pxn.within() + round;
        if *count == self.awaited(matrix, channel, place, round) { next..next + 1 } else { 0..0 }
    }

    /// All messages of a chunk of a channel that bring something.
    pub fn uneven_steps(&self, channel: u32) -> impl Iterator<Item = (u32, u32, Message)> + '_ {
        let schedule = self.schedule();
        let places =
            (0..schedule.ranks()).flat_map(move |place| (0..schedule.steps()).map(move |step| (place, step)));
        places.filter_map(move |(place, step)| Some((place, step, self.message(channel, place, step)?)))
    }

    /// The octets of the shortest and of the longest message of those into which this one is cut, by chunks and channels.
    pub fn cut_sizes(&self, matrix: &Matrix, channel: u32, message: &Message) -> (u64, u64) {
        let (channels, chunks) = (u64::from(self.channels), u64::from(self.chunks));
        let cut = |octets: u64| (octets / channels / chunks, octets.div_ceil(channels).div_ceil(chunks));
        let sizes = self.entries(matrix, channel, message).map(cut);
        sizes.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// What each queue pair of `channel` carries.
    pub(super) fn uneven_messages(&self, matrix: &Matrix, channel: u32) -> Vec<Carried> {
        let mut carried = vec![Carried::NOTHING; self.schedule().edges() as usize];
        for (_, _, message) in self.uneven_steps(channel) {
            let (least, most) = self.cut_sizes(matrix, channel, &message);
            let Carried { messages, sizes } = &mut carried[message.edge as usize];
            *messages += u64::from(self.chunks);
            *sizes = (sizes.0.min(least), sizes.1.max(most));
        }
        carried
    }

    /// The octets that each queue pair of `channel` carries.
    pub(super) fn uneven_octets(&self, matrix: &Matrix, channel: u32) -> Vec<u64> {
        let mut octets = vec![0; self.schedule().edges() as usize];
        for (_, _, message) in self.uneven_steps(channel) {
            let of_channel = |octets| super::share(octets, self.channels, channel);
            octets[message.edge as usize] +=
                self.entries(matrix, channel, &message).map(of_channel).sum::<u64>();
        }
        octets
    }
}

#[cfg(test)]
mod tests;
