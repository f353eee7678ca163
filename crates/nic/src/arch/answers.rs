//! READ responses on their way to the port, and what must not overtake them: a later acknowledgement is one of the READ too,
//! so that it would tell of data that are still to come.

use roci_fabric::packet::{HostId, PacketId};
use roci_units::Qpn;
use std::collections::{BTreeMap, VecDeque};

/// A queue pair's peer.
pub(crate) type Peer = (HostId, Qpn);

/// By peers, as long as something is on its way.
#[derive(Debug, Default)]
pub(crate) struct Answers(BTreeMap<Peer, Answering>);

#[derive(Debug, Default)]
struct Answering {
    /// Responses made, and those of them that have left.
    made: u64,
    left: u64,
    /// Acknowledgements, each with the responses that go before it.
    behind: VecDeque<(u64, PacketId)>,
}

impl Answers {
    /// A response has been made.
    pub(crate) fn made(&mut self, to: Peer) {
        self.0.entry(to).or_default().made += 1;
    }

    /// Whether an acknowledgement has to wait for responses that were made before it. It is then kept here.
    pub(crate) fn hold(&mut self, to: Peer, packet: PacketId) -> bool {
        let answering = self.0.get_mut(&to);
        answering.map(|answering| answering.behind.push_back((answering.made, packet))).is_some()
    }

    /// A response has left; the acknowledgements that need not wait any longer, in their order.
    pub(crate) fn left(&mut self, to: Peer) -> impl Iterator<Item = PacketId> + use<> {
        let mut free = VecDeque::new();
        if let Some(answering) = self.0.get_mut(&to) {
            answering.left += 1;
            let left = answering.left;
            let count = answering.behind.partition_point(|&(after, _)| after <= left);
            free = answering.behind.drain(..count).collect();
            if left == answering.made {
                self.0.remove(&to);
            }
        }
        free.into_iter().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_waits_for_the_responses_before_it_and_for_none_behind() {
        let (one, other) = ((HostId(1), Qpn::new(7)), (HostId(1), Qpn::new(8)));
        let mut answers = Answers::default();
        assert!(!answers.hold(one, PacketId(0)), "nothing is on its way");
        answers.made(one);
        answers.made(one);
        assert!(answers.hold(one, PacketId(1)) && answers.hold(one, PacketId(2)));
        assert!(!answers.hold(other, PacketId(3)), "its own responses count");
        answers.made(one);
        assert!(answers.hold(one, PacketId(4)));
        let mut left = || answers.left(one).map(|packet| packet.0).collect::<Vec<_>>();
        assert_eq!([left(), left(), left(), left()], [vec![], vec![1, 2], vec![4], vec![]]);
        assert!(!answers.hold(one, PacketId(5)), "all have left");
    }
}
