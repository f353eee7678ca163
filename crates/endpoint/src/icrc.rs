//! The ICRC of one flow, computed from what its packets share, and the IPv4 identification that it betrays.
//!
//! The CRC is linear: what a field adds to it depends on the field and on its distance from the end alone. So the
//! CRC over eight octets of ones, IP and UDP header is that of the flow with all changing fields zero, and a table
//! look-up for each of them. And since a UDP socket cannot read the identification of what it received, the
//! identification is solved for: the difference between the ICRC that came and the one computed with a guess,
//! multiplied by x to the minus distance, is the difference between identification and guess in its lower 16 bits.
//! Its upper 16 bits are zero for an undamaged packet, which is the check that is left. Where the guess is right,
//! or where the IP header is seen, all 32 bits are checked.

use crate::io::fold;
use roci_wire::IpVersion;
use std::net::IpAddr;

/// The reversed polynomial of CRC-32.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// What a register of eight octets of ones before the packet covers.
const ROUTE: usize = 8;
const UDP: usize = 8;
/// Octets of the ICRC.
pub(crate) const ICRC_LEN: usize = 4;
/// Octets of a BTH.
pub(crate) const BTH_LEN: usize = 12;
const RETH_LEN: usize = 16;
/// The octet of the BTH that holds FECN and BECN.
const BTH_MARKS: usize = 4;

/// `TABLES[k][b]` is the register after octet `b` and `k` octets of zero.
static TABLES: [[u32; 256]; 8] = tables();

#[expect(clippy::cast_possible_truncation, reason = "octets")]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut octet = 0;
    while octet < 256 {
        let mut register = octet as u32;
        let mut bit = 0;
        while bit < 8 {
            register = if register & 1 == 1 { register >> 1 ^ POLYNOMIAL } else { register >> 1 };
            bit += 1;
        }
        tables[0][octet] = register;
        octet += 1;
    }
    let mut after = 1;
    while after < 8 {
        let mut octet = 0;
        while octet < 256 {
            let before = tables[after - 1][octet];
            tables[after][octet] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            octet += 1;
        }
        after += 1;
    }
    tables
}

/// What a 16-bit field adds to the CRC at the end of the UDP header, by its two octets.
struct Field([[u32; 256]; 2]);

impl Field {
    /// A field with `after` octets between it and the end of the UDP header.
    const fn new(after: usize) -> Self {
        let mut tables = [[0u32; 256]; 2];
        let mut octet = 0;
        while octet < 256 {
            let mut register = TABLES_CONST[0][octet];
            let mut step = 0;
            while step < after {
                register = register >> 8 ^ TABLES_CONST[0][(register & 0xff) as usize];
                step += 1;
            }
            tables[1][octet] = register;
            tables[0][octet] = register >> 8 ^ TABLES_CONST[0][(register & 0xff) as usize];
            octet += 1;
        }
        Self(tables)
    }

    #[inline]
    fn adds(&self, value: u16) -> u32 {
        let [high, low] = value.to_be_bytes();
        self.0[0][usize::from(high)] ^ self.0[1][usize::from(low)]
    }
}

const TABLES_CONST: [[u32; 256]; 8] = tables();

static V4_LENGTH: Field = Field::new(20 - 4 + UDP);
static V4_ID: Field = Field::new(20 - 6 + UDP);
static V6_LENGTH: Field = Field::new(40 - 6 + UDP);
static SOURCE_PORT: Field = Field::new(UDP - 2);
static UDP_LENGTH: Field = Field::new(UDP - 6);

/// What the ICRCs of all packets from one address to another share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// The CRC up to the end of the UDP header, with lengths, identification and source port zero.
    base: u32,
    version: IpVersion,
}

