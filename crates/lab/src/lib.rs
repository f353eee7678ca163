//! roci-lab
