//! What is missing of READ data, and asking for it (layout `homa`).

use super::packets_of;
use crate::engine::Engine;
use crate::messages::RESENDS_AT_ONCE;
use crate::qp::after;
use crate::queue::{Kind, NONE, flag};
use crate::responder::ACK;
use roci_control::Part;
use roci_units::{Instant, Psn};

/// As many priorities as there are.
const PRIORITIES: usize = 8;

impl Engine {
    /// Asks for READ data again that are missing before the end of `part`, as counted in
    /// [`awaited_responses`](Self::awaited_responses): before its offset all of them, beyond it those that later ones of no higher
    /// priority have overtaken. For the request, where it may not have arrived.
    #[cold]
    pub(crate) fn ask_for_responses(&mut self, now: Instant, slot: usize, part: &Part) {
        let mtu = self.profile(slot).mtu;
        let Some(reading) = self.reads_of(slot) else { return };
        let (expected, end, mut index) = (reading.expected, reading.end, reading.current);
        let mut at = expected;
        let [all, upto] = [part.offset, part.end].map(|beyond| reading.first.wrapping_add(beyond));
        let upto = if after(upto, end) < 0 { upto } else { end };
        let overtakers = if all == upto { [None; PRIORITIES] } else { self.last_that_came(slot, upto) };
        let (mut asked, in_order) = (0, self.responses_in_order(slot) > 0);
        while index != NONE && after(upto, at) > 0 && asked < RESENDS_AT_ONCE {
            let work = *self.sends.get(index);
            if !work.has(flag::NUMBERED) {
                break;
            }
            index = work.next;
            if work.kind != Kind::Read {
                continue;
            }
            let (first, last) = (work.number(), work.number().wrapping_add(packets_of(&work, mtu)));
            let last = if after(last, upto) < 0 { last } else { upto };
            let lower = &overtakers[..=self.priority_of_read(work.length)];
            let is_overtaken = lower.iter().flatten().any(|&came| after(came, first) > 0);
            let message = work.first.wrapping_sub(self.qps[slot].common.base);
            while asked < RESENDS_AT_ONCE
                && let Some((from, to)) = self.next_gap(slot, at, last)
            {
                at = to;
                if to == last && after(last, all) > 0 && !is_overtaken {
                    // Nothing that has come shows that its end is lost.
                    break;
                }
                if asked == 0 && in_order {
                    // The last acknowledgement may be lost, and the window shut by what it was for.
                    let header = self.response_acknowledgement(slot, ACK);
                    let segment = self.control(slot, header);
                    self.post(segment);
                }
                asked += 1;
                if after(work.first, self.qps[slot].requester.una) >= 0 && from == first {
                    let part = Part { message, offset: 0, end: 1, priority: 7, ..Part::default() };
                    self.on_resend(now, slot, &part);
                    break;
                }
                // Of a READ of which nothing came, the request may just have arrived.
                let begun = from != first || to != last || is_overtaken || first == expected;
                let to = if begun { to } else { first.wrapping_add(1) };
                let octets = |sequence: u32| (sequence.wrapping_sub(first) * u32::from(mtu)).min(work.length);
                self.ask_for_data(slot, message, octets(from), octets(to) - octets(from));
            }
            at = last;
        }
    }

    /// The first response of the last READ of each priority of which any has come before `upto`.
    fn last_that_came(&self, slot: usize, upto: u32) -> [Option<u32>; PRIORITIES] {
        let mut came = [None; PRIORITIES];
        let Some(reading) = self.reads_of(slot) else { return came };
        let (mut at, mut index) = (reading.expected, reading.current);
        while index != NONE && after(upto, at) > 0 {
            let work = self.sends.get(index);
            if !work.has(flag::NUMBERED) {
                break;
            }
            index = work.next;
            if work.kind != Kind::Read {
                continue;
            }
            let first = work.number();
            let last = first.wrapping_add(packets_of(work, self.profile(slot).mtu));
            let last = if after(last, upto) < 0 { last } else { upto };
            if self.next_gap(slot, at, last) != Some((at, last)) {
                came[self.priority_of_read(work.length)] = Some(first);
            }
            at = last;
        }
        came
    }

    /// The priority of the data of a READ of `length` octets, where READs are let in piece by piece; else all have one.
    fn priority_of_read(&self, length: u32) -> usize {
        self.read_rooms.as_ref().and_then(|rooms| rooms.priority(length)).unwrap_or(0).into()
    }

    /// The first stretch of missing responses from `from` on, before `to`.
    fn next_gap(&self, slot: usize, from: u32, to: u32) -> Option<(u32, u32)> {
        let reading = self.reads_of(slot)?;
        let onloaded = reading.onloaded.as_ref();
        let missing = |at: u32| {
            // Beyond the window nothing is kept, nor does the bitmap know of it.
            let within = at.wrapping_sub(reading.expected) < self.kept.packets();
            !(within && onloaded.is_some_and(|onloaded| onloaded.knows(&self.kept, Psn::new(at))))
        };
        let all = (0..after(to, from).max(0).cast_unsigned()).map(|ahead| from.wrapping_add(ahead));
        let begin = all.clone().find(|&at| missing(at))?;
        let end = all.skip_while(|&at| after(at, begin) < 0).find(|&at| !missing(at)).unwrap_or(to);
        Some((begin, end))
    }
}
