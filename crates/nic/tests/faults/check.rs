//! What must hold when a run is over.

use crate::case::Case;
use crate::load::{Action, Datagrams, Load, SUM, Side, number_of, word_of};
use crate::run::Nic;
use roci_fabric::fabric::Fabric;
use roci_fabric::packet::HostId;
use roci_nic::Simulated;
use roci_transport::{Completion, Status, Tail};
use std::collections::BTreeSet;

/// A run that is over, with what to say when something does not hold.
struct Over<'a> {
    fabric: &'a Fabric<Simulated<Load>>,
    /// Whether switches wait for each other in a cycle, which is found out and named. What stands in them, and behind
    /// them, stays there; all else holds as ever.
    deadlock: bool,
    what: String,
}

/// Checks everything.
pub(crate) fn check(case: &Case, nic: Nic, fabric: &Fabric<Simulated<Load>>) {
    let deadlock = fabric.net.deadlock().is_some();
    let over = Over { fabric, deadlock, what: format!("on the {} NIC: {case:?}", nic.name) };
    for side in &fabric.nics.application.sides {
        over.sent(side, case.rnr_limited == 1);
        over.received(side);
    }
    over.shared();
    over.datagrams(case);
    over.sums();
    over.swaps();
    over.links();
    over.switches();
    over.totals();
    over.empty();
}

