//! Which opcodes the packets of a request have.

use crate::queue::{Kind, SendWork, flag};
use crate::transmit::Plan;
use roci_wire::Opcode;

/// The opcodes of the first packet that was planned of a request, of those between, and of the last.
pub(crate) fn request_opcodes(work: &SendWork, plan: &Plan, lone: bool) -> (Opcode, Opcode, Opcode) {
    let ends = plan.at.wrapping_add(u32::from(plan.packets)) == work.end;
    let (first, last) = opcodes(work, plan.at == work.first, ends, plan.packets, lone);
    let middle = match work.kind {
        Kind::Write if lone => Opcode::WRITE_ONLY,
        Kind::Write => Opcode::WRITE_MIDDLE,
        _ => Opcode::SEND_MIDDLE,
    };
    (first, middle, last)
}

/// The opcodes of the first and the last packet of a run that `begins` or `ends` its message, or each of
/// whose packets is a `lone` one.
#[inline]
pub(crate) fn opcodes(
    work: &SendWork,
    begins: bool,
    ends: bool,
    packets: u16,
    lone: bool,
) -> (Opcode, Opcode) {
    let single = match work.kind {
        Kind::Read => Some(Opcode::READ_REQUEST),
        Kind::FetchAdd => Some(Opcode::FETCH_ADD),
        Kind::CompareSwap => Some(Opcode::COMPARE_SWAP),
        Kind::Datagram if work.has(flag::IMMEDIATE) => Some(Opcode::UD_SEND_ONLY_IMMEDIATE),
        Kind::Datagram => Some(Opcode::UD_SEND_ONLY),
        Kind::Send | Kind::Write => None,
    };
    if let Some(opcode) = single {
        return (opcode, opcode);
    }
    let table = match (work.kind, work.has(flag::IMMEDIATE), work.has(flag::INVALIDATE)) {
        (Kind::Write, true, _) => &WRITE_IMMEDIATE,
        (Kind::Write, false, _) => &WRITE,
        (_, true, _) => &SEND_IMMEDIATE,
        (_, _, true) => &SEND_INVALIDATE,
        _ => &SEND,
    };
    let one = packets == 1;
    if lone {
        return (Opcode::WRITE_ONLY, Opcode::WRITE_ONLY);
    }
    (
        table[usize::from(begins) << 1 | usize::from(ends && one)],
        table[usize::from(begins && one) << 1 | usize::from(ends)],
    )
}

/// Opcodes of a message's packets by "first" (2) and "last" (1).
type ByPlace = [Opcode; 4];
const SEND: ByPlace = [Opcode::SEND_MIDDLE, Opcode::SEND_LAST, Opcode::SEND_FIRST, Opcode::SEND_ONLY];
const SEND_IMMEDIATE: ByPlace =
    [Opcode::SEND_MIDDLE, Opcode::SEND_LAST_IMMEDIATE, Opcode::SEND_FIRST, Opcode::SEND_ONLY_IMMEDIATE];
const SEND_INVALIDATE: ByPlace =
    [Opcode::SEND_MIDDLE, Opcode::SEND_LAST_INVALIDATE, Opcode::SEND_FIRST, Opcode::SEND_ONLY_INVALIDATE];
const WRITE: ByPlace = [Opcode::WRITE_MIDDLE, Opcode::WRITE_LAST, Opcode::WRITE_FIRST, Opcode::WRITE_ONLY];
const WRITE_IMMEDIATE: ByPlace =
    [Opcode::WRITE_MIDDLE, Opcode::WRITE_LAST_IMMEDIATE, Opcode::WRITE_FIRST, Opcode::WRITE_ONLY_IMMEDIATE];