impl Flow {
    pub(crate) fn new(source: IpAddr, destination: IpAddr) -> Self {
        let mut octets = Vec::with_capacity(ROUTE + 40 + UDP);
        octets.extend([0xff; ROUTE]);
        let version = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                octets.extend([0x45, 0xff, 0, 0, 0, 0, 0x40, 0, 0xff, 17, 0xff, 0xff]);
                octets.extend(source.octets());
                octets.extend(destination.octets());
                IpVersion::V4
            }
            (source, destination) => {
                octets.extend([0x6f, 0xff, 0xff, 0xff, 0, 0, 17, 0xff]);
                octets.extend(as_v6(source).octets());
                octets.extend(as_v6(destination).octets());
                IpVersion::V6
            }
        };
        octets.extend([0, 0]);
        octets.extend(roci_wire::udp::ROCE_PORT.to_be_bytes());
        octets.extend([0, 0, 0xff, 0xff]);
        Self { base: crc32fast::hash(&octets), version }
    }

    /// The CRC up to the end of the UDP header of a packet with `carried` octets from BTH to ICRC and identification zero.
    fn head(&self, carried: usize, source_port: u16) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "a datagram has at most 65535 octets")]
        let udp = (carried + UDP) as u16;
        let common = self.base ^ SOURCE_PORT.adds(source_port) ^ UDP_LENGTH.adds(udp);
        match self.version {
            IpVersion::V4 => common ^ V4_LENGTH.adds(udp.wrapping_add(20)),
            IpVersion::V6 => common ^ V6_LENGTH.adds(udp),
        }
    }
}

/// The CRC up to the end of the UDP header, remembered for packets that differ in their identification alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heads {
    last: Option<(Flow, usize, u16)>,
    head: u32,
}

impl Heads {
    /// That of a packet of `flow` with `carried` octets from BTH to ICRC.
    #[inline]
    pub(crate) fn head(&mut self, flow: &Flow, carried: usize, id: u16, source_port: u16) -> u32 {
        if self.last != Some((*flow, carried, source_port)) {
            (self.last, self.head) = (Some((*flow, carried, source_port)), flow.head(carried, source_port));
        }
        match flow.version {
            IpVersion::V4 => self.head ^ V4_ID.adds(id),
            IpVersion::V6 => self.head,
        }
    }
}

fn as_v6(address: IpAddr) -> std::net::Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The register that was `mixed` with a word, after it.
#[inline]
fn after_word(mixed: u32) -> u32 {
    let octets = mixed.to_le_bytes();
    TABLES[3][usize::from(octets[0])]
        ^ TABLES[2][usize::from(octets[1])]
        ^ TABLES[1][usize::from(octets[2])]
        ^ TABLES[0][usize::from(octets[3])]
}

/// Goes on with `crc` over a few octets.
#[inline]
pub(crate) fn update_few(crc: u32, octets: &[u8]) -> u32 {
    let mut register = !crc;
    let (words, rest) = octets.as_chunks::<4>();
    for word in words {
        register = after_word(register ^ u32::from_le_bytes(*word));
    }
    for octet in rest {
        register = register >> 8 ^ TABLES[0][usize::from(register.to_le_bytes()[0] ^ octet)];
    }
    !register
}

/// Goes on with `crc` over payload.
#[inline]
pub(crate) fn update(crc: u32, octets: &[u8]) -> u32 {
    let (crc, octets) = fold::update(crc, octets);
    if octets.len() < 64 {
        return update_few(crc, octets);
    }
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(octets);
    hasher.finalize()
}

/// Goes on with `crc` over a packet's headers and payload; which of them count as ones is said below.
#[inline]
pub(crate) fn update_packet(crc: u32, headers: &[u8], cc: usize, payload: &[u8]) -> u32 {
    if cc == 0
        && let Some((crc, rest)) = fold::packet(crc, headers, payload)
    {
        return update_few(crc, rest);
    }
    update(update_headers(crc, headers, cc), payload)
}

/// The same, and copies the payload to `to`, which is as long.
#[inline]
pub(crate) fn copy_packet(crc: u32, headers: &[u8], cc: usize, payload: &[u8], to: &mut [u8]) -> u32 {
    if cc == 0
        && let Some((crc, rest)) = fold::copy_packet(crc, headers, payload, to)
    {
        let copied = payload.len() - rest.len();
        to[copied..].copy_from_slice(rest);
        return update_few(crc, rest);
    }
    to.copy_from_slice(payload);
    update(update_headers(crc, headers, cc), to)
}

