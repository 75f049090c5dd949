//! Lookups: the kernel of the chosen instruction set, by the width of leaves.

use core::sync::atomic::{AtomicU32, Ordering};

use fibula::fib::{CheckError, Fib, Sections};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::Memory;
use fibula::unstable::simd::Present;

use super::kernel;
use super::layout::{Leaves, NODE_WORDS, Poptrie};

impl<K: Key> Fib<K> for Poptrie<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        match &self.leaves {
            Leaves::Narrow(leaves) => self.one(leaves, key),
            Leaves::Wide(leaves) => self.one(leaves, key),
        }
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        match &self.leaves {
            Leaves::Narrow(leaves) => kernel::batch(isa, self, leaves, keys, results),
            Leaves::Wide(leaves) => kernel::batch(isa, self, leaves, keys, results),
        }
    }

    fn memory(&self) -> Memory {
        let end = |at: usize| {
            self.ends.as_ref().map(|ends: &[AtomicU32; 2]| ends[at].load(Ordering::Relaxed) as usize)
        };
        let nodes = end(0).map_or(self.nodes.len(), |nodes| nodes * NODE_WORDS);
        let leaves = match &self.leaves {
            Leaves::Narrow(leaves) => leaves.memory_of(end(1).unwrap_or(leaves.len())),
            Leaves::Wide(leaves) => leaves.memory_of(end(1).unwrap_or(leaves.len())),
        };
        self.direct.memory() + self.nodes.memory_of(nodes) + leaves
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.parts())
    }
}
