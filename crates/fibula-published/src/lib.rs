//! Lookup structures from papers, for comparison. No product should take them for a table of today. They stay close to how they were
//! published, and have their chapters, measurements and tests here.
//!
//! The engines for products are in the crate [`fibula`]. [`ENGINES`], [`engines`] and [`find`] have both: the laboratory and the
//! test machine use them.
//!
//! ```
//! use fibula::memory::Limits;
//! use fibula::rib::Rib;
//!
//! let rib = Rib::<u32>::default();
//! let fib = fibula_published::find::<u32>("poptrie")?.build(&rib, Limits::default())?;
//! assert_eq!(fib.lookup(0), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! They are written against [`fibula::unstable`], as an engine of yours could be.

// An engine that is missing from the list below is dead code.
#![cfg_attr(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    deny(dead_code)
)]
// Targets without vector kernels do not use the parts that only kernels need.
#![cfg_attr(
    not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))),
    allow(dead_code, unused_imports, unused_macros)
)]

mod bloom;

// One folder an engine: a `mod` line here and its name in the list below. The modules are public for their chapters.
pub mod bloom_baseline;
pub mod bloom_naive;
pub mod bloomfwd;
pub mod cp_trie;
pub mod dxr;
pub mod hbs;
pub mod linear;
pub mod miht;
pub mod multibit;
pub mod neurotrie;
pub mod planb;
pub mod poptrie;
pub mod radix;
pub mod range_search;
pub mod sail;

use fibula::fib::registry::{self, Engine, Engines, UnknownEngine};
use fibula::net::{Key, KeyKind};

// The list, oracles first, each with the keys it serves.
fibula::__engines! {
    /// Returns the engines of this crate for keys of this kind.
    fn published;
    linear: Key,
    radix: Key,
    multibit: Key,
    miht: Key,
    range_search: Key,
    planb: Key,
    dxr: Ipv4Key,
    poptrie: Key,
    sail: Ipv4Key,
    hbs: Key,
    cp_trie: Key,
    neurotrie: Key,
    bloom_naive: Key,
    bloom_baseline: Ipv4Key,
    bloomfwd: Key,
}

/// The library's engines and those of this crate.
pub const ENGINES: Engines = Engines::new(engines, engines);

/// Returns the library's engines for keys of this kind, then those of this crate.
#[must_use]
pub fn engines<K: Key>() -> Vec<Engine<K>> {
    let mut all = fibula::fib::engines();
    all.extend(published());
    all
}

/// Returns the oracles of this crate, which are written to be evidently right.
#[must_use]
pub fn oracles<K: Key>() -> Vec<Engine<K>> {
    let mut oracles = linear::engines();
    oracles.extend(radix::engines());
    oracles
}

/// Returns engines with other parameters than those of the list, by which papers compare them: a name and the values, divided by
/// colons. [`find`] knows them too. Their chapters say what the values mean.
#[must_use]
pub fn variants<K: Key>() -> Vec<Engine<K>> {
    // Compiled here, once for every program and test, as the list is.
    #[inline(never)]
    fn ipv4() -> Vec<Engine<u32>> {
        generic()
    }
    #[inline(never)]
    fn ipv6() -> Vec<Engine<u128>> {
        generic()
    }
    fn generic<K: Key>() -> Vec<Engine<K>> {
        let mut all = bloom_naive::variants();
        all.extend(bloomfwd::variants());
        all.extend(cp_trie::variants());
        all.extend(neurotrie::variants());
        all
    }
    if const { matches!(K::KIND, KeyKind::Toy) } {
        generic()
    } else {
        registry::one_kind(ipv4()).or_else(|| registry::one_kind(ipv6())).unwrap_or_default()
    }
}

/// Returns the engine of this name, the library's or this crate's, or the [variant](variants).
///
/// # Errors
/// When the family has none; the error lists those that it has.
pub fn find<K: Key>(name: &str) -> Result<Engine<K>, UnknownEngine> {
    registry::find_in(&engines(), name)
        .or_else(|error| registry::find_in(&variants(), name).map_err(|_| error))
}

/// Engines by type: reports compare what DXR and PlanB consist of with the figures that their papers print.
pub mod internals {
    pub use crate::bloom::figures::{ChosenLevels, chosen_levels, expanded_group, false_positives};
    pub use crate::bloom::lengths::Choice;
    pub use crate::bloom::sizes::Ratio;
    pub use crate::dxr::geometry::Split;
    pub use crate::dxr::layout::Dxr;
    pub use crate::dxr::options::{Format, Options, Search};
    pub use crate::dxr::statistics::Statistics as DxrStatistics;
    pub use crate::multibit::layout::Multibit;
    pub use fibula::unstable::planb::{
        Capacity, Node, Node2x64, Node4x64, Node8x64, Node16x32, Node16x64, Node32x32, NodeWord, PlanB,
        TreeStatistics as PlanBStatistics, capacity,
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::{Engines, Key, registry};

    /// The library knows what this crate has without depending on it.
    #[test]
    fn the_library_knows_how_many_there_are_and_their_names() {
        fn lacking<K: Key>() -> Vec<&'static str> {
            let own = Engines::OWN.all::<K>();
            super::engines::<K>().iter().filter(|one| !own.contains(one)).map(|one| one.name).collect()
        }
        let more: BTreeSet<_> = lacking::<u32>().into_iter().chain(lacking::<u128>()).collect();
        assert_eq!(more.len(), registry::PUBLISHED_COUNT, "{more:?}");
        assert!(more.iter().all(|name| registry::is_published(name)), "{more:?}");
    }

    /// The compiler reports a module that the list lacks; this reports a folder without a `mod` line.
    #[test]
    fn every_folder_is_a_module_of_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let folders: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name != "bloom")
            .collect();
        assert_eq!(folders, super::NAMES.iter().copied().map(str::to_owned).collect());
    }
}
