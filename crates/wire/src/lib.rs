//! roci-wire
