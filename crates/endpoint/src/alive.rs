//! Whether a peer still lives of which nothing is awaited that could fail.
//!
//! A process that was killed takes no leave, and who waits for it to speak has no request under way that would run into the retry
//! time.

use crate::memory::RemoteMemory;
use crate::queue_pair::QueuePair;
use crate::work::{Refused, SendWr, WorkCompletion};
use std::time::Duration;

/// After so long a silence the peer is asked for a sign of life.
const ASK: Duration = Duration::from_secs(1);
/// The identity of what asks, which no other request of the queue pair may have.
const ASKED: u64 = u64::MAX;

/// What is known of the life of a queue pair's peer.
pub(crate) struct Alive {
    /// When it last gave a sign of life; and whether it has been asked for one since.
    since: Duration,
    is_asked: bool,
}

impl Alive {
    /// It has just been met.
    pub(crate) fn new(qp: &QueuePair) -> Self {
        Self { since: qp.device().passed(), is_asked: false }
    }

    /// A request has ended well, or something came: whether that is more than the answer to the question.
    pub(crate) fn note(&mut self, qp: &QueuePair, completion: &WorkCompletion) -> bool {
        (self.since, self.is_asked) = (qp.device().passed(), false);
        completion.wr_id != ASKED
    }

    /// Nothing came: asks for a sign of life if that was so for a while. A WRITE without octets, which needs no key and takes no
    /// receive (IBTA Vol 1, C9-88), is acknowledged, or fails after the retry time.
    pub(crate) fn ask(&mut self, qp: &QueuePair) -> Result<(), Box<Refused<SendWr>>> {
        if self.is_asked || qp.device().passed().saturating_sub(self.since) < ASK {
            return Ok(());
        }
        self.is_asked = true;
        qp.post_send(SendWr::write_inline(&[], RemoteMemory { address: 0, rkey: 0 }).wr_id(ASKED))
    }
}
