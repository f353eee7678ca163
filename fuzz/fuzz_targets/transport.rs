//! Operations and hostile headers into the engine: nothing panics, and no placement leaves the registered region.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_transport::{
    Access, Arrival, Deferral, Deferred, Engine, EngineConfig, Grant, Operation, Pd, QpConfig, Reaction,
    Recovery, RecvRequest, Resolution, SendRequest, Service, Tail, Token, Until,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, AtomicEth, Deth, Flags, Header, Layout, Opcode, Reth};

const REGION: u64 = 1 << 20;

/// Octets of the input as numbers; zeros when they are used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        (0..4).fold(0, |word, _| word << 8 | u32::from(self.octet()))
    }

    fn near(&mut self, base: Psn) -> Psn {
        base.plus(u32::from(self.octet())).minus(64)
    }
}

/// One of the first `most` queue pairs, or the last, an unreliable connection's: by the highest octets, so that seeds that are older than it
/// mean what they meant.
fn queue_pair(octet: u8, most: u8) -> Qpn {
    Qpn::new(2 + u32::from(if octet >= 0xf0 { 6 } else { octet % most }))
}

fn header(input: &mut Input<'_>, engine: &Engine, key: u32) -> Header {
    let qpn = queue_pair(input.octet(), 4);
    let status = engine.query(qpn);
    let base =
        status.map_or(Psn::new(0), |s| if input.octet() & 1 == 0 { s.send_psn } else { s.receive_psn });
    let mut header = Header::new(Opcode(input.octet()), qpn, input.near(base));
    header.flags = Flags(input.octet());
    header.payload = u16::from(input.octet()) * 4;
    let rkey = if input.octet() & 1 == 0 { key } else { input.word() };
    let va = u64::from(input.word()) << (input.octet() % 33);
    match input.octet() % 4 {
        0 => header.set_reth(Reth { va, rkey, length: input.word() >> (input.octet() % 32) }),
        1 => header.set_atomic(AtomicEth { va, rkey, swap_or_add: 1, compare: 2 }),
        2 => header.set_aeth(Aeth { syndrome: input.octet(), msn: input.word() }),
        _ => header.set_deth(Deth { q_key: u32::from(input.octet() & 1), source_qpn: qpn }),
    }
    if input.octet() & 1 == 0 {
        header.set_trigger(input.near(base));
    }
    header
}

fn request(input: &mut Input<'_>, key: u32) -> SendRequest {
    let (va, rkey) = (u64::from(input.octet()) * 8, key);
    let tail = if input.octet() & 1 == 0 { Tail::Plain } else { Tail::Immediate(7) };
    let operation = match input.octet() % 6 {
        0 => Operation::Write { va, rkey, tail },
        1 => Operation::Send(tail),
        2 => Operation::Read { va, rkey },
        3 => Operation::FetchAdd { va, rkey, add: 1 },
        4 => Operation::CompareSwap { va, rkey, compare: 1, swap: 2 },
        _ => Operation::Datagram { path: 0, qpn: Qpn::new(3), q_key: 0, tail },
    };
    let atomic = matches!(operation, Operation::FetchAdd { .. } | Operation::CompareSwap { .. });
    SendRequest {
        id: 1,
        operation,
        length: if atomic { 8 } else { input.word() >> (input.octet() % 32) },
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: input.octet() & 7 == 0,
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut engine = Engine::new(EngineConfig::default());
    let (key, _) = engine.register(Pd(0), 0, REGION, Access::ALL).expect("the region is right");
    let late =
        Deferred { law: false, placement: true, ack_after_placement: true, recovery: true, memory: true };
    let irn = QpConfig { layout: Layout::Irn, recovery: Recovery::Irn, ..QpConfig::default() };
    for (index, config) in [
        QpConfig::default(),
        irn,
        QpConfig { deferred: late, ..irn },
        QpConfig { recovery: Recovery::NewReno, ..irn },
        QpConfig { recovery: Recovery::Sack, ..irn },
        QpConfig { service: Service::Ud, ..QpConfig::default() },
        QpConfig { service: Service::Uc, ..QpConfig::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let qpn = Some(Qpn::new(2 + index as u32));
        engine
            .create_qp(QpConfig { qpn, mtu: 256, credits: true, ..config })
            .expect("the attributes are right");
    }
    let mut now = Instant::ZERO;
    let mut reaction = Reaction::default();
    let mut tokens: Vec<Token> = Vec::new();
    while !input.0.is_empty() {
        now += Span::from_nanos(u64::from(input.octet()) * 1_000);
        let qpn = queue_pair(input.octet(), 6);
        match input.octet() % 8 {
            0 => drop(engine.post_send(now, qpn, &request(&mut input, key))),
            1 => drop(engine.post_recv(qpn, RecvRequest { id: 1, address: 0, length: 4096, lkey: 0 })),
            2 => engine.wake(now),
            3 => {
                let _ = engine.transmit(now);
            }
            4 => {
                if let Some(offer) = engine.offer(now, u32::from(input.octet()) * 64) {
                    if input.octet() & 3 == 0 {
                        engine.decline(now, offer, Until::Recirculated);
                    } else {
                        let _ = engine.commit(now, offer, Grant::Engine);
                    }
                }
            }
            5 if !tokens.is_empty() => {
                let token = tokens.swap_remove(usize::from(input.octet()) % tokens.len());
                let resolution = match input.octet() % 3 {
                    0 => Resolution::Placed,
                    1 => Resolution::Recovered,
                    _ => Resolution::Memory { original: 1 },
                };
                engine.resolve(now, token, resolution);
            }
            _ => {
                let header = header(&mut input, &engine, key);
                let ce = input.octet() & 1 == 0;
                engine.receive(
                    now,
                    &Arrival { ce, ..Arrival::new(&header, 0) },
                    &mut reaction,
                );
                if let Some(placement) = reaction.placement {
                    let end = placement.address.checked_add(u64::from(placement.length));
                    assert!(end.is_some_and(|end| end <= REGION), "{placement:?} leaves the region");
                    tokens.extend(placement.token);
                }
            }
        }
        while let Some(deferral) = engine.poll_deferral() {
            if let Deferral::Memory { token, .. } | Deferral::Recovery { token, .. } = deferral {
                tokens.push(token);
            }
        }
        while engine.poll_notice().is_some() || engine.poll_completion().is_some() {}
    }
});
