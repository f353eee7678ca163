//! Whether what is posted leaves at once, or with what is posted next.

use roci_units::{Instant, Span};

/// What a program posts one by one, and quickly, can share system calls, as what it posts together does. It must not have left it
/// behind then: nothing says which post is the last of several.
///
/// So a request waits for company only if the one before it was posted a moment ago, if its queue pair has something on its way that
/// is not acknowledged yet, and if the program has always come back soon after such posts to look for completions, for then what
/// waits is sent. Whoever looks, sleeps or asks for notifications sends it, and so do so many posts, octets, or so much time. A
/// program that posts some and computes is not trusted; if it was, the device's thread sends what it left, and it is trusted
/// later the next time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Company {
    /// Requests that wait, and their octets.
    requests: usize,
    octets: usize,
    /// When the first of them was posted.
    since: Instant,
    /// When the last post was over.
    posted_at: Instant,
    /// Whether the last post waits, or would if the program were trusted.
    owed: bool,
    /// How often in a row the program has been back in time.
    returns: u32,
    /// How often it has to be.
    needed: u32,
}

/// Posts that are no further apart come one after the other.
const NEXT: Span = Span::from_micros(2);
/// A program that looks later after a post has done something else before.
const BACK: Span = Span::from_micros(20);
/// So many requests leave, or so many octets, or after so long.
const REQUESTS: usize = 32;
const OCTETS: usize = 16 << 10;
const LONGEST: Span = Span::from_micros(20);
/// A program has to be back in time so often to be trusted. Each time that it was trusted and was not, twice as often, up to the
/// second number; and when it has been as often as that without fail, all is forgotten.
const TRUSTED: u32 = 16;
const TRUSTED_MAX: u32 = 4096;

impl Default for Company {
    fn default() -> Self {
        Self {
            requests: 0,
            octets: 0,
            since: Instant::ZERO,
            posted_at: Instant::ZERO,
            owed: false,
            returns: 0,
            needed: TRUSTED,
        }
    }
}

impl Company {
    /// That of a program that always comes back in time, and has just posted something.
    #[cfg(test)]
    pub(crate) fn returns() -> Self {
        Self { returns: TRUSTED, posted_at: Instant::from_ps(u64::MAX), ..Self::default() }
    }

    /// So many requests with so many octets to send have been posted at `now`, where they `may` wait; whether they do.
    #[inline]
    pub(crate) fn waits(&mut self, now: Instant, requests: usize, octets: usize, may: bool) -> bool {
        let passed = now.since(self.posted_at);
        if self.owed && passed >= BACK {
            self.returns = 0;
        }
        self.owed = may && passed < NEXT && octets < OCTETS && requests < REQUESTS;
        if !self.owed || self.returns < self.needed {
            return false;
        }
        if self.requests == 0 {
            self.since = now;
        }
        self.requests += requests;
        self.octets += octets;
        self.posted_at = now;
        self.requests < REQUESTS && self.octets < OCTETS && now.since(self.since) < LONGEST
    }

    /// A post is over at `now` whose requests have left.
    #[inline]
    pub(crate) fn posted(&mut self, now: Instant) {
        self.posted_at = now;
    }

