//! roci-nic
