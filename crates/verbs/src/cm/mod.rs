//! The C interface of librdmacm over the endpoint's connection manager.
//!
//! An id belongs to a port, which is a device with its connection manager, from when its address is known. A thread of each port looks what has
//! become of the port's ids whenever the manager has news, and puts events into their channels.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`abi`] | structures and numbers |
//! | [`channel`] | event channels and events |
//! | [`id`] | ids: what they are, until they go |
//! | `address` | addresses and ports as sockets have them |
//! | [`resolve`] | the address of an id, its peer's, and the way there |
//! | `port` | devices with their connection managers |
//! | [`connect`] | connections: asked for, granted, refused, ended |
//! | `datagrams` | where datagrams go: asked for and told |
//! | `news` | what becomes of them, as events |
//! | [`queue_pair`] | queue pairs and shared receive queues of ids |
//! | [`endpoint`] | ids made in one step, and names |
//! | [`refused`] | what there is not |

pub mod abi;
mod address;
pub mod channel;
pub mod connect;
mod datagrams;
pub mod endpoint;
pub mod id;
mod news;
mod port;
pub mod queue_pair;
pub mod refused;
pub mod resolve;

use libc::c_int;
use roci_endpoint::QueuePairError;
use roci_endpoint::cm::CmError;

/// `Ok` is 0; otherwise `errno` says why not.
fn done(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            crate::none::<()>(error);
            -1
        }
    }
}

/// Why a connection manager refuses, beside the text on standard error.
fn refusal(error: &CmError) -> c_int {
    let code = match error {
        CmError::Io(error) => crate::errno(error),
        CmError::InUse(_) | CmError::QueuePair(QueuePairError::Management) => libc::EADDRINUSE,
        CmError::Gone => libc::ECONNABORTED,
        _ => libc::EINVAL,
    };
    crate::told(code, error)
}
