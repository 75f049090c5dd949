//! What others have made, as contestants of the benchmark.
//!
//! A rival is somebody else's structure in one of its forms. It comes with its source: a library or program that may be
//! absent, and then says how to get it. [`sources`] is the list; a source is a file or folder here and a line there. Those of
//! other languages stand in programs of their own ([`external`]).
//!
//! What makes a rival more than a straw man:
//!
//! - It is built by its own functions, with the options its own documentation gives for speed.
//! - It is timed on keys and answers of its own forms ([`Native`](crate::bench::Native)), converted before and read after.
//! - Its memory is what its format says that lookups touch, and what its own allocator says it handed out.
//! - It lies in pages of the same kind as our structures.
//! - A table that it cannot hold is refused with the reason. Wrong answers are counted as anybody's.

mod bart;
mod crates;
mod dpdk;
pub mod external;
mod python;
mod tools;

use fibula::net::Key;

use crate::bench::Contestant;
pub use tools::Tools;

/// Where rivals come from.
pub struct Source<K: Key> {
    /// The library or program.
    pub name: &'static str,
    /// Names of the contestants of this family, whether they are present or not.
    pub rivals: Vec<&'static str>,
    /// What to do where it is absent.
    pub get: String,
    /// The contestants, where it is present.
    pub contestants: Option<Vec<Contestant<K>>>,
}

/// All sources that have rivals of this family, present or not.
#[must_use]
pub fn sources<K: Key>(tools: &Tools) -> Vec<Source<K>> {
    let mut all = vec![dpdk::source::<K>()];
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
    fn names_of_rivals_are_nobody_elses() {
        unique::<u32>();
        unique::<u128>();
    }

    fn unique<K: Key>() {
        let mut all = names::<K>();
        all.extend(fibula::fib::algorithms::<K>().iter().map(|line| line.name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn who_is_present_has_the_contestants_it_names() {
        for source in sources::<u32>(&Tools::default()) {
            assert!(!source.get.is_empty());
            let Some(contestants) = source.contestants else { continue };
            let present: Vec<_> = contestants.iter().map(|rival| rival.name.as_str()).collect();
            assert_eq!(present, source.rivals);
            assert!(contestants.iter().all(|rival| rival.rival));
        }
    }
}