/// Goes on with `crc` over a packet's headers from the BTH on; what switches may rewrite counts as ones: the octet
/// with the marks, and the `cc` octets behind the BTH.
#[inline]
fn update_headers(crc: u32, headers: &[u8], cc: usize) -> u32 {
    let Some((bth, rest)) = headers.split_first_chunk::<BTH_LEN>() else { return crc };
    // In registers: a copy with one octet changed would have to reach the cache before its words could be read.
    let (words, _) = bth.as_chunks::<4>();
    let mut register = !crc;
    for (index, word) in words.iter().enumerate() {
        let marks = if index == BTH_MARKS / 4 { 0xff << (8 * (BTH_MARKS % 4)) } else { 0 };
        register = after_word(register ^ (u32::from_le_bytes(*word) | marks));
    }
    let mut crc = !register;
    let (masked, rest) = rest.split_at(cc.min(rest.len()));
    for _ in masked {
        crc = update_few(crc, &[0xff]);
    }
    update_few(crc, rest)
}

/// What is known of a received packet's identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    /// It was seen in the IP header, or there is none.
    Seen(u16),
    /// It was not; this is a guess.
    Guess(u16),
}

/// Judges the ICRC of what a datagram carried, BTH to ICRC; gives the identification.
///
/// `solver` remembers the constants of the last length.
pub(crate) fn judge(
    flow: &Flow,
    id: Id,
    source_port: u16,
    carried: &[u8],
    cc: usize,
    solver: &mut Solver,
) -> Option<u16> {
    let (covered, stored) = carried.split_last_chunk::<ICRC_LEN>()?;
    let (Id::Seen(guess) | Id::Guess(guess)) = id;
    // What is left beyond whole blocks may be a RETH; whatever it is, headers or payload, counts alike.
    let beyond = if cc == 0 && covered.len() % 64 == BTH_LEN + RETH_LEN { RETH_LEN } else { 0 };
    let (headers, payload) = covered.split_at_checked(BTH_LEN + cc + beyond)?;
    let head = solver.heads.head(flow, carried.len(), guess, source_port);
    let crc = update_packet(head, headers, cc, payload);
    let difference = crc ^ u32::from_le_bytes(*stored);
    if difference == 0 {
        return Some(guess);
    }
    match (id, flow.version) {
        (Id::Guess(_), IpVersion::V4) => {
            let [first, second, 0, 0] = solver.solve(difference, 20 - 6 + UDP + covered.len()).to_le_bytes()
            else {
                return None;
            };
            Some(guess ^ u16::from_be_bytes([first, second]))
        }
        _ => None,
    }
}

/// Finds which two octets, followed by so many others, make a difference in the CRC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solver {
    heads: Heads,
    after: usize,
    inverse: u32,
}

impl Default for Solver {
    fn default() -> Self {
        Self { heads: Heads::default(), after: 0, inverse: power(u64::from(u32::MAX) - 16) }
    }
}

impl Solver {
    /// The two octets in the lower half, in the order of the packet; anything in the upper half means that no two do.
    fn solve(&mut self, difference: u32, after: usize) -> u32 {
        if self.after != after {
            let exponent = (8 * after as u64 + 16) % u64::from(u32::MAX);
            (self.after, self.inverse) = (after, power(u64::from(u32::MAX) - exponent));
        }
        multiply(difference, self.inverse)
    }
}

/// The product of two polynomials modulo CRC-32's, lowest power in the highest bit.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 32);
    while bit > 0 {
        bit -= 1;
        product ^= b & 0u32.wrapping_sub(a >> bit & 1);
        b = b >> 1 ^ POLYNOMIAL & 0u32.wrapping_sub(b & 1);
    }
    product
}

