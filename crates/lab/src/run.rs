//! What it takes to run a scenario: a world to run it in, word of its progress, and why it may fail.

use crate::results::{Deadlock, Results};
use crate::scenario::{Scenario, ScenarioError};
use roci_units::Instant;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A world that scenarios run in: simulated here, a real network elsewhere.
pub trait World: Sync {
    /// Runs `scenario` with `seed`; calls `progress` now and then, and stops early where that says so. A run that ends in a
    /// deadlock has results too, and [`Results::deadlock`] says so.
    ///
    /// What is too large to be kept until the end, such as a capture, is written into `folder` as it comes; without
    /// one it is not recorded.
    ///
    /// # Errors
    /// [`RunError`] says what went wrong.
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        folder: Option<&Path>,
        progress: &mut dyn FnMut(&Progress) -> Go,
    ) -> Result<Results, RunError>;
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// It does.
    On,
    /// The user has had enough; nothing is to be written.
    Stop,
}

/// How far a run has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Instant,
    /// When the run will stop, if that is known.
    pub stop: Option<Instant>,
    /// Octets of payload that had been delivered not long ago.
    pub delivered: u64,
    /// Octets of payload that there are to deliver, if that is known: as long as not all flows have begun, so many as there will be if
    /// they go on like that.
    pub total: Option<u64>,
    /// Flows that have ended.
    pub flows_done: u64,
    /// Flows that have begun.
    pub flows_begun: u64,
    /// Link crossings so far.
    pub packet_hops: u64,
    /// Where the simulation is over and its schedules are done again with less in their way: the operations that are done by then, and all.
    pub again: Option<(u64, u64)>,
    /// What a user who waits for it should know, told once.
    pub warning: Option<Arc<str>>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The scenario cannot be built; the request was wrong.
    Scenario(ScenarioError),
    /// The request was wrong in a way that no one line of the scenario is to blame for.
    Impossible(String),
    /// Ports pause each other in a cycle, and nothing moves any more. A [`World`] gives the results of such a run all the
    /// same, with [`Results::deadlock`]; this is for those who have no use for them.
    Deadlock(Deadlock),
    /// Flows are left over, and nothing will ever happen again, or only after the longest run.
    Stalled {
        /// When the last event happened.
        at: Instant,
        /// Names of the first few flows that are left.
        flows: Vec<String>,
        /// How many are left.
        left: usize,
        /// Why nothing happens.
        why: Stall,
    },
    /// A file could not be written while the run went on.
    Output(String),
    /// The user stopped it.
    Interrupted,
}

/// Why nothing happens any more though flows are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stall {
    /// A pause storm that never ends holds these ways of links, each written `"a>b"`.
    Storm(Vec<String>),
    /// What would happen next lies after the longest run.
    EndOfTime,
    /// The same, and a law lets a flow that is left send next to nothing.
    Slow {
        /// The flow's name.
        flow: String,
        /// The law's name, or its program's.
        law: String,
        /// Its rate in kb/s.
        kbps: u32,
    },
    /// Laws let all flows that are left send at the least rate there is, at which none is done by then.
    Hopeless {
        /// The name of one.
        flow: String,
        /// Its law's name, or its program's.
        law: String,
    },
    /// Packets were lost, and no timer is there to send them again.
    NoTimeout,
    /// The law of the flows lets them send nothing more.
    NoCredit,
    /// A rank of a schedule calculates beyond the longest run.
    Calculation,
    /// Ranks of schedules wait for messages that are not sent, each written as who waits and for what.
    Schedule(Vec<String>),
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storm(ways) => write!(
                f,
                "the pause storm on {} never ends; give it an `until`, or the scenario a `stop`",
                ways.join(", ")
            ),
            Self::EndOfTime => f.write_str(
                "a run lasts at most 75 minutes of simulated time; give the scenario a `stop` to have the results until then, or \
                 shorten `start`, delays and `transport.timeout`, send less, or raise rates",
            ),
            Self::Slow { flow, law, kbps } => {
                write!(f, "a run lasts at most 75 minutes of simulated time, and `{law}` lets {flow} send at {kbps} kb/s")?;
                f.write_str(if *kbps == 1 { ", for which a rate of 0 is taken too" } else { "" })
            }
            Self::Hopeless { flow, law } => {
                write!(f, "`{law}` lets {flow} send at 1 kb/s, for which a rate of 0 is taken too, and at that it is not done in the ")?;
                f.write_str(
                    "75 minutes of simulated time that a run lasts at most; have the law keep a least rate, or give the scenario a `stop`",
                )
            }
            Self::NoTimeout => {
                f.write_str("packets were lost and `transport.timeout` is \"0s\"; give it a time")
            }
            Self::Calculation => f.write_str(
                "a rank of a schedule calculates for longer than the 75 minutes of simulated time that a run lasts at most; make its `calc` less, or \
                 `calc_unit` shorter",
            ),
            Self::Schedule(waiting) => write!(
                f,
                "{}: messages that are sent only behind what waits for them, or by nobody; mend the schedule, or give the scenario a `stop` to have the results until then",
                waiting.join(", ")
            ),
            Self::NoCredit => f.write_str("a law gives no more credit; choose another `transport.control`"),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Impossible(why) | Self::Output(why) => f.write_str(why),
            Self::Deadlock(deadlock) => deadlock.fmt(f),
            Self::Stalled { at, flows, left, why } => {
                let undone = match left {
                    0 if matches!(why, Stall::Schedule(_) | Stall::Calculation) => {
                        "a schedule is not done".to_owned()
                    }
                    0 => "further flows have not begun".to_owned(),
                    1 => "1 flow is not done".to_owned(),
                    more => format!("{more} flows are not done"),
                };
                let at = at.since(Instant::ZERO).as_secs_f64();
                match why {
                    Stall::EndOfTime | Stall::Slow { .. } => {
                        write!(f, "out of time: after {at:.6} s {undone}")?
                    }
                    Stall::Hopeless { .. } => write!(f, "given up at {at:.6} s: {undone}")?,
                    _ => write!(f, "stalled at {at:.6} s: {undone} and nothing more will happen")?,
                }
                if !flows.is_empty() {
                    write!(f, ", among them {}", flows.join(", "))?;
                }
                write!(f, "; {why}")
            }
            Self::Interrupted => f.write_str("interrupted; nothing was written"),
        }
    }
}

impl std::error::Error for RunError {}
