//! The kernel of the machine (Linux): system calls, links, addresses and neighbours, the filter that keeps the kernel from
//! forwarding the router's packets, and the gate that keeps packets for the machine until they are judged.

mod assembler;
pub(crate) mod bell;
pub mod device;
pub mod fast;
pub mod filter;
pub mod gate;
pub mod hold;
pub mod netlink;
pub(crate) mod peer;
mod redirect;
pub(crate) mod sys;
