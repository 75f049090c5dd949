//! The search in portable code: one key, or eight side by side.

use fibula::net::{Key, NextHop};

use super::layout::{LANES, RangeSearch};

impl<K: Key> RangeSearch<K> {
    /// Returns the range of each key. All searches run in step, because each takes the same number of steps.
    #[inline(always)]
    fn search<const COUNT: usize>(&self, keys: &[K; COUNT]) -> [usize; COUNT] {
        let mut low = [0; COUNT];
        let mut size = self.starts.len();
        while size > 1 {
            let half = size / 2;
            for (low, key) in low.iter_mut().zip(keys) {
                let middle = *low + half;
                // A branch here would be mispredicted every other time.
                *low = core::hint::select_unpredictable(self.starts[middle] <= *key, middle, *low);
            }
            size -= half;
        }
        low
    }

    /// Looks up one key.
    #[inline]
    pub(super) fn one(&self, key: K) -> Option<NextHop> {
        let [range] = self.search(&[key]);
        NextHop::new(self.next_hops[range])
    }

    /// Looks up a batch, [`LANES`] keys at a time.
    #[inline]
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let (keys, rest) = keys.as_chunks::<LANES>();
        let (results, rest_results) = results.as_chunks_mut::<LANES>();
        for (keys, results) in keys.iter().zip(results) {
            for (range, result) in self.search(keys).into_iter().zip(results) {
                *result = NextHop::new(self.next_hops[range]);
            }
        }
        for (&key, result) in rest.iter().zip(rest_results) {
            *result = self.one(key);
        }
    }
}
