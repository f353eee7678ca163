//! What several test programs share.

pub(crate) mod confirm;
#[cfg(feature = "translate")]
pub(crate) mod differential;
pub(crate) mod elf;
pub(crate) mod plain;
pub(crate) mod program;
pub(crate) mod suite;
