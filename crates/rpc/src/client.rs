//! The requester's end of a connection.

use crate::REQUEST_HEADER;
use crate::credits::{Credits, Loosened};
use crate::server::Return;
use roci_units::{Instant, Span};
use std::collections::VecDeque;

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Payload of a request, at least 1.
    pub request: u64,
    /// The most octets of a packet, header included; more than [`REQUEST_HEADER`].
    pub packet: u32,
    /// Requests that may be unanswered at once, at least 1.
    pub window: u32,
    /// How many requests there are; `None`: no end.
    pub count: Option<u64>,
    /// What bounds its packets.
    pub credits: Credits,
    /// The share of the receiver's cache, in lines.
    pub basic: u32,
    /// Octets of a line there.
    pub line: u32,
}

/// A packet to be posted as a SEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Which request it belongs to, from 0.
    pub request: u64,
    /// Its place in the request, from 0.
    pub number: u32,
    /// Octets, the header included.
    pub octets: u32,
    /// Whether the request ends with it.
    pub last: bool,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Which one.
    pub request: u64,
    /// Since when the window let it go, whether or not there were credits.
    pub begun: Instant,
}

/// The requester's end.
#[derive(Clone, Debug)]
pub struct Client {
    config: ClientConfig,
    share: Loosened,
    /// Requests that have begun, and those of them that were answered.
    begun: u64,
    answered: u64,
    /// Packets of the last one that were given out.
    packets: u32,
    /// Since when the window has let each request go that is in it; empty before the first.
    starts: VecDeque<Instant>,
    /// Of each packet that was not consumed, when it was given out and its lines.
    flying: VecDeque<(Instant, u32)>,
    lines: u64,
    blocked: Option<Instant>,
    blocked_for: Span,
}

impl Client {
    /// A connection that has sent nothing.
    pub const fn new(config: ClientConfig) -> Self {
        Self {
            share: Loosened::new(config.basic),
            config,
            begun: 0,
            answered: 0,
            packets: 0,
            starts: VecDeque::new(),
            flying: VecDeque::new(),
            lines: 0,
            blocked: None,
            blocked_for: Span::ZERO,
        }
    }

    /// The most octets of a packet, header included.
    pub const fn packet_octets(&self) -> u32 {
        self.config.packet
    }

    /// The connection's share of the receiver's cache in lines: formula (1), without δ.
    pub const fn share(&self) -> u32 {
        self.config.basic
    }

    /// Packets of a request.
    pub fn packets(&self) -> u32 {
        let payload = u64::from(self.config.packet - REQUEST_HEADER);
        u32::try_from(self.config.request.div_ceil(payload)).unwrap_or(u32::MAX)
    }

    /// The next packet that may be posted now; it counts as posted. None where the window or the credits do not allow one.
    pub fn next(&mut self, now: Instant) -> Option<Packet> {
        if self.begun == 0 && self.starts.is_empty() {
            let all = self.config.count.unwrap_or(u64::MAX).min(self.config.window.into());
            self.starts.extend((0..all).map(|_| now));
        }
        let in_request = self.packets > 0 && self.packets < self.packets();
        if !in_request {
            let unanswered = self.begun - self.answered;
            if unanswered >= u64::from(self.config.window)
                || self.config.count.is_some_and(|all| self.begun >= all)
            {
                return None;
            }
        }
        let number = if in_request { self.packets } else { 0 };
        let packet = self.packet(number);
        let lines = packet.octets.div_ceil(self.config.line);
        if !self.flying.is_empty() && self.lines + u64::from(lines) > u64::from(self.limit()) {
            self.blocked.get_or_insert(now);
            return None;
        }
        if let Some(since) = self.blocked.take() {
            self.blocked_for += now.since(since);
        }
        self.begun += u64::from(number == 0);
        self.packets = number + 1;
        if self.config.credits != Credits::Unlimited {
            self.flying.push_back((now, lines));
            self.lines += u64::from(lines);
        }
        Some(Packet { request: self.begun - 1, ..packet })
    }

    /// Packet `number` of a request.
    fn packet(&self, number: u32) -> Packet {
        let payload = u64::from(self.config.packet - REQUEST_HEADER);
        let left = self.config.request - u64::from(number) * payload;
        let octets = u32::try_from(left.min(payload)).unwrap_or(u32::MAX) + REQUEST_HEADER;
        Packet { request: self.begun, number, octets, last: left <= payload }
    }

    /// Lines that may be under way.
    pub fn limit(&self) -> u32 {
        match self.config.credits {
            Credits::Unlimited => u32::MAX,
            Credits::Session(packets) => {
                packets.saturating_mul(self.config.packet.div_ceil(self.config.line))
            }
            Credits::Basic => self.config.basic,
            Credits::Loosened => self.share.lines(),
        }
    }

