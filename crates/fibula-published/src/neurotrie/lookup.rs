//! The trait `Fib`.

use fibula::fib::{CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::simd::Present;

use super::kernel;
use super::layout::Neurotrie;

impl<K: Key> Fib<K> for Neurotrie<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        kernel::batch(isa, self, keys, results);
    }

    fn memory(&self) -> Memory {
        let dictionary = self.next_hops.as_ref().map(memory::of).unwrap_or_default();
        memory::of(&self.entries) + dictionary
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
