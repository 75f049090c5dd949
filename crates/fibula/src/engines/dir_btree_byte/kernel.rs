//! The kernels: the walk of `dir-btree` with the line searches of each instruction set.

use crate::net::Key;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
use crate::simd::coded;
use crate::simd::kernel;

use super::scalar::{View, batch as batch_scalar, one as one_scalar};

kernel! {
    /// Looks up a batch.
    #[allow(clippy::redundant_closure, reason = "functions compiled for an instruction set cannot be passed as closures")]
    pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[K], found: &mut [u32])
    scalar batch_scalar;
    vector op {
        view.batch(
            keys,
            found,
            |line, key| op::lines::rank(line, key),
            |leaf, key| coded(view.lines.0, leaf, key),
            |values, bits| op::lines::any_has(values, bits),
        );
    }
}

kernel! {
    /// Looks up one key.
    pub(super) fn one<K: Key>(view: &View<'_>, key: K) -> u32;
    scalar one_scalar;
    vector op {
        view.one(
            key,
            |line, key| op::lines::rank(line, key),
            |leaf, key| coded(view.lines.0, leaf, key),
        )
    }
}
