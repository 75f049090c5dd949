//! Other libraries, as contestants of the benchmark.
//!
//! A rival is one form of an engine of another library. It comes from a source: a library or program, which may be
//! absent and then says how to get it. [`sources`] is the list; a source is a file or folder here and an entry there.
//! Rivals in other languages run in programs of their own ([`external`]).
//!
//! How rivals are measured fairly:
//!
//! - A rival is built by its own functions, with the options that its documentation recommends for speed.
//! - It is timed on its own forms of keys and answers ([`Native`](crate::bench::Native)); conversions are not timed.
//! - Its lookup bytes are those that lookups touch by its format. Its other bytes are counted by its own allocator.
//! - It is placed in the same kind of memory pages as our engines.
//! - A table that it cannot hold is refused with the reason. Its wrong answers are counted, as for every contestant.

mod bart;
mod crates;
mod dpdk;
pub mod external;
mod plain;
mod python;
mod tools;

use fibula::net::Key;

use crate::bench::Contestant;
pub use tools::Tools;

/// A library or program that rivals come from.
pub struct Source<K: Key> {
    /// The library or program.
    pub name: &'static str,
    /// Names of its contestants for this family, present or not.
    pub rivals: Vec<&'static str>,
    /// How to get it if it is absent.
    pub get: String,
    /// The contestants, if it is present.
    pub contestants: Option<Vec<Contestant<K>>>,
}

/// Returns all sources that have rivals for this family, present or not.
#[must_use]
pub fn sources<K: Key>(tools: &Tools) -> Vec<Source<K>> {
    let mut all = vec![dpdk::source::<K>(), plain::source::<K>()];
    all.extend(crates::sources(tools));
    all.push(bart::source(tools));
    all.extend(python::sources(tools));
    all.retain(|source| !source.rivals.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<K: Key>() -> Vec<&'static str> {
        sources::<K>(&Tools::default()).into_iter().flat_map(|source| source.rivals).collect()
    }

    #[test]
    fn names_of_rivals_are_unique() {
        unique::<u32>();
        unique::<u128>();
    }

    fn unique<K: Key>() {
        let mut all = names::<K>();
        all.extend(fibula_published::engines::<K>().iter().map(|line| line.name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_present_source_has_the_contestants_it_names() {
        for source in sources::<u32>(&Tools::default()) {
            assert!(!source.get.is_empty());
            let Some(contestants) = source.contestants else { continue };
            let present: Vec<_> = contestants.iter().map(|rival| rival.name.as_str()).collect();
            assert_eq!(present, source.rivals);
            assert!(contestants.iter().all(|rival| rival.rival));
        }
    }
}
