//! Lookups: vector kernels for full vectors of keys, portable code for everything else.

use fibula::fib::{CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::parts::lanes;
use fibula::unstable::simd::Present;

use super::kernel;
use super::layout::Sail;

impl<K: Key> Fib<K> for Sail<K> {
    #[inline]
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if !lanes::filled(isa, keys.len()) {
            return self.batch(keys, results);
        }
        let view = self.view();
        lanes::for_each_block(keys, results, |keys, results| match self.next_hops {
            None => kernel::block::<false>(isa, &view, keys, results),
            Some(_) => kernel::block::<true>(isa, &view, keys, results),
        });
    }

    fn memory(&self) -> Memory {
        let dictionary = self.next_hops.as_ref().map(memory::of).unwrap_or_default();
        self.levels.iter().map(memory::of).fold(dictionary, |sum, level| sum + level)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
