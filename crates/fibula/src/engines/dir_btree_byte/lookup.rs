//! Lookups: the kernel of the chosen instruction set.

use crate::fib::{CheckError, Fib, Sections};
use crate::memory::Memory;
use crate::net::{Key, NextHop};
use crate::simd::{self, Present};

use super::NAME;
use super::kernel;
use super::layout::DirBtreeByte;

impl<K: Key> Fib<K> for DirBtreeByte<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        NextHop::new(kernel::one(simd::chosen(), &self.view(), key))
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        kernel::batch(isa, &self.view(), keys, NextHop::words(results));
    }

    fn prefetches_keys(&self, _isa: Present) -> bool {
        true
    }

    fn memory(&self) -> Memory {
        self.trees.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }

    fn sections(&self) -> Option<Sections<'_>> {
        Some(self.trees.parts(NAME))
    }
}
