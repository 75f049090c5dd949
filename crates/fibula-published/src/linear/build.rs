//! Routes to layout: a copy.

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Routes};
use fibula::unstable::memory::{Budget, Limits};

use super::{Linear, NAME};

impl<K: Key> Linear<K> {
    /// Builds the structure: copies the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let refused = |error| BuildError::memory(NAME, error);
        let mut copy = budget.vec(routes.len()).map_err(refused)?;
        routes.try_for_each(Prefix::ALL, |route| budget.push(&mut copy, route)).map_err(refused)?;
        Ok(Self { routes: copy, budget })
    }
}
