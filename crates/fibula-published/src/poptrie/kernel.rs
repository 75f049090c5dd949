//! The walk down, compiled with the population count of each instruction set.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd::kernel;

use super::layout::{Leaf, Poptrie};

kernel! {
    /// Looks up a batch: [`Poptrie::batch`].
    pub(super) fn batch<K: Key, L: Leaf>(
        fib: &Poptrie<K>,
        leaves: &[L],
        keys: &[K],
        results: &mut [Option<NextHop>],
    )
    scalar Poptrie::batch;
    vector op {
        // No step handles several keys at once. What the instruction sets add is a population count in one instruction.
        let _ = op::splat(0);
        fib.batch(leaves, keys, results);
    }
}
