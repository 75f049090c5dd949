//! Follows the kernel's route tables, rules and next-hop objects by netlink, and never writes them.
//!
//! Everything is read first, then changes are followed. The kernel says nothing of some of them: IPv4 routes that go with a link,
//! an address or a next-hop object, next-hop objects that go with a link, and IPv6 routes that come back with it. So after each of
//! these, what it concerns is read again, and what is not told again goes; so is everything after the kernel has lost messages.

mod follower;
mod rules;
mod socket;

pub use follower::Follower;
pub use socket::{Kernel, read};

#[cfg(test)]
mod tests;
