//! Follows the kernel's route tables, rules and next-hop objects by netlink, and never writes them.
//!
//! The follower first reads everything, and then follows changes. However, the kernel does not report some changes: IPv4 routes
//! that are removed with a link, an address or a next-hop object, next-hop objects that are removed with a link, and IPv6 routes
//! that come back with a link. So after each of these events, the follower reads the affected tables again, and removes the
//! routes that are missing. After the kernel has lost messages, everything is read again.

mod follower;
mod rules;
mod socket;

pub use follower::Follower;
pub use socket::{Kernel, read};

#[cfg(test)]
mod tests;
