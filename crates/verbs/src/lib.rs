//! The C interfaces of libibverbs and librdmacm over the endpoint: programs that were written for RDMA NICs, as they were compiled, run without one.
//!
//! ```sh
//! LD_PRELOAD=libroci_verbs.so ib_write_bw             # and at the other end: LD_PRELOAD=… ib_write_bw HOST
//! ```
//!
//! Each address of this host is a device with one port and one GID. RC, UC and UD, shared receive queues, completion channels, asynchronous
//! events, and both ways to post (`ibv_post_send`, `ibv_wr_start`). `docs/guide/verbs.md` says what is not there.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`abi`] | structures and numbers |
//! | [`device`] | devices, ports, GIDs, contexts |
//! | [`memory`] | protection domains, memory regions, address handles |
//! | `window` | memory windows |
//! | [`completion`] | completion channels and queues |
//! | `reading` | completions, read one by one from extended queues |
//! | [`queue_pair`], `changes` | queue pairs and their states, and what is wrong with a change that is refused |
//! | [`shared`] | shared receive queues |
//! | `mapped` | whether the program has the memory that it registers |
//! | `header` | the octets before a datagram |
//! | `posting` | requests, by lists |
//! | `calls` | requests, by calls |
//! | [`events`] | asynchronous events |
//! | [`refused`] | what there is not |
//! | [`cm`] | librdmacm's interface: connections by addresses and ports |
//!
//! Every function is what its manual page says. What the pages leave to the caller is a condition of each: that objects live and are of the
//! type they should be, that lists end, that places to be filled are there.
#![expect(unsafe_code, reason = "the interface is C's")]
#![allow(
    unsafe_op_in_unsafe_fn,
    clippy::missing_safety_doc,
    missing_docs,
    reason = "the manual pages of libibverbs have the contract of each function"
)]

pub mod abi;
mod calls;
mod changes;
pub mod cm;
pub mod completion;
pub mod device;
pub mod events;
mod header;
mod mapped;
pub mod memory;
mod posting;
pub mod queue_pair;
mod reading;
pub mod refused;
pub mod shared;
mod window;

use libc::c_int;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Says by `errno` why there is nothing.
fn none<T>(error: c_int) -> *mut T {
    // SAFETY: each thread has an `errno`.
    unsafe { *libc::__errno_location() = error };
    std::ptr::null_mut()
}

/// So often is the same reason said, whatever its numbers are: some programs find out what there is by being refused (libfabric, how many
/// octets can be inline).
const SAID_MAX: u32 = 3;

/// Says on standard error why something is refused, which `errno` cannot; the number is given back. Where nobody takes it (a disk is full), it
/// is not said, and the program goes on.
fn told(error: c_int, reason: impl std::fmt::Display) -> c_int {
    use std::io::Write;
    let reason = reason.to_string();
    let end = match said(&reason) {
        ..SAID_MAX => "",
        SAID_MAX => " (and is not said again)",
        _ => return error,
    };
    let _ = writeln!(std::io::stderr(), "roci-verbs: {reason}{end}");
    error
}

/// How often a reason has been said, with this time.
fn said(reason: &str) -> u32 {
    static SAID: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let kind = reason.chars().filter(|letter| !letter.is_ascii_hexdigit()).collect();
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let count = said.entry(kind).or_default();
    *count = count.saturating_add(1);
    *count
}

/// `Ok` is 0.
fn code(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// What the system said.
fn errno(error: &std::io::Error) -> c_int {
    error.raw_os_error().unwrap_or(match error.kind() {
        std::io::ErrorKind::NotFound => libc::ENODEV,
        std::io::ErrorKind::AddrInUse => libc::EADDRINUSE,
        _ => libc::EINVAL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_same_whatever_its_numbers_are() {
        let counts = [7, 0xabc, 19].map(|number| said(&format!("there is no room for {number:#x}")));
        assert_eq!((counts, said("there is none")), ([1, 2, 3], 1));
    }
}
