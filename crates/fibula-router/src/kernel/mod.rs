//! The kernel of the machine: system calls, its links, addresses and neighbours, and the filter that keeps it from forwarding
//! what the router forwards. Linux.

pub mod filter;
pub mod netlink;
pub(crate) mod sys;
