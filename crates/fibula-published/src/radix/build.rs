//! Routes to tree: one insert after another.

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Routes};
use fibula::radix::RadixTree;
use fibula::unstable::memory::Limits;

use super::{NAME, Radix};

impl<K: Key> Radix<K> {
    /// Builds the tree of the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut tree = RadixTree::new(limits);
        routes
            .try_for_each(Prefix::ALL, |route| tree.insert(route).map(drop))
            .map_err(|error| BuildError::memory(NAME, error))?;
        tree.shrink();
        Ok(Self { tree })
    }
}
