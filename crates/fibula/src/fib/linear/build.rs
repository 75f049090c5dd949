//! Routes to layout: a copy.

use core::ops::ControlFlow;

use crate::fib::BuildError;
use crate::memory::{Budget, Limits};
use crate::net::{Key, Prefix, Routes};

use super::{Linear, NAME};

impl<K: Key> Linear<K> {
    /// Copies the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let mut copy = budget.vec(routes.len()).map_err(|error| BuildError::memory(NAME, error))?;
        let mut refused = None;
        let _ = routes.visit(Prefix::ALL, &mut |route| match budget.push(&mut copy, route) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        });
        match refused {
            Some(error) => Err(BuildError::memory(NAME, error)),
            None => Ok(Self { routes: copy, budget }),
        }
    }
}
