//! The link to the host's memory.

use super::counters::Cause;
use super::divide::{Divisor, Factor};
use super::spec::Pcie;
use roci_units::{Instant, Span};

/// A PCIe link: reads that take a round trip, writes that are posted, and each way so many octets a second.
///
/// Reads of payload are answered in the order in which they were made. Those of anything else are small and are not held
/// up by payload, though payload is by them: a link has many reads under way, and their data come in turns. `now` never
/// goes back.
#[derive(Clone, Debug)]
pub struct Link {
    config: Pcie,
    /// Octets of payload in a transaction.
    payload: Divisor,
    /// Picoseconds of an octet.
    octet: Factor,
    /// When all that was asked for until now has come over the way to the NIC.
    inward_free: Instant,
    /// The same for all of that but payload.
    control_free: Instant,
    /// The same for the way to the host.
    outward_free: Instant,
    /// Octets by cause, both ways.
    pub octets: [u64; Cause::ALL.len()],
}

/// Octets of a read's request: the header of a transaction without data.
const READ_REQUEST: u64 = 0;

impl Link {
    /// An idle link.
    pub const fn new(config: Pcie) -> Self {
        Self {
            config,
            payload: Divisor::new(config.payload as u64),
            octet: match config.rate {
                Some(rate) => Factor::new(8_000_000_000_000, rate.0),
                None => Factor::new(0, 1),
            },
            inward_free: Instant::ZERO,
            control_free: Instant::ZERO,
            outward_free: Instant::ZERO,
            octets: [0; Cause::ALL.len()],
        }
    }

    /// Reads `octets` of the host's memory, and tells when they are all there.
    pub fn read(&mut self, now: Instant, octets: u64, cause: Cause) -> Instant {
        let framed = self.framed(octets);
        self.octets[cause as usize] += framed;
        let request = self.framed(READ_REQUEST);
        self.octets[cause as usize] += request;
        // The first octet comes a round trip after the request, or behind what was asked for before.
        let first = now + self.config.read;
        let time = self.time_for(framed);
        self.inward_free = first.max(self.inward_free) + time;
        if cause == Cause::Payload {
            return self.inward_free;
        }
        self.control_free = first.max(self.control_free) + time;
        self.control_free
    }

    /// Writes `octets` into the host's memory, and tells when they are all there.
    pub fn write(&mut self, now: Instant, octets: u64, cause: Cause) -> Instant {
        let framed = self.framed(octets);
        self.octets[cause as usize] += framed;
        self.outward_free = now.max(self.outward_free) + self.time_for(framed);
        self.outward_free + self.config.write
    }

    /// Counts `octets` that come to the NIC from `now` on, and has them take their time on the link, where nobody waits for
    /// them.
    pub fn count(&mut self, now: Instant, octets: u64, cause: Cause) {
        let framed = self.framed(octets);
        self.octets[cause as usize] += framed;
        self.inward_free = now.max(self.inward_free) + self.time_for(framed);
    }

    /// `octets` with the headers of the transactions that carry them; a request without data is one header.
    fn framed(&self, octets: u64) -> u64 {
        let (full, rest) = self.payload.divide(octets);
        let transactions = (full + u64::from(rest > 0)).max(1);
        octets + transactions * u64::from(self.config.overhead)
    }

    fn time_for(&self, octets: u64) -> Span {
        Span::from_ps(self.octet.of_up(octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::BitsPerSec;

    fn link() -> Link {
        Link::new(Pcie {
            read: Span::from_nanos(1_000),
            write: Span::from_nanos(300),
            rate: Some(BitsPerSec::from_gbps(8)),
            payload: 256,
            overhead: 24,
            attached: true,
        })
    }

    #[test]
    fn a_read_takes_a_round_trip_and_its_octets() {
        let mut link = link();
        // 512 octets in two transactions: 560 octets at one a nanosecond.
        let done = link.read(Instant::ZERO, 512, Cause::Payload);
        assert_eq!(done, Instant::ZERO + Span::from_nanos(1_560));
        assert_eq!(link.octets[Cause::Payload as usize], 560 + 24, "and the request went the other way");
    }

    #[test]
    fn reads_overlap_but_for_their_octets() {
        let mut link = link();
        link.read(Instant::ZERO, 512, Cause::Payload);
        let later = Instant::ZERO + Span::from_nanos(10);
        assert_eq!(link.read(later, 40, Cause::Payload), Instant::ZERO + Span::from_nanos(1_560 + 64));
        // A request comes between the payload's octets, and holds up what payload comes after.
        assert_eq!(link.read(later, 40, Cause::Wqe), later + Span::from_nanos(1_064));
        assert_eq!(link.read(later, 40, Cause::Wqe), later + Span::from_nanos(1_128));
        assert_eq!(link.read(later, 40, Cause::Payload), Instant::ZERO + Span::from_nanos(1_560 + 4 * 64));
        let idle = Instant::ZERO + Span::from_nanos(9_000);
        assert_eq!(link.read(idle, 40, Cause::Wqe), idle + Span::from_nanos(1_064));
    }

    #[test]
    fn what_is_counted_takes_the_link_from_then_on_and_no_time_that_has_passed() {
        let mut link = link();
        let idle = Instant::ZERO + Span::from_nanos(9_000);
        link.count(idle, 2_000, Cause::Recovery);
        // 2192 octets with their headers, and behind them 64.
        assert_eq!(link.read(idle, 40, Cause::Payload), idle + Span::from_nanos(2_192 + 64));
    }

    #[test]
    fn writes_are_posted_and_leave_reads_alone() {
        let mut link = link();
        assert_eq!(link.write(Instant::ZERO, 232, Cause::Completion), Instant::ZERO + Span::from_nanos(556));
        assert_eq!(link.write(Instant::ZERO, 232, Cause::Completion), Instant::ZERO + Span::from_nanos(812));
        assert_eq!(link.read(Instant::ZERO, 0, Cause::Mtt), Instant::ZERO + Span::from_nanos(1_024));
    }
}
