//! Priority-based PAUSE (PFC, IEEE 802.1Qbb, now IEEE 802.1Q clause 36).

use crate::PacketError;
use crate::ethernet::{self, Ethernet, EthernetView, FCS_LEN, MAC_CONTROL, MIN_FRAME, Mac};
use crate::octets::{Writer, be16, view};
use core::fmt;
use roci_units::{BitsPerSec, Span};

/// The group address of PAUSE frames, which no bridge forwards.
pub const PAUSE_DESTINATION: Mac = Mac([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);

/// MAC control opcode of priority-based PAUSE.
pub const PFC_OPCODE: u16 = 0x0101;

view! {
    /// MAC control opcode, class-enable vector and eight times, as they follow EtherType 0x8808.
    PauseView, 20
}

impl PauseView<'_> {
    /// MAC control opcode; 0x0101 for PFC.
    pub const fn opcode(&self) -> u16 {
        be16(self.0, 0)
    }

    /// Bit n is set where the time of priority n counts.
    pub const fn classes(&self) -> u16 {
        be16(self.0, 2)
    }

    /// For how long each priority is to pause, in quanta of 512 bit times.
    pub fn quanta(&self) -> [u16; 8] {
        core::array::from_fn(|priority| be16(self.0, 4 + 2 * priority))
    }
}

/// A PFC frame: stops or releases traffic classes at the other end of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The port that sends it.
    pub source: Mac,
    /// Bit n is set where the time of priority n counts.
    pub classes: u8,
    /// For how long each priority is to pause, in quanta of 512 bit times; 0 releases it.
    pub quanta: [u16; 8],
}

impl Pause {
    /// Octets of a PAUSE frame as emitted and captured, without frame check sequence.
    pub const LEN: usize = MIN_FRAME - FCS_LEN;

    /// How long `quanta` last on a link of `rate`, rounded up to a picosecond.
    pub const fn span(quanta: u16, rate: BitsPerSec) -> Span {
        rate.time_for(quanta as u64 * (512 / 8))
    }

    /// The PAUSE in `frame`, whose destination address and padding are not judged.
    ///
    /// # Errors
    /// [`PacketError`] when it is too short, no MAC control frame, or one with another opcode. Bits of the
    /// class-enable vector above the eighth are reserved and ignored.
    #[expect(clippy::cast_possible_truncation, reason = "the upper octet of the vector is reserved")]
    pub fn parse(frame: &[u8]) -> Result<Self, PacketError> {
        let (ethernet, rest) = EthernetView::split(frame)?;
        if ethernet.ether_type() != MAC_CONTROL {
            return Err(PacketError::EtherType { got: ethernet.ether_type() });
        }
        let (view, _) = PauseView::split(rest)?;
        if view.opcode() != PFC_OPCODE {
            return Err(PacketError::MacControl { got: view.opcode(), need: PFC_OPCODE });
        }
        Ok(Self { source: ethernet.source(), classes: view.classes() as u8, quanta: view.quanta() })
    }

    /// The frame's octets, padded to the shortest frame, without frame check sequence.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut frame = [0; Self::LEN];
        let mut writer = Writer::new(&mut frame);
        let addresses = Ethernet { destination: PAUSE_DESTINATION, source: self.source };
        ethernet::emit(&mut writer, addresses, None, MAC_CONTROL);
        writer.put16(PFC_OPCODE);
        writer.put16(u16::from(self.classes));
        for quanta in self.quanta {
            writer.put16(quanta);
        }
        frame
    }
}

impl fmt::Display for Pause {
    /// One line: `PAUSE from 02:00:00:00:00:01, priority 3 for 65535 quanta`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PAUSE from {}", self.source)?;
        for (priority, quanta) in self.quanta.iter().enumerate() {
            if self.classes >> priority & 1 == 1 {
                write!(f, ", priority {priority} for {quanta} quanta")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn its_octets_are_where_the_standard_draws_them() {
        let mut quanta = [0; 8];
        quanta[3] = 0xffff;
        let frame = Pause { source: Mac([2, 0, 0, 0, 0, 1]), classes: 8, quanta }.emit();
        assert_eq!(frame[..6], PAUSE_DESTINATION.0);
        assert_eq!(frame[12..18], [0x88, 0x08, 0x01, 0x01, 0x00, 0x08]);
        assert_eq!(frame[18 + 2 * 3..][..2], [0xff, 0xff]);
        assert_eq!(frame.len() + FCS_LEN, 64);
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        assert_eq!(Pause::span(1, BitsPerSec::from_gbps(100)), Span::from_ps(5_120));
    }

    #[test]
    fn another_mac_control_opcode_is_refused() {
        let mut frame = Pause::default().emit();
        frame[15] = 2;
        assert_eq!(Pause::parse(&frame), Err(PacketError::MacControl { got: 0x0102, need: 0x0101 }));
    }

    proptest! {
        #[test]
        fn what_it_emits_it_parses(source: [u8; 6], classes: u8, quanta: [u16; 8]) {
            let pause = Pause { source: Mac(source), classes, quanta };
            prop_assert_eq!(Pause::parse(&pause.emit()), Ok(pause));
        }
    }
}
