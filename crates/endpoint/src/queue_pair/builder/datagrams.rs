//! Queue pairs whose packets nobody acknowledges, datagrams' and unreliable connections', and what is said of them when they are made.

use super::QueuePairBuilder;
use roci_transport::Service;

impl QueuePairBuilder {
    /// Makes it an unreliable connection (UC), which takes SENDs and WRITEs. A request ends with success when its last packet has left, and of
    /// a message of which a packet is lost, or that the peer could not take, the peer drops the rest; it says so to nobody and
    /// [counts it](crate::Counters::dropped), and the next message takes its receive request. Of a WRITE some octets may have come.
    ///
    /// Nothing holds it back but its law, which has to be one that needs no acknowledgements (`dcqcn`, or none), and then the local
    /// socket: a program that posts more than the peer takes loses messages. What is said of window, timeout, retries, READs and
    /// lone WRITEs is without effect.
    pub fn unreliable(mut self) -> Self {
        self.config.service = Service::Uc;
        self
    }

    /// Makes it a datagram queue pair (UD) with this queue key.
    pub fn datagrams(mut self, q_key: u32) -> Self {
        (self.config.service, self.config.q_key) = (Service::Ud, q_key);
        self
    }

    /// Leaves so many octets at the front of each receive request free where a datagram comes: for the header that verbs put there, which
    /// has 40. A request that has no room for both ends with [`LocalLengthError`](crate::Status::LocalLengthError), and of a shared receive
    /// queue so does one that was meant for another queue pair. [`byte_len`](crate::WorkCompletion::byte_len) is the datagram's.
    pub fn header_room(mut self, octets: u8) -> Self {
        self.config.header_room = octets;
        self
    }

    /// Gives it number 1, to which connection management is addressed; a device can have it once. The devices at an address have it
    /// together: each gets those datagrams that concern it, as they say by the remainder of the id that they bear, and one gets what says
    /// nothing of the kind.
    pub fn management(mut self) -> Self {
        self.management = true;
        self
    }
}
