//! What a queue pair may send now: by rate, by window, by tokens. The law chooses which of them bind.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`pacer`] | the rate: when the next packet may leave |
//! | [`window`] | how much may be unacknowledged, and the tokens |

pub mod pacer;
pub mod window;

pub use pacer::Pacer;
pub use window::{Tokens, Window};
