//! RoCEv2 octets: Ethernet, IP, UDP, BTH and its extensions, the ICRC, and the optional header layouts.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`opcode`] | BTH opcodes and what each implies |
//! | [`header`] | the transport headers of a packet as values |
//! | [`syndrome`] | what an AETH says, and the RNR timer's code |
//! | [`bth`] | BTH and extension headers as views |
//! | [`ethernet`], [`pause`] | frames, 802.1Q tags, PFC PAUSE |
//! | [`ip`], [`udp`] | IPv4, IPv6, UDP |
//! | [`layout`] | what header layouts add, a file for each |
//! | [`transport`] | what a UDP datagram carries, BTH to ICRC |
//! | [`cm`] | management datagrams of connection set-up |
//! | [`packet`] | whole frames, to and from octets |
//! | [`error`], `octets` | why octets are no packet, and how fields are read from them |
//! | [`icrc`](mod@icrc) | the invariant CRC |
//! | [`size`] | how long a frame is, by table |
//!
//! A *view* reads a header's fields as they are, in place, and judges nothing. A *representation* ([`Header`],
//! [`Transport`], [`Packet`], …) holds only what makes sense, and what it emits it can parse. `docs/wire.md` draws all
//! of it.
//!
//! The feature `std` lets the ICRC look for the processor's carry-less multiplication, which needs an operating system;
//! without it the CRC goes by table.
#![no_std]
#![forbid(unsafe_code)]

pub mod bth;
pub mod cm;
pub mod error;
pub mod ethernet;
pub mod header;
pub mod icrc;
pub mod ip;
pub mod layout;
mod octets;
pub mod opcode;
pub mod packet;
pub mod pause;
pub mod size;
pub mod syndrome;
pub mod transport;
pub mod udp;

pub use bth::BthView;
pub use error::PacketError;
pub use ethernet::{Ethernet, Mac, Vlan, WIRE_OVERHEAD};
pub use header::{Aeth, AtomicEth, Deth, Flags, Header, Reth};
pub use icrc::icrc;
pub use ip::{Ecn, Ip, IpVersion, Ipv4, Ipv6};
pub use layout::int::{Hop, PathId};
pub use layout::{Cc, Layout, LayoutWords};
pub use opcode::{Opcode, Shape};
pub use packet::{Envelope, Packet, pattern, seal};
pub use pause::Pause;
pub use size::{frame_len, overhead};
pub use syndrome::{NakCode, Syndrome, rnr_delay, rnr_timer};
pub use transport::Transport;
