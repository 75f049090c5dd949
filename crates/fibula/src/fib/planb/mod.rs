//! PlanB: the disjoint ranges of a table in a linearized B+-tree whose nodes are cache lines.
//!
//! Prefixes become elementary intervals (PlanB, section 3.1), and the intervals' ends the keys of a tree
//! without pointers (3.2): one array, internal levels first and full, children found by arithmetic. Every
//! lookup reads the same number of nodes, one line each, and takes no branch on the key, so batches walk in
//! step. What the tree searches is the upper half of an IPv6 address, the /64, as published, and the whole
//! of an IPv4 address.
//!
//! ```text
//! nodes:   | 70 130 | 30 50 | 90 110 | 150 170 | 10 20 | 30 40 | 50 60 | .. | 170 180 |     two keys a node
//!            root     level 1                    leaves, each key the last address of an interval
//! codes:   | C  D | A  C | D  - | .. | B  A | B                one an interval: one more than there are keys
//! next_hops: | - | A's id | B's id | ..                        by code; a code that is not here names a block
//! blocks:  first | 0 | 3 | ..   ends | ..4 | ..5 | ..ffff | .. next_hops | C | D | C | ..
//! ```
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
//! Keys are the inclusive *ends* of all intervals but the last. A position is then the number of keys below
//! the address and the index of its value at once, the padding (all ones) is never below an address, the
//! last address needs no case of its own, and the empty table is one leaf of padding. A position may be
//! that of the first slot of the next leaf: positions are consecutive, so it is right.
//!
//! # Beyond the /64
//!
//! An upper half inside which a longer prefix begins or ends is an interval of its own whose code names a
//! *block*: its ranges by lower half, sorted, found by binary search. The test that keeps the dictionary's
//! index in range tells the two apart, so a table without longer prefixes pays nothing. A block costs 16
//! bytes a range and up to two intervals more (22 bytes) above it. Toys search half their bits, so that
//! they have blocks too; their words are filled up with ones, so that their last address is all ones as
//! well.
//!
//! # Invariants
//!
//! 1. There are as few internal levels as hold the keys; they are full; behind them lie as many leaves as
//!    the keys need, and at least one.
//! 2. Leaf keys ascend strictly, below all ones, and sentinels fill the last leaf.
//! 3. Separator j of a node (from 1) is the least leaf key below its child j, or a sentinel where there is
//!    none.
//! 4. There is an interval, with a code each; in the merged form neighbours' next hops differ.
//! 5. Code 0 is no route, the other codes of the dictionary are next hops.
//! 6. Blocks are named once and in order, by intervals of one upper half.
//! 7. A block has two pieces or more, which ascend strictly to the last lower half; merged, neighbours
//!    differ.
//!
//! # Limits and cost
//!
//! Next hops and blocks together: 2^32, likewise ranges inside blocks. Codes are 16 bits wide while next
//! hops (with "no route") and blocks together number 65,536 or fewer, else 32.
//!
//! Internal levels of 8-key nodes: 5 for up to 472,392 keys, 6 for up to 4,251,528 (`capacity`). They are
//! stored whole: the step from 5 to 6 costs 3.6 MiB at once. dfz6-2024 (228,726 routes): 163,749 intervals
//! merged, 9.2 bytes a prefix; 308,478 unmerged, 15.6; 5 internal levels, six lines and a value either way.
//!
//! Hostile tables. Every second /64 (or /32 of IPv4): two intervals a route, about 22 bytes; 16 million of
//! them are 33.5 million keys, 7 internal levels and 0.5 GB, with as much again while they are built. Deepest
//! nesting: one interval a level. Host routes apart: a block each, about 70 bytes a route. All host routes
//! under one /64: one block, at most 24 bytes a route, and log2 of its ranges in dependent loads. Any of these
//! is built in one pass, without recursion, in space linear in the routes.
//!
//! # Where the paper is wrong
//!
//! - Algorithm 1 returns the first key that is not below, with starts as keys the interval behind the right
//!   one; Listing 1 counts keys that are not above, which is right with the value before. With ends as keys
//!   Algorithm 1 is right as printed.
//! - Listing 1 counts sentinels for the address of all ones and reads behind the leaves.
//! - Algorithm 2, lines 24-33: the loop bound counts nodes where it must count keys, and the separator is
//!   the first key of the child node, which is the least below it only when the child is a leaf. Four in
//!   five random small tables answer wrong. The *last* key left of the child will not do either: right of
//!   an exactly full subtree it leads to leaves that are not stored.
//! - Algorithm 2, lines 5-17: the order of events is not determined, and an end at the end of the space
//!   wraps. `parts/ranges` is used instead.
//! - 5 levels have 7,381 internal nodes, not 6,560; "d" counts internal levels in 3.2 and all levels in
//!   Listing 1.
//!
//! # Tried
//!
//! dfz6-2024 or as many random keys, x86-64 without vectors, million lookups a second, best of several runs
//! on a shared machine, so the ratios count. Counting all 8 keys: 41 at most (the compiler has no 64-bit
//! comparison to vectorise with below SSE4.2); as borrow and carry: 43. Binary search in a node, four
//! dependent steps: 69-73. A half, then four keys: 76. A third, then two keys: **88-91**. Lanes, by thirds:
//! 4: 59-68; 8: 88-91; 16: 70; 32: 73, as keys and positions leave the registers. A loop unrolled over the
//! levels as well: 3 % more, for a kernel a depth; not kept. 16-key nodes save one level of five and lose a
//! sixth here: two lines a node.

