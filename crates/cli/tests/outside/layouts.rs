//! Packets of every opcode in every header layout, for the Lua dissector, and what it must find in them.

#[path = "../../../wire/tests/octets/drawn.rs"]
mod drawn;

use drawn::{envelope, kinds, layouts, transport};
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;
use roci_wire::layout::homa::{Homa, HomaBody};
use roci_wire::{Flags, Header, Layout, LayoutWords, Opcode, Packet, Shape, Transport};
use std::collections::BTreeMap;
use std::path::Path;

/// Fields by name, each with its values in order.
pub(crate) type Fields = BTreeMap<&'static str, Vec<u64>>;

/// The layouts that need a dissector.
pub(crate) fn layouts_to_dissect() -> Vec<Layout> {
    layouts().into_iter().filter(|layout| *layout != Layout::Standard).collect()
}

/// How the dissector is told of `layout`: its preferences.
pub(crate) fn preferences(layout: Layout) -> [String; 2] {
    let name = layout.to_string();
    let cc = match layout {
        Layout::Cc(cc) => {
            let words = cc.empty();
            let time = cc.time(&words).map_or("", |_| "time,");
            let int = cc.int(&words).map_or("", |_| "int,");
            format!("{time}{int}{}", cc.own(&words).len())
        }
        _ => String::new(),
    };
    let name = name.split(' ').next().unwrap_or_default().to_owned();
    [format!("rocinante.layout:{name}"), format!("rocinante.cc:{cc}")]
}

/// Writes a capture of packets of every opcode that `layout` permits and a dissector of ours must know; gives what is
/// in each.
pub(crate) fn write_capture(layout: Layout, path: &Path) -> Vec<Fields> {
    let mut runner = TestRunner::deterministic();
    let mut octets = Vec::new();
    // The classic format: magic number, version 2.4, zone, accuracy, longest frame, Ethernet.
    for word in [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 0x1_0000, 1u32] {
        octets.extend(word.to_le_bytes());
    }
    let mut all = Vec::new();
    for kind in kinds() {
        let reliable = kind.1.0 < 0x20 || kind.1.0 >= 0xc0;
        if kind.0 != layout || !reliable {
            continue;
        }
        for _ in 0..8 {
            let drawn = transport(vec![kind], 40).new_tree(&mut runner);
            let mut transport = drawn.expect("a packet").current();
            if let (Layout::Homa, true) = (layout, layout.law_words(kind.1) > 0) {
                make_homa(&mut transport);
            }
            let envelope = envelope().new_tree(&mut runner).expect("an envelope").current();
            let payload: Vec<u8> = (1..=transport.header.payload.to_le_bytes()[0]).collect();
            let packet = Packet { envelope, transport, payload: &payload };
            let mut frame = vec![0; packet.len()];
            packet.emit(&mut frame).expect("a packet that can be sent");
            let length = u32::try_from(frame.len()).expect("short");
            for word in [0, 0, length, length] {
                octets.extend(word.to_le_bytes());
            }
            octets.extend(&frame);
            all.push(fields(&packet));
        }
    }
    std::fs::write(path, octets).expect("a capture");
    all
}

/// Makes random words a packet of the type that the opcode names.
fn make_homa(transport: &mut Transport) {
    let opcode = transport.header.opcode.0;
    let packet_type = opcode.checked_sub(0xc0).unwrap_or(0x10);
    let words = transport.words.as_mut_slice();
    words[0] = u32::from(packet_type) << 24 | words[0] & 0x7_ffff;
    if packet_type == 0x18 {
        words[0] = words[0] & 0xffff_0000 | (words[0] % 6);
    }
}

