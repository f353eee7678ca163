//! Hardware time in the CC header (layout `cc`): each packet says when it was sent, and an answer when what it answers was.
//!
//! The engine reads the times of what arrives and lays out the words of what is sent, the law's own behind them. When a packet
//! leaves only its port knows: the world writes that ([`Segment::stamped`]).

use crate::arrival::Arrival;
use crate::engine::Engine;
use crate::segment::Segment;
use roci_control::{Event, Words};
use roci_units::Instant;
use roci_wire::Layout;
use roci_wire::layout::cc::Cc;

impl Engine {
    /// Remembers of what arrived what its answer needs: when the peer sent it, or whether it is the last.
    #[inline]
    pub(crate) fn note_stamp(&mut self, slot: usize, arrival: &Arrival<'_>) {
        match self.profile(slot).layout {
            Layout::Cc(cc) if cc.has_time() => {
                if let Some(&peer_sent) = arrival.words.get(cc.time_at()) {
                    self.aside(slot).peer_sent = peer_sent;
                }
            }
            Layout::Ndp => self.note_last(slot, arrival.header),
            _ => {}
        }
    }

    /// The words of a packet to be sent, of which `own` are the law's. An answer echoes the time of what arrived last.
    #[inline]
    pub(crate) fn lay_out_words(&self, slot: usize, own: Option<Words>, answers: bool) -> Option<Words> {
        match self.profile(slot).layout {
            Layout::Cc(cc) if cc.own_at() > 0 => Some(self.behind_times(slot, cc, own, answers)),
            _ => own,
        }
    }

    fn behind_times(&self, slot: usize, cc: Cc, own: Option<Words>, answers: bool) -> Words {
        let mut words = Words::default();
        let (times, rest) = words.words.split_at_mut(cc.own_at());
        if let Some(own) = own {
            let count = rest.len().min(own.len.into());
            rest[..count].copy_from_slice(&own.words[..count]);
        }
        if cc.has_time()
            && answers
            && let Some(echoed) = times.get_mut(cc.time_at() + 1)
        {
            *echoed = self.asides.get(self.qps[slot].common.aside).map_or(0, |aside| aside.peer_sent);
        }
        words.len = u8::try_from(cc.words()).unwrap_or(16);
        words
    }
}

/// What of an arrival's words a law hears: its own words, and the times before them where the layout has them; and the
/// telemetry.
#[inline]
pub(crate) fn read_words<'a>(event: &mut Event<'a>, layout: Layout, arrival: &Arrival<'a>) {
    (event.words, event.hops, event.path_id) = (arrival.words, arrival.hops, arrival.path_id);
    if let Layout::Cc(cc) = layout
        && cc.own_at() > 0
    {
        event.words = arrival.words.get(cc.own_at()..).unwrap_or_default();
        if cc.has_time()
            && let Some(&[peer_sent, echoed, ..]) = arrival.words.get(cc.time_at()..)
        {
            (event.peer_sent, event.echoed, event.stamped) = (peer_sent, echoed, true);
        }
    }
}

impl Segment {
    /// The words of packets that leave now, with that time where the layout has it: for the world that lets them go.
    #[inline]
    #[must_use]
    pub fn stamped(&self, now: Instant) -> Option<Words> {
        let mut words = self.words?;
        if let Layout::Cc(cc) = self.layout
            && cc.has_time()
        {
            #[expect(clippy::cast_possible_truncation, reason = "modulo 2³² is meant")]
            {
                words.words[cc.time_at()] = (now.as_ps() / 1_000) as u32;
            }
        }
        Some(words)
    }
}
