//! What is done about a loss.

use crate::arrival::Arrival;
use crate::config::{QpConfig, QpError};
use crate::engine::Engine;
use crate::queue::SendWork;
use crate::transmit::Plan;
use roci_units::Instant;
use roci_wire::Header;

impl Engine {
    pub(crate) fn check_recovery(&self, _config: &QpConfig) -> Result<(), QpError> {
        Ok(())
    }
    pub(crate) fn lost(&mut self, now: Instant, slot: usize, _arrival: &Arrival<'_>) {
        let una = self.requesters[slot].una;
        self.rewind(slot, una);
        self.arm(now, slot);
    }
    pub(crate) fn timed_out(&mut self, _now: Instant, slot: usize) {
        let una = self.requesters[slot].una;
        self.rewind(slot, una);
    }
    pub(crate) fn plan_recovery(&mut self, _now: Instant, _slot: usize) -> Option<Plan> {
        None
    }
    pub(crate) fn recovery_advanced(&mut self, _now: Instant, _slot: usize) {}
    pub(crate) fn end_recovery(&mut self, _now: Instant, _slot: usize) {}
    pub(crate) fn recovered(&mut self, _now: Instant, _slot: usize, _number: u32) {}
}

pub(crate) fn position(_header: &mut Header, _work: &SendWork, _offset: u32) {}
