#![doc = include_str!("chapter.md")]

mod build;
mod check;
mod layout;
mod lookup;
mod update;

use crate::net::Key;
use crate::simd::Isa;

use crate::fib::registry::{Engine, Families, Role, Update};

pub(crate) use layout::BinaryTrie;

const NAME: &str = "binary-trie";

/// Returns the registry entry.
#[must_use]
pub(crate) fn engines<K: Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "one bit a level; the oracle of large tables",
        use_when: "you need an oracle: it judges the others, slowly",
        paper: "multibit-trie router paper, section V.C",
        families: Families::Both,
        role: Role::Oracle { routes_limit: usize::MAX },
        update: Update::InPlace,
        in_place: None,
        open: None,
        maps: false,
        limits: None,
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(BinaryTrie::build(routes, limits)?)),
    }]
}
