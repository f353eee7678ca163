//! TCP NewReno's sender by RFC 5681, 6582, 3042 and 6298, with their variables, in octets.
//!
//! Nothing of the engine is in it: no segments marked to be sent again, no fixed stage, but `SND.UNA` and `SND.NXT`.

use roci_units::{Instant, Span};

/// A connection that sends one stream.
#[derive(Clone, Debug)]
pub(in super::super) struct NewReno {
    smss: u64,
    /// What the receiver takes beyond `snd_una`.
    rwnd: u64,
    /// The end of the stream.
    end: u64,
    snd_una: u64,
    snd_nxt: u64,
    /// The highest octet ever sent, and one.
    snd_max: u64,
    cwnd: u64,
    ssthresh: u64,
    bytes_acked: u64,
    dup_acks: u32,
    /// The octet before `SND.MAX` when recovery began or the timer ran out; one less than the stream's first at first.
    recover: i64,
    prev_highest_ack: u64,
    recovery: Option<Recovery>,
    /// The first segment is to be sent again at once.
    retransmit: bool,
    rto: Span,
    backoff: u32,
    deadline: Instant,
    /// How often the timer ran out.
    pub(in super::super) timeouts: u32,
}

/// In fast recovery; whether a partial acknowledgement came.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    partial: bool,
}

impl NewReno {
    /// A stream of `end` octets in segments of `smss`, with an initial window of `initial` segments.
    pub(in super::super) fn new(smss: u64, initial: u64, rwnd: u64, end: u64, rto: Span) -> Self {
        Self {
            smss,
            rwnd,
            end,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            cwnd: initial * smss,
            ssthresh: u64::MAX,
            bytes_acked: 0,
            dup_acks: 0,
            recover: -1,
            prev_highest_ack: 0,
            recovery: None,
            retransmit: false,
            rto,
            backoff: 0,
            deadline: Instant::NEVER,
            timeouts: 0,
        }
    }

    /// The congestion window, in octets.
    pub(in super::super) const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// When the timer runs out.
    pub(in super::super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// An acknowledgement of all octets before `ack`.
    pub(in super::super) fn on_ack(&mut self, now: Instant, ack: u64) {
        if ack > self.snd_una {
            self.on_new_ack(now, ack);
        } else if ack == self.snd_una && self.snd_max > self.snd_una {
            self.on_duplicate();
        }
    }

    fn on_new_ack(&mut self, now: Instant, ack: u64) {
        let acked = ack - self.snd_una;
        self.prev_highest_ack = self.snd_una;
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.retransmit = false;
        self.backoff = 0;
        let mut restart = true;
        match &mut self.recovery {
            None => {
                self.dup_acks = 0;
                if self.cwnd < self.ssthresh {
                    self.cwnd += acked.min(self.smss);
                } else {
                    self.bytes_acked += acked;
                    if self.bytes_acked >= self.cwnd {
                        self.bytes_acked -= self.cwnd;
                        self.cwnd += self.smss;
                    }
                }
            }
            Some(_) if i128::from(ack) > i128::from(self.recover) => {
                // A full acknowledgement (RFC 6582 §3.2, step 3).
                let flight = self.snd_max - ack;
                self.cwnd = self.ssthresh.min(flight.max(self.smss) + self.smss);
                self.dup_acks = 0;
                self.recovery = None;
            }
            Some(recovery) => {
                self.retransmit = true;
                self.cwnd = self.cwnd.saturating_sub(acked) + self.smss;
                restart = !recovery.partial;
                recovery.partial = true;
            }
        }
        self.cwnd = self.cwnd.min(self.rwnd);
        if self.snd_una == self.snd_max {
            self.deadline = Instant::NEVER;
        } else if restart {
            self.deadline = now + self.timeout();
        }
    }

    fn on_duplicate(&mut self) {
        self.dup_acks += 1;
        if self.recovery.is_some() {
            self.cwnd = (self.cwnd + self.smss).min(self.rwnd);
            return;
        }
        let covers_more = i128::from(self.snd_una) - 1 > i128::from(self.recover);
        let heuristic = self.cwnd > self.smss && self.snd_una - self.prev_highest_ack <= 4 * self.smss;
        if self.dup_acks == 3 && (covers_more || heuristic) {
            let flight = (self.snd_max - self.snd_una).min(self.cwnd);
            // Half a flight in whole segments, as its receiver counts them.
            self.ssthresh = (flight / 2 / self.smss * self.smss).max(2 * self.smss);
            self.cwnd = self.ssthresh + 3 * self.smss;
            self.bytes_acked = 0;
            self.recover = self.last_sent();
            self.recovery = Some(Recovery { partial: false });
            self.retransmit = true;
        }
    }

    fn last_sent(&self) -> i64 {
        i64::try_from(self.snd_max).unwrap_or(i64::MAX) - 1
    }

    /// The timer ran out.
    pub(in super::super) fn on_timeout(&mut self, now: Instant) {
        if self.backoff == 0 {
            let flight = self.snd_max - self.snd_una;
            self.ssthresh = (flight / 2 / self.smss * self.smss).max(2 * self.smss);
        }
        self.timeouts += 1;
        self.backoff = (self.backoff + 1).min(7);
        self.cwnd = self.smss;
        self.bytes_acked = 0;
        self.recover = self.last_sent();
        self.recovery = None;
        self.dup_acks = 0;
        self.snd_nxt = self.snd_una;
        self.retransmit = false;
        self.deadline = now + self.timeout();
    }

    fn timeout(&self) -> Span {
        Span::from_ps(self.rto.as_ps() << self.backoff)
    }

    /// The first octet of the segment that is sent now; `None` where the window is full or nothing is left.
    pub(in super::super) fn next_segment(&mut self, now: Instant) -> Option<u64> {
        let limited_transmit = if self.recovery.is_none() { u64::from(self.dup_acks.min(2)) } else { 0 };
        let window = self.cwnd + limited_transmit * self.smss;
        let first = if core::mem::take(&mut self.retransmit) {
            // After a timeout it may be the next one anyway.
            self.snd_nxt = self.snd_nxt.max(self.snd_una + self.smss);
            self.snd_una
        } else if self.snd_nxt < self.end && self.snd_nxt + self.smss <= self.snd_una + window {
            self.snd_nxt += self.smss;
            self.snd_nxt - self.smss
        } else {
            return None;
        };
        self.snd_max = self.snd_max.max(first + self.smss);
        if self.deadline == Instant::NEVER {
            self.deadline = now + self.timeout();
        }
        Some(first)
    }
}
