//! roci-control
