//! The view of a table that lookups read, and lookups in portable code.

use crate::engines::dir_btree::scalar;
use crate::net::Key;
use crate::simd::{CodedLines, any_has, coded_by_thirds, rank_by_thirds};

use super::layout::{Codes, DirBtreeByte};

/// A table as kernels read it.
pub(super) type View<'a> = scalar::View<'a, Codes<'a>>;

/// Looks up a batch in portable code.
pub(super) fn batch<K: Key>(view: &View<'_>, keys: &[K], found: &mut [u32]) {
    let value = |leaf, key| coded_by_thirds(view.lines.0, leaf, key);
    view.batch(keys, found, rank_by_thirds, value, any_has);
}

/// Looks up one key in portable code.
pub(super) fn one<K: Key>(view: &View<'_>, key: K) -> u32 {
    view.one(key, rank_by_thirds, |leaf, key| coded_by_thirds(view.lines.0, leaf, key))
}

impl<K: Key> DirBtreeByte<K> {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        self.trees.view_of(self.codes())
    }

    #[inline]
    pub(super) fn codes(&self) -> Codes<'_> {
        Codes(CodedLines::new(&self.trees.lines))
    }
}
