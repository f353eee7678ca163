//! How collectives are done: by the steps that `kind = "collective"` takes, written down beforehand.

use crate::traffic::collective::{Algorithm, Collective, CollectiveFault, Operation};
use crate::traffic::spec::Common;
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Span};
use std::collections::BTreeMap;

/// The algorithm of each operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithms([Algorithm; Operation::ALL.len()]);

impl Default for Algorithms {
    /// Of each operation the usual one.
    fn default() -> Self {
        Self(Operation::ALL.map(|operation| operation.algorithms()[0]))
    }
}

impl Algorithms {
    /// What each of `said` changes: `tree` is for all operations that have it, `all-reduce=tree` for that one.
    ///
    /// # Errors
    /// When it names no algorithm, no operation, or one that has not that algorithm; with those that there are.
    pub fn read(said: &[String]) -> Result<Self, String> {
        let mut read = Self::default();
        for said in said {
            let (operation, name) = match said.split_once('=') {
                Some((operation, name)) => (Some(operation), name),
                None => (None, said.as_str()),
            };
            let all = [
                Algorithm::Ring,
                Algorithm::HalvingDoubling,
                Algorithm::Tree,
                Algorithm::Direct,
                Algorithm::Pxn,
            ];
            let algorithm = all.into_iter().find(|it| it.name() == name).ok_or_else(|| {
                format!("`{name}` is no algorithm; give {}", all.map(Algorithm::name).join(", "))
            })?;
            let named = |it: &Operation| operation.is_none_or(|name| it.name() == name);
            let mut operations = Operation::ALL.into_iter().filter(named).peekable();
            if operations.peek().is_none() {
                let names = Operation::ALL.map(Operation::name).join(", ");
                return Err(format!("`{said}` names no operation; give {names}"));
            }
            for it in operations {
                if it.algorithms().contains(&algorithm) {
                    read.0[place(it)] = algorithm;
                } else if operation.is_some() {
                    let has: Vec<_> = all.into_iter().filter(|its| it.algorithms().contains(its)).collect();
                    let has: Vec<_> = has.into_iter().map(Algorithm::name).collect();
                    return Err(format!("no `{name}` of `{}`; give {}", it.name(), has.join(", ")));
                }
            }
        }
        Ok(read)
    }

    /// That of an operation.
    pub fn of(&self, operation: Operation) -> Algorithm {
        self.0[place(operation)]
    }
}

fn place(operation: Operation) -> usize {
    Operation::ALL.iter().position(|it| *it == operation).unwrap_or(0)
}

/// How a group's ranks stand: so many, of which so many in a row share a server each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    pub(super) ranks: u32,
    pub(super) per_server: u32,
}

impl Standing {
    /// That of `members` where so many ranks in a row share a server. Where they are not as many of each server, nothing is known of servers.
    pub(super) fn of(members: &[u32], per_server: u32) -> Self {
        let ranks = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let mut together = members.chunk_by(|a, b| a / per_server == b / per_server).map(<[u32]>::len);
        let first = together.next().unwrap_or(1);
        let alike = together.all(|other| other == first);
        // A server's members that do not stand together would be taken for those of two servers, which is no harm.
        Self { ranks, per_server: if alike { u32::try_from(first).unwrap_or(1) } else { 1 } }
    }
}

/// One operation among ranks that stand so, of any size.
#[derive(Debug)]
pub(super) struct Plan {
    /// It is of the size that was asked for last.
    collective: Collective,
    /// Of each place the messages that it receives, in the order of steps.
    comes: Vec<Vec<Coming>>,
}

/// A message that a place receives, and the place that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) step: u32,
    pub(super) from: u32,
}

/// A message that a place sends, and the place that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Going {
    pub(super) step: u32,
    pub(super) to: u32,
}

/// The plans of all operations that a schedule has.
#[derive(Debug)]
pub(super) struct Plans {
    algorithms: Algorithms,
    chunks: u32,
    /// `None`: by the algorithm.
    channels: Option<u32>,
    plans: BTreeMap<(usize, Standing), Plan>,
    /// So many messages more at most.
    messages_left: u64,
}

/// A message takes six lines of a file, and a file has 1 GiB at most.
const MESSAGES_MAX: u64 = (1 << 30) / 64;
/// As many channels as collectives may have in scenarios.
const CHANNELS_MAX: u32 = 256;
/// The most octets of a collective: parts of it are counted in 64 bits.
const SIZE_MAX: u64 = 1 << 40;

impl Plans {
    pub(super) fn new(algorithms: Algorithms, chunks: u32, channels: Option<u32>) -> Self {
        Self { algorithms, chunks, channels, plans: BTreeMap::new(), messages_left: MESSAGES_MAX }
    }

