//! Congestion-control laws behind one event interface.
//!
//! A law is a program: it hears [`Event`]s of one queue pair, keeps at most 128 octets of context for it, and
//! answers with an [`Outcome`]. The engine calls it only for the classes it traces. Laws are integers only and hold
//! neither a clock nor a random source, so a law gives the same answers in a simulation, on a wire and on a
//! modelled core.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`event`] | what a law hears |
//! | [`outcome`] | what a law answers |
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod event;
pub mod outcome;

pub use event::{Class, Event, Hop, Part};
pub use outcome::{Credit, Emit, Outcome, Scope, Verdict, Words};

/// A law with its parameters: one per engine and parameter set, shared by the queue pairs that run it.
#[derive(Clone, Debug, Default)]
pub enum Law {
    /// No congestion control: the link's rate, no window.
    #[default]
    None,
}

/// What a law remembers of one queue pair.
#[derive(Clone, Debug, Default)]
pub enum Context {
    /// Nothing.
    #[default]
    None,
}

impl Law {
    /// The classes of events that it wants to hear.
    pub fn traces(&self) -> Class {
        match self {
            Self::None => Class::NONE,
        }
    }

    /// What the credit that it answers applies to. [`Scope::Port`]: the engine keeps one context for all queue pairs of
    /// the port that run this law, hands it in whichever of them an event concerns, and paces them together.
    pub fn limiter(&self) -> Scope {
        match self {
            Self::None => Scope::Qp,
        }
    }

    /// The context of a new queue pair on a link of `link_kbps`, and the credit and wake-up that it begins with.
    pub fn connect(&self, link_kbps: u32) -> (Context, Credit, roci_units::Instant) {
        let _ = link_kbps;
        match self {
            Self::None => (Context::None, Credit::FREE, roci_units::Instant::NEVER),
        }
    }

    /// Reacts to `event`. `outcome` comes in as [`Outcome::unchanged`].
    #[inline]
    pub fn on_event(&mut self, context: &mut Context, event: &Event<'_>, outcome: &mut Outcome) {
        let _ = (context, event, outcome);
    }
}
