//! Path MTUs.

/// The payload of a full packet: IBTA's five path MTUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Mtu {
    /// 256 octets.
    Mtu256 = 256,
    /// 512 octets.
    Mtu512 = 512,
    /// 1024 octets.
    Mtu1024 = 1024,
    /// 2048 octets.
    Mtu2048 = 2048,
    /// 4096 octets.
    Mtu4096 = 4096,
}

impl Mtu {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mtu256, Self::Mtu512, Self::Mtu1024, Self::Mtu2048, Self::Mtu4096];
    /// The most octets besides payload in an IP datagram of standard layout: IPv6, UDP, BTH, RETH, immediate data, ICRC.
    pub(crate) const AROUND: u32 = 40 + 8 + 12 + 16 + 4 + 4;

    /// Octets.
    pub const fn octets(self) -> u16 {
        self as u16
    }

    /// The largest that goes through a link whose IP datagrams have at most `link` octets; the smallest if none does.
    pub fn within(link: u32) -> Self {
        let fits = |mtu: &Self| u32::from(mtu.octets()) + Self::AROUND <= link;
        Self::ALL.into_iter().rev().find(fits).unwrap_or(Self::Mtu256)
    }

    /// That with so many octets.
    pub fn from_octets(octets: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.octets() == octets)
    }
}
