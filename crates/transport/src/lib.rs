//! roci-transport
