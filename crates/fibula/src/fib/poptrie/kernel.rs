//! The walk down with the population count of an instruction set.

use crate::net::{Key, NextHop};
use crate::simd::kernel;

use super::layout::{Leaf, Poptrie};

kernel! {
    /// [`Poptrie::batch`].
    pub(super) fn batch<K: Key, L: Leaf>(
        fib: &Poptrie<K>,
        leaves: &[L],
        keys: &[K],
        results: &mut [Option<NextHop>],
    )
    scalar Poptrie::batch;
    vector op {
        // Nothing here is done for several keys at once; what the sets bring is that counting bits is one instruction.
        let _ = op::splat(0);
        fib.batch(leaves, keys, results);
    }
}
