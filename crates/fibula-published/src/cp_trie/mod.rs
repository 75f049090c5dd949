//! CP-Trie: a multibit trie of bit maps whose words count the set bits before them, so that strides can be long.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because PlanB's paper compares itself with it. It is built after that paper's description; its own paper was not
//! read.
//!
//! One of the schemes that PlanB is compared with (its section 2): Poptrie's nodes have one word of 64 slots because a population
//! count counts the bits of one word. Here each word is stored with the number of set bits in all words before it (a *cumulative*
//! count). One population count then finds a child or a leaf in a bit map of any length. The
//! layout is this project's: a count goes over a whole level, and so is the index of the child or leaf itself.
//!
//! # Memory
//!
//! ```text
//! direct:   2^16 entries of 4 bytes: 1, next hop; or 0, node of the first level
//! level:    the nodes that begin at a bit of the key, in the order of their addresses, 4 words each (256 slots)
//! word:     nodes | leaves | nodes before | leaves before     24 bytes: 64, 64, 32 and 32 bits
//!           |       |
//!           |       a bit a slot: a leaf that differs from the one before it in the node
//!           a bit a slot: a node of the next level
//! leaves:   of each level, next hops of 16 bits, or of 32 where a next hop of the table needs them
//! ```
//!
//! Next hops are pushed down to the leaves. Strides are 16 bits and then 8 for every node; `cp-trie:24` has a direct table of 24
//! bits. Both end with the last bit of IPv4 and of IPv6.
//!
//! # Lookup
//!
//! ```text
//! entry = direct[first 16 bits of the key]; if it is a next hop: that
//! for each level: slot = the next 8 bits; word = words[4 * node + slot / 64]; bit = slot % 64
//!                 if not word.nodes has bit: leaves[word.leaves before + ones(word.leaves up to bit) - 1]
//!                 node = word.nodes before + ones(word.nodes up to bit) - 1
//! ```
//!
//! A step reads one word: where nodes are and which one it is are in the same 24 bytes. A batch walks level by level, 128 keys side by
//! side; the word of the next level is fetched as soon as its number is known. The keys that still walk are in a list, which is
//! kept without a branch.
//!
//! # Invariants
//!
//! 1. There is a direct entry for every value of the leading bits, and a level for each stride after them.
//! 2. The nodes of a level are numbered in the order of the direct entries or slots that lead to them, each by one.
//! 3. A word has the numbers of nodes and leaves in all words of the level before it.
//! 4. A slot is a node or a leaf. The first leaf of a node has a bit.
//! 5. Leaves are in the order of their bits. Neighbours in a node differ.
//!
//! # Changes
//!
//! A change of one bit moves the counts of a whole level, so that the trie is built anew and swapped in by what holds it.
//!
//! # Limits and cost
//!
//! At most 2^31 nodes and 2^32 leaves a level. The direct table takes 256 KiB, with 24 bits 64 MiB. Next hops from 2^31 on do not
//! fit a direct entry and take a node.
//!
//! Hostile tables: a single IPv4 host route costs 2 nodes of 96 bytes, an IPv6 one 14.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
#[cfg(test)]
mod tests;

use fibula::net::{Key, KeyKind};
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Build, Engine, Families, Role, Update};

use layout::Strides;

const NAME: &str = "cp-trie";

/// Returns the strides: those of the chapter, and shorter ones for the toy widths.
const fn strides<K: Key>() -> Strides {
    match (K::KIND, K::BITS) {
        (KeyKind::Toy, ..=3) => Strides { direct: 1, node: 1 },
        (KeyKind::Toy, ..=8) => Strides { direct: 2, node: 2 },
        (KeyKind::Toy, _) => Strides { direct: 4, node: 8 },
        _ => Strides { direct: 16, node: 8 },
    }
}

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![entry(NAME, |routes, limits| build::build(routes, strides::<K>(), limits))]
}

/// Returns the entry with a direct table of 24 bits.
pub(crate) fn variants<K: Key>() -> Vec<Engine<K>> {
    if const { matches!(K::KIND, KeyKind::Toy) } {
        return Vec::new();
    }
    vec![entry("cp-trie:24", |routes, limits| build::build(routes, Strides { direct: 24, node: 8 }, limits))]
}

fn entry<K: Key>(name: &'static str, build: Build<K>) -> Engine<K> {
    Engine {
        name,
        summary: "trie of 256 ways, bit maps beside cumulative population counts",
        use_when: "you compare with CP-Trie, as PlanB's paper has it",
        paper: "after PlanB's description, section 2 (CP-Trie)",
        families: Families::Both,
        role: Role::Described,
        update: Update::Rebuild,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: Isa::ALL,
        build,
    }
}
