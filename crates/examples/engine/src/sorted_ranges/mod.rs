//! Disjoint ranges in an array, found by the standard library's binary search.
//!
//! **When to use it:** when you want to see what an engine is made of.
//!
//! A table is a sequence of ranges of addresses, each with one next hop. The range of a key is the last one that starts
//! at or before it.
//!
//! ```text
//! | 0: none | 10.0.0.0: A | 10.1.0.0: B | 10.2.0.0: A | 11.0.0.0: none |     made of 10.0.0.0/8 to A, 10.1.0.0/16 to B
//! ```
//!
//! # Invariants
//!
//! 1. The first range starts at the first address.
//! 2. Starts ascend strictly.
//! 3. Neighbours lead to different next hops.
//!
//! # The files
//!
//! `layout.rs` has the data, `build.rs` makes it from routes, `lookup.rs` answers, and `check.rs` verifies the invariants.
//! Larger engines have more of them: `scalar.rs` and `kernel.rs` for batches with vector instructions
//! ([`kernel`](fibula::unstable::simd::kernel) compiles one body for every instruction set), `update.rs` for changes in place,
//! `open.rs` for files. `range-search` in `crates/fibula-published` is this engine with a kernel.

mod build;
mod check;
mod layout;
mod lookup;

use fibula::fib::registry::{Engine, Families, Role, Update};
use fibula::net::Key;
use fibula::unstable::simd::Isa;

use layout::SortedRanges;

const NAME: &str = "sorted-ranges";

/// Returns the registry entry: what tests, measurements and lists know about the engine.
#[must_use]
pub fn engines<K: Key>() -> [Engine<K>; 1] {
    [Engine {
        name: NAME,
        summary: "disjoint ranges and the standard library's binary search",
        use_when: "you want to see what an engine is made of",
        paper: "none: an example",
        families: Families::Both,
        role: Role::Own,
        // Every change builds the table again, because there is no `update.rs`.
        update: Update::Rebuild,
        in_place: None,
        // Files cannot hold it, because there is no `open.rs`.
        open: None,
        maps: false,
        // No table is too large for the format.
        limits: None,
        // Portable code alone, because there is no `kernel.rs`.
        isas: &[Isa::Scalar],
        build: |routes, limits| Ok(Box::new(SortedRanges::build(routes, limits)?)),
    }]
}
