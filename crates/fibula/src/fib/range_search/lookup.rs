//! The search, alone and eight at a time; IPv4 batches by vector kernels.

use crate::fib::parts::lanes;
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{Present, Words};

use super::layout::LANES;
use super::{RangeSearch, kernel};

impl<K: Key> RangeSearch<K> {
    /// Finds the ranges of `keys`, all searches in step: they have the same number of steps.
    #[inline]
    fn search<const COUNT: usize>(&self, keys: &[K; COUNT]) -> [usize; COUNT] {
        let mut low = [0; COUNT];
        let mut size = self.starts.len();
        while size > 1 {
            let half = size / 2;
            for (low, key) in low.iter_mut().zip(keys) {
                let middle = *low + half;
                *low = core::hint::select_unpredictable(self.starts[middle] <= *key, middle, *low);
            }
            size -= half;
        }
        low
    }
}

impl<K: Key> Fib<K> for RangeSearch<K> {
    fn lookup(&self, key: K) -> Option<NextHop> {
        let [range] = self.search(&[key]);
        NextHop::new(self.next_hops[range])
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        // A gather's index is signed.
        let starts = K::as_ipv4(&self.starts).filter(|starts| starts.len() <= 1 << 29);
        if let Some(starts) = starts
            && lanes::filled(isa, keys.len())
        {
            let (starts, next_hops) = (Words::new(starts), Words::new(&self.next_hops));
            return lanes::for_each_block(keys, results, |keys, found| {
                kernel::block(isa, starts, next_hops, keys, found);
            });
        }
        let (keys, rest) = keys.as_chunks::<LANES>();
        let (results, rest_results) = results.as_chunks_mut::<LANES>();
        for (keys, results) in keys.iter().zip(results) {
            for (range, result) in self.search(keys).into_iter().zip(results) {
                *result = NextHop::new(self.next_hops[range]);
            }
        }
        for (&key, result) in rest.iter().zip(rest_results) {
            *result = self.lookup(key);
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.starts) + memory::of(&self.next_hops)
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
