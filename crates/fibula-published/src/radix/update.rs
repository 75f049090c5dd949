//! Changes in place, which the tree itself makes.

use fibula::fib::{Applied, BuildError, Updatable};
use fibula::net::{Change, Key, Routes};

use super::{NAME, Radix};

impl<K: Key> Updatable<K> for Radix<K> {
    fn apply(&mut self, changes: &[Change<K>], _after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        self.tree.apply(changes).map_err(|error| BuildError::memory(NAME, error))?;
        Ok(Applied::InPlace)
    }
}
