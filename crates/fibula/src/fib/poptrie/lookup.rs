//! Lookups: the kernel of the chosen instruction set, by the width of leaves.

use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::kernel;
use super::layout::{Leaves, Poptrie};

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
        let leaves = match &self.leaves {
            Leaves::Narrow(leaves) => memory::of(leaves),
            Leaves::Wide(leaves) => memory::of(leaves),
        };
        memory::of(&self.direct) + memory::of(&self.nodes) + leaves
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
