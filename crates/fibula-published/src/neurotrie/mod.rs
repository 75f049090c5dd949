//! Neurotrie: a trie with a stride of its own in every node, chosen for few accesses within a memory budget.
//!
//! **When to use it:** Never in a product: take `dir-17-bitmap` (IPv4) or `dir-btree` (IPv6) instead. It is here
//! because PlanB's paper compares itself with it. It is built after that paper's description; its own paper was not
//! read.
//!
//! One of the schemes that PlanB is compared with (its section 2). There, a policy learned by deep reinforcement chooses the stride
//! of each node; what PlanB measures is the variant "Neurotrie-S". Nothing is learned
//! here: what the policy is trained to approach, the fewest accesses for the memory, is computed. The layout, one array of plain
//! entries, is this project's too. PlanB puts the scheme's slowness down to walks between separate memory structures for each node;
//! this layout has none.
//!
//! # Memory
//!
//! ```text
//! entry:  1, code                              a leaf: the next hop, or dictionary[code]; no route is code 0
//!         0, stride - 1, place                 a node of 2^stride entries, from 2 * place on: 1, 4 and 27 bits
//!
//! root: 0, 3, 0 -->  | leaf | leaf | 0, 7, 8 | leaf | ...    16 entries, one a value of 4 bits
//!                                      |
//!                                      v  256 entries, one a value of the next 8 bits
//! ```
//!
//! Next hops are pushed down to the leaves, and nodes are only where answers differ. An id has 31 bits; where one of a table has more,
//! all entries hold codes of a dictionary.
//!
//! # Lookup
//!
//! ```text
//! entry = root; offset = 0
//! while entry is a node: entry = entries[2 * place + the next `stride` bits]; offset += stride
//! ```
//!
//! A batch walks step by step, 128 keys side by side; the next entry is fetched as soon as its number is known.
//!
//! # Strides
//!
//! The cost of a trie is the number of accesses that keys of the table's own prefixes make: one key a prefix, at a random address
//! in it. A key of a short prefix falls below each bit more with half the probability, which is counted exactly. With the price of
//! an entry given, the trie with the least sum of accesses and price is exact by dynamic programming: the best trie of a part of the
//! address space has a root of some stride and the best tries of the parts below, so that a sweep from the longest prefixes up tries
//! 16 strides in each part. The price is the one Lagrange multiplier of the budget, found by bisection until the trie takes 90 % of
//! the budget, or in 8 steps. Within the entries which that trie takes no other has fewer accesses; what it leaves of the
//! budget is not used. The strict optimum for a budget, over (node, budget), costs the product of both; tests compare with it on small
//! tables.
//!
//! The budget is 32 entries (128 bytes) a route, and 65,536: about what PlanB's Fig. 12 leaves to the scheme, 6 to 13 times PlanB's own.
//! Where even the smallest trie takes more, it is taken. `neurotrie:8`, `:16`, `:64` and `:128` have other budgets a route.
//! `neurotrie:greedy:P` looks at one node at a time, as LC-tries do: the longest stride at which P % of the entries begin a range or
//! are divided.
//!
//! # Invariants
//!
//! 1. Nodes fill the array, each after the node that leads to it and all that is below earlier entries of that.
//! 2. The strides on the way to a leaf are not more than the bits of a key.
//! 3. The entries of a node are not all the same.
//! 4. Every code has a next hop; code 0, and no other code, is "no route".
//!
//! # Changes
//!
//! It is built anew, and swapped in by what holds it.
//!
//! # Limits and cost
//!
//! At most 2^28 entries. A build computes the best trie for up to 10 prices, and notes a byte for each part that is divided.
//!
//! Hostile tables: host routes far apart have no short trie: an IPv6 one takes 8 nodes at least where memory is no object, and
//! 2 entries a bit where it is short.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod scalar;
mod strides;
#[cfg(test)]
mod tests;

use fibula::net::{Key, KeyKind};
use fibula::unstable::simd::Isa;

use fibula::fib::registry::{Build, Engine, Families, Role, Update};

use build::Choice;
use layout::Neurotrie;

const NAME: &str = "neurotrie";

/// Returns the choice of the chapter, and one for the toy widths that leaves them no room for a single node.
const fn choice<K: Key>() -> Choice {
    match K::KIND {
        KeyKind::Toy => Choice::Best { a_route: 3, more: 2 },
        _ => Choice::Best { a_route: 32, more: 1 << 16 },
    }
}

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> Vec<Engine<K>> {
    vec![entry(NAME, |routes, limits| Ok(Box::new(Neurotrie::build(routes, choice::<K>(), limits)?)))]
}

/// Returns the entries with other budgets, and with the greedy choice.
pub(crate) fn variants<K: Key>() -> Vec<Engine<K>> {
    macro_rules! variants {
        ($($name:literal $choice:expr;)*) => {
            vec![$(entry($name, |routes, limits| Ok(Box::new(Neurotrie::build(routes, $choice, limits)?)))),*]
        };
    }
    if const { matches!(K::KIND, KeyKind::Toy) } {
        return Vec::new();
    }
    variants! {
        "neurotrie:8" Choice::Best { a_route: 8, more: 1 << 16 };
        "neurotrie:16" Choice::Best { a_route: 16, more: 1 << 16 };
        "neurotrie:64" Choice::Best { a_route: 64, more: 1 << 16 };
        "neurotrie:128" Choice::Best { a_route: 128, more: 1 << 16 };
        "neurotrie:greedy:50" Choice::Greedy { percent: 50 };
        "neurotrie:greedy:25" Choice::Greedy { percent: 25 };
        "neurotrie:greedy:10" Choice::Greedy { percent: 10 };
        "neurotrie:greedy:5" Choice::Greedy { percent: 5 };
    }
}

fn entry<K: Key>(name: &'static str, build: Build<K>) -> Engine<K> {
    Engine {
        name,
        summary: "trie with a stride a node, the fewest accesses within a budget",
        use_when: "you compare with Neurotrie, as PlanB's paper has it",
        paper: "after PlanB's description, section 2 (Neurotrie)",
        families: Families::Both,
        role: Role::Described,
        update: Update::Rebuild,
        in_place: None,
        open: None,
        maps: false,
        limits: Some("268,435,456 entries"),
        isas: Isa::ALL,
        build,
    }
}
