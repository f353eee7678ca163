//! Why octets are not a packet, or a packet cannot become octets.

/// Why an arriving frame was refused, or a packet could not be emitted.
///
/// It is counted and answered, never fatal. Each variant names what was seen (`got`) and what was expected
/// (`need`), in octets where it is a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The octets end before the headers do.
    #[error("{got} B, but the header takes {need} B")]
    Truncated {
        /// Octets that there are.
        got: usize,
        /// Octets that the header takes.
        need: usize,
    },
    /// The frame is neither IPv4 nor IPv6, with at most one VLAN tag; or not MAC control where that was asked.
    #[error("EtherType {got:#06x}")]
    EtherType {
        /// The EtherType.
        got: u16,
    },
    /// The version in the IP header is not the one that the EtherType announced.
    #[error("IP version {got}, but the EtherType says {need}")]
    IpVersion {
        /// The header's version.
        got: u8,
        /// The EtherType's.
        need: u8,
    },
    /// The IPv4 header has options, which RoCEv2 does not use (IBTA Annex A17), or is too short.
    #[error("IPv4 header of {got} words, not {need}")]
    IpHeaderLength {
        /// IHL, in words of 32 bits.
        got: u8,
        /// Always 5.
        need: u8,
    },
    /// The length that IP claims does not fit what is there or what it must hold.
    #[error("IP claims {got} B of {need} B")]
    IpLength {
        /// What the header claims.
        got: usize,
        /// What is there, or the least that it must hold.
        need: usize,
    },
    /// The IPv4 header checksum is wrong.
    #[error("IPv4 checksum {got:#06x}, not {need:#06x}")]
    IpChecksum {
        /// The header's.
        got: u16,
        /// The right one.
        need: u16,
    },
    /// The datagram is a fragment; RoCEv2 forbids fragmentation.
    #[error("fragment (flags and offset {got:#06x})")]
    Fragment {
        /// The word of flags and fragment offset.
        got: u16,
    },
    /// The IP payload is not UDP.
    #[error("IP protocol {got}, not {need}")]
    Protocol {
        /// Protocol or next header.
        got: u8,
        /// Always 17.
        need: u8,
    },
    /// The UDP length is not that of the IP payload.
    #[error("UDP length {got}, but IP carries {need} B")]
    UdpLength {
        /// The header's.
        got: usize,
        /// What IP carries.
        need: usize,
    },
    /// The UDP destination port is not RoCEv2's.
    #[error("UDP port {got}, not {need}")]
    UdpPort {
        /// The header's.
        got: u16,
        /// Always 4791.
        need: u16,
    },
    /// The BTH's transport header version.
    #[error("transport version {got}, not {need}")]
    TransportVersion {
        /// The header's.
        got: u8,
        /// Always 0.
        need: u8,
    },
    /// The partition key is not the default one, whose lower 15 bits are ones.
    #[error("partition key {got:#06x}, not {need:#06x}")]
    Partition {
        /// The header's.
        got: u16,
        /// Always 0xffff; 0x7fff (limited member) is accepted too.
        need: u16,
    },
    /// The opcode is unknown, or none that the queue pair's layout defines.
    #[error("opcode {got:#04x} is not defined in this header layout")]
    Opcode {
        /// The opcode's octet.
        got: u8,
    },
    /// The AETH syndrome is a reserved one.
    #[error("reserved AETH syndrome {got:#04x}")]
    Syndrome {
        /// The syndrome's octet.
        got: u8,
    },
    /// A management datagram of another class, version, method or kind than those of connection set-up.
    #[error("management datagram {got:#014x} is none of connection set-up")]
    Management {
        /// Base version, class, class version, method and attribute.
        got: u64,
    },
    /// Payload and pad together are not a whole number of words.
    #[error("{got} B of payload and pad; it must be a multiple of {need}")]
    Alignment {
        /// Octets between the headers and the ICRC.
        got: usize,
        /// Always 4.
        need: usize,
    },
    /// The pad count exceeds what there is.
    #[error("pad count {got}, but only {need} B of payload and pad")]
    Pad {
        /// The BTH's pad count.
        got: usize,
        /// Octets between the headers and the ICRC.
        need: usize,
    },
    /// More payload than the opcode may carry: 4096 octets, or none.
    #[error("{got} B of payload, at most {need} B with this opcode")]
    Payload {
        /// Octets of payload.
        got: usize,
        /// The most that it may be.
        need: usize,
    },
    /// On emission: the payload given is not as long as the header says.
    #[error("{got} B of payload given, but the header says {need} B")]
    PayloadLength {
        /// Octets given.
        got: usize,
        /// Octets that the header announces.
        need: usize,
    },
    /// On emission: the layout takes another number of law words.
    #[error("{got} law words given, but the layout takes {need}")]
    Words {
        /// Words given.
        got: usize,
        /// Words that the layout takes with this opcode.
        need: usize,
    },
    /// On emission: the buffer is too small.
    #[error("buffer of {got} B, but the packet takes {need} B")]
    Buffer {
        /// Octets that there are.
        got: usize,
        /// Octets that the packet takes.
        need: usize,
    },
    /// The ICRC does not match: some octet was corrupted on the way.
    #[error("ICRC {got:#010x}, not {need:#010x}")]
    Icrc {
        /// The packet's.
        got: u32,
        /// The right one.
        need: u32,
    },
    /// A MAC control frame that is no priority-based PAUSE.
    #[error("MAC control opcode {got:#06x}, not {need:#06x}")]
    MacControl {
        /// The frame's opcode.
        got: u16,
        /// Always 0x0101.
        need: u16,
    },
    /// A Homa packet type other than 0x10 to 0x18, or one that carries another number of words.
    #[error("Homa packet type {got:#04x} in {words} words")]
    Homa {
        /// The type octet.
        got: u8,
        /// Words that there are.
        words: usize,
    },
}
