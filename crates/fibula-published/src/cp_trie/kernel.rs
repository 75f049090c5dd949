//! The walk down, compiled with the population count of each instruction set.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd::kernel;

use super::layout::{CpTrie, Leaf};

kernel! {
    /// Looks up a batch: [`CpTrie::batch`].
    pub(super) fn batch<K: Key, L: Leaf>(fib: &CpTrie<K, L>, keys: &[K], results: &mut [Option<NextHop>])
    scalar CpTrie::batch;
    vector op {
        // No step handles several keys at once. What the instruction sets add is a population count in one instruction.
        let _ = op::splat(0);
        fib.batch(keys, results);
    }
}
