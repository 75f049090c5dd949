//! The routes of a small VRF in one family: a block of cache lines, which never changes.
//!
//! # The idea
//!
//! Most VRFs have some dozens or hundreds of routes. A few cache lines hold them, and a lookup reads two or three of those.
//! A block is found by its place alone and has no pointers of its own, so that VRFs with equal routes share one, and so that
//! a column of keys is looked up in as many VRFs as it has keys, at the rate of one: each key only has a root of its own.
//!
//! # Memory
//!
//! ```text
//! block:   | objects, the last one first | root | lines of its tree ... | lines of other trees ... |
//!                                        ^ the VRF's word has this place and the levels of the tree
//!
//! inner line: 16 keys                            leaf: 10 keys, 11 values of 16 bits
//! object:     next hop outside, next hop inside, first window, last window      a record: one stretch of windows
//!             lines from the root, levels, 1, 0                                 a tree of the next windows
//! ```
//!
//! An address is cut into *windows* of 32 bits: IPv4 has one, IPv6 four. A tree is of one window. Its keys are the last
//! windows of ranges, so that counting the keys below a window gives the child or the value. All children of a line but
//! the last are full, so that child c is c full trees after the line, without a pointer. A value is a next hop below 2^15
//! (0 for none) or the number of an object.
//!
//! # Lookup
//!
//! ```text
//! at = root; for each level below it: at = at + 1 + (keys of line at below the window) * lines of a full tree
//! value = the value of leaf at; an object: the record says the next hop of the next window, or another tree is searched
//! ```
//!
//! Sixteen keys of a column take each step side by side, whatever their roots. A tree with fewer levels waits in its leaf.
//!
//! # Invariants
//!
//! (1) Every line is in one tree, and objects fill the lines before the root. (2) Children are full, but the last of each
//! line. (3) Keys ascend, then there is padding; neighbouring values differ. (4) After the last value of a leaf, it is
//! repeated. (5) A record that is a next hop alone has one too large for a value; other objects are of windows that keys
//! have, and a tree below belongs to one window. Besides: equal routes give equal words.
//!
//! # Limits and cost
//!
//! 32,768 objects, which more than 16,384 routes can need: such VRFs get a structure of the live table. Up to 11 ranges take a
//! line, 187 ranges 18; about 6.2 bytes a range. A next hop from 2^15 on costs 16 bytes. Of IPv6, a /32 with one longer route
//! inside costs 16 bytes, with several a line and more. A change rebuilds the block: microseconds for hundreds of routes.

mod build;
mod check;
mod layout;
mod single;
#[cfg(test)]
mod tests;
mod walk;

pub(super) use build::{Block, BlockRefusal, build};
pub(super) use check::check;
pub(super) use layout::{BlockRoot, half_v4, half_v6, word};
pub use single::engines;
pub(super) use walk::{BlocksView, column, one};
