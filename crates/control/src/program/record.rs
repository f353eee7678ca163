//! What a program hears, written down: the runs of its cores, and whole streams of events to be heard again.

use super::csr::HEADER_WORDS;
use crate::event::{Class, Event, Hop};
use alloc::vec::Vec;
use roci_hart::CsrBlock;
use roci_units::Instant;

/// One run of a program: an event from its poll to its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What it was told.
    pub class: Class,
    /// The cycles that it took.
    pub cycles: u64,
    /// The registers as the event stood in them. With what was [shown](Run::shown) they are all that the program had to
    /// go by.
    pub registers: CsrBlock,
    /// The header words that each of its commands to show other switches brought.
    pub shown: Vec<[u32; HEADER_WORDS]>,
}

/// An event with all that it refers to.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The event; its `words` and `hops` are empty here.
    pub event: Event<'static>,
    /// The packet's header words.
    pub words: Vec<u32>,
    /// The packet's telemetry.
    pub hops: Vec<Hop>,
    /// When its queue pair was made.
    pub opened: Instant,
    /// The rate of its link in kb/s.
    pub link_kbps: u32,
}

/// The first events of a program that is recorded; its timers are left out, for they follow from what it answers.
#[derive(Clone, Debug)]
pub struct Recorder {
    left: u64,
    events: Vec<Recorded>,
}

impl Recorder {
    /// Records so many events.
    pub const fn new(most: u64) -> Self {
        Self { left: most, events: Vec::new() }
    }

    /// What was recorded.
    pub fn events(&self) -> &[Recorded] {
        &self.events
    }

    /// Notes an event of a queue pair that was made when `opened` says.
    #[cold]
    pub(super) fn note(&mut self, event: &Event<'_>, opened: Instant, link_kbps: u32) {
        let Some(left) = self.left.checked_sub(1) else { return };
        if event.class == Class::TIMER {
            return;
        }
        self.left = left;
        let (words, hops) = (event.words.to_vec(), event.hops.to_vec());
        let event = event.bare();
        self.events.push(Recorded { event, words, hops, opened, link_kbps });
    }
}
