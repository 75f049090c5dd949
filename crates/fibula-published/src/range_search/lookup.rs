//! Lookups: vector kernels for IPv4 batches, portable code for everything else.

use fibula::fib::{CheckError, Fib};
use fibula::net::{Key, NextHop};
use fibula::unstable::memory::{self, Memory};
use fibula::unstable::parts::lanes;
use fibula::unstable::simd::{Present, Words};

use super::kernel;
use super::layout::RangeSearch;

/// Most ranges that kernels can index: the index of a gather is signed.
const KERNEL_RANGES: usize = 1 << 29;

impl<K: Key> Fib<K> for RangeSearch<K> {
    fn lookup_key(&self, key: K) -> Option<NextHop> {
        self.one(key)
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        let starts = K::as_ipv4(&self.starts).filter(|starts| starts.len() <= KERNEL_RANGES);
        if let Some(starts) = starts
            && lanes::filled(isa, keys.len())
        {
            let (starts, next_hops) = (Words::new(starts), Words::new(&self.next_hops));
            return lanes::for_each_block(keys, results, |keys, found| {
                kernel::block(isa, starts, next_hops, keys, found);
            });
        }
        self.batch(keys, results);
    }

    fn memory(&self) -> Memory {
        memory::of(&self.starts) + memory::of(&self.next_hops)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