    /// Makes a plan where there is none yet. `size` is that of the node, and ranks are two at least.
    pub(super) fn add(&mut self, operation: Operation, standing: Standing, size: u64) -> Result<(), String> {
        let Standing { ranks, per_server } = standing;
        let algorithm = match self.algorithms.of(operation) {
            // There are no rails to keep to.
            Algorithm::Pxn if per_server == 1 => Algorithm::Direct,
            other => other,
        };
        let mut collective = Collective {
            operation,
            algorithm,
            ranks: (0..ranks).filter_map(|rank| u16::try_from(rank).ok().map(HostId)).collect(),
            per_server,
            shuffled: false,
            size: Bytes(size),
            channels: 1,
            chunks: self.chunks,
            iterations: 1,
            gap: Span::ZERO,
            start: Instant::ZERO,
            common: Common::default(),
        };
        if !collective.knows_servers() {
            collective.per_server = 1;
        }
        collective.channels = self.channels.unwrap_or(match algorithm {
            // Each channel takes another NIC of a server.
            Algorithm::Ring | Algorithm::Tree => collective.per_server.min(CHANNELS_MAX),
            // One takes all of them.
            Algorithm::Pxn | Algorithm::Direct | Algorithm::HalvingDoubling => 1,
        });
        collective.size = whole(operation, ranks, size);
        if collective.size.0 > SIZE_MAX {
            return Err(format!("{} octets in all, and 1TiB is the most; split it up", collective.size.0));
        }
        match collective.check() {
            // Empty messages are sent as well as others.
            Ok(()) | Err(CollectiveFault::TooSmall { .. }) => {}
            Err(CollectiveFault::NoPowerOfTwo(ranks)) => {
                return Err(format!(
                    "{} by halving-doubling among {ranks} ranks, which is no power of two; give --collective ring",
                    operation.name()
                ));
            }
            Err(fault @ CollectiveFault::TooLong { .. }) => return Err(format!("{fault} (--chunks)")),
            Err(fault) => return Err(fault.to_string()),
        }
        let schedule = collective.schedule();
        let messages = (0..ranks).map(|rank| u64::from(schedule.receives(rank))).sum::<u64>();
        let messages = messages.saturating_mul(self.chunks.into()).saturating_mul(collective.channels.into());
        self.messages_left = self.messages_left.checked_sub(messages).ok_or_else(|| {
            "with it the schedule has more messages than its file can hold, 1GiB; import fewer ranks, or a part of the traces"
                .to_owned()
        })?;
        self.plans.entry((place(operation), standing)).or_insert_with(|| {
            let mut comes = vec![Vec::new(); ranks as usize];
            for step in 0..schedule.steps() {
                for from in 0..ranks {
                    if let Some(message) = schedule.message(from, step) {
                        comes[message.to as usize].push(Coming { step, from });
                    }
                }
            }
            Plan { collective, comes }
        });
        Ok(())
    }

    /// Whether some have several channels.
    pub(super) fn have_channels(&self) -> bool {
        self.plans.values().any(|plan| plan.channels() > 1)
    }

    /// The plan that was made for it.
    pub(super) fn get(&mut self, operation: Operation, standing: Standing, size: u64) -> Option<&Plan> {
        let plan = self.plans.get_mut(&(place(operation), standing))?;
        plan.collective.size = whole(operation, standing.ranks, size);
        Some(plan)
    }
}

/// Nodes of an all-gather have what goes in, as those of ASTRA-sim; its algorithms count what comes out.
fn whole(operation: Operation, ranks: u32, size: u64) -> Bytes {
    let times = if operation == Operation::AllGather { ranks } else { 1 };
    Bytes(size.saturating_mul(times.into()))
}

impl Plan {
    /// So many tags tell its messages between two ranks apart.
    pub(super) fn tags(&self) -> u64 {
        u64::from(self.collective.schedule().steps()) * u64::from(self.parts())
    }

    /// Into how many parts data are cut: chunks of each channel.
    pub(super) const fn parts(&self) -> u32 {
        self.collective.channels * self.collective.chunks
    }

    pub(super) const fn channels(&self) -> u32 {
        self.collective.channels
    }

    /// Parts of each channel.
    pub(super) const fn chunks(&self) -> u32 {
        self.collective.chunks
    }

    /// Where `rank` stands in a channel, and who stands at a place.
    pub(super) const fn place_of(&self, channel: u32, rank: u32) -> u32 {
        self.collective.place_of(channel, rank)
    }

    pub(super) const fn rank_at(&self, channel: u32, place: u32) -> u32 {
        self.collective.rank_at(channel, place)
    }

    /// What a place receives.
    pub(super) fn comes(&self, place: u32) -> &[Coming] {
        &self.comes[place as usize]
    }

    /// What a place sends.
    pub(super) fn goes(&self, place: u32) -> impl Iterator<Item = Going> {
        let schedule = self.collective.schedule();
        let going = move |step| schedule.message(place, step).map(|message| Going { step, to: message.to });
        (0..schedule.steps()).filter_map(going)
    }

    /// Of each pair what a place sends in the first step waits for what comes in the second.
    pub(super) fn awaits(&self, place: u32) -> Vec<(u32, u32)> {
        let comes: Vec<u32> = self.comes(place).iter().map(|coming| coming.step).collect();
        self.collective.schedule().awaits(place, &comes)
    }

    /// The octets of a part of what the place `from` sends in `step`.
    pub(super) fn octets(&self, from: u32, step: u32, part: u32) -> u64 {
        let (channel, chunk) = (part / self.collective.chunks, part % self.collective.chunks);
        let message = self.collective.schedule().message(from, step);
        message.map_or(0, |message| self.collective.octets(channel, chunk, &message))
    }
}
