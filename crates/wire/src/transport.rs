//! What a UDP datagram of RoCEv2 carries: BTH, layout words, extension headers, payload, pad and ICRC.

use crate::bth::{
    AethView, AtomicAckEthView, AtomicEthView, BthView, CnpView, DEFAULT_PKEY, DethView, ImmediateView,
    RethView, ShortRethView,
};
use crate::icrc::{ICRC_LEN, icrc_of_payload};
use crate::ip::Ip;
use crate::layout::{Layout, LayoutWords, RethForm, ndp};
use crate::octets::Writer;
use crate::opcode::Shape;
use crate::syndrome::Syndrome;
use crate::{Flags, Header, PacketError};

/// The most payload that a packet carries, the largest path MTU (IBTA Vol 1 §9.2).
pub const PAYLOAD_MAX: usize = 4096;

/// The transport headers of one packet in its queue pair's layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// BTH and extension headers.
    pub header: Header,
    /// The layout of the queue pair.
    pub layout: Layout,
    /// The law's words, as many as [`Layout::law_words`] says.
    pub words: LayoutWords,
}

impl Transport {
    /// A packet in the standard layout.
    pub const fn standard(header: Header) -> Self {
        Self { header, layout: Layout::Standard, words: LayoutWords::NONE }
    }

    /// Octets from BTH to ICRC.
    pub const fn len(&self) -> usize {
        let Header { opcode, payload, .. } = self.header;
        BthView::LEN + self.layout.extension_len(opcode) + (payload as usize).next_multiple_of(4) + ICRC_LEN
    }

    /// Always false: every packet has a BTH.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Parses `octets`, all that a UDP datagram carries, as a packet in `layout`; gives it and its payload.
    ///
    /// The ICRC is not judged: that takes the IP header. [`crate::Packet::parse`] does it, or [`crate::icrc()`].
    ///
    /// # Errors
    /// [`PacketError`] says what was seen and what was expected. Pad octets and reserved bits are not judged.
    #[expect(clippy::cast_possible_truncation, reason = "at most 4096, or it is refused")]
    pub fn parse(octets: &[u8], layout: Layout) -> Result<(Self, &[u8]), PacketError> {
        let (bth, _) = BthView::split(octets)?;
        judge(&bth, layout)?;
        let opcode = bth.opcode();
        let headers = BthView::LEN + layout.extension_len(opcode);
        let need = headers + ICRC_LEN;
        let body = octets.len().checked_sub(need).and_then(|padded| octets.get(headers..headers + padded));
        let body = body.ok_or(PacketError::Truncated { got: octets.len(), need })?;
        if !body.len().is_multiple_of(4) {
            return Err(PacketError::Alignment { got: body.len(), need: 4 });
        }
        let pad = usize::from(bth.pad());
        let payload = body.len().checked_sub(pad).and_then(|len| body.get(..len));
        let payload = payload.ok_or(PacketError::Pad { got: pad, need: body.len() })?;

        let mut header = Header::new(opcode, bth.dest_qpn(), bth.psn());
        header.flags = bth.flags();
        header.payload = payload.len().min(PAYLOAD_MAX + 1) as u16;
        let mut transport = Self { header, layout, words: LayoutWords::NONE };
        transport.read_extensions(&octets[BthView::LEN..headers])?;
        transport.check(payload.len())?;
        Ok((transport, payload))
    }

