//! What a queue pair may send now: by rate and by tokens. The law chooses which of them bind.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`pacer`] | the rate: when the next packet may leave |
//! | [`tokens`] | what a receiver has granted |
//! | `room` | READ data that all queue pairs of a port may have asked for |
//! | `flight` | packets that all of them may have under way to one place |
//!
//! Windows need no room of their own: a law's, in octets, and the count of octets in flight stand in the queue pair's
//! record; a recovery program's, in packets, is kept by the fixed stage of [`delivery`](crate::delivery), as in Tonic
//! (§3.3.1). A packet goes when all of them let it.

pub(crate) mod flight;
pub mod pacer;
pub(crate) mod room;
pub mod tokens;

pub use pacer::Pacer;
pub use tokens::Tokens;
