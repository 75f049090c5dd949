//! Routes to tree: one insert after another.

use core::ops::ControlFlow;

use crate::fib::BuildError;
use crate::memory::Limits;
use crate::net::{Key, Prefix, Routes};
use crate::radix::RadixTree;

use super::{NAME, Radix};

impl<K: Key> Radix<K> {
    /// Inserts the routes one by one.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut tree = RadixTree::new(limits);
        let mut refused = None;
        let _ = routes.visit(Prefix::ALL, &mut |route| match tree.insert(route) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        });
        if let Some(error) = refused {
            return Err(BuildError::memory(NAME, error));
        }
        tree.shrink();
        Ok(Self { tree })
    }
}
