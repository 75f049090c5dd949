//! The kernel of the machine (Linux): system calls, links, addresses and neighbours, and the filter that keeps the kernel from
//! forwarding the router's packets.

mod assembler;
pub(crate) mod bell;
pub mod device;
pub mod fast;
pub mod filter;
pub mod hold;
pub mod netlink;
pub(crate) mod peer;
mod redirect;
pub(crate) mod sys;
