//! Arbitrary management datagrams, and a user who answers in arbitrary ways, at a machine of connection set-up: nothing
//! panics, what a stranger says changes no connection, and what is over is forgotten in the end.
//!
//! The input is a list of steps: an octet that chooses one, and what it takes. Datagrams get a header that passes, and
//! the ids of connections that exist, for no fuzzer guesses those.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_endpoint::cm::machine::{Event, Id, Machine, PENDING_MAX, Serving};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::Layout;
use roci_wire::cm::{
    Addressee, MAD_LEN, Mad, Message, Private, Reply, Request, ServiceRequest, datagram_service, service,
};
use std::net::{IpAddr, Ipv6Addr};

const PORT: u64 = service(7174);
const DATAGRAMS: u64 = datagram_service(7174);

fuzz_target!(|input: &[u8]| {
    // What a neighbour reads of it before anybody has judged it.
    let _ = Addressee::of(input);
    let mut count = 0u32;
    let mut machine = Machine::new(1, move || {
        count = count.wrapping_add(0x9e37_79b9);
        count
    });
    machine.listen(PORT);
    machine.listen_datagrams(DATAGRAMS);
    let mut now = Instant::ZERO;
    let (mut asked, mut granted, mut known) = (Vec::new(), Vec::new(), Vec::new());
    // With the transaction of what they were said in.
    let mut ids: Vec<([u8; 8], [u8; 8])> = vec![([0; 8], [0; 8])];
    let mut rest = input;
    while let Some((&step, after)) = rest.split_first() {
        let (&choice, after) = after.split_first().unwrap_or((&0, &[]));
        rest = after;
        let pick = |list: &[Id]| list.get(usize::from(choice) % list.len().max(1)).copied();
        match step % 8 {
            0 if choice & 0x80 != 0 => {
                let (service, private) = (DATAGRAMS, Private::NONE);
                let request = ServiceRequest { id: 0, p_key: 0xffff, service, endpoints: None, private };
                known.push(machine.resolve(now, peer(choice), request));
            }
            0 => known.push(machine.connect(now, peer(choice), request(choice))),
            1 => {
                if let Some(id) = pick(&asked) {
                    machine.accept(now, id, reply());
                    machine.serve(now, id, &Serving::not(choice, Private::NONE));
                }
            }
            2 => {
                if let Some(id) = pick(&granted) {
                    machine.ready(id);
                }
            }
            3 => {
                if let Some(id) = pick(&asked) {
                    machine.reject(now, id, choice.into(), Private::NONE);
                }
            }
            4 => {
                if let Some(id) = pick(&known) {
                    machine.disconnect(now, id);
                    machine.forget_service(id);
                }
            }
            5 => {
                now = now + Span::from_millis(u64::from(choice) * 20);
                machine.wake(now);
            }
            _ => {
                let length = rest.len().min(MAD_LEN - 32);
                let (body, after) = rest.split_at(length.min(16 + usize::from(choice)));
                rest = after;
                let mut mad = [0; MAD_LEN];
                mad[..4].copy_from_slice(&[1, 7, 2, 3]);
                mad[17] = 0x10 + choice % 9;
                let (transaction, own) = &ids[usize::from(step / 8) % ids.len()];
                mad[8..16].copy_from_slice(transaction);
                mad[24..32].copy_from_slice(own);
                mad[32..32 + body.len()].copy_from_slice(body);
                if choice & 0x40 != 0 {
                    let service = if mad[17] == 0x17 { DATAGRAMS } else { PORT };
                    mad[32..40].copy_from_slice(&service.to_be_bytes());
                    mad[80..96].copy_from_slice(&gid(choice).octets());
                }
                match (Addressee::of(&mad), Mad::parse(&mad).is_ok()) {
                    (Addressee::Nobody, is_known) => assert!(!is_known),
                    (Addressee::Id(id), _) => assert!(id != 0 || mad[17] != 0x12),
                    (_, is_known) => assert!(is_known),
                }
                machine.handle(now, peer(choice), &mad);
            }
        }
        while let Some((_, octets)) = machine.poll_transmit() {
            let mad = Mad::parse(&octets).expect("what leaves can be read");
            if let Message::Request(_) | Message::Reply(_) = mad.message {
                // As the answer will bear them: the sender's id first, which the peer draws, then ours.
                let mut own = [7; 8];
                own[4..].copy_from_slice(&octets[24..28]);
                ids.push((mad.transaction.to_be_bytes(), own));
            }
            if let Message::Resolve(request) = mad.message {
                // The answer bears it first.
                let mut own = [0; 8];
                own[..4].copy_from_slice(&request.id.to_be_bytes());
                ids.push((mad.transaction.to_be_bytes(), own));
            }
        }
        while let Some(event) = machine.poll_event() {
            match event {
                Event::Asked { id, .. } => {
                    asked.push(id);
                    known.push(id);
                }
                Event::Queried { id, .. } => {
                    asked.push(id);
                    known.push(id);
                }
                Event::Granted { id, .. } => granted.push(id),
                _ => {}
            }
        }
        assert!(machine.len() <= PENDING_MAX + known.len());
    }
    for id in known {
        machine.disconnect(now, id);
    }
    while let Some(at) = machine.poll_timeout() {
        assert!(at.since(now) <= Span::from_secs(100), "timers end");
        now = now.max(at);
        machine.wake(now);
        while machine.poll_transmit().is_some() {}
        while machine.poll_event().is_some() {}
    }
    assert!(machine.is_empty(), "{machine:?}");
});

fn peer(choice: u8) -> IpAddr {
    [10, 0, 0, choice % 4].into()
}

fn gid(choice: u8) -> Ipv6Addr {
    let IpAddr::V4(address) = peer(choice) else { return Ipv6Addr::UNSPECIFIED };
    address.to_ipv6_mapped()
}

fn request(choice: u8) -> Request {
    Request {
        local: 0,
        service: PORT,
        guid: 1,
        qpn: Qpn::new(2),
        responder_resources: 1,
        initiator_depth: 1,
        psn: Psn::new(3),
        mtu: 3,
        retry_count: 7,
        rnr_retry_count: 7,
        ack_timeout: 14,
        response_timeout: 18,
        max_retries: 7,
        service_type: 0,
        gids: (gid(choice), gid(choice)),
        endpoints: None,
        traffic_class: choice & 0xfc,
        layout: Layout::Standard,
        private: Private::NONE,
    }
}

fn reply() -> Reply {
    Reply {
        local: 0,
        remote: 0,
        qpn: Qpn::new(2),
        psn: Psn::new(3),
        responder_resources: 1,
        initiator_depth: 1,
        rnr_retry_count: 7,
        guid: 1,
        layout: Layout::Standard,
        private: Private::NONE,
    }
}
