//! The kernel of the machine: system calls, its links, addresses and neighbours, and the filter that keeps it from forwarding
//! what the router forwards. Linux.

mod assembler;
pub mod device;
pub mod filter;
pub mod netlink;
mod redirect;
pub(crate) mod sys;
