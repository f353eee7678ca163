//! roci-fabric