impl Over<'_> {
    fn sides(&self) -> &[Side] {
        &self.fabric.nics.application.sides
    }

    /// Send requests complete once each, in order: with success up to one that fails, then as flushed. So end READs and
    /// atomics whose answers have not come, and what follows them, before one that the receiver was never ready for, and
    /// whatever is outstanding when the connection is taken down. Only what succeeds may end without a word.
    fn sent(&self, side: &Side, limited: bool) {
        let what = &self.what;
        let mut next = 0;
        let (mut failed, mut flushed) = (false, false);
        let refused = |completion: &Completion| completion.status == Status::RnrRetryCounterExceeded;
        let is_refused = side.sent.iter().any(refused);
        for completion in &side.sent {
            let number = number_of(completion);
            let said = || format!("{completion:?} after {next} requests {what}");
            assert!((next..side.posted).contains(&number), "twice or out of order: {}", said());
            assert!(
                side.messages[next..number].iter().all(|message| !message.signaled),
                "left out: {}",
                said()
            );
            assert!(number == next || !failed && !flushed, "an error without a word: {}", said());
            let message = &side.messages[number];
            assert_eq!(completion.kind, message.completed_as(), "{}", said());
            match completion.status {
                Status::Success => {
                    assert!(!failed && !flushed, "a success after a failure: {}", said());
                    assert_eq!(completion.length, message.length, "{}", said());
                }
                Status::TransportRetryCounterExceeded => {
                    assert!(!failed && !flushed, "a second failure: {}", said());
                    failed = true;
                }
                Status::RnrRetryCounterExceeded => {
                    assert!(!failed && limited, "a second failure, or retries for ever: {}", said());
                    assert!(message.received_as().is_some(), "it needs no receive request: {}", said());
                    failed = true;
                }
                Status::WorkRequestFlushed => {
                    let first = !failed && !flushed;
                    let is_acknowledged = matches!(message.action, Action::Send(_) | Action::Write(_));
                    let has_cause = side.taken_down || is_refused && !(first && is_acknowledged);
                    assert!(failed || has_cause, "flushed without cause: {}", said());
                    flushed = true;
                }
                _ => panic!("nothing here was forbidden: {}", said()),
            }
            next = number + 1;
        }
        if failed || flushed {
            assert_eq!(next, side.posted, "requests that were never flushed {what}");
        } else if !side.taken_down {
            // What has not been sent waits for ever where the deadlock has come back to the host.
            if self.deadlock && self.fabric.net.paused(u32::from(side.host.0)) != 0 {
                return;
            }
            // One whose receive requests were flushed posts nothing more, and need not have been in the middle of a request.
            let ended = side.failed || side.posted == side.messages.len();
            assert!(ended, "requests that could never be posted {what}");
            let silent = side.messages[next..side.posted].iter().all(|message| !message.signaled);
            assert!(silent, "requests from {next} on never completed {what}");
        }
    }

    /// What was received is what the other side sent, once and in order, and all that it thinks was received.
    fn received(&self, side: &Side) {
        let what = &self.what;
        let peer = &self.sides()[side.peer];
        let taken = |message: &&_| received_as(message).is_some();
        let mut expected = peer.messages[..peer.posted].iter().filter(taken);
        let arrived: Vec<&Completion> =
            side.received.iter().take_while(|completion| completion.status == Status::Success).collect();
        for (number, completion) in side.received.iter().enumerate() {
            let in_order = self.is_shared() || number_of(completion) == number;
            assert!(in_order, "receive requests end in order {what}");
            if completion.status != Status::Success {
                assert!(side.failed && number >= arrived.len(), "{completion:?} {what}");
                assert_eq!(completion.status, Status::WorkRequestFlushed, "{what}");
            }
        }
        for completion in &arrived {
            let message = expected.next().unwrap_or_else(|| panic!("{completion:?} was never sent {what}"));
            let seen = (completion.kind, completion.tail);
            assert_eq!(Some(seen), received_as(message), "{what}");
            assert_eq!(completion.length, message.length, "{what}");
        }
        let believed = peer.messages[..self.succeeded(peer)].iter().filter(taken).count();
        assert!(arrived.len() >= believed, "{believed} sent but {} received {what}", arrived.len());
        // Those of a shared queue are for the host's other queue pairs, and counted by host.
        if side.failed && !self.is_shared() {
            assert_eq!(side.received.len() as u64, side.receives_posted, "flushed receive requests {what}");
        }
    }

    fn is_shared(&self) -> bool {
        !self.fabric.nics.application.shared.is_empty()
    }

    /// A receive request of a shared queue has ended or stands there, whichever of its queue pairs have failed. One that
    /// was taken for a message is held until the message has come whole, or its queue pair has been taken down.
    fn shared(&self) {
        let what = &self.what;
        for (host, shared) in self.fabric.nics.application.shared.iter().enumerate() {
            let waiting = self.fabric.nics.hosts[host].engine.receives_waiting(shared.srq);
            let held = shared.posted - shared.ended.len() as u64 - waiting;
            assert!(held == 0 || self.deadlock, "{held} shared receive requests of host {host} held {what}");
        }
    }

    /// Each datagram is sent once, and arrives at most as often as links have doubled packets: at its receiver, with its
    /// length, from its sender. Where nothing can be lost, it arrives.
    fn datagrams(&self, case: &Case) {
        let (what, net) = (&self.what, &self.fabric.net);
        let Datagrams { qpns, all, sent, received, .. } = &self.fabric.nics.application.datagrams;
        let mut ended = vec![0; all.len()];
        for completion in sent {
            assert_eq!(completion.status, Status::Success, "{completion:?} {what}");
            assert_eq!(completion.length, all[number_of(completion)].length, "{completion:?} {what}");
            ended[number_of(completion)] += 1;
        }
        let stands = self.deadlock || ended.iter().all(|&times| times == 1);
        assert!(stands && ended.iter().all(|&times| times <= 1), "datagrams sent {ended:?} times {what}");
        let mut arrived = vec![0; all.len()];
        for (host, completion) in received {
            let Tail::Immediate(number) = completion.tail else { panic!("{completion:?} {what}") };
            let datagram = all[number as usize];
            assert_eq!(completion.status, Status::Success, "{completion:?} {what}");
            assert_eq!((datagram.to, datagram.length), (*host, completion.length), "{completion:?} {what}");
            let source = completion.source.map(|(_, qpn)| qpn);
            assert_eq!(source, Some(qpns[datagram.from]), "{completion:?} {what}");
            arrived[number as usize] += 1;
        }
        let ports = 0..net.port_count() as u32;
        let doubled: u64 =
            ports.filter_map(|port| net.fault_counters(port)).map(|faults| faults.duplicated.packets).sum();
        assert!(arrived.iter().all(|&times| times <= 1 + doubled), "arrived {arrived:?} times {what}");
        let trims = case.recovery == crate::run::NDP;
        let lossless = case.pfc == 1 && case.faults.is_empty() && net.totals().dropped == 0 && !trims;
        if lossless && !self.deadlock {
            let overflowed: u64 = self.fabric.nics.hosts.iter().map(|host| host.overflowed()).sum();
            let missing = arrived.iter().filter(|&&times| times == 0).count() as u64;
            assert!(missing <= overflowed, "arrived {arrived:?} times {what}");
        }
    }

    /// Each FETCH-ADD was carried out once, or not at all if it failed.
    fn sums(&self) {
        let what = &self.what;
        for (number, host) in self.fabric.nics.hosts.iter().enumerate() {
            let (mut originals, mut succeeded_ones, mut posted) = (BTreeSet::new(), 0, 0);
            for side in self.sides().iter().filter(|side| self.peer_host(side) == number) {
                let adds = |upto: usize| {
                    side.messages[..upto].iter().filter(|message| message.action == Action::FetchAdd).count()
                };
                succeeded_ones += adds(self.succeeded(side));
                posted += adds(side.posted);
                for completion in successes(side) {
                    if side.messages[number_of(completion)].action == Action::FetchAdd {
                        assert!(originals.insert(completion.original), "added twice to one value {what}");
                    }
                }
            }
            let sum = host.word(SUM) as usize;
            assert!(
                (succeeded_ones..=posted).contains(&sum),
                "{sum} added, {succeeded_ones}..={posted} asked {what}"
            );
            assert!(originals.last().is_none_or(|&last| (last as usize) < sum), "{what}");
        }
    }

    /// Each COMPARE-SWAP found what those before it had left.
    fn swaps(&self) {
        let what = &self.what;
        for (place, side) in self.sides().iter().enumerate() {
            for completion in successes(side) {
                if let Action::CompareSwap { finds, .. } = side.messages[number_of(completion)].action {
                    assert_eq!(completion.original, finds, "{completion:?} {what}");
                }
            }
            let swapped = |upto: usize| {
                let swaps = side.messages[..upto].iter().filter(
                    |message| matches!(message.action, Action::CompareSwap { compare, finds, .. } if compare == finds),
                );
                swaps.count() as u64
            };
            let word = self.fabric.nics.hosts[self.peer_host(side)].word(word_of(place));
            let range = swapped(self.succeeded(side))..=swapped(side.posted);
            assert!(range.contains(&word), "{word} swapped, {range:?} asked {what}");
        }
    }

    /// How many of a side's requests succeeded, those without a word included.
    fn succeeded(&self, side: &Side) -> usize {
        let error = side.sent.iter().find(|completion| completion.status != Status::Success);
        let told = || side.sent.last().map_or(0, |last| number_of(last) + 1);
        error.map_or_else(|| if self.deadlock { told() } else { side.posted }, number_of)
    }

    fn peer_host(&self, side: &Side) -> usize {
        usize::from(self.sides()[side.peer].host.0)
    }

    /// On each link: octets in and duplicated are octets out, dropped and corrupted.
    fn links(&self) {
        let net = &self.fabric.net;
        for port in 0..net.port_count() as u32 {
            if let Some(faults) = net.fault_counters(port) {
                let came = faults.entered.octets + faults.duplicated.octets;
                let went = faults.left.octets + faults.dropped.octets + faults.corrupted.octets;
                assert_eq!(came, went, "octets on the link of port {port} {}", self.what);
                assert_eq!(faults.entered.octets, net.tx_octets(port), "port {port} {}", self.what);
            }
        }
    }

    /// Octets that came out of the link that `port` sends into.
    fn delivered_by(&self, port: u32) -> u64 {
        let net = &self.fabric.net;
        net.fault_counters(port)
            .map_or(net.tx_octets(port), |faults| faults.left.octets + faults.corrupted.octets)
    }

    /// What a switch received it sent, dropped, cut off or still holds; what its link delivered a host received.
    fn switches(&self) {
        let net = &self.fabric.net;
        for switch in 0..net.switch_count() as u32 {
            let ports = net.switch_ports(switch);
            let came: u64 = ports.clone().map(|port| self.delivered_by(net.peer(port))).sum();
            let kept_off = |port| {
                net.counters(port).map_or(0, |counters| counters.dropped_octets + counters.trimmed_octets)
            };
            let went: u64 = ports.map(|port| net.tx_octets(port) + kept_off(port)).sum();
            let went = went + u64::from(net.switch(switch).used());
            assert_eq!(came, went, "octets through switch {switch} {}", self.what);
        }
        for host in 0..self.fabric.nics.hosts.len() as u16 {
            let came = self.delivered_by(net.peer(u32::from(host)));
            assert_eq!(came, net.rx_octets(HostId(host)), "octets to host {host} {}", self.what);
        }
    }

    /// Packets: those that hosts sent and faults doubled are those delivered, those dropped and those that stand in a
    /// deadlock. None is invented.
    fn totals(&self) {
        let net = &self.fabric.net;
        let sent: u64 = self.fabric.nics.hosts.iter().map(|host| host.counters.sent).sum();
        let ports = 0..net.port_count() as u32;
        let doubled: u64 =
            ports.filter_map(|port| net.fault_counters(port)).map(|faults| faults.duplicated.packets).sum();
        let totals = net.totals();
        let standing = sent + doubled - (totals.delivered + totals.dropped);
        let most = if self.deadlock { net.packets().live() as u64 } else { 0 };
        assert!(standing <= most, "{standing} packets left over {}", self.what);
    }

    /// Nothing is left anywhere, but for what a deadlock holds.
    fn empty(&self) {
        let (net, what) = (&self.fabric.net, &self.what);
        for (number, host) in self.fabric.nics.hosts.iter().enumerate() {
            assert_eq!(host.engine.next_wakeup(), None, "host {number} has a timer left {what}");
        }
        if self.deadlock {
            return;
        }
        assert_eq!(net.packets().live(), 0, "packets left over {what}");
        for switch in 0..net.switch_count() as u32 {
            assert_eq!(net.switch(switch).used(), 0, "octets left in switch {switch} {what}");
        }
        for port in 0..net.port_count() as u32 {
            let queued: u32 = (0..8).map(|priority| net.queued(port, priority)).sum();
            assert_eq!(
                (queued, net.paused(port)),
                (0, 0),
                "octets queued, priorities paused at port {port} {what}"
            );
        }
        for (number, host) in self.fabric.nics.hosts.iter().enumerate() {
            assert!(!host.engine.has_work(0xff), "host {number} has work left {what}");
        }
        for side in self.sides() {
            let status = self.fabric.nics.hosts[usize::from(side.host.0)].engine.query(side.qpn);
            assert_eq!(status.expect("it exists").in_flight, 0, "octets in flight {what}");
        }
    }
}

fn received_as(
    message: &crate::load::Message,
) -> Option<(roci_transport::CompletionKind, roci_transport::Tail)> {
    message.received_as()
}

fn successes(side: &Side) -> impl Iterator<Item = &Completion> {
    side.sent.iter().filter(|completion| completion.status == Status::Success)
}
