//! How long the parts of an idle NIC take for a packet, where all that it needs is on the chip, as far as anything of its kind stays there: what a
//! round trip has besides the network.

use super::counters::Cause;
use super::pcie::Link;
use super::spec::{Architecture, Entries, Store, Time};
use roci_units::{Instant, Span};

impl Architecture {
    /// From the engine's decision to send `payload` octets until the packet is with the port.
    pub fn idle_send(&self, payload: u64) -> Span {
        let fetched = match self.pcie.attached && payload > self.send.inline.0 {
            true => Link::new(self.pcie).read(Instant::ZERO, payload, Cause::Payload).since(Instant::ZERO),
            false => Span::ZERO,
        };
        let worked = match self.units.count {
            0 => Span::ZERO,
            _ => self.span(self.units.send) + self.unit_extra(payload),
        };
        let requests = self.fetched_each_time(self.wqe, Cause::Wqe);
        let context = self.fetched_each_time(self.context, Cause::Context);
        requests + context + fetched.max(worked) + self.span(self.send.latency) + self.edge()
    }

    /// From the arrival of a packet with `payload` octets until the engine has judged it, and answers it where it does so at once.
    pub fn idle_receive(&self, payload: u64) -> Span {
        let placed = match self.receive.ack_after_placement && self.pcie.attached && payload > 0 {
            true => Link::new(self.pcie).write(Instant::ZERO, payload, Cause::Payload).since(Instant::ZERO),
            false => Span::ZERO,
        };
        let worked = self.span(self.units.receive) + self.unit_extra(payload);
        let context = self.fetched_each_time(self.context, Cause::Context);
        context + worked + self.span(self.receive.latency) + placed + self.edge()
    }

    /// How long an entry takes to come from the host's memory where none of `store` stays on the chip: then each packet that comes alone waits for it.
    fn fetched_each_time(&self, store: Store, cause: Cause) -> Span {
        match self.pcie.attached && store.entries == Entries::Count(0) {
            true => Link::new(self.pcie).read(Instant::ZERO, store.size.into(), cause).since(Instant::ZERO),
            false => Span::ZERO,
        }
    }

    /// How long a core takes for an event of a law that is no program, with its context at hand; `None` where there are no cores.
    pub fn native_event(&self) -> Option<Span> {
        let clock = self.core_clock().filter(|_| self.cores.pairs > 0)?;
        let load = match self.cores.load {
            Time::Cycles(cycles) => clock.cycles(cycles),
            Time::Span(span) => span,
        };
        Some(load + clock.cycles(self.cores.native))
    }

    /// What a unit takes for so much payload besides, on the mean.
    fn unit_extra(&self, payload: u64) -> Span {
        match self.units.count {
            0 => Span::ZERO,
            _ => self.span(self.units.copy) * payload / 1024 + self.span(self.units.jitter),
        }
    }

    /// The longest wait for an edge of the clock.
    fn edge(&self) -> Span {
        self.clock.map_or(Span::ZERO, |clock| clock.cycles(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets;
    use super::*;

    #[test]
    fn payload_comes_over_pcie_while_a_unit_works_and_answers_have_none() {
        let nanos = |span: Span| span.as_ps().div_ceil(1_000);
        // A read of 550 ns and 1120 octets at 126 Gb/s, longer than the unit's 80 ns; and 50 ns. 78 and 50 ns on the other way.
        let cx6 = presets::find("cx6").expect("a preset");
        assert_eq!(
            [cx6.idle_send(1024), cx6.idle_receive(1024), cx6.idle_receive(0)].map(nanos),
            [672, 128, 128]
        );
        // Eight cycles of 10 ns and two, without PCIe, each with an edge to wait for.
        let tonic = presets::find("tonic").expect("a preset");
        assert_eq!([tonic.idle_send(1024), tonic.idle_receive(0)].map(nanos), [90, 30]);
    }

    #[test]
    fn an_event_of_a_law_in_rust_takes_its_core_what_it_takes_to_load_and_to_run() {
        let event = |name| presets::find(name).expect("a preset").native_event();
        // 6 and 69 cycles of 4 ns, and 2 and 27.
        assert_eq!(event("swcc-naive"), Some(Span::from_nanos(300)));
        assert_eq!(event("swcc"), Some(Span::from_nanos(116)));
        assert_eq!(event("srnic"), None);
    }

    #[test]
    fn what_never_stays_on_the_chip_is_waited_for_each_time() {
        let nanos = |span: Span| span.as_ps().div_ceil(1_000);
        let mut srnic = presets::find("srnic").expect("a preset");
        let fetched = srnic.idle_send(1024);
        srnic.wqe.entries = Entries::Count(1);
        // A read of 1100 ns and 88 octets at 126 Gb/s, of a request that is dropped after its turn.
        assert_eq!(nanos(fetched.saturating_sub(srnic.idle_send(1024))), 1_106);
        let kept = srnic.idle_receive(0);
        srnic.context.entries = Entries::Count(0);
        // 210 octets and their header, before a packet is judged.
        assert_eq!(nanos(srnic.idle_receive(0).saturating_sub(kept)), 1_115);
    }
}
