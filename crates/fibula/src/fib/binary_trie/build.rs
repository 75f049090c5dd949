//! Routes to layout: one insert after another.

use core::marker::PhantomData;
use core::ops::ControlFlow;

use crate::fib::BuildError;
use crate::memory::{Budget, Limits};
use crate::net::{Key, Prefix, Routes};

use super::layout::{Node, ROOT};
use super::{BinaryTrie, NAME};

impl<K: Key> BinaryTrie<K> {
    /// Builds the trie of the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let mut nodes = budget.vec(1).map_err(|error| BuildError::memory(NAME, error))?;
        nodes.push(Node::default());
        let mut trie = Self { nodes, free: ROOT, free_len: 0, budget, keys: PhantomData };
        let mut refused = None;
        let _ = routes.visit(Prefix::ALL, &mut |route| match trie.insert(route) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        });
        if let Some(error) = refused {
            return Err(BuildError::memory(NAME, error));
        }
        trie.budget.shrink(&mut trie.nodes);
        Ok(trie)
    }
}
