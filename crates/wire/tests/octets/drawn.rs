//! Packets of every kind, drawn by proptest.

use proptest::prelude::*;
use roci_units::{Psn, Qpn};
use roci_wire::layout::irn::SendPosition;
use roci_wire::layout::ndp::Pull;
use roci_wire::layout::srnic::RequestPosition;
use roci_wire::{
    Aeth, AtomicEth, Cc, Deth, Ecn, Envelope, Ethernet, Flags, Header, Ip, Ipv4, Ipv6, Layout, LayoutWords,
    Mac, Opcode, Reth, Shape, Syndrome, Transport, Vlan,
};

/// Every layout, the CC header in four lengths.
pub(crate) fn layouts() -> Vec<Layout> {
    let cc = [(false, false, 0), (true, false, 0), (false, true, 1), (true, true, 3)];
    let cc = cc.map(|(time, int, own)| Layout::Cc(Cc::new(time, int, own).expect("at most 16 words")));
    [Layout::Standard, Layout::Irn, Layout::Srnic, Layout::Ndp, Layout::Homa].into_iter().chain(cc).collect()
}

/// Every opcode in every layout that permits it.
pub(crate) fn kinds() -> Vec<(Layout, Opcode)> {
    let opcodes = || (0..=u8::MAX).map(Opcode);
    let all = layouts().into_iter().flat_map(|layout| opcodes().map(move |opcode| (layout, opcode)));
    all.filter(|(layout, opcode)| layout.permits(*opcode)).collect()
}

/// Any envelope: both versions of IP, with and without a VLAN tag.
pub(crate) fn envelope() -> impl Strategy<Value = Envelope> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), 0u8..64, ecn.clone(), any::<u8>(), any::<u16>());
    let v4 = v4.prop_map(|(source, destination, dscp, ecn, ttl, id)| {
        Ip::V4(Ipv4 { source: source.into(), destination: destination.into(), dscp, ecn, ttl, id })
    });
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), 0u8..64, ecn, any::<u8>(), 0u32..1 << 20);
    let v6 = v6.prop_map(|(source, destination, dscp, ecn, hop_limit, flow_label)| {
        Ip::V6(Ipv6 {
            source: source.into(),
            destination: destination.into(),
            dscp,
            ecn,
            hop_limit,
            flow_label,
        })
    });
    let vlan = (0u8..8, any::<bool>(), 0u16..1 << 12);
    let vlan = vlan.prop_map(|(priority, drop_eligible, id)| Vlan { priority, drop_eligible, id });
    let ethernet = any::<[[u8; 6]; 2]>()
        .prop_map(|[destination, source]| Ethernet { destination: Mac(destination), source: Mac(source) });
    (ethernet, prop::option::of(vlan), prop_oneof![v4, v6], any::<u16>())
        .prop_map(|(ethernet, vlan, ip, source_port)| Envelope { ethernet, vlan, ip, source_port })
}

/// Any transport headers: one of `kinds`, the fields that it carries, and at most `payload_max` octets.
pub(crate) fn transport(kinds: Vec<(Layout, Opcode)>, payload_max: u16) -> impl Strategy<Value = Transport> {
    let kind = prop::sample::select(kinds);
    (kind, 0..=payload_max, any::<[u64; 4]>(), any::<[u32; 8]>(), any::<[u32; 16]>()).prop_map(
        |((layout, opcode), payload, longs, ints, words)| build(layout, opcode, payload, longs, ints, words),
    )
}

fn build(
    layout: Layout,
    opcode: Opcode,
    payload: u16,
    longs: [u64; 4],
    ints: [u32; 8],
    words: [u32; 16],
) -> Transport {
    let shape = opcode.shape();
    let reliable = opcode.0 < 0x20 || opcode.0 >= 0xc0;
    let mut header = Header::new(opcode, Qpn::new(ints[0]), Psn::new(ints[1]));
    header.flags =
        Flags(ints[2].to_le_bytes()[0] & if layout == Layout::Ndp && reliable { 0xff } else { 0x0f });
    if shape.has(Shape::PAYLOAD) {
        header.payload = payload;
    }
    if shape.has(Shape::DATAGRAM) {
        header.set_deth(Deth { q_key: ints[3], source_qpn: Qpn::new(ints[4]) });
    }
    let overtaking = !matches!(layout, Layout::Standard | Layout::Cc(_));
    if shape.has(Shape::RETH) || shape.has(Shape::WRITE) && overtaking {
        let short = layout == Layout::Srnic && !shape.has(Shape::RETH);
        header.set_reth(Reth { va: longs[0], rkey: ints[3], length: if short { 0 } else { ints[4] } });
    }
    if shape.has(Shape::ATOMIC) {
        header.set_atomic(AtomicEth {
            va: longs[0],
            rkey: ints[3],
            swap_or_add: longs[1],
            compare: longs[2],
        });
    }
    if shape.has(Shape::AETH) {
        let known: Vec<u8> = (0..=u8::MAX).filter(|&octet| Syndrome::from_u8(octet).is_some()).collect();
        header.set_aeth(Aeth { syndrome: known[ints[3] as usize % known.len()], msn: ints[4] });
    }
    if shape.has(Shape::ATOMIC_ACK) {
        header.set_atomic_ack(longs[3]);
    }
    if shape.has(Shape::IMMEDIATE) || shape.has(Shape::INVALIDATE) {
        header.set_immediate(ints[5]);
    }
    position(&mut header, layout, ints);
    if layout == Layout::Ndp && reliable {
        header.set_source_qpn(Qpn::new(ints[0].rotate_left(8)));
    }
    let words = LayoutWords::new(&words[..layout.law_words(opcode)]).expect("at most 16");
    Transport { header, layout, words }
}

/// The words that layouts keep in the header.
fn position(header: &mut Header, layout: Layout, ints: [u32; 8]) {
    let shape = header.opcode.shape();
    let reliable = header.opcode.0 < 0x20 || header.opcode.0 >= 0xc0;
    let acknowledges = [Opcode::ACKNOWLEDGE, Opcode::READ_ACKNOWLEDGE].contains(&header.opcode);
    match layout {
        Layout::Irn | Layout::Ndp if shape.has(Shape::SEND) && reliable => {
            header.set_send_position(SendPosition { ssn: ints[6], offset: ints[7] });
        }
        Layout::Irn | Layout::Ndp if shape.has(Shape::WRITE) && shape.has(Shape::IMMEDIATE) => {
            header.set_send_position(SendPosition { ssn: ints[6], offset: 0 });
        }
        Layout::Irn if acknowledges => header.set_trigger(Psn::new(ints[6])),
        Layout::Ndp if acknowledges || header.opcode == Opcode::PULL => {
            header.set_pull(Pull { counter: ints[6], expected: Psn::new(ints[7]) });
        }
        Layout::Srnic if reliable && !shape.has(Shape::ATOMIC) && !shape.has(Shape::ATOMIC_ACK) => {
            let [high, low, ..] = ints[5].to_be_bytes();
            let ssn = u16::from_be_bytes([high, low]);
            header.set_request_position(RequestPosition { msn: ints[6], psn_offset: ints[7], ssn });
            if acknowledges {
                header.set_echoed_psn(Psn::new(ints[2]));
            }
        }
        _ => {}
    }
}
