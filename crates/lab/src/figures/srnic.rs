//! "SRNIC: A Scalable Architecture for RDMA NICs" (Wang et al., NSDI 2023).

pub(super) mod header;
