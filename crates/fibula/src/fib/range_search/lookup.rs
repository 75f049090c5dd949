//! The search, alone and eight at a time.

use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::Present;

use super::RangeSearch;
use super::layout::LANES;

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

    fn lookup_batch_on(&self, _isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
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
