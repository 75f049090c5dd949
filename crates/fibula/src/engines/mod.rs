//! The engines, each a type with the chapter that explains it.
//!
//! | engine | take it when |
//! |---|---|
//! | [`Dir17Bitmap`] | an IPv4 table is full, and memory matters or it changes |
//! | [`Dir18Lines`] | an IPv4 table is full and does not change |
//! | [`Dir17Sparse`] | a full IPv4 table does not change, and bytes matter most |
//! | [`Dir248`] | IPv4 traffic hits few addresses, and 34 MB do not matter |
//! | [`RangeBtree`] | an IPv4 table has at most a thousand routes |
//! | [`DirBtree`] | the table is IPv6 |
//! | [`DirBtreeByte`] | a full IPv6 table does not change, and bytes matter most |
//! | [`PlanB`] | an IPv6 table has at most some fifty routes |
//! | [`BinaryTrie`] | you need an oracle: it judges the others, slowly |
//!
//! [`fib::build`](crate::fib::build) chooses; [`registry`](crate::fib::registry) finds them by name. A program that names an
//! [`EngineType`] by its type links that one alone:
//!
//! ```
//! use fibula::engines::{DirBtree, EngineType};
//! use fibula::rib::Rib;
//!
//! let rib = Rib::<u128>::default();
//! let fib = DirBtree::build(&rib, Default::default())?;
//! assert_eq!(fib.lookup(1_u128), None);
//! # Ok::<(), fibula::fib::BuildError>(())
//! ```
//!
//! An engine for one family does not compile for the other:
//!
//! ```compile_fail,E0277
//! # use fibula::engines::{DirBtree, EngineType};
//! let rib = fibula::rib::Rib::<u32>::default();
//! DirBtree::build(&rib, Default::default());
//! ```

// An engine that is missing from the list below is dead code.
#![cfg_attr(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    deny(dead_code)
)]

pub(crate) mod binary_trie;
pub(crate) mod dir_17_bitmap;
pub(crate) mod dir_17_sparse;
pub(crate) mod dir_18_lines;
pub(crate) mod dir_24_8;
pub(crate) mod dir_btree;
pub(crate) mod dir_btree_byte;
pub(crate) mod planb;
pub(crate) mod range_btree;

use crate::fib::registry::Engine;
use crate::fib::{BuildError, Fib};
use crate::memory::Limits;
use crate::net::{Key, Routes};

// The list, the oracle first, each with the keys it serves: tests, fuzz targets, the command and the documents follow from it.
crate::__engines! {
    /// Returns the engines for keys of this kind, in the list's order.
    pub fn engines;
    binary_trie: Key,
    range_btree: Ipv4Key,
    dir_24_8: Ipv4Key,
    dir_17_bitmap: Ipv4Key,
    dir_17_sparse: Ipv4Key,
    dir_18_lines: Ipv4Key,
    planb: Ipv6Key,
    dir_btree_byte: Ipv6Key,
    dir_btree: Ipv6Key,
}

/// An engine by type.
pub trait EngineType<K: Key> {
    /// Returns what is known of it.
    fn engine() -> Engine<K>;

    /// Builds it from routes in order, within `limits`.
    ///
    /// # Errors
    /// When memory runs out, or the format is too small for the table.
    fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Box<dyn Fib<K>>, BuildError> {
        Self::engine().build(routes, limits)
    }
}

macro_rules! by_type {
    ($($Name:ident: $module:ident, $($key:ty),+;)*) => {$(
        #[doc = include_str!(concat!(stringify!($module), "/chapter.md"))]
        #[derive(Debug)]
        pub enum $Name {}

        // For the keys themselves and never inlined, so that the engine is compiled here and not again in every crate that names it.
        $(impl EngineType<$key> for $Name {
            #[inline(never)]
            fn engine() -> Engine<$key> {
                let [engine] = $module::engines();
                engine
            }

            // Not by the entry, so that a program which only builds is not linked with the form that changes.
            #[inline(never)]
            fn build(routes: &dyn Routes<$key>, limits: Limits) -> Result<Box<dyn Fib<$key>>, BuildError> {
                let [engine] = $module::engines::<$key>();
                engine.build(routes, limits)
            }
        })+
    )*};
}

by_type! {
    BinaryTrie: binary_trie, u32, u128;
    RangeBtree: range_btree, u32;
    Dir248: dir_24_8, u32;
    Dir17Bitmap: dir_17_bitmap, u32;
    Dir17Sparse: dir_17_sparse, u32;
    Dir18Lines: dir_18_lines, u32;
    PlanB: planb, u128;
    DirBtree: dir_btree, u128;
    DirBtreeByte: dir_btree_byte, u128;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use crate::fib::registry::Engines;

    /// The compiler reports a module that the list lacks; this reports a folder without a `mod` line.
    #[test]
    fn every_folder_is_a_module_of_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/engines");
        let folders: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        assert_eq!(folders, super::NAMES.iter().copied().map(str::to_owned).collect());
    }

    /// The registry has the sentence; the chapters and the table above repeat it.
    #[test]
    fn chapters_and_the_table_say_what_the_registry_says() {
        let all = Engines::OWN.all::<u32>().into_iter().map(|one| (one.name, one.use_when));
        let all = all.chain(Engines::OWN.all::<u128>().into_iter().map(|one| (one.name, one.use_when)));
        for (name, use_when) in all {
            let folder = format!("{}/src/engines", env!("CARGO_MANIFEST_DIR"));
            let chapter =
                fs::read_to_string(format!("{folder}/{}/chapter.md", name.replace('-', "_"))).unwrap();
            let sentence = format!("**When to use it:** when {use_when}.");
            assert!(
                chapter.split('\n').collect::<Vec<_>>().join(" ").contains(&sentence),
                "{name}: {sentence}"
            );
            let table = fs::read_to_string(format!("{folder}/mod.rs")).unwrap();
            assert!(table.contains(&format!("`] | {use_when} |\n")), "{name}: {use_when}");
        }
    }
}
