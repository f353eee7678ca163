//! Which packets have arrived, and which are sent again.
//!
//! The bookkeeping is the same for all protocols and done by a fixed stage; what is lost is decided by a small
//! *recovery program* (Tonic §3.2). A queue pair in order has no bitmap: the first packet not yet acknowledged and the
//! first never sent, or the one expected next, say all. Bitmaps come from a pool with the first gap and go back with
//! the last.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`bitmap`] | a window of sequence numbers as a ring of bits |
//! | [`pool`] | where queue pairs in loss get theirs |
//! | [`sender`] | the fixed stage: the window of what was sent, what is marked to be sent again |
//! | [`program`] | what a recovery program sees and answers, and which there are |
//! | [`go_back_n`], [`irn`], [`srnic`], [`reno`], [`newreno`], [`sack`], [`ndp`] | the programs |
//! | [`congestion`] | the congestion window that Reno, NewReno and SACK share |
//! | [`receive`] | the receiver's side: what is expected, kept, missing |
//! | [`onload`] | the same with its bitmap on a slow path |

pub mod bitmap;
pub mod congestion;
pub mod go_back_n;
pub mod irn;
pub mod ndp;
pub mod newreno;
pub mod onload;
pub mod pool;
pub mod program;
pub mod receive;
pub mod reno;
pub mod sack;
pub mod sender;
pub mod srnic;

#[cfg(test)]
mod tests;

pub use bitmap::{Bitmap, BitmapMut};
pub use onload::{Onloaded, SlowPath};
pub use pool::{Pool, Slot};
pub use program::{Decision, Event, Input, Marks, Program, Recover};
pub use receive::{Advance, Receiver, Standing};
pub use sender::{Observed, Resend, Sender};
