//! The kernels: the walk with the line searches of each instruction set.

use crate::net::Key;
use crate::simd::kernel;

use super::scalar::{View, batch as batch_scalar, one as one_scalar};

kernel! {
    /// Looks up a batch: [`View::batch`].
    #[allow(clippy::redundant_closure, reason = "functions compiled for an instruction set cannot be passed as closures")]
    pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[K], found: &mut [u32])
    scalar batch_scalar;
    vector op {
        view.batch(
            keys,
            found,
            |line, key| op::lines::rank(line, key),
            |leaf, key| op::lines::leaf(view.lines.0.at(leaf), key),
            |values, bits| op::lines::any_has(values, bits),
        );
    }
}

kernel! {
    /// Looks up one key: [`View::one`].
    pub(super) fn one<K: Key>(view: &View<'_>, key: K) -> u32;
    scalar one_scalar;
    vector op {
        view.one(key, |line, key| op::lines::rank(line, key), |leaf, key| op::lines::leaf(view.lines.0.at(leaf), key))
    }
}
