//! Ports of a run that wait for one another for ever.

use roci_units::Instant;
use std::fmt;

/// Ports that pause each other in a cycle: nothing that crosses them will ever move again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found; the ports may have stood still for a while.
    pub at: Instant,
    /// The priority whose packets wait.
    pub priority: u8,
    /// The ports of the cycle, each as its node and the neighbour that it may not send to; each waits for the next, and the
    /// last for the first.
    pub cycle: Vec<(String, String)>,
}

/// What can be done about it.
pub const REMEDY: &str = "break the cycle: change routes or topology, or turn `switch.pfc` off";

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, priority) = (self.at.since(Instant::ZERO).as_secs_f64(), self.priority);
        write!(
            f,
            "deadlock at {at:.6} s: PAUSE of priority {priority} holds a cycle of ports, each waiting for the next:"
        )?;
        for (node, neighbour) in &self.cycle {
            write!(f, "\n  {node} may not send to {neighbour}")?;
        }
        write!(f, "\n{REMEDY}")
    }
}
