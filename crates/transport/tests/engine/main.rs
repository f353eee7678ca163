//! The engine, played by two sides over a scripted wire.
#![allow(
    clippy::unwrap_used,
    clippy::large_enum_variant,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a test that does not fit its harness may panic"
)]

mod acknowledging;
mod apart;
mod asking;
mod crosswise;
mod duplicates;
mod flight;
mod hostile;
mod idle;
mod incidents;
mod laws;
mod limit;
mod messages;
mod pair;
mod probing;
mod pulls;
mod read_room;
mod reading;
mod refusing;
mod retries;
mod scripts;
mod unreliable;
mod wander;
mod windows;
