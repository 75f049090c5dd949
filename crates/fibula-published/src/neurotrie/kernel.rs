//! The walk down, compiled with the shifts of each instruction set.

use fibula::net::{Key, NextHop};
use fibula::unstable::simd::kernel;

use super::layout::Neurotrie;

kernel! {
    /// Looks up a batch: [`Neurotrie::batch`].
    pub(super) fn batch<K: Key>(fib: &Neurotrie<K>, keys: &[K], results: &mut [Option<NextHop>])
    scalar Neurotrie::batch;
    vector op {
        // No step handles several keys at once. What the instruction sets add is shifts by any register.
        let _ = op::splat(0);
        fib.batch(keys, results);
    }
}
