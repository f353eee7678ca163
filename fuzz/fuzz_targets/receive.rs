//! Arbitrary packets at a live endpoint, from its peer and from strangers, with a right ICRC and without: nothing panics,
//! each packet is counted once, and memory to which nobody was given rights is as it was, around memory windows too.
//!
//! The input is a list of packets: an octet that chooses who sends what to whom, and what the headers take. Keys, numbers
//! and sequences that no fuzzer guesses are filled in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_endpoint::{
    Access, Backend, Device, DeviceConfig, MemoryRegion, MemoryWire, Progress, QueuePair, RecvWr,
    RemoteMemory, SendWr, WindowKind, WindowTarget,
};
use roci_wire::{Aeth, AtomicEth, Deth, Flags, Header, Ip, Opcode, Reth, Transport};
use std::net::{IpAddr, Ipv6Addr};

const HERE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
const STRANGER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 3);
const Q_KEY: u32 = 77;
const SIZE: usize = 4096;

/// Octets of the input as numbers; zeros when they are used up.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        (0..4).fold(0, |word, _| word << 8 | u32::from(self.octet()))
    }

    fn octets(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

fn open(wire: &MemoryWire, address: Ipv6Addr) -> Device {
    let backend = Backend::Memory(wire.clone());
    let config = DeviceConfig { backend, progress: Progress::Caller, ..DeviceConfig::default() };
    Device::open_with(address.into(), config).expect("the configuration is right")
}

/// The octets that are written by nobody but through a window, and those to which that is bound.
const WINDOW: std::ops::Range<usize> = 1024..1536;

/// Some header to `qp`, near to what it expects, at one of these places.
fn header(input: &mut Input<'_>, qp: &QueuePair, places: &[RemoteMemory]) -> Header {
    let status = qp.query().expect("it lives");
    let base = if input.octet() & 1 == 0 { status.receive_psn } else { status.send_psn };
    let psn = base.plus(u32::from(input.octet())).minus(8);
    let mut header = Header::new(Opcode(input.octet()), qp.qp_num(), psn);
    header.flags = Flags(input.octet());
    let choice = input.octet();
    let place = places[usize::from(choice) % places.len()];
    let rkey = if choice & 0x80 == 0 { place.rkey } else { input.word() };
    let va =
        place.address.wrapping_add(u64::from(input.octet())).wrapping_sub(16) & !u64::from(choice >> 4 & 7);
    match choice >> 2 & 3 {
        0 => {
            header.set_reth(Reth { va, rkey, length: input.word() >> (input.octet() % 32) });
            // The key that a SEND wants invalidated.
            header.set_immediate(rkey);
        }
        1 => header.set_atomic(AtomicEth { va, rkey, swap_or_add: 1, compare: 0 }),
        2 => header.set_aeth(Aeth { syndrome: input.octet(), msn: input.word() }),
        _ => header.set_deth(Deth { q_key: Q_KEY + u32::from(input.octet() & 1), source_qpn: qp.qp_num() }),
    }
    header
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let wire = MemoryWire::new(1);
    let (here, peer) = (open(&wire, HERE), open(&wire, PEER));
    let (pd, other) = (here.alloc_pd(), here.alloc_pd());
    let cq = here.create_cq().expect("a queue");
    let qp = pd.create_qp(&cq, &cq).build().expect("a queue pair");
    let datagrams = pd.create_qp(&cq, &cq).datagrams(Q_KEY).build().expect("a queue pair");
    let (far_pd, far_cq) = (peer.alloc_pd(), peer.create_cq().expect("a queue"));
    let far = far_pd.create_qp(&far_cq, &far_cq).build().expect("a queue pair");
    qp.connect(far.info()).expect("INIT");
    far.connect(qp.info()).expect("INIT");
    let open = pd.reg_mr(vec![0; SIZE], Access::ALL).expect("memory");
    let closed = pd.reg_mr(vec![0x5a; SIZE], Access::LOCAL_WRITE).expect("memory");
    let foreign = other.reg_mr(vec![0x5a; SIZE], Access::ALL).expect("memory");
    let landing = pd.reg_mr(vec![0; SIZE], Access::LOCAL_WRITE).expect("memory");
    let shut = pd.reg_mr(vec![0x5a; SIZE], Access::LOCAL_WRITE | Access::BIND).expect("memory");
    let spare = pd.create_qp(&cq, &cq).build().expect("a queue pair");
    spare.connect(far.info()).expect("INIT");
    let windows = [WindowKind::Type2, WindowKind::Type1, WindowKind::Type2]
        .map(|kind| pd.alloc_mw(kind).expect("there is room"));
    let targets = [
        WindowTarget::new(&shut, WINDOW, Access::ALL).zero_based(),
        WindowTarget::new(&shut, 2048..2560, Access::REMOTE_READ),
        WindowTarget::new(&shut, 3072..3584, Access::ALL),
    ];
    for ((by, window), target) in [&qp, &qp, &spare].into_iter().zip(&windows).zip(targets) {
        by.post_send(SendWr::bind(window, window.rkey(), target)).expect("there is room");
        assert!(cq.poll().is_some_and(|it| it.is_ok()), "nothing is under way, and it is bound at once");
    }
    let mut places = [&open, &closed, &foreign, &shut].map(MemoryRegion::remote).to_vec();
    let named = [0, shut.addr() + 2048, shut.addr() + 3072];
    places.extend(
        named
            .iter()
            .zip(&windows)
            .map(|(address, window)| RemoteMemory { address: *address, rkey: window.rkey() }),
    );
    for (slot, to) in [&qp, &qp, &datagrams, &datagrams].into_iter().enumerate() {
        let buffer = landing.buffer(slot * 1024..(slot + 1) * 1024).expect("it is free");
        to.post_recv(RecvWr::new(buffer)).expect("there is room");
    }
    // Something to acknowledge, and something to respond to.
    let slice = open.slice(0..64).expect("it is free");
    let _ =
        qp.post_send(SendWr::write(slice, far_pd.reg_mr(vec![0; 64], Access::ALL).expect("memory").remote()));
    let mut sent = 0u64;
    let before = here.counters().received;
    while !input.0.is_empty() {
        let choice = input.octet();
        let source = if choice & 1 == 0 { PEER } else { STRANGER };
        let to = if choice & 2 == 0 { &qp } else { &datagrams };
        let mut octets = if choice & 4 == 0 {
            let mut header = header(&mut input, to, &places);
            let length = usize::from(choice >> 4) * 9;
            let payload = input.octets(length);
            header.payload = u16::try_from(payload.len()).unwrap_or(0);
            let transport = Transport::standard(header);
            let mut octets = vec![0; transport.len()];
            let fill = |place: &mut [u8]| place.copy_from_slice(payload);
            if transport.emit_with(&Ip::v6(source, HERE), 4791, &mut octets, fill).is_err() {
                continue;
            }
            octets
        } else {
            let length = usize::from(input.octet());
            let mut octets = input.octets(length).to_vec();
            if let Some(number) = octets.get_mut(5..8) {
                number.copy_from_slice(&to.qp_num().get().to_be_bytes()[1..]);
            }
            octets
        };
        if choice & 8 != 0 && !octets.is_empty() {
            let at = usize::from(input.octet()) % octets.len();
            octets[at] ^= input.octet();
        }
        wire.inject(IpAddr::from(source), IpAddr::from(HERE), &octets);
        sent += 1;
        here.progress();
        while let Some(completion) = cq.poll() {
            drop(completion);
        }
    }
    for _ in 0..64 {
        here.progress();
    }
    let counted = here.counters();
    assert_eq!(counted.received - before, sent, "each is counted once: {counted:?}");
    assert!(counted.malformed + counted.corrupt + counted.stray + counted.refused <= counted.received);
    for region in [&closed, &foreign, &shut] {
        let mut memory = [0; SIZE];
        region.read(0, &mut memory).expect("it is there");
        if region.rkey() == shut.rkey() {
            memory[WINDOW].fill(0x5a);
        }
        assert!(memory.iter().all(|octet| *octet == 0x5a), "memory without rights was written");
    }
});
