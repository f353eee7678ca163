//! Datagrams for queue pair 1, which all endpoints at one address have together: whose each one is, and where it is handed to.
//!
//! A datagram says so itself. An answer bears the id of a connection, and ids have the remainder of the endpoint that drew them, as queue
//! pair numbers have. A request names a service, and who offers that has a socket of that name. So nobody at an address has to be there for
//! the others, and one that ends takes nothing with it but its own connections. What concerns nobody is answered by whoever gets it.

use super::steer::{SLOTS, bind};
use super::sys::Several;
use roci_wire::cm::Addressee;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixDatagram;

/// Octets of a UD packet before its payload: BTH and DETH.
pub(super) const HEAD: usize = 12 + 8;
/// Where a datagram says what it is, and what a request for a connection, and one for the datagrams of a service and its answer are.
pub(super) const KIND: usize = HEAD + 16;
pub(super) const REQUEST: u32 = 0x10;
pub(super) const RESOLVE: u32 = 0x17;
pub(super) const RESOLVED: u32 = 0x18;
/// Where it bears the lowest octet of the receiver's id,
pub(super) const ID_LOW: usize = HEAD + 24 + 7;
/// and where that is in the answer that bears the request's id alone.
pub(super) const ASKED_LOW: usize = HEAD + 24 + 3;

/// The manager's socket among those of services, none of which is called so.
const MANAGER: u64 = u64::MAX;

/// Whom a packet for queue pair 1 concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concerned {
    /// The manager of the endpoint with this remainder.
    Slot(u32),
    /// Who offers this service.
    Service(u64),
    /// All managers, of which one knows.
    All,
    /// Any of them.
    Any,
}

impl Concerned {
    /// By what a packet of a UD queue pair carries, which may be anything.
    pub(super) fn of(packet: &[u8]) -> Self {
        match Addressee::of(packet.get(HEAD..).unwrap_or_default()) {
            Addressee::Id(id) => Self::Slot(id % SLOTS),
            Addressee::Service(service) => Self::Service(service),
            Addressee::Asked => Self::All,
            Addressee::Nobody => Self::Any,
        }
    }
}

/// The name of the manager of the endpoint with this remainder.
pub(super) fn manager(slot: u32) -> String {
    format!("management/{slot}")
}

/// The name of who offers a service.
pub(super) fn offer(service: u64) -> String {
    format!("service/{service:x}")
}

/// What an endpoint with a manager listens to, beside its port.
#[derive(Debug)]
pub(super) struct Management {
    local: IpAddr,
    manager: UnixDatagram,
    /// With how often each was claimed.
    services: BTreeMap<u64, (UnixDatagram, u32)>,
}

impl Management {
    /// Its sockets are among `all`, until it ends.
    pub(super) fn new(local: IpAddr, slot: u32, all: &Several) -> io::Result<Self> {
        let manager = bind(local, &manager(slot))?;
        all.add(&manager, MANAGER)?;
        Ok(Self { local, manager, services: BTreeMap::new() })
    }

    /// Claims nothing any more.
    pub(super) fn end(self, all: &Several) {
        for socket in self.services.values().map(|(socket, _)| socket).chain([&self.manager]) {
            // It is there, and would else be closed all the same.
            let _ = all.remove(socket);
        }
    }

    /// Claims a service once more.
    pub(super) fn claim(&mut self, service: u64, all: &Several) -> io::Result<()> {
        if let Some((_, count)) = self.services.get_mut(&service) {
            *count += 1;
            return Ok(());
        }
        let socket = bind(self.local, &offer(service))?;
        all.add(&socket, service)?;
        self.services.insert(service, (socket, 1));
        Ok(())
    }

    /// Takes a claim back. With the last one the service is anybody's.
    pub(super) fn release(&mut self, service: u64, all: &Several) {
        let Some((socket, count)) = self.services.get_mut(&service) else { return };
        *count -= 1;
        if *count == 0 {
            // As above.
            let _ = all.remove(socket);
            self.services.remove(&service);
        }
    }

    /// Whether the service is offered here.
    pub(super) fn offers(&self, service: u64) -> bool {
        self.services.contains_key(&service)
    }

    /// The sockets that are readable.
    pub(super) fn ready(&self, all: &Several) -> io::Result<impl Iterator<Item = &UnixDatagram> + use<'_>> {
        Ok(all.ready()?.filter_map(|name| match name {
            MANAGER => Some(&self.manager),
            service => self.services.get(&service).map(|(socket, _)| socket),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use roci_units::Qpn;
    use roci_wire::cm::{Mad, Message, Private, ServiceReply};

    #[test]
    fn an_answer_is_for_who_drew_its_id_and_the_kernel_finds_that_in_its_place() {
        let id = 0x1234_5600 | 17;
        let mad = Mad { transaction: 7, message: Message::ReadyToUse { local: 5, remote: id } };
        let packet = [&[0; HEAD][..], &mad.emit()].concat();
        assert_eq!(Concerned::of(&packet), Concerned::Slot(17));
        assert_eq!(u32::from(packet[ID_LOW]) % SLOTS, 17);
        let kind = |packet: &[u8]| u32::from(u16::from_be_bytes([packet[KIND], packet[KIND + 1]]));
        assert_eq!(kind(&packet), 0x14);
        let reply = ServiceReply {
            id,
            status: 0,
            information_len: 0,
            information: Private::NONE,
            qpn: Qpn::new(0x22),
            service: 0,
            q_key: 1,
            private: Private::NONE,
        };
        let mad = Mad { transaction: 7, message: Message::Resolved(reply) };
        let packet = [&[0; HEAD][..], &mad.emit()].concat();
        assert_eq!((Concerned::of(&packet), kind(&packet)), (Concerned::Slot(17), RESOLVED));
        assert_eq!(u32::from(packet[ASKED_LOW]) % SLOTS, 17);
    }

    proptest! {
        #[test]
        fn whatever_a_packet_carries_concerns_a_slot_that_there_is(
            mut packet in proptest::collection::vec(any::<u8>(), 0..400),
            kind in 0x0fu8..0x1a,
            is_made in any::<bool>(),
        ) {
            if is_made && packet.len() >= HEAD + 256 {
                packet[HEAD..HEAD + 4].copy_from_slice(&[1, 7, 2, 3]);
                (packet[KIND], packet[KIND + 1]) = (0, kind);
            }
            match Concerned::of(&packet) {
                Concerned::Slot(slot) => {
                    let low = if kind == 0x18 { ASKED_LOW } else { ID_LOW };
                    prop_assert!(slot < SLOTS && slot == u32::from(packet[low]) % SLOTS);
                }
                Concerned::Service(_) => prop_assert!(kind == 0x10 || kind == 0x17),
                Concerned::All => prop_assert_eq!(kind, 0x12),
                Concerned::Any => {}
            }
        }
    }
}
