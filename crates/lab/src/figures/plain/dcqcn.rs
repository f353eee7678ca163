//! DCQCN's reaction and notification points by §3.1 of its paper (Zhu et al., SIGCOMM 2015), in real numbers.

use super::bottleneck::{Answer, Flow};
use roci_units::{Instant, Span};

/// g.
const GAIN: f64 = 1.0 / 256.0;
/// K, alpha's timer.
const ALPHA_PERIOD: Span = Span::from_micros(55);
/// T, the timer of increases.
const TIMER: Span = Span::from_micros(55);
/// B, the byte counter, in octets of payload.
const BYTE_COUNTER: f64 = 10e6;
/// F.
const STAGES: u32 = 5;
/// R_AI and R_HAI, in bits per second.
const ADDITIVE: f64 = 40e6;
const HYPER: f64 = 200e6;
/// The least rate, in bits per second.
const LEAST: f64 = 40e6;
/// N, the least time between two CNPs of a flow.
const CNP_GAP: Span = Span::from_micros(50);

/// A flow that always has something to send.
#[derive(Clone, Debug)]
pub(in super::super) struct Dcqcn {
    /// The link's rate, in bits per second.
    link: f64,
    /// Octets of a packet, and of its payload.
    wire: f64,
    payload: f64,
    /// R_C, R_T and alpha.
    pub(in super::super) rate: f64,
    target: f64,
    alpha: f64,
    /// Increases by the timer and by the byte counter since the last cut.
    by_time: u32,
    by_bytes: u32,
    /// Octets until the byte counter runs out.
    bytes_left: f64,
    increase_at: Instant,
    alpha_at: Instant,
    /// Bits that have to drain, at R_C, before the next packet, as of `since`; and when they will have.
    owed: f64,
    since: Instant,
    ready: Instant,
    sent: u64,
    cnp_next: Instant,
    /// Packets that came, and CNPs that were heard.
    pub(in super::super) came: u64,
    pub(in super::super) cnps: u64,
}

impl Dcqcn {
    /// A flow on a link of `link` bits per second, with packets of `wire` octets that carry `payload`.
    pub(in super::super) fn new(link: f64, wire: f64, payload: f64) -> Self {
        Self {
            link,
            wire,
            payload,
            rate: link,
            target: link,
            alpha: 1.0,
            by_time: 0,
            by_bytes: 0,
            bytes_left: BYTE_COUNTER,
            increase_at: Instant::NEVER,
            alpha_at: Instant::NEVER,
            owed: 0.0,
            since: Instant::ZERO,
            ready: Instant::ZERO,
            sent: 0,
            cnp_next: Instant::ZERO,
            came: 0,
            cnps: 0,
        }
    }

    /// Lets drain at the old rate until `now`, and the rest at a new one.
    fn set_rate(&mut self, now: Instant, rate: f64) {
        self.owed = (self.owed - self.rate * now.since(self.since).as_secs_f64()).max(0.0);
        self.since = now;
        self.rate = rate;
        self.ready = now + after(self.owed / self.rate);
    }

    /// A CNP: equation 1, and the timers begin anew.
    fn cut(&mut self, now: Instant) {
        self.target = self.rate;
        self.set_rate(now, (self.rate * (1.0 - self.alpha / 2.0)).max(LEAST));
        self.alpha = (1.0 - GAIN) * self.alpha + GAIN;
        self.alpha_at = now + ALPHA_PERIOD;
        self.increase_at = now + TIMER;
        (self.by_time, self.by_bytes, self.bytes_left) = (0, 0, BYTE_COUNTER);
    }

    /// Equations 3 and 4, and hyper increase.
    fn increase(&mut self, now: Instant) {
        if self.by_time.max(self.by_bytes) >= STAGES {
            let hyper = self.by_time.min(self.by_bytes) > STAGES;
            self.target = (self.target + if hyper { HYPER } else { ADDITIVE }).min(self.link);
        }
        self.set_rate(now, self.rate.midpoint(self.target));
    }
}

impl Flow for Dcqcn {
    fn send(&mut self, now: Instant) -> Result<u64, Instant> {
        if now < self.ready {
            return Err(self.ready);
        }
        self.owed = self.wire * 8.0;
        self.since = now;
        self.ready = now + after(self.owed / self.rate);
        self.sent += 1;
        self.bytes_left -= self.payload;
        if self.bytes_left <= 0.0 && self.increase_at != Instant::NEVER {
            self.bytes_left += BYTE_COUNTER;
            self.by_bytes += 1;
            self.increase(now);
        }
        Ok(self.sent - 1)
    }

    fn arrive(&mut self, now: Instant, _number: u64, marked: bool) -> Option<Answer> {
        self.came += 1;
        let due = marked && now >= self.cnp_next;
        due.then(|| {
            self.cnp_next = now + CNP_GAP;
            Answer::Cnp
        })
    }

    fn hear(&mut self, now: Instant, _answer: Answer) {
        self.cnps += 1;
        self.cut(now);
    }

    fn deadline(&self) -> Instant {
        self.increase_at.min(self.alpha_at)
    }

    fn expire(&mut self, now: Instant) {
        if self.alpha_at <= now {
            self.alpha *= 1.0 - GAIN;
            self.alpha_at += ALPHA_PERIOD;
        }
        if self.increase_at <= now {
            self.increase_at += TIMER;
            self.by_time += 1;
            self.increase(now);
        }
    }
}

/// A time in seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2⁶³ ps, and positive")]
fn after(seconds: f64) -> Span {
    Span::from_ps((seconds * 1e12).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: f64 = 40e9;

    #[test]
    fn each_cnp_of_the_first_halves_the_rate_and_five_periods_bring_it_back() {
        let mut flow = Dcqcn::new(LINK, 1_082.0, 1_000.0);
        let start = Instant::ZERO + Span::from_micros(10);
        flow.hear(start, Answer::Cnp);
        assert!((flow.rate - LINK / 2.0).abs() < 1.0);
        for period in 1..=4 {
            flow.expire(start + TIMER * period);
        }
        assert!((flow.rate - LINK * (1.0 - 0.5f64.powi(5))).abs() < 1.0, "{}", flow.rate);
        assert!((flow.alpha - (255.0f64 / 256.0).powi(4)).abs() < 1e-9, "{}", flow.alpha);
    }

    #[test]
    fn packets_leave_at_the_rate_and_a_cut_stretches_what_is_left_of_the_gap() {
        let mut flow = Dcqcn::new(LINK, 1_000.0, 900.0);
        flow.hear(Instant::ZERO, Answer::Cnp);
        assert_eq!(flow.send(Instant::ZERO), Ok(0));
        // 8000 bits at 20 Gb/s: 400 ns. After half of that the rate is halved, nearly.
        assert_eq!(flow.send(Instant::ZERO), Err(Instant::from_ps(400_000)));
        let half = Instant::from_ps(200_000);
        flow.hear(half, Answer::Cnp);
        assert_eq!(flow.send(half), Err(Instant::from_ps(600_000)));
        assert_eq!(flow.send(Instant::from_ps(600_000)), Ok(1));
    }

    #[test]
    fn marks_draw_a_cnp_at_most_every_fifty_microseconds() {
        let mut flow = Dcqcn::new(LINK, 1_000.0, 900.0);
        let mut cnps = 0;
        for microsecond in 0..500 {
            let now = Instant::ZERO + Span::from_micros(microsecond);
            cnps += u32::from(flow.arrive(now, microsecond, true).is_some());
        }
        assert_eq!(cnps, 10);
    }
}