/// x to the power of `exponent`.
pub(crate) const fn power(mut exponent: u64) -> u32 {
    let (mut result, mut square) = (1 << 31, 1 << 30);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "of test values")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use roci_units::{Psn, Qpn};
    use roci_wire::{Ecn, Flags, Header, Ip, Ipv4, Ipv6, Opcode, Transport};

    fn ip(source: IpAddr, destination: IpAddr, id: u16) -> Ip {
        let ecn = Ecn::Ect0;
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Ip::V4(Ipv4 { source, destination, dscp: 5, ecn, ttl: 64, id })
            }
            (source, destination) => {
                let (source, destination) = (as_v6(source), as_v6(destination));
                Ip::V6(Ipv6 { source, destination, dscp: 5, ecn, hop_limit: 64, flow_label: 7 })
            }
        }
    }

    fn addresses(v6: bool, a: u32, b: u32) -> (IpAddr, IpAddr) {
        if v6 {
            let at = |n: u32| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, (n >> 16) as u16, n as u16]);
            (at(a), at(b))
        } else {
            (IpAddr::from(a.to_be_bytes()), IpAddr::from(b.to_be_bytes()))
        }
    }

    fn packet(source: IpAddr, destination: IpAddr, id: u16, port: u16, payload: &[u8]) -> Vec<u8> {
        let mut header = Header::new(Opcode::SEND_ONLY, Qpn::new(0x1234), Psn::new(77));
        header.flags = Flags::BECN.with(Flags::ACK_REQUEST);
        header.payload = payload.len() as u16;
        let transport = Transport::standard(header);
        let mut octets = vec![0; transport.len()];
        let ip = ip(source, destination, id);
        transport.emit_with(&ip, port, &mut octets, |place| place.copy_from_slice(payload)).unwrap();
        octets
    }

    proptest! {
        #[test]
        fn the_icrc_of_the_wire_is_accepted_and_its_identification_found(
            v6: bool, a: u32, b: u32, id: u16, guess: u16, port: u16,
            payload in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let (source, destination) = addresses(v6, a, b);
            let octets = packet(source, destination, id, port, &payload);
            let flow = Flow::new(source, destination);
            let mut solver = Solver::default();
            prop_assert_eq!(judge(&flow, Id::Seen(id), port, &octets, 0, &mut solver), Some(id));
            let found = judge(&flow, Id::Guess(guess), port, &octets, 0, &mut solver);
            prop_assert_eq!(found, Some(if v6 { guess } else { id }));
            if !v6 && guess != id {
                prop_assert_eq!(judge(&flow, Id::Seen(guess), port, &octets, 0, &mut solver), None);
            }
        }

        #[test]
        fn a_damaged_octet_is_found_out_where_the_identification_is_seen(
            id: u16, at in 0usize..1044, damage in 1u8..,
        ) {
            let (source, destination) = addresses(false, 1, 2);
            let mut octets = packet(source, destination, id, 4791, &[0x5a; 1024]);
            let at = if at == BTH_MARKS { 5 } else { at % octets.len() };
            octets[at] ^= damage;
            let flow = Flow::new(source, destination);
            prop_assert_eq!(judge(&flow, Id::Seen(id), 4791, &octets, 0, &mut Solver::default()), None);
        }
    }

    #[test]
    fn of_damaged_packets_few_pass_for_another_identification() {
        let (source, destination) = addresses(false, 1, 2);
        let sound = packet(source, destination, 9, 4791, &[0x5a; 1024]);
        let flow = Flow::new(source, destination);
        let mut solver = Solver::default();
        let mut passed = 0;
        for case in 0..20_000usize {
            let mut octets = sound.clone();
            let at = 5 + case % (octets.len() - 5);
            octets[at] ^= (case * 31 % 255 + 1) as u8;
            passed += usize::from(judge(&flow, Id::Guess(0), 4791, &octets, 0, &mut solver).is_some());
        }
        assert!(passed < 20, "{passed} of 20000, where sixteen bits of check let one in 65536 through");
    }
}
