//! The load that DCQCN puts on an event kernel: a pacer, its timers, and their arithmetic in floating point.

const US: u64 = 1_000_000;
/// Between two notifications, and of each timer of the reaction point.
const GAP: u64 = 50 * US;
const PERIOD: u64 = 55 * US;
const TIMEOUT: u64 = 1_000 * US;
/// Picoseconds of an octet at the link's rate.
const LINE: f64 = 80.0;
const G: f64 = 1.0 / 256.0;
/// Stages of fast recovery, and what an increase adds, in octets a picosecond: 40 Mb/s.
const FAST: u32 = 5;
const STEP: f64 = 40e6 / 8.0 * 1e-12;

#[derive(Clone, Copy)]
pub(crate) enum Timer {
    Alpha,
    Increase,
    Timeout,
}

/// Of one host: its flow's rate as a sender, and its notifications as a receiver. Timers are lazy: at most one event of
/// each kind is outstanding, and puts itself off where the timer was set anew.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Reaction {
    /// Picoseconds of an octet: now, and as wanted.
    current: f64,
    target: f64,
    alpha: f64,
    next: u64,
    deadlines: [u64; 3],
    notified: Option<u64>,
    stage: u32,
    armed: [bool; 3],
    ended: bool,
}

impl Default for Reaction {
    fn default() -> Self {
        Self {
            current: LINE,
            target: LINE,
            alpha: 1.0,
            next: 0,
            deadlines: [0; 3],
            notified: None,
            stage: 0,
            armed: [false; 3],
            ended: false,
        }
    }
}

impl Reaction {
    /// A packet goes out: when the next may.
    #[inline(always)]
    #[expect(clippy::cast_sign_loss, reason = "a time")]
    pub(crate) fn sent(&mut self, now: u64, octets: u32) -> u64 {
        self.next = self.next.max(now) + (f64::from(octets) * self.current) as u64;
        self.next
    }

    /// When the timeout is to be looked at, where no event for it is outstanding.
    #[inline(always)]
    pub(crate) fn watch(&mut self, now: u64) -> Option<u64> {
        self.arm(Timer::Timeout, now + TIMEOUT).map(|(_, due)| due)
    }

    /// Whether a mark is told now.
    #[inline(always)]
    pub(crate) fn notifies(&mut self, now: u64) -> bool {
        let due = self.notified.is_none_or(|last| now >= last + GAP);
        if due {
            self.notified = Some(now);
        }
        due
    }

    /// An acknowledgement has come.
    #[inline(always)]
    pub(crate) fn heard(&mut self, now: u64) {
        self.deadlines[Timer::Timeout as usize] = now + TIMEOUT;
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// A notification has come: the events that are to be made.
    pub(crate) fn cut(&mut self, now: u64) -> impl Iterator<Item = (Timer, u64)> + use<> {
        self.alpha = (1.0 - G) * self.alpha + G;
        self.target = self.current;
        self.current = (self.current / (1.0 - self.alpha / 2.0)).min(1_000.0 * LINE);
        self.stage = 0;
        let due = now + PERIOD;
        [Timer::Alpha, Timer::Increase].map(|timer| self.arm(timer, due)).into_iter().flatten()
    }

    fn arm(&mut self, timer: Timer, due: u64) -> Option<(Timer, u64)> {
        self.deadlines[timer as usize] = due;
        let armed = std::mem::replace(&mut self.armed[timer as usize], true);
        (!armed).then_some((timer, due))
    }

    /// A timer's event: when it comes again.
    pub(crate) fn expired(&mut self, now: u64, timer: Timer) -> Option<u64> {
        let place = timer as usize;
        let full = |rate: f64| rate <= LINE * 1.000_001;
        if self.ended {
            return None;
        }
        if now < self.deadlines[place] {
            return Some(self.deadlines[place]);
        }
        let (again, period) = match timer {
            Timer::Alpha => {
                self.alpha *= 1.0 - G;
                (!full(self.current) || self.alpha >= 0.01, PERIOD)
            }
            Timer::Increase => {
                self.stage += 1;
                if self.stage > FAST {
                    self.target = (1.0 / (1.0 / self.target + STEP)).max(LINE);
                }
                self.current = (2.0 / (1.0 / self.target + 1.0 / self.current)).max(LINE);
                (!full(self.current), PERIOD)
            }
            // Nothing is lost; it was late.
            Timer::Timeout => (true, TIMEOUT),
        };
        self.deadlines[place] = now + period;
        self.armed[place] = again;
        again.then_some(self.deadlines[place])
    }
}
