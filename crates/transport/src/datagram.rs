//! Unreliable datagrams as they arrive: each takes a receive request, or is dropped.

use crate::arrival::{Arrival, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::config::Service;
use crate::engine::Engine;
use crate::queue::RecvWork;
use crate::token::Purpose;
use crate::work::{Completion, CompletionKind, Status, Tail};
use roci_units::Instant;
use roci_wire::{Flags, Header, Opcode, Shape};

impl Engine {
    /// Whether a datagram is for a queue pair that takes such, and bears its queue key (IBTA Vol 1 §9.8.3.1): what a world
    /// is to know before it remembers a stranger's address.
    pub fn expects_datagram(&self, header: &Header) -> bool {
        let Some(slot) = self.place(header.dest_qpn) else { return false };
        let profile = self.profile(slot);
        header.opcode.shape().has(Shape::DATAGRAM)
            && profile.service == Service::Ud
            && self.qps[slot].common.state.receives()
            && header.deth().q_key == profile.q_key
    }

    /// A datagram.
    #[cold]
    pub(crate) fn on_datagram(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let shape = header.opcode.shape();
        if header.opcode == Opcode::CNP {
            self.on_cnp(now, slot, arrival);
            return Ok(());
        }
        if !shape.has(Shape::DATAGRAM) {
            return Err(Refusal::WrongOpcode);
        }
        let profile = self.profile(slot);
        let deth = header.deth();
        // One whose payload a switch cut off is lost: nobody sends it again.
        let trimmed = header.flags.has(Flags::TRIMMED);
        if deth.q_key != profile.q_key || header.payload > profile.mtu || trimmed {
            return Err(Refusal::Datagram);
        }
        let (deferred, room) = (profile.deferred.placement, u32::from(profile.header_room));
        let recv = self.next_recv(slot).ok_or(Refusal::Datagram)?;
        let RecvWork { request, is_void, .. } = *self.recvs.get(recv);
        self.recvs.remove(recv);
        let length = u32::from(header.payload);
        let qpn = self.qps[slot].common.qpn;
        // One that is too long for its request ends that with an error, which concerns the queue pair no further: whoever knows the queue
        // key may have sent it (Soft-RoCE does the same of a shared receive queue, and else drops the datagram).
        let status = match (length + room > request.length, is_void) {
            (true, _) => Status::LocalLengthError,
            (_, true) => Status::LocalProtectionError,
            _ => Status::Success,
        };
        let fits = status == Status::Success;
        let completion = Completion {
            id: request.id,
            qpn,
            kind: CompletionKind::Recv,
            status,
            length: if fits { length } else { 0 },
            tail: if shape.has(Shape::IMMEDIATE) { Tail::Immediate(header.immediate()) } else { Tail::Plain },
            solicited: header.flags.has(Flags::SOLICITED),
            original: 0,
            source: Some((arrival.path, deth.source_qpn)),
        };
        if fits && length > 0 {
            let token = deferred.then(|| {
                let number = self.aside(slot).inbound.push(Step::Placement(false));
                self.token(slot, Purpose::Inbound, number)
            });
            let (address, key) = (request.address.wrapping_add(room.into()), request.lkey);
            reaction.placement = Some(Placement { qpn, address, key, length, token });
        }
        self.tell_receiver(slot, completion);
        if fits { Ok(()) } else { Err(Refusal::Datagram) }
    }
}
