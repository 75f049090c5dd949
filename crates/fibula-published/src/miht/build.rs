//! Routes to layout: one insert after another.

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits};

use super::NAME;
use super::layout::{Miht, NONE, Tree, Word};

impl<K: Key, W: Word, const M: usize> Miht<K, W, M> {
    /// Builds the structure of the routes, with keys of so many bits and a B+-tree of this order.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn build(
        routes: &dyn Routes<K>,
        key_bits: u8,
        order: usize,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let tree = Tree::new(order, &mut budget).map_err(|error| BuildError::memory(NAME, error))?;
        let mut miht = Self {
            tree,
            roots: Vec::new(),
            free_root: NONE,
            free_roots: 0,
            data: Buffer::new(),
            free: NONE,
            free_len: 0,
            keyless: NONE,
            key_bits,
            budget,
        };
        routes.try_for_each(Prefix::ALL, |route| {
            miht.reserve(1, 1, 1)?;
            miht.insert(route);
            Ok(())
        })?;
        miht.budget.shrink(&mut miht.tree.nodes);
        miht.budget.shrink(&mut miht.roots);
        miht.budget.shrink(&mut miht.data);
        Ok(miht)
    }
}