mod build;
mod check;
mod kernel;
pub(super) mod layout;
mod lookup;
mod scalar;
pub(super) mod statistics;
#[cfg(test)]
mod tests;

use crate::memory::Limits;
use crate::net::{Family, Key, Routes};
use crate::simd::Isa;

use super::parts::ranges::Merge;
use super::registry::{Algorithm, Build, Families, Role, Update};
use super::{BuildError, Fib};

use layout::{Node, Node2x64, Node4x64, Node8x64, Node16x32, Node16x64, Node32x32, PlanB};

const NAME: &str = "planb";

/// Toy keys up to this width get the smallest nodes; wider ones the real geometry.
const SMALLEST_BITS: u8 = 8;

/// The registry entries.
#[must_use]
pub(crate) fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    let line = |name, summary, build: Build<K>| Algorithm {
        name,
        summary,
        paper: "PlanB, sections 3.1 and 3.2",
        families: Families::Both,
        role: Role::Published,
        update: Update::Rebuild,
        limits: None,
        isas: Isa::ALL,
        build,
    };
    let merged = "linearized B+-tree over disjoint ranges, equal neighbours merged";
    let unmerged = "linearized B+-tree over the elementary intervals of all prefixes, as printed";
    let double = "linearized B+-tree with nodes of 128 bytes, equal neighbours merged";
    vec![
        line(NAME, merged, |routes, limits| in_lines_of_64(routes, Merge::EqualNeighbours, limits)),
        line("planb-unmerged", unmerged, |routes, limits| in_lines_of_64(routes, Merge::Never, limits)),
        line("planb-16", double, |routes, limits| in_lines_of_128(routes, Merge::EqualNeighbours, limits)),
    ]
}

/// A structure in a box.
type Boxed<K> = Result<Box<dyn Fib<K>>, BuildError>;

fn in_lines_of_64<K: Key>(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Boxed<K> {
    match K::FAMILY {
        Family::Ipv4 => boxed(PlanB::<K, Node16x32>::build(routes, merge, limits)),
        Family::Toy if K::BITS <= SMALLEST_BITS => boxed(PlanB::<K, Node2x64>::build(routes, merge, limits)),
        Family::Ipv6 | Family::Toy => boxed(PlanB::<K, Node8x64>::build(routes, merge, limits)),
    }
}

fn in_lines_of_128<K: Key>(routes: &dyn Routes<K>, merge: Merge, limits: Limits) -> Boxed<K> {
    match K::FAMILY {
        Family::Ipv4 => boxed(PlanB::<K, Node32x32>::build(routes, merge, limits)),
        Family::Toy if K::BITS <= SMALLEST_BITS => boxed(PlanB::<K, Node4x64>::build(routes, merge, limits)),
        Family::Ipv6 | Family::Toy => boxed(PlanB::<K, Node16x64>::build(routes, merge, limits)),
    }
}

fn boxed<K: Key, N: Node>(built: Result<PlanB<K, N>, BuildError>) -> Boxed<K> {
    built.map(|fib| Box::new(fib) as Box<dyn Fib<K>>)
}
