//! The steps of the paper's ablation (Fig. 14) between the binary search and the batches: one key at a time.

use fibula::fib::{BuildError, CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::Memory;
use fibula::unstable::planb::{ANY, Codes, Node, PlanB, one};
use fibula::unstable::simd::{self, Present};

use super::kernel::counted;

/// How a node is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// In portable code without branches.
    Portable,
    /// By counting in a loop, which the compiler turns into vectors of the set.
    Compiled,
    /// By the vector operations of the set.
    Vectors,
}

/// A tree that is searched for one key at a time, in batches too.
#[derive(Debug)]
pub(super) struct Step<K, N: Copy> {
    tree: PlanB<K, N>,
    search: Search,
}

impl<K: Key, N: Node> Step<K, N> {
    /// Returns the step of a built tree.
    pub(super) fn boxed(
        tree: Result<PlanB<K, N>, BuildError>,
        search: Search,
    ) -> Result<Box<dyn Fib<K>>, BuildError> {
        Ok(Box::new(Self { tree: tree?, search }))
    }
}

impl<K: Key, N: Node> Step<K, N> {
    #[inline(always)]
    fn searched(&self, isa: Present, key: K) -> Option<NextHop> {
        let Self { tree, search } = self;
        let isa = if *search == Search::Portable { Present::SCALAR } else { isa };
        match (&tree.codes, search) {
            (Codes::Narrow(codes), Search::Compiled) => counted(isa, tree, codes, key),
            (Codes::Wide(codes), Search::Compiled) => counted(isa, tree, codes, key),
            (Codes::Narrow(codes), _) => one::<_, _, _, ANY>(isa, tree, codes, key),
            (Codes::Wide(codes), _) => one::<_, _, _, ANY>(isa, tree, codes, key),
        }
    }
}

impl<K: Key, N: Node> Fib<K> for Step<K, N> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.searched(simd::chosen(), key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        for (&key, result) in keys.iter().zip(results) {
            *result = self.searched(isa, key);
        }
    }

    fn memory(&self) -> Memory {
        self.tree.bytes()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.tree.walk()
    }
}
