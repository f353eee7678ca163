//! Parse ∘ emit is the identity, for every opcode in every layout.

use crate::drawn::{envelope, kinds, layouts, transport};
use proptest::prelude::*;
use roci_wire::layout::homa::Homa;
use roci_wire::{
    Cc, IpVersion, Layout, Opcode, Packet, PacketError, Transport, frame_len, overhead, pattern,
};

/// More than the longest frame: 18 + 40 + 8 + 12 + 64 + 20 + 4096 + 4.
const BUFFER: usize = 4_300;

type Outcome = Result<(), TestCaseError>;

fn with_payload(transport: &Transport, then: impl FnOnce(&[u8]) -> Outcome) -> Outcome {
    let mut payload = [0; 4096];
    let payload = &mut payload[..transport.header.payload.into()];
    pattern(77, payload);
    then(payload)
}

fn with_cc_header() -> Vec<(Layout, Opcode)> {
    kinds().into_iter().filter(|(layout, opcode)| layout.rewritable_len(*opcode) > 0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_is_emitted_is_parsed(envelope in envelope(), transport in transport(kinds(), 4096)) {
        with_payload(&transport, |payload| {
            let packet = Packet { envelope, transport, payload };
            let mut buffer = [0xaa; BUFFER];
            let len = packet.emit(&mut buffer).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(len, packet.len());
            prop_assert!(buffer[len..].iter().all(|&octet| octet == 0xaa), "wrote beyond its length");
            prop_assert_eq!(Packet::parse(&buffer[..len], |_| transport.layout), Ok(packet));
            if envelope.vlan.is_none() {
                let header = transport.header;
                let charged = frame_len(header.opcode, transport.layout, envelope.ip.version(), header.payload);
                prop_assert_eq!(charged as usize, len + 4);
            }

            let mut filled = [0xaa; BUFFER];
            let same = packet.emit_with(&mut filled, |place| pattern(77, place));
            prop_assert_eq!((same, filled), (Ok(len), buffer));

            let mut short = [0xaa; BUFFER];
            let refused = packet.emit(&mut short[..len - 1]);
            prop_assert_eq!(refused, Err(PacketError::Buffer { got: len - 1, need: len }));
            prop_assert!(short.iter().all(|&octet| octet == 0xaa), "wrote although it was refused");
            Ok(())
        })?;
    }

    /// What switches may rewrite leaves the ICRC right: in layout `cc` any octet of the CC header.
    #[test]
    fn a_cc_header_may_be_rewritten_on_the_way(envelope in envelope(), transport in transport(with_cc_header(), 64), octets: [u8; 64]) {
        with_payload(&transport, |payload| {
            let packet = Packet { envelope, transport, payload };
            let mut buffer = [0; BUFFER];
            let len = packet.emit(&mut buffer).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let words = 4 * transport.layout.law_words(transport.header.opcode);
            buffer[envelope.len() + 12..][..words].copy_from_slice(&octets[..words]);
            let parsed = Packet::parse(&buffer[..len], |_| transport.layout);
            let parsed = parsed.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let stamped = parsed.transport.words.as_slice().iter().flat_map(|word| word.to_be_bytes());
            prop_assert!(stamped.eq(octets[..words].iter().copied()));
            prop_assert_eq!(parsed.transport.header, transport.header);
            Ok(())
        })?;
    }

    /// A frame that parses after damage is emitted and parsed to the same packet; none makes the code panic.
    #[test]
    fn a_damaged_frame_is_refused_or_is_another_packet(
        envelope in envelope(),
        transport in transport(kinds(), 40),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        layout in prop::sample::select(layouts()),
    ) {
        with_payload(&transport, |payload| {
            let mut buffer = [0; BUFFER];
            let packet = Packet { envelope, transport, payload };
            let len = packet.emit(&mut buffer).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let frame = &mut buffer[..cut.map_or(len, |cut| cut.index(len + 1))];
            for (at, octet) in damage {
                if let Some(place) = frame.get_mut(at.index(len)) {
                    *place = octet;
                }
            }
            returns(frame, layout)?;
            if roci_wire::seal(frame, |_| layout).is_ok() {
                returns(frame, layout)?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..200), layout in prop::sample::select(layouts())) {
        let _ = Packet::parse(&octets, |_| layout);
        let _ = roci_wire::Pause::parse(&octets);
        if let Ok((transport, _)) = Transport::parse(&octets, layout) {
            let _ = Homa::decode(&transport.header, &transport.words);
        }
    }

    /// Random octets behind a valid BTH: most of them are packets, so this reaches what the test above does not.
    #[test]
    fn random_extension_headers_survive(
        (layout, opcode) in prop::sample::select(kinds()),
        mut octets in prop::collection::vec(any::<u8>(), 12..160),
        envelope in envelope(),
    ) {
        (octets[0], octets[1], octets[2], octets[3]) = (opcode.0, octets[1] & 0xf0, 0xff, 0xff);
        let Ok((transport, payload)) = Transport::parse(&octets, layout) else { return Ok(()) };
        let _ = Homa::decode(&transport.header, &transport.words);
        let packet = Packet { envelope, transport, payload };
        let mut buffer = [0; BUFFER];
        let len = packet.emit(&mut buffer).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(Packet::parse(&buffer[..len], |_| layout), Ok(packet));
    }
}

/// What parses is emitted and parsed to the same.
fn returns(frame: &[u8], layout: Layout) -> Outcome {
    let Ok(packet) = Packet::parse(frame, |_| layout) else { return Ok(()) };
    let mut again = [0; BUFFER];
    let len = packet.emit(&mut again).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(Packet::parse(&again[..len], |_| layout), Ok(packet));
    Ok(())
}

#[test]
fn overhead_and_padded_payload_are_the_frame_for_every_kind() {
    for (layout, opcode) in kinds() {
        let [v4, v6] =
            [IpVersion::V4, IpVersion::V6].map(|version| u32::from(overhead(opcode, layout, version)));
        assert_eq!(v6, v4 + 20);
        assert_eq!(frame_len(opcode, layout, IpVersion::V4, 1021), v4 + 1024);
        assert_eq!(frame_len(opcode, layout, IpVersion::V6, 0), v6.max(64));
    }
}

#[test]
fn layouts_add_what_their_papers_count() {
    let added = |layout, opcode| {
        let [with, without] =
            [layout, Layout::Standard].map(|layout| overhead(opcode, layout, IpVersion::V4));
        with - without
    };
    assert_eq!(added(Layout::Srnic, Opcode::SEND_MIDDLE), 8, "SRNIC §4.4.1: 58 to 66 octets");
    assert_eq!(added(Layout::Srnic, Opcode::WRITE_MIDDLE), 20, "SRNIC §4.4.1: 58 to 78 octets");
    assert_eq!(added(Layout::Irn, Opcode::WRITE_MIDDLE), 16, "IRN §5: a RETH in every WRITE");
    let int = Layout::Cc(Cc::new(false, true, 0).unwrap());
    assert_eq!(added(int, Opcode::WRITE_MIDDLE), 44, "HPCC's 42 octets in whole words");
    assert_eq!(added(int, Opcode::CNP), 0, "a CNP is for any peer");
}
