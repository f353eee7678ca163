//! roci-switch