    /// δ in lines.
    pub const fn delta(&self) -> i64 {
        self.share.delta()
    }

    /// Credits have come back, alone or with a response.
    pub fn returned(&mut self, now: Instant, it: &Return) {
        let mut last = None;
        for _ in 0..it.packets {
            let Some((posted, lines)) = self.flying.pop_front() else { break };
            self.lines -= u64::from(lines);
            last = Some(posted);
        }
        if let (Credits::Loosened, Some(posted)) = (self.config.credits, last) {
            self.share.returned(it, now.since(posted));
        }
    }

    /// The oldest request was answered. None where none was under way.
    pub fn answered(&mut self, now: Instant) -> Option<Answered> {
        let begun = self.starts.pop_front().filter(|_| self.begun > self.answered)?;
        self.answered += 1;
        if self.config.count.is_none_or(|all| self.answered + (self.starts.len() as u64) < all) {
            self.starts.push_back(now);
        }
        Some(Answered { request: self.answered - 1, begun })
    }

    /// Whether all requests are answered.
    pub fn is_done(&self) -> bool {
        self.config.count.is_some_and(|all| self.answered >= all)
    }

    /// How long it could not send for want of credits, until `now`.
    pub fn blocked(&self, now: Instant) -> Span {
        self.blocked.map_or(self.blocked_for, |since| self.blocked_for + now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(credits: Credits) -> ClientConfig {
        ClientConfig {
            request: 10_000,
            packet: 4096,
            window: 2,
            count: Some(3),
            credits,
            basic: 128,
            line: 64,
        }
    }

    fn at(nanos: u64) -> Instant {
        Instant::ZERO + Span::from_nanos(nanos)
    }

    fn back(packets: u32) -> Return {
        Return { packets, lines: 64 * packets, ..Return::default() }
    }

    #[test]
    fn a_request_is_as_many_packets_as_it_takes_and_a_window_of_them_goes_out() {
        let mut client = Client::new(config(Credits::Unlimited));
        let sent: Vec<_> = std::iter::from_fn(|| client.next(at(1)))
            .map(|it| (it.request, it.number, it.octets, it.last))
            .collect();
        let one = |request| [(request, 0, 4096, false), (request, 1, 4096, false), (request, 2, 1856, true)];
        assert_eq!(sent, [one(0), one(1)].concat());
        assert_eq!(client.answered(at(4)), Some(Answered { request: 0, begun: at(1) }));
        assert_eq!(client.next(at(5)).unwrap().request, 2);
        assert_eq!(std::iter::from_fn(|| client.next(at(6))).count(), 2);
        client.answered(at(7));
        assert!(!client.is_done() && client.next(at(7)).is_none());
        // It was let go when the first was answered.
        assert_eq!(client.answered(at(8)), Some(Answered { request: 2, begun: at(4) }));
        assert!(client.is_done() && client.answered(at(9)).is_none());
        assert_eq!(client.blocked(at(9)), Span::ZERO);
    }

    #[test]
    fn no_more_lines_are_under_way_than_there_are_credits() {
        let mut client = Client::new(config(Credits::Basic));
        assert_eq!(std::iter::from_fn(|| client.next(at(0))).count(), 2);
        client.returned(at(100), &back(1));
        assert_eq!(client.next(at(100)).unwrap().octets, 1856);
        // 64 and 29 lines are under way, and 64 more are too many.
        assert_eq!(client.next(at(100)), None);
        client.returned(at(300), &back(1));
        assert_eq!(client.next(at(300)).map(|it| (it.request, it.number)), Some((1, 0)));
        assert_eq!(client.blocked(at(300)), Span::from_nanos(300));
    }

    #[test]
    fn a_packet_longer_than_the_share_goes_alone() {
        let mut client = Client::new(ClientConfig { basic: 3, ..config(Credits::Basic) });
        assert!(client.next(at(0)).is_some() && client.next(at(0)).is_none());
        client.returned(at(9), &back(1));
        assert!(client.next(at(9)).is_some());
    }

    #[test]
    fn a_session_has_so_many_packets() {
        let mut client = Client::new(ClientConfig { window: 8, ..config(Credits::Session(4)) });
        assert_eq!(client.limit(), 256);
        assert_eq!(std::iter::from_fn(|| client.next(at(0))).count(), 4);
    }

    #[test]
    fn a_loosened_share_grows_by_what_an_idle_receiver_consumes_in_a_round_trip() {
        let mut client = Client::new(config(Credits::Loosened));
        assert_eq!(std::iter::from_fn(|| client.next(at(0))).count(), 2);
        let served = Span::from_nanos(640);
        let it = Return { service: served, residence: served, idle: true, ..back(1) };
        client.returned(at(10_640), &it);
        // Some of what 10 µs are worth.
        assert_eq!((client.delta(), client.limit()), (125, 253));
    }
}
