//! How a queue pair's path names its peer: the host, and the flow that equal-cost paths are chosen by.

use roci_fabric::packet::HostId;

/// The engine keeps a path as 64 bits that it does not interpret; here they are a host and a flow hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The peer.
    pub host: HostId,
    /// See [`Packet::flow`](roci_fabric::packet::Packet::flow).
    pub flow: u32,
}

impl Path {
    /// The lowest bits, which the flow has ([`EngineConfig::flow_bits`](roci_transport::EngineConfig::flow_bits)).
    pub const FLOW_BITS: u8 = 32;

    /// As the engine keeps it.
    pub const fn pack(self) -> u64 {
        (self.host.0 as u64) << Self::FLOW_BITS | self.flow as u64
    }

    /// From what the engine gave back.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
    pub const fn unpack(path: u64) -> Self {
        Self { host: HostId((path >> Self::FLOW_BITS) as u16), flow: path as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_packing() {
        let path = Path { host: HostId(0xfffe), flow: 0xdead_beef };
        assert_eq!(Path::unpack(path.pack()), path);
    }
}
