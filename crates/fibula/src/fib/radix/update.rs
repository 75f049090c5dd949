//! Changes in place, which the tree itself makes.

use crate::fib::{Applied, BuildError, Updatable};
use crate::net::{Change, Key, Routes};

use super::{NAME, Radix};

impl<K: Key> Updatable<K> for Radix<K> {
    fn apply(&mut self, changes: &[Change<K>], _after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        self.tree.apply(changes).map_err(|error| BuildError::memory(NAME, error))?;
        Ok(Applied::InPlace)
    }
}
