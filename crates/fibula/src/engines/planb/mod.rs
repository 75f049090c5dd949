//! PlanB: the disjoint ranges of a table in a linearized B+-tree whose nodes are cache lines.
//!
//! Prefixes become elementary intervals (PlanB, section 3.1), and the ends of the intervals become the keys of a tree
//! without pointers (3.2). The tree is one array, its internal levels come first and are full, and children are found
//! by arithmetic. Every lookup reads the same number of nodes, one line each, and takes no branch on the key, so a
//! batch walks in step. The tree searches the upper half of an IPv6 address, the /64, as published, and the whole of an
//! IPv4 address.
//!
//! # Memory
//!
//! ```text
//! nodes:   | 70 130 | 30 50 | 90 110 | 150 170 | 10 20 | 30 40 | 50 60 | .. | 170 180 |     two keys a node
//!            root     level 1                    leaves, each key the last address of an interval
//! codes:   | C  D | A  C | D  - | .. | B  A | B                one an interval: one more than there are keys
//! next_hops: | - | A's id | B's id | ..                        by code; any other code names a block
//! blocks:  first | 0 | 3 | ..   ends | ..4 | ..5 | ..ffff | .. next_hops | C | D | C | ..
//! ```
//!
//! # Lookup
//!
//! ```text
//! at = 0                                                        Algorithm 1, by node instead of by key
//! for each internal level:
//!     at = at * (k + 1) + 1 + keys of nodes[at] strictly below upper half
//! position = (at - internal nodes) * k + keys of nodes[at] strictly below upper half
//! code = codes[position]
//! answer next_hops[code], or where there is no such code:
//! block = not code; answer its first piece whose end is not below the lower half
//! ```
//!
//! Keys are the inclusive *ends* of all intervals but the last. A position is then both the number of keys below the
//! address and the index of its value. The padding (all ones) is never below an address, the last address needs no
//! special case, and the empty table is one leaf of padding. A position may be that of the first slot of the next leaf,
//! which is right, because positions are consecutive.
//!
//! # Batches
//!
//! Kernels walk 32 keys side by side, so that many nodes are on their way from memory at once: 16 of them, 8, 4 or one at the
//! end of a batch. For the depths of full IPv6 tables, five and six internal levels, the loop over the levels is written out.
//! Keys are read from the batch anew at each level, as a broadcast from memory costs no more than one from a register; keys
//! in network order are turned once and then read from the stack. Walks are steps of `simd::Tree`, which checks bounds once a
//! level. The keys that follow are prefetched by the kernel, 2 KiB ahead, past the end of the batch too, since callers hold
//! keys side by side (`Fib::prefetches_keys`). The feature `plain` of the laboratory has the same as a C++ loop.
//!
//! # Longer prefixes than the /64
//!
//! An upper half inside which a longer prefix begins or ends is an interval of its own, whose code names a *block*: its
//! ranges by lower half, sorted, found by binary search. The bounds check of the dictionary tells the two apart, so a
//! table without longer prefixes pays nothing. A block costs 16 bytes a range, and up to two more intervals (22 bytes)
//! in the tree. Toy keys search half of their bits, so that they have blocks too. Their words are filled up with ones,
//! so that their last address is all ones as well.
//!
//! # The steps of Fig. 14
//!
//! The paper measures what each part of the design contributes. Its steps are registry entries for IPv6: `range-search` without
//! vectors (a binary search), `planb-scalar` (the tree, without branches), `planb-compiled` (each node's keys counted in a loop that
//! the compiler turns into vectors), `planb-vectors` (one comparison of vectors a node), all of one key at a time, and `planb` in
//! batches.
//!
//! # Invariants
//!
//! 1. There are as few internal levels as hold the keys, and they are full. After them come as many leaves as the keys
//!    need, and at least one.
//! 2. Leaf keys ascend strictly, below all ones, and sentinels fill the last leaf.
//! 3. Separator j of a node (from 1) is the least leaf key below its child j, or a sentinel where there is no such key.
//! 4. There is at least one interval, and each has a code. In the merged form, the next hops of neighbours differ.
//! 5. Code 0 is no route; the other codes of the dictionary are next hops.
//! 6. Blocks are named once and in order, by intervals of one upper half.
//! 7. A block has at least two pieces, which ascend strictly to the last lower half. In the merged form, neighbours
//!    differ.
//!
//! # Limits and cost
//!
//! Next hops and blocks together: at most 2^32. Ranges inside blocks: at most 2^32. Codes are 16 bits wide while next
//! hops (with "no route") and blocks together number at most 65,536, else 32.
//!
//! Internal levels of 8-key nodes: 5 for up to 472,392 keys, 6 for up to 4,251,528 (`capacity`). They are stored whole,
//! so the step from 5 to 6 costs 3.6 MiB at once. dfz6-2024 (228,726 routes): 163,749 intervals merged, 9.2 bytes a
//! prefix; 308,478 unmerged, 15.6. Both take 5 internal levels, so a lookup reads six lines and a value.
//!
//! Hostile tables. Every second /64 (or /32 of IPv4): two intervals a route, about 22 bytes; 16 million of them are
//! 33.5 million keys, 7 internal levels and 0.5 GB, and as much again during the build. Deepest nesting: one interval a
//! level. Host routes far apart: a block each, about 70 bytes a route. All host routes under one /64: one block, at
//! most 24 bytes a route, and log2 of its ranges in dependent loads. Any of these is built in one pass, without
//! recursion, in space linear in the routes.
//!
//! # Where the paper is wrong
//!
//! - Algorithm 1 returns the first key that is not below the address; with starts as keys, that is the interval after
//!   the right one. Listing 1 counts the keys that are not above, which is right with the value before. With ends as
//!   keys, Algorithm 1 is right as printed.
//! - Listing 1 counts sentinels for the address of all ones and reads past the end of the leaves.
//! - Algorithm 2, lines 24-33: the loop bound counts nodes where it must count keys, and the separator is the first key
//!   of the child node, which is the least key below the child only where the child is a leaf. Four in five random
//!   small tables give wrong answers. The *last* key left of the child is no remedy: to the right of an exactly full
//!   subtree it leads to leaves that are not stored.
//! - Algorithm 2, lines 5-17: the order of events is not determined, and an end at the end of the space wraps.
//!   `parts/ranges` is used instead.
//! - 5 levels have 7,381 internal nodes, not 6,560; "d" counts internal levels in 3.2 and all levels in Listing 1.
//!
//! `notes.md` in this folder lists variants that were measured.

