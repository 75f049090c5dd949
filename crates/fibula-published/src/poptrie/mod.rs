//! Poptrie: a trie of 64 ways whose nodes are two bit maps and two indices.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because it is the well-known scheme that papers, PlanB's among them, compare themselves with.
//!
//! Asai and Ohara, "Poptrie: A Compressed Trie with Population Count for Fast and Scalable Software IP Routing Table
//! Lookup" (SIGCOMM 2015), sections 3.1 (the structure), 3.3 (`leafvec`) and 3.4 (direct pointing), written from the
//! paper. The ranges of `parts/ranges`, of which neighbours with equal next hops are merged, replace its route
//! aggregation (section 3.5).
//!
//! # Memory
//!
//! ```text
//! direct:  2^18 entries of 4 bytes: 1, next hop; or 0, node
//! node:    vector | leafvec | leaves | nodes             24 bytes: 64, 64, 32 and 32 bits
//!            |        |
//!            |        a bit a slot: a leaf that differs from the one before; their values begin at `leaves`
//!            a bit a slot: an internal node; these nodes begin at `nodes`
//! leaves:  next hops of 16 bits, or of 32 where a next hop of the table needs them
//! ```
//!
//! # Lookup
//!
//! ```text
//! entry = direct[first 18 bits of the key]; if it is a next hop: that
//! slot = the next 6 bits
//! while node.vector has slot: node = nodes[node.nodes + ones(node.vector up to slot) - 1]; slot = the next 6 bits
//! leaves[node.leaves + ones(node.leafvec up to slot) - 1]
//! ```
//!
//! Bits past the end of a key read as zeros: the last level of IPv4 and of IPv6 has 2 bits of the key, so an address
//! has 16 slots there.
//!
//! A batch walks level by level, 128 keys side by side. The keys that are still walking are in a list, which is kept
//! without a branch. With vector instruction sets, a population count is one instruction. The counts themselves are
//! computed for one key at a time, because gathering a node of 24 bytes costs more than it saves.
//!
//! # Invariants
//!
//! 1. There is a direct entry for every value of the leading bits.
//! 2. Every node has one parent or direct entry. Nodes are in the order in which their last slots are reached: the children
//!    of a node are together, after everything below them.
//! 3. Leaves are in the same order.
//! 4. `leafvec` has a bit for the first leaf of a node and for each leaf that differs from the one before it, and none
//!    for nodes.
//!
//! In a trie that changes, the children of a node are one unit, and so are its leaves; units are in any order, and those that
//! nothing leads to are free.
//!
//! # Limits and cost
//!
//! At most 2^31 nodes, and as many leaves. The direct table takes 1 MiB, whatever the number of routes. Next hops from
//! 2^31 on do not fit a direct entry and take a node.
//!
//! Hostile tables: a single IPv4 host route costs 3 nodes and up to 8 leaves, an IPv6 one 19 nodes.
//!
//! # Changes while readers look
//!
//! Section 3.6 of the paper builds a changed subtree beside the old one and publishes it by one word, a direct entry. This one
//! goes on where entries are coarse: an IPv6 entry may have thousands of nodes below it. The last word of a node has both
//! `leaves` and `nodes`, and is stored as a whole. A reader may see it before or after, beside bit maps that were always there,
//! so it can be stored alone wherever the bit maps stay. A node whose bit maps change is written anew in a copy of its parent's
//! children, and the parent's last word leads there. What is below children that do not change is shared by both copies.
//!
//! So a change goes down to the node in which its prefix ends, takes the slots of the prefix from the routes and the others
//! from the node, and stores one word: nearly always that of this node or of its parent. Of a node that readers have loaded,
//! the last word was stored after what it leads to; a fence after each level orders the loads.
//!
//! Changes that are to be seen all or not at all (`shadow.rs`) are raised to direct entries: the nodes above are copied, from
//! the one whose word would be stored up to the entry, and with these a copy of the direct table, 1 MiB.
//!
//! Leaves are 16 bits wide until a next hop needs more; then the trie is built anew, once. Nodes and leaves are in arrays with
//! room for several times those of the first build, of which memory is only what is written; a table that outgrows them is built anew
//! too. Where an eighth of an array is free, each change also looks at four nodes, and moves children and leaves to free places
//! nearer to the beginning (`tidy.rs`).
//!
//! For listeners, direct entries are array 0, nodes array 1, of three 64-bit words each, and leaves array 2.
//!
//! Measured on an AMD EPYC (Zen 4, two cores), dfz4-2023 with the changes of a peer of RIS of 2019-01-01, looped 20 times:
//! `fibula replay --table dfz4-2023.txt.xz --updates ris-20190101.upd.txt.xz --family ipv4 --engine poptrie --loop 20`. Of
//! 608,540 changes all were in place, 1.14 million a second of the writer's time (`dir-17-bitmap`: 1.23), seen after 5.0 us
//! (median) and 182 us (99.9 %). The reader's rate, 129 million lookups a second, fell by 0.1 %.
//!
//! # Measured
//!
//! Against the form before, whose nodes were structures of plain integers (dfz4-2023, AMD EPYC Zen 4, AVX2, medians of four runs
//! in turns, `fibula-lab rates --engine poptrie --batch 1 --batch 256`): single lookups 1.05 times as many for MATCH and 1.13 for
//! RND, batches of 256 0.98 and 1.07. On dfz6-2024, 1.44 and 1.12, batches of 256 1.19 and 1.53. Single lookups count by POPCNT
//! where the machine has it, and the walk below the direct table is not inlined, so that keys which end there save no registers.
//! Batches of IPv6 choose bit map and base without a branch; for IPv4 that makes MATCH 0.89 times as fast, as few keys of a full
//! table go deeper than one node and the branch is foreseen, and a branch makes IPv6 0.90 times as fast. Without POPCNT, single
//! lookups of IPv4 MATCH are 0.80 times as many.

mod build;
mod change;
mod check;
mod fill;
mod kernel;
mod layout;
mod lookup;
mod open;
mod prepared;
mod scalar;
mod shadow;
#[cfg(test)]
mod tests;
mod tidy;
mod update;

use fibula::net::Key;
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Engine, Families, Role, Update};

use layout::Poptrie;

const NAME: &str = "poptrie";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![Engine {
        name: NAME,
        summary: "trie of 64 ways, bit maps and population counts",
        use_when: "you compare with Poptrie (SIGCOMM 2015)",
        paper: "Asai and Ohara, Poptrie (SIGCOMM 2015)",
        families: Families::Both,
        role: Role::Published,
        update: Update::InPlace,
        in_place: Some(update::build),
        open: Some(open::open),
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Poptrie::build(routes, limits)?)),
    }]
}
