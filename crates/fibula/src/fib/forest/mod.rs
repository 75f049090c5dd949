//! A direct table and a forest of small B+-trees behind it: Fibula's own IPv6 engine.
//!
//! # The idea
//!
//! Nearly all IPv6 routes end within the /48. So what the trees search is the last 32 of those 48 bits, sixteen keys a
//! cache line and compared at once; a direct table over 16 to 20 leading bits, cut as finely as routes stand close,
//! leaves a tree as a rule 187 intervals at most: one inner node and one leaf. A leaf holds the values beside its
//! keys, and children are found by counting, so that a lookup reads a direct entry, a slot and two lines, whatever the
//! key. A batch is worked through in *stages*, each a loop whose iterations do not wait for one another.
//!
//! # Memory
//!
//! ```text
//! direct:  | g s | g s | ... | g s |     an entry for the leading bits that routes have, and one for all others
//!             |                          ground and shift: slot = g + (window >> s)
//!             v
//! slots:   | t r | t r | ... |           the tree, and how many roots (r) stand above its inner nodes, mostly none
//!             |
//!             v 64 bytes
//! lines:   | k k k ... k | leaf 0 | leaf 1 | ... | leaf 16 |     16 keys; children follow, child c at 1 + c
//!                           k ... k v v ... v                    10 keys and 11 values of 16 bits,
//!                                                                or 7 keys and 8 values of 32 bits
//! blocks:  what upper parts lead to that hold longer prefixes    (parts/upper)
//! ```
//!
//! The *upper part* of an address is its first 48 bits, its *window* the last 32 of those. Keys are the last windows of
//! all intervals but the last, so that counting the keys below a window gives the child or the value, and padding of all
//! ones is never counted. Neighbouring slots share a tree while their intervals fit one. A tree with r roots has r
//! more levels of inner nodes; all of a node's children but the last are full, so that child c of a node stands 1 + c
//! times the lines of a full child behind it. Values are next hops, or with their highest bit set a block.
//!
//! # Lookup
//!
//! ```text
//! stage 1   entry = direct[first bits]; slot = g + (window >> s)     entries gathered
//! stage 2   tree = slots[slot]                                       lane by lane; those with roots are noted
//! roots     of noted lanes: line += 1 + keys below window * lines of a child
//! stage 3   line = tree + 1 + keys of the inner node below window    one comparison of sixteen keys
//! stage 4   value = the leaf's, by its keys below window
//! blocks    of values that say so: rare
//! ```
//!
//! Without vectors the stages are the same, and nodes are searched by halving, without a branch.
//!
//! # Invariants
//!
//! (1) There is a direct entry for all leading bits from the first to the last that routes have, and one behind them for
//! those that have none, which all go one way. (2) Slots follow one another as their entries do. (3) So do trees; those
//! of one interval may be shared. (4) Keys of a node ascend within its windows; its children stand where their number
//! says, all but the last full. (5) Values are as many as keys and one more, the last one repeated. (6) Pieces of a block
//! ascend to the last lower part.
//!
//! # Limits and hostile tables
//!
//! 2^26 slots, 2^29 lines and 2^31 blocks. Next hops from 2^15 on make all values 32 bits wide; from 2^31 on each is a
//! block of one piece. Every second /48 of the space: 6 bytes a route and interval. Routes longer than /48: 80 bytes
//! for one in a /48 of its own, 20 a range for more of them there, and log2 of its ranges in dependent loads. All routes
//! under one leading value: up to five roots, one line each. A table of few routes far apart pays 4 bytes a leading
//! value between them, 16 KiB at most for it: `planb` and `range-search` are smaller then.
//!
//! # Changes while readers look
//!
//! The format is made for one writer beside many readers: a tree is never altered, only planted anew and published by
//! storing one 32-bit slot or, for several slots, entry.
//!
//! # Tried and lost
//!
//! TABLE

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod record;
#[cfg(test)]
mod tests;

use crate::net::{Family, Key};
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

pub use layout::Forest;

const NAME: &str = "forest";

/// The registry line.
#[must_use]
pub fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    if K::FAMILY == Family::Ipv4 {
        return Vec::new();
    }
    vec![Algorithm {
        name: NAME,
        summary: "direct table, then a small B+-tree with values in its leaves: fast",
        paper: "of Fibula's own",
        families: Families::Ipv6,
        role: Role::Contestant,
        update: Update::Rebuild,
        limits: Some("2^26 slots, 2^29 lines"),
        isas: Isa::ALL,
        preference: |shape| if shape.routes < 10_000 { 0 } else { 5 },
        build: |routes, limits| Ok(Box::new(Forest::build(routes, limits)?)),
    }]
}