    /// Writes BTH to ICRC of a packet from `ip` and `source_port` into the front of `buffer`; gives their number.
    ///
    /// `fill` is called once with the place of the payload, [`Header::payload`] octets, and writes all of it.
    ///
    /// # Errors
    /// [`PacketError`] when the buffer is too small or the packet is one that could not be parsed; the buffer is
    /// then unchanged.
    pub fn emit_with(
        &self,
        ip: &Ip,
        source_port: u16,
        buffer: &mut [u8],
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<usize, PacketError> {
        let payload = usize::from(self.header.payload);
        self.check(payload)?;
        let len = self.len();
        let got = buffer.len();
        let octets = buffer.get_mut(..len).ok_or(PacketError::Buffer { got, need: len })?;
        let pad = payload.next_multiple_of(4) - payload;
        let mut writer = Writer::new(octets);
        self.write_bth(&mut writer, pad);
        self.write_extensions(&mut writer);
        fill(writer.reserve(payload));
        writer.reserve(pad).fill(0);

        let (covered, place) = octets.split_at_mut(len - ICRC_LEN);
        let cc = self.layout.rewritable_len(self.header.opcode);
        let icrc = icrc_of_payload(ip, source_port, covered, cc)?;
        place.copy_from_slice(&icrc.to_le_bytes());
        Ok(len)
    }

    /// Writes BTH, layout words and extension headers alone into the front of `buffer`, for who sends the payload from
    /// where it lies; gives their octets.
    ///
    /// # Errors
    /// As [`emit_with`](Self::emit_with).
    pub fn emit_headers(&self, buffer: &mut [u8]) -> Result<usize, PacketError> {
        let payload = usize::from(self.header.payload);
        self.check(payload)?;
        let need = BthView::LEN + self.layout.extension_len(self.header.opcode);
        let got = buffer.len();
        let octets = buffer.get_mut(..need).ok_or(PacketError::Buffer { got, need })?;
        let mut writer = Writer::new(octets);
        self.write_bth(&mut writer, payload.next_multiple_of(4) - payload);
        self.write_extensions(&mut writer);
        Ok(need)
    }

    /// What no packet may be, arriving or leaving.
    pub(crate) fn check(&self, payload: usize) -> Result<(), PacketError> {
        let Header { opcode, .. } = self.header;
        if !self.layout.permits(opcode) {
            return Err(PacketError::Opcode { got: opcode.0 });
        }
        let shape = opcode.shape();
        let most = if shape.has(Shape::PAYLOAD) { PAYLOAD_MAX } else { 0 };
        if payload > most {
            return Err(PacketError::Payload { got: payload, need: most });
        }
        let syndrome = self.header.aeth().syndrome;
        if shape.has(Shape::AETH) && Syndrome::from_u8(syndrome).is_none() {
            return Err(PacketError::Syndrome { got: syndrome });
        }
        let (got, need) = (self.words.as_slice().len(), self.layout.law_words(opcode));
        if got != need {
            return Err(PacketError::Words { got, need });
        }
        Ok(())
    }

    fn write_bth(&self, writer: &mut Writer<'_>, pad: usize) {
        let Header { dest_qpn, psn, opcode, flags, .. } = self.header;
        let bit = |flag, bit: u32| u32::from(flags.has(flag)) << bit;
        let pad = u32::try_from(pad).unwrap_or_default();
        let first = u32::from(opcode.0) << 24 | bit(Flags::SOLICITED, 23) | pad << 20;
        writer.put32(first | u32::from(DEFAULT_PKEY));
        writer.put32(bit(Flags::FECN, 31) | bit(Flags::BECN, 30) | dest_qpn.get());
        writer.put32(bit(Flags::ACK_REQUEST, 31) | psn.get());
    }

    fn write_extensions(&self, writer: &mut Writer<'_>) {
        let Self { header, layout, words } = self;
        let shape = header.opcode.shape();
        if layout.has_flag_word(header.opcode) {
            writer.put32(ndp::flag_word(header));
        }
        for word in header.layout_words().iter().take(layout.header_words(header.opcode)) {
            writer.put32(*word);
        }
        for word in words.as_slice() {
            writer.put32(*word);
        }
        if shape.has(Shape::DATAGRAM) {
            let deth = header.deth();
            writer.put32(deth.q_key);
            writer.put32(deth.source_qpn.get());
        }
        let (reth, form) = (header.reth(), layout.reth(header.opcode));
        if form != RethForm::None {
            writer.put64(reth.va);
            writer.put32(reth.rkey);
        }
        if form == RethForm::Full {
            writer.put32(reth.length);
        }
        if shape.has(Shape::ATOMIC) {
            let atomic = header.atomic();
            writer.put64(atomic.va);
            writer.put32(atomic.rkey);
            writer.put64(atomic.swap_or_add);
            writer.put64(atomic.compare);
        }
        if shape.has(Shape::AETH) {
            let aeth = header.aeth();
            writer.put32(u32::from(aeth.syndrome) << 24 | aeth.msn);
        }
        if shape.has(Shape::ATOMIC_ACK) {
            writer.put64(header.atomic_ack());
        }
        if shape.has(Shape::IMMEDIATE) || shape.has(Shape::INVALIDATE) {
            writer.put32(header.immediate());
        }
        if shape.has(Shape::NOTIFICATION) {
            writer.put(&[0; CnpView::LEN]);
        }
    }

    /// Reads what [`Self::write_extensions`] wrote, in the same order.
    fn read_extensions(&mut self, octets: &[u8]) -> Result<(), PacketError> {
        let Self { header, layout, words } = self;
        let opcode = header.opcode;
        let shape = opcode.shape();
        let mut rest = octets;
        if layout.has_flag_word(opcode) {
            ndp::take_flag_word(header, word(&mut rest)?);
        }
        for index in 0..layout.header_words(opcode) {
            header.set_layout_word(index, word(&mut rest)?);
        }
        *words = LayoutWords::zeroed(layout.law_words(opcode));
        for place in words.as_mut_slice() {
            *place = word(&mut rest)?;
        }
        if shape.has(Shape::DATAGRAM) {
            let (view, after) = DethView::split(rest)?;
            header.set_deth(view.get());
            rest = after;
        }
        match layout.reth(opcode) {
            RethForm::None => {}
            RethForm::Short => {
                let (view, after) = ShortRethView::split(rest)?;
                header.set_reth(view.get());
                rest = after;
            }
            RethForm::Full => {
                let (view, after) = RethView::split(rest)?;
                header.set_reth(view.get());
                rest = after;
            }
        }
        if shape.has(Shape::ATOMIC) {
            let (view, after) = AtomicEthView::split(rest)?;
            header.set_atomic(view.get());
            rest = after;
        }
        if shape.has(Shape::AETH) {
            let (view, after) = AethView::split(rest)?;
            header.set_aeth(view.get());
            rest = after;
        }
        if shape.has(Shape::ATOMIC_ACK) {
            let (view, after) = AtomicAckEthView::split(rest)?;
            header.set_atomic_ack(view.original());
            rest = after;
        }
        if shape.has(Shape::IMMEDIATE) || shape.has(Shape::INVALIDATE) {
            let (view, _) = ImmediateView::split(rest)?;
            header.set_immediate(view.value());
        }
        Ok(())
    }
}

/// What a BTH must say before anything behind it can be read.
fn judge(bth: &BthView<'_>, layout: Layout) -> Result<(), PacketError> {
    if bth.version() != 0 {
        return Err(PacketError::TransportVersion { got: bth.version(), need: 0 });
    }
    if bth.pkey() & 0x7fff != DEFAULT_PKEY & 0x7fff {
        return Err(PacketError::Partition { got: bth.pkey(), need: DEFAULT_PKEY });
    }
    if !layout.permits(bth.opcode()) {
        return Err(PacketError::Opcode { got: bth.opcode().0 });
    }
    Ok(())
}

/// Takes a word off the front of `rest`.
fn word(rest: &mut &[u8]) -> Result<u32, PacketError> {
    let (octets, after) =
        rest.split_first_chunk().ok_or(PacketError::Truncated { got: rest.len(), need: 4 })?;
    *rest = after;
    Ok(u32::from_be_bytes(*octets))
}