    /// The program looks for completions at `now`; whether requests wait for that.
    #[inline]
    pub(crate) fn comes(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.owed) {
            let is_back = now.since(self.posted_at) < BACK;
            self.returns = if is_back { self.returns.saturating_add(1) } else { 0 };
            if self.returns >= TRUSTED_MAX {
                self.needed = TRUSTED;
            }
        }
        self.requests > 0
    }

    /// Somebody else than the program sends what waits at `now`, for which it should have come.
    #[cold]
    pub(crate) fn is_found(&mut self, now: Instant) {
        if now.since(self.posted_at) >= BACK {
            self.owed = false;
            self.returns = 0;
            self.needed = (self.needed * 2).min(TRUSTED_MAX);
        }
    }

    /// The program is about to wait by other means than looking: from now on it has to show anew that it comes back.
    pub(crate) fn doubt(&mut self) {
        (self.owed, self.returns) = (false, 0);
    }

    /// Whether requests wait.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.requests > 0
    }

    /// All that waits leaves.
    #[inline]
    pub(crate) fn leaves(&mut self) {
        (self.requests, self.octets) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that posts some requests of 64 octets, 100 ns after one another, and looks when so many µs have passed since.
    struct Program {
        company: Company,
        now: Instant,
    }

    impl Program {
        /// How many of them waited.
        fn burst(&mut self, posts: u32, away_us: u64) -> u32 {
            let mut waited = 0;
            for number in 0..posts {
                if self.company.waits(self.now, 1, 64, number > 0) {
                    waited += 1;
                } else {
                    self.company.leaves();
                    self.company.posted(self.now);
                }
                self.now += Span::from_nanos(100);
            }
            self.now += Span::from_micros(away_us);
            if away_us > 1000 && self.company.is_there() {
                self.company.is_found(self.now);
                self.company.leaves();
            }
            self.company.comes(self.now);
            self.company.leaves();
            waited
        }
    }

    fn program() -> Program {
        Program { company: Company::default(), now: Instant::from_ps(1_000_000_000_000) }
    }

    #[test]
    fn a_program_that_looks_after_each_burst_has_its_requests_leave_together() {
        let mut program = program();
        let waited: Vec<u32> = (0..20).map(|_| program.burst(4, 5)).collect();
        assert_eq!(waited, [[0; 16].as_slice(), &[3; 4]].concat());
        // The first leaves alone, and each 32nd behind it takes the others along.
        assert_eq!(program.burst(1 + 2 * 32, 5), 2 * 31);
    }

    #[test]
    fn a_program_that_computes_after_each_burst_never_has_anything_wait() {
        let mut program = program();
        assert!((0..1000).all(|_| program.burst(40, 50) == 0));
    }

    #[test]
    fn one_that_posts_one_request_and_looks_until_it_is_answered_waits_for_nothing() {
        let mut program = program();
        let mut alone = || {
            program.now += Span::from_micros(5);
            let waits = program.company.waits(program.now, 1, 64, true);
            program.company.posted(program.now);
            program.company.comes(program.now);
            waits
        };
        assert!((0..1000).all(|_| !alone()));
    }

    #[test]
    fn each_time_that_a_trusted_program_leaves_requests_behind_it_is_trusted_later() {
        let mut program = program();
        let mut until_trusted = || {
            let bursts = (0..).take_while(|_| program.burst(2, 5) == 0).count();
            assert_eq!(program.burst(2, 1500), 1);
            bursts
        };
        assert_eq!([until_trusted(), until_trusted(), until_trusted()], [16, 32, 64]);
        for _ in 0..TRUSTED_MAX {
            program.burst(2, 5);
        }
        assert_eq!(program.burst(2, 1500), 1);
        assert_eq!((0..).take_while(|_| program.burst(2, 5) == 0).count(), 32, "the past is forgotten");
    }

    #[test]
    fn who_waits_by_other_means_than_looking_shows_anew_that_it_comes_back() {
        let mut program = program();
        for _ in 0..17 {
            program.burst(2, 5);
        }
        program.company.doubt();
        assert_eq!(program.burst(2, 5), 0);
    }

    #[test]
    fn much_at_once_waits_for_nothing_and_takes_along_what_waits() {
        let mut program = program();
        for _ in 0..17 {
            program.burst(2, 5);
        }
        let company = &mut program.company;
        company.posted(program.now);
        assert!(company.waits(program.now, 1, 64, true));
        assert!(!company.waits(program.now, 1, OCTETS, true), "by octets");
        company.posted(program.now);
        assert!(company.waits(program.now, 1, 64, true));
        assert!(!company.waits(program.now, REQUESTS, 0, true), "by number");
        // Nor does anything wait while a stream of others goes on.
        company.leaves();
        company.posted(program.now);
        let next = |_: &u32| {
            program.now += Span::from_micros(1);
            company.waits(program.now, 1, 64, true)
        };
        assert_eq!((0..100).take_while(next).count(), 20);
    }
}