pub(crate) mod build;
mod check;
pub(crate) mod kernel;
pub(crate) mod layout;
mod lookup;
mod open;
pub(crate) mod scalar;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;

use crate::fib::parts::ranges::Merge;
use crate::fib::registry::{Algorithm, Families, Role, Update};
use crate::fib::sections::{Parts, PartsError};
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{Ipv6Key, Routes};
use crate::simd::Isa;

use layout::{Node2x64, Node8x64, PlanB};

/// The name of the engine.
pub const NAME: &str = "planb";
/// The names of those with other trees, which papers compare.
pub const UNMERGED: &str = "planb-unmerged";
/// As above.
pub const DOUBLE: &str = "planb-16";

/// Toy keys up to this width get the smallest nodes; wider ones the real geometry.
pub const SMALLEST_BITS: u8 = 8;

/// Returns the registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv6Key>() -> [Algorithm<K>; 1] {
    [Algorithm {
        name: NAME,
        summary: "linearized B+-tree over disjoint ranges, equal neighbours merged",
        paper: "PlanB, sections 3.1 and 3.2",
        families: Families::Ipv6,
        role: Role::Published,
        update: Update::Rebuild,
        in_place: None,
        open: Some(open),
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build,
    }]
}

fn build<K: Ipv6Key>(routes: &dyn Routes<K>, limits: Limits) -> Result<Box<dyn Fib<K>>, BuildError> {
    let merge = Merge::EqualNeighbours;
    // A constant, so that what is not taken is not compiled.
    if const { K::BITS <= SMALLEST_BITS } {
        return Ok(Box::new(PlanB::<K, Node2x64>::build(routes, merge, limits)?));
    }
    Ok(Box::new(PlanB::<K, Node8x64>::build(routes, merge, limits)?))
}

fn open<K: Ipv6Key>(parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    // A constant, so that what is not taken is not compiled.
    if const { K::BITS <= SMALLEST_BITS } {
        return PlanB::<K, Node2x64>::open(parts, Merge::EqualNeighbours);
    }
    PlanB::<K, Node8x64>::open(parts, Merge::EqualNeighbours)
}
