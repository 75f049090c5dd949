//! Lookup structures: a table compiled into a form that answers fast.
//!
//! - [`build`] builds the structure that is fastest for a table, [`registry`] any other by name.
//! - [`Fib`] is what every structure can do: single lookups and batches. [`WithLength`] also returns the length of the
//!   matched prefix.
//! - [`DualFib`] is a structure for each family, which takes an [`IpAddr`](std::net::IpAddr).
//! - [`ranges`] turns a table into disjoint ranges of addresses.
//!
//! The other modules are the chapters of the structures: idea, paper, picture of the memory, pseudo code, invariants,
//! limits. Structures are built and used through [`Fib`] and the registry only; their types are private:
//!
//! ```compile_fail
//! use fibula::fib::dxr::Dxr;
//! ```
//!
//! A structure for one family does not compile for the other:
//!
//! ```compile_fail,E0599
//! # use fibula::fib::internals::*;
//! # let options = Options { k: 18, format: Format::Wide, search: Search::BranchFree };
//! let routes = fibula::rib::Rib::<u128>::default();
//! Dxr::build(&routes, options, Default::default());
//! ```
//!
//! ```
//! # use fibula::fib::internals::*;
//! # let options = Options { k: 18, format: Format::Wide, search: Search::BranchFree };
//! # let routes = fibula::rib::Rib::<u32>::default();
//! # Dxr::build(&routes, options, Default::default());
//! ```

// A structure that is missing from the list below is dead code.
#![cfg_attr(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    deny(dead_code)
)]

mod contract;
mod dual;
pub(crate) mod in_place;
#[cfg(test)]
pub(crate) mod in_place_tests;
mod matches;
mod parts;
pub mod registry;
pub(crate) mod sections;

// One folder a structure: a `mod` line here and its name in the list below. The modules are public for their chapters;
// nothing in them is.
pub mod binary_trie;
pub mod bloom_baseline;
pub mod bloom_naive;
pub mod bloomfwd;
pub mod cp_trie;
pub mod dir_17_bitmap;
pub mod dir_18_lines;
pub mod dir_24_8;
pub mod dir_btree;
pub mod dxr;
pub mod hbs;
pub mod linear;
pub mod miht;
pub mod multibit;
pub mod neurotrie;
pub mod planb;
pub mod poptrie;
pub mod radix;
pub mod range_btree;
pub mod range_search;
pub mod sail;

pub use crate::check::CheckError;
pub use contract::{Applied, BuildError, Fib, Updatable};
pub use dual::DualFib;
pub use matches::{Match, WithLength};
pub use parts::ranges;
pub(crate) use parts::units;
pub use sections::{Elements, Sections};

use crate::auto::{self, Workload};
use crate::memory::Limits;
use crate::net::{Key, Routes};

// The list, oracles first, each with the keys it serves: tests, fuzz targets, benchmarks, the command and the documents
// follow from it.
registry::algorithms! {
    linear: Key,
    binary_trie: Key,
    radix: Key,
    multibit: Key,
    miht: Key,
    range_search: Key,
    planb: Key,
    dir_24_8: Ipv4Key,
    dxr: Ipv4Key,
    poptrie: Key,
    sail: Ipv4Key,
    hbs: Key,
    cp_trie: Key,
    neurotrie: Key,
    bloom_naive: Key,
    bloom_baseline: Ipv4Key,
    bloomfwd: Key,
    range_btree: Ipv4Key,
    dir_17_bitmap: Ipv4Key,
    dir_18_lines: Ipv4Key,
    dir_btree: Ipv6Key,
}

/// Returns structures with other parameters than those of the list, by which papers compare them: a name and the values,
/// divided by colons. [`registry::find`] knows them too. Their chapters say what the values mean.
#[must_use]
pub fn variants<K: Key>() -> Vec<registry::Algorithm<K>> {
    let mut all = bloom_naive::variants();
    all.extend(bloomfwd::variants());
    all.extend(cp_trie::variants());
    all.extend(neurotrie::variants());
    all
}

/// Structures by type: `docs/papers.md` compares what DXR and PlanB consist of with the figures their papers print, and an
/// example of the laboratory reports what changes of a table would rewrite; the registry knows neither.
#[doc(hidden)]
pub mod internals {
    pub use super::dir_17_bitmap::layout::Dir17Bitmap;
    pub use super::dir_btree::layout::DirBtree;
    pub use super::dxr::geometry::Split;
    pub use super::dxr::layout::Dxr;
    pub use super::dxr::options::{Format, Options, Search};
    pub use super::dxr::statistics::Statistics as DxrStatistics;
    pub use super::multibit::layout::Multibit;
    pub use super::parts::bloom::figures::{ChosenLevels, chosen_levels, expanded_group, false_positives};
    pub use super::parts::bloom::lengths::Choice;
    pub use super::parts::bloom::sizes::Ratio;
    pub use super::planb::layout::{
        Node, Node2x64, Node4x64, Node8x64, Node16x32, Node16x64, Node32x32, PlanB, Word,
    };
    pub use super::planb::statistics::{Capacity, Statistics as PlanBStatistics, capacity};
}

/// Builds the structure that [`auto`] chooses for these routes, with default [`Limits`].
///
/// `routes` is a [`Rib`](crate::rib::Rib), a [`RouteSlice`](crate::net::RouteSlice) or anything else with ordered
/// routes. For lookups other than in batches of 256, or for less memory, use [`auto::build`]; for a structure of your
/// choice, [`Algorithm::build`](registry::Algorithm::build).
///
/// # Errors
/// When memory runs out.
pub fn build<K: Key>(routes: &dyn Routes<K>) -> Result<Box<dyn Fib<K>>, BuildError> {
    auto::build(routes, Workload::default(), Limits::default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    /// The compiler reports a module that the list lacks; this reports a folder without a `mod` line.
    #[test]
    fn every_folder_is_a_module_of_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fib");
        let folders: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name != "parts")
            .collect();
        assert_eq!(folders, super::STRUCTURES.iter().copied().map(str::to_owned).collect());
    }
}
