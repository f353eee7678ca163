//! How an event stands in the registers.

use super::csr::{self, HEADER, HEADER_WORDS, HOPS_SHOWN, detail};
use crate::event::{Class, Event, Hop, Part};
use crate::fixed::nanos;
use crate::outcome::{Credit, Words};
use roci_hart::CsrBlock;
use roci_units::Instant;

/// Classes whose packets name a part of a message.
const PARTS: Class =
    Class::GRANT.with(Class::RESEND).with(Class::BUSY).with(Class::MESSAGE).with(Class::TURN);

/// The header words that name a part of a message, from the first on.
pub(super) const PART_WORDS: usize = 5;

/// Writes `event` into the registers, with `credit` as it stands on a link of `link_kbps`.
#[inline]
pub(super) fn deliver(
    block: &mut CsrBlock,
    event: &Event<'_>,
    credit: &Credit,
    link_kbps: u32,
    header_words: u8,
) {
    block[csr::EVENT] = event.class.0;
    block[csr::QPN] = event.qpn;
    block[csr::OPCODE] = event.class.0;
    block[csr::LENGTH] = match event.class {
        Class::PULL => event.pulled,
        Class::ACK if !event.hops.is_empty() => event.path(),
        _ => event.length,
    };
    block[csr::DETAIL] = flags(event);
    block[csr::NOW] = nanos(event.now);
    block[csr::SENT] = nanos(event.sent);
    block[csr::PEER_SENT] = event.peer_sent;
    block[csr::ECHOED] = event.echoed;
    block[csr::ACKED] = event.acked;
    block[csr::IN_FLIGHT] = event.in_flight;
    block[csr::ACKED_SEQUENCE] = event.acked_sequence;
    block[csr::NEXT_SEQUENCE] = event.next_sequence;
    block[csr::RATE] = credit.rate_kbps.min(link_kbps);
    block[csr::WINDOW] = credit.window;
    block[csr::TOKENS] = credit.tokens;
    let words = &mut block[HEADER..HEADER + HEADER_WORDS];
    let Part { message, message_length, offset, end, priority } = event.part;
    let part = [message, message_length, offset, end, priority.into()];
    if event.class.within(PARTS) {
        words[..PART_WORDS].copy_from_slice(&part);
    } else if !event.hops.is_empty() {
        show_hops(words, event.hops, 0);
    } else if !event.words.is_empty() {
        let count = event.words.len().min(HEADER_WORDS);
        words[..count].copy_from_slice(&event.words[..count]);
        words[count..].fill(0);
    } else if message_length != 0 {
        words[..PART_WORDS].copy_from_slice(&part);
    } else {
        words[..usize::from(header_words)].fill(0);
    }
}

#[inline]
fn flags(event: &Event<'_>) -> u32 {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    flag(event.ecn, detail::ECN)
        | flag(event.timeout, detail::TIMEOUT)
        | flag(event.drained, detail::DRAINED)
        | flag(event.sent != Instant::ZERO, detail::SENT_KNOWN)
        | flag(event.stamped, detail::STAMPED)
        | u32::from(event.timer & 3) << detail::TIMER
        | event.periods.min(csr::PERIODS_MAX) << detail::PERIODS
        | u32::from(if event.hops.is_empty() { event.hop_count } else { count(event.hops) }) << detail::HOPS
}

#[expect(clippy::cast_possible_truncation, reason = "bounded")]
fn count(hops: &[Hop]) -> u8 {
    hops.len().min(255) as u8
}

/// Shows the telemetry of the switches from `first` on.
pub(super) fn show_hops(words: &mut [u32], hops: &[Hop], first: usize) {
    words.fill(0);
    let shown = hops.iter().skip(first).take(HOPS_SHOWN);
    for (words, hop) in words.chunks_exact_mut(4).zip(shown) {
        words.copy_from_slice(&[hop.at_ns, hop.tx_bytes, hop.queue_bytes, hop.rate_kbps]);
    }
}

/// The header's words, to go with a packet.
#[inline]
pub(super) fn words(block: &CsrBlock, count: u8) -> Words {
    let mut words = Words { len: count, ..Words::default() };
    words.words.copy_from_slice(&block[HEADER..HEADER + HEADER_WORDS]);
    words.words[usize::from(count)..].fill(0);
    words
}

/// The part of a message that the header's words name.
pub(super) fn part(block: &CsrBlock) -> Part {
    let [message, message_length, offset, end, priority] =
        [0, 1, 2, 3, 4].map(|word: usize| block[HEADER + word]);
    let priority = priority.min(7) as u8;
    Part { message, message_length, offset, end, priority }
}
