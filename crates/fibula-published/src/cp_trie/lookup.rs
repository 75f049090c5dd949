//! The trait `Fib`.

use fibula::fib::{CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::simd::Present;

use super::kernel;
use super::layout::{CpTrie, Leaf};

impl<K: Key, L: Leaf> Fib<K> for CpTrie<K, L> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        kernel::batch(isa, self, keys, results);
    }

    fn memory(&self) -> Memory {
        let levels = self.levels.iter().map(|level| memory::of(&level.words) + memory::of(&level.leaves));
        levels.fold(memory::of(&self.direct) + memory::of(&self.levels), |sum, level| sum + level)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
