//! Routes to layout: one insert after another.

use crate::fib::BuildError;
use crate::memory::{Budget, Limits};
use crate::net::{Key, Prefix, Routes};
use core::marker::PhantomData;

use super::layout::{Node, ROOT};
use super::{BinaryTrie, NAME};

impl<K: Key> BinaryTrie<K> {
    /// Builds the trie of the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let refused = |error| BuildError::memory(NAME, error);
        let mut nodes = budget.vec(1).map_err(refused)?;
        // The root exists even without routes, so lookups need not check for it.
        nodes.push(Node::default());
        let mut trie = Self { nodes, free: ROOT, free_len: 0, budget, keys: PhantomData };
        routes.try_for_each(Prefix::ALL, |route| trie.insert(route)).map_err(refused)?;
        trie.budget.shrink(&mut trie.nodes);
        Ok(trie)
    }
}
