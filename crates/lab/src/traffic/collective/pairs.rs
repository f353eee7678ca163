//! The queue pairs of a collective: what each carries, and their numbers.

use super::Collective;

/// What a queue pair carries in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// How many messages.
    pub messages: u64,
    /// Octets of the shortest, and of the longest.
    pub sizes: (u64, u64),
}

impl Carried {
    /// No message.
    pub(super) const NOTHING: Self = Self { messages: 0, sizes: (u64::MAX, 0) };
}

/// The numbers of queue pairs: channel by channel, in the order of edges, without those that carry nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    channels: u32,
    /// Of each channel.
    each: u32,
    /// The edges of each kind of channels, where some carry nothing.
    used: Vec<Vec<u32>>,
}

impl Pairs {
    /// How many there are.
    pub const fn count(&self) -> u32 {
        self.channels.saturating_mul(self.each)
    }

    /// The channel and the edge of a number.
    pub fn at(&self, number: u32) -> (u32, u32) {
        let (channel, place) = (number / self.each, number % self.each);
        let used = self.kind(channel);
        (channel, used.map_or(place, |used| used[place as usize]))
    }

    /// The number of a queue pair that carries something.
    pub fn number(&self, channel: u32, edge: u32) -> u32 {
        channel * self.each + self.place(channel, edge)
    }

    /// Which of the queue pairs of its channel it is.
    pub fn place(&self, channel: u32, edge: u32) -> u32 {
        self.kind(channel).map_or(edge, |used| {
            let place = used.binary_search(&edge).expect("messages have queue pairs");
            u32::try_from(place).unwrap_or(u32::MAX)
        })
    }

    /// The edges of a channel that carry something.
    pub fn edges(&self, channel: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.each).map(move |place| self.at(channel * self.each + place).1)
    }

    fn kind(&self, channel: u32) -> Option<&[u32]> {
        let kinds = self.used.len();
        (kinds > 0).then(|| self.used[channel as usize % kinds].as_slice())
    }
}

impl Collective {
    /// Its queue pairs.
    pub fn pairs(&self) -> Pairs {
        let used = |channel| -> Vec<u32> {
            let carried = (0..).zip(self.carried(channel));
            carried.filter(|(_, it)| it.messages > 0).map(|(edge, _)| edge).collect()
        };
        let used: Vec<Vec<u32>> = match self.matrix() {
            Some(_) => (0..self.kinds()).map(used).collect(),
            None => Vec::new(),
        };
        // Channels have the same pairs of ranks, in another order.
        let each = used
            .first()
            .map_or(self.schedule().edges(), |used| u32::try_from(used.len()).unwrap_or(u32::MAX));
        Pairs { channels: self.channels, each, used }
    }

    /// Queue pairs of all channels.
    pub fn queue_pairs(&self) -> u32 {
        self.pairs().count()
    }

    /// What each queue pair of `channel` carries in one iteration, by its edge.
    pub fn carried(&self, channel: u32) -> Vec<Carried> {
        if let Some(matrix) = self.matrix() {
            return self.uneven_messages(matrix, channel);
        }
        let schedule = self.schedule();
        let of = |edge| Carried {
            messages: u64::from(schedule.uses(edge)) * u64::from(self.chunks),
            sizes: self.message_sizes(&schedule, edge),
        };
        (0..schedule.edges()).map(of).collect()
    }
}
