//! The best path: which of several routes for a prefix becomes the table's.
//!
//! A router has one route for a prefix; feeds have many. The rules, in the order in which they are applied:
//!
//! 1. the shorter AS path; a path of unknown length comes after all others
//! 2. the lower peer address, then the lower AS; a route without a peer comes after all others
//! 3. the earlier feed
//! 4. the lower path identifier; a route without one comes first
//!
//! These are the rules of RFC 4271 section 9.1.2.2 that a collector's file can answer. The others cannot be applied,
//! because local preference, the router's identifier and the cost to the next hop belong to the router that chooses.
//!
//! [`Rank`] holds the properties that are compared, and reports which rule decides. Any source of routes can use it.
//! [`AdjRibsIn`] keeps the routes of all peers, and reports changes of the best ones.

mod adj_ribs_in;
#[cfg(test)]
mod adj_ribs_in_tests;
mod candidates;
mod rank;

pub use adj_ribs_in::{AdjRibsIn, AdjRibsInError};
pub(crate) use candidates::{Candidate, Candidates};
pub use rank::{Rank, Rule};
