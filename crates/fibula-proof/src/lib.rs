//! The test machine, which checks every structure of the registry.
//!
//! Nothing here knows a structure by name: the tests, in `tests/machine`, are made from the registry. There are three
//! oracles, from the most obvious to the fastest: painting (toy widths: every address gets the next hop of every prefix
//! that contains it, shorter ones first), the linear scan, and the binary trie.
//!
//! | module | what it does |
//! |---|---|
//! | [`subject`] | a structure under test: built, or updated by changes |
//! | [`verdict`] | compares answers and says how they differ, as a case that can be kept |
//! | [`instruction_sets`] | which sets a structure is queried with |
//! | [`toy`] | the small spaces: every prefix, every table of a kind, painting |
//! | [`tables`] | random tables, changes and probes |
//! | [`case`] | cases as data |
//! | [`allocator`] | counts what is allocated, and refuses beyond a limit |
//! | [`fault`] | planted faults that the machine must catch |

pub mod allocator;
pub mod case;
pub mod fault;
pub mod instruction_sets;
pub mod subject;
pub mod tables;
pub mod toy;
pub mod verdict;

/// Runs the examples of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/guide/cookbook.md")]
    struct Cookbook;

    #[doc = include_str!("../../../docs/guide/maps.md")]
    struct Maps;

    #[doc = include_str!("../../../docs/guide/vrfs.md")]
    struct Vrfs;

    #[doc = include_str!("../../../docs/guide/next-hops.md")]
    struct NextHops;

    #[doc = include_str!("../../fibula/README.md")]
    struct Library;

    #[doc = include_str!("../../fibula-feed/README.md")]
    struct Feed;
}
