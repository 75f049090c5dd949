//! Sorted ranges as a tree of eight-word nodes, its root in registers: Fibula's own structure for small IPv4 tables.
//!
//! # The idea
//!
//! A table of a thousand routes is a thousand or two disjoint ranges (`parts/ranges`), which fit the first-level cache. A
//! direct table would not: what a lookup costs is instructions, not memory. A gather takes about forty of them for eight
//! lanes, so a binary search by gathers pays forty a bit. This structure pays less for each bit in two ways:
//!
//! - The root has 31 addresses, *in registers*: five bits, each by a permutation, a comparison and a selection.
//! - Below it, eight keys load their nodes, half a cache line each, which are then *transposed*: vector `c` has word `c`
//!   of the eight nodes. Seven comparisons of whole vectors find three bits for about seventy instructions. A leaf has
//!   its values in its own eight words, so that the last step finds the next hop too.
//!
//! How the addresses are spread does not matter, since the tree halves the ranges and not the address space: 100 routes
//! of the Internet's shape have 94 of their 177 ranges in one /14.
//!
//! # Memory
//!
//! ```text
//! up to 16 ranges   | l l l l l l l l | l ... |             last addresses of all ranges but the last one
//!                   | v v v v v v v v | v ... |             next hops; twice as many nodes up to 32 ranges
//!
//! a tree            | l l l l l l l l |  x 4                root: child c holds what is above l[c - 1], up to l[c]
//!                   | l l l l l l l . |  x nodes            each inner level, its nodes side by side: eight children
//!                   | l l l l l l v v |  x leaves           6 last addresses and 7 values of 8 bits,
//!                     l l l l l v v v                       5 and 6 values of 16 bits,
//!                     l l l v v v v .                       or 3 and 4 values of 32 bits, as the table needs
//!                   | . . . . . . . . |                     padding: single lookups compare two nodes at once
//! ```
//!
//! *Last addresses*, not first ones: counting those below a key gives the child or the value, and padding of all ones is
//! never counted. The address between two leaves is in the one node that has both below it. Children are found by
//! counting: child c of node n of a level is node 8n + c of the next.
//!
//! # Lookup
//!
//! ```text
//! stage 1      at = the root's count of last addresses below key         five steps in registers
//! each level   at = 8 * at + count of the seven of node at               eight nodes, transposed
//! leaf         value[count of the leaf's]                                the same
//! ```
//!
//! A batch of 256 keys goes through one stage after the other. A single key compares 16 words at once. Portable code
//! runs eight binary searches over the nodes side by side.
//!
//! # Invariants
//!
//! 1. Up to 32 ranges are side by side in two or four nodes, followed by as many of next hops; more have a tree.
//! 2. The root, the inner levels, the leaves and one node of padding follow one another, in the number that the ranges
//!    need.
//! 3. An inner node has what separates its children, and padding.
//! 4. All last addresses, in the order of the leaves, ascend strictly, then there is only padding; no leaf is empty.
//! 5. Neighbouring ranges lead to different next hops; places for values that are left repeat the last one.
//!
//! # Limits and cost
//!
//! No table is refused. Memory: 128 bytes up to 16 ranges, 256 up to 32; a tree takes about 5.3 bytes a range with next
//! hops below 256, 6.2 with 16-bit and 9.3 with 32-bit ones, where the sorted array takes 8. Built in one pass over two
//! scratch arrays of 4 bytes a range: 1 us for 10 routes, 18 us for 1,000. Lookup: 5 + 3 * levels + 3 bits; a full
//! IPv4 table has 4 levels and is served better by every other structure.
//!
//! # Changes
//!
//! It is built anew for each call of a live table, aside, and swapped. Children are found by counting, so nodes lead nowhere:
//! a range more moves every range after it by a place, half of all leaves on average. To change it in place, each inner node
//! would lead to a block of eight children by its eighth word, which is unused, and a change would write a block anew, or
//! several up to the root where leaves are full: another form of the tree, with kernels that follow the word. That would pay
//! where a build takes long, which is where this structure is not chosen: for a full table, `dir-17-bitmap` is faster and
//! smaller, and changes in place. Up to a thousand routes, a change in calls of 64 costs no more than in place: `notes.md`.
//!
//! `notes.md` in this folder has the measurements, and what was tried and lost.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod open;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use crate::fib::registry::{Algorithm, Families, Role, Update};

use layout::RangeBtree;

const NAME: &str = "range-btree";

/// Returns the registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "disjoint ranges as a tree of eight-word nodes, the root in registers",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open::open),
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(RangeBtree::build(routes, limits)?)),
    }]
}