/// What the dissector must find in `packet`.
fn fields(packet: &Packet<'_>) -> Fields {
    let Transport { header, layout, words } = &packet.transport;
    let mut found = Fields::new();
    let mut put = |name, value: u64| found.entry(name).or_default().push(value);
    let flag = |flag| u64::from(header.flags.has(flag));
    put("opcode", header.opcode.0.into());
    put("qpn", header.dest_qpn.get().into());
    put("psn", header.psn.get().into());
    put("solicited", flag(Flags::SOLICITED));
    put("fecn", flag(Flags::FECN));
    put("becn", flag(Flags::BECN));
    put("ack_request", flag(Flags::ACK_REQUEST));
    put("pad", u64::from(header.payload.wrapping_neg() % 4));
    let shape = header.opcode.shape();
    if shape.has(Shape::AETH) {
        put("aeth.syndrome", header.aeth().syndrome.into());
        put("aeth.msn", header.aeth().msn.into());
    }
    if shape.has(Shape::ATOMIC) {
        put("atomic.va", header.atomic().va);
        put("atomic.rkey", header.atomic().rkey.into());
        put("atomic.swap_or_add", header.atomic().swap_or_add);
        put("atomic.compare", header.atomic().compare);
    }
    if shape.has(Shape::ATOMIC_ACK) {
        put("atomic.original", header.atomic_ack());
    }
    if shape.has(Shape::IMMEDIATE) || shape.has(Shape::INVALIDATE) {
        let name = if shape.has(Shape::IMMEDIATE) { "immediate" } else { "invalidate" };
        put(name, header.immediate().into());
    }
    let overtaking = !matches!(layout, Layout::Standard | Layout::Cc(_));
    if shape.has(Shape::RETH) || shape.has(Shape::WRITE) && overtaking {
        put("reth.va", header.reth().va);
        put("reth.rkey", header.reth().rkey.into());
        if shape.has(Shape::RETH) || *layout != Layout::Srnic {
            put("reth.length", header.reth().length.into());
        }
    }
    match layout {
        Layout::Homa if !words.as_slice().is_empty() => homa(header, words, &mut put),
        Layout::Cc(cc) => {
            if let Some(time) = cc.time(words) {
                put("cc.sent", time.sent_ns.into());
                put("cc.echoed", time.echo_ns.into());
            }
            if let Some(stack) = cc.int(words) {
                put("cc.hops", stack.crossed().into());
                for hop in stack.hops() {
                    put("cc.hop.time", hop.time_ns.into());
                    put("cc.hop.sent", u64::from(hop.bytes_128) * 128);
                    put("cc.hop.queue", u64::from(hop.queue_80) * 80);
                }
            }
            for word in cc.own(words) {
                put("cc.word", (*word).into());
            }
        }
        Layout::Irn | Layout::Srnic | Layout::Ndp => in_header(header, *layout, &mut put),
        Layout::Standard | Layout::Homa => {}
    }
    found
}

/// The words that layouts `irn`, `srnic` and `ndp` keep in the header.
fn in_header(header: &Header, layout: Layout, put: &mut impl FnMut(&'static str, u64)) {
    let shape = header.opcode.shape();
    let acknowledges = [Opcode::ACKNOWLEDGE, Opcode::READ_ACKNOWLEDGE].contains(&header.opcode);
    if layout == Layout::Srnic {
        if !shape.has(Shape::ATOMIC) && !shape.has(Shape::ATOMIC_ACK) {
            let position = header.request_position();
            put("srnic.ssn", position.ssn.into());
            put("srnic.psn_offset", position.psn_offset.into());
            put("srnic.msn", position.msn.into());
            if acknowledges {
                put("srnic.echoed_psn", header.echoed_psn().get().into());
            }
        }
        return;
    }
    if shape.has(Shape::SEND) || shape.has(Shape::WRITE) && shape.has(Shape::IMMEDIATE) {
        put("ssn", header.send_position().ssn.into());
        if shape.has(Shape::SEND) {
            put("offset", header.send_position().offset.into());
        }
    }
    if layout == Layout::Irn {
        if acknowledges {
            put("trigger", header.trigger().get().into());
        }
        return;
    }
    put("ndp.trimmed", u64::from(header.flags.has(Flags::TRIMMED)));
    put("ndp.first_window", u64::from(header.flags.has(Flags::FIRST_WINDOW)));
    put("ndp.drained", u64::from(header.flags.has(Flags::DRAINED)));
    put("ndp.returned", u64::from(header.flags.has(Flags::RETURNED)));
    let responds = shape.has(Shape::RESPONSE) && shape.has(Shape::PAYLOAD);
    if shape.has(Shape::SEND) || shape.has(Shape::WRITE) || responds {
        put("ndp.source_qp", header.source_qpn().get().into());
    }
    if acknowledges || header.opcode == Opcode::PULL {
        put("ndp.pull_counter", header.pull().counter.into());
        put("ndp.expected_psn", header.pull().expected.get().into());
    }
}

fn homa(header: &Header, words: &LayoutWords, put: &mut impl FnMut(&'static str, u64)) {
    let homa = Homa::decode(header, words).expect("words that fit the opcode");
    put("homa.type", homa.packet_type().into());
    put("homa.rpc", homa.rpc);
    match homa.body {
        HomaBody::Data { length, offset, incoming, retransmit, number } => {
            put("homa.message_length", length.into());
            put("homa.offset", offset.into());
            put("homa.incoming", incoming.into());
            put("homa.retransmit", retransmit.into());
            put("homa.number", number.into());
        }
        HomaBody::Grant { offset, priority, resend_all } => {
            put("homa.granted", offset.into());
            put("homa.priority", priority.into());
            put("homa.resend_all", resend_all.into());
        }
        HomaBody::Resend { offset, length, priority } => {
            put("homa.wanted", offset.into());
            put("homa.wanted_length", length.into());
            put("homa.priority", priority.into());
        }
        HomaBody::Cutoffs { octets, version } => {
            put("homa.cutoffs_version", version.into());
            octets.iter().for_each(|octets| put("homa.cutoff", (*octets).into()));
        }
        HomaBody::Ack { count, others } => {
            put("homa.acked_count", count.into());
            others[..count.into()].iter().for_each(|other| put("homa.acked", *other));
        }
        HomaBody::RpcUnknown | HomaBody::Busy | HomaBody::Freeze | HomaBody::NeedAck => {}
    }
}
