//! Programs of ibverbs-utils and perftest, as distributions compiled them, run over this library.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
