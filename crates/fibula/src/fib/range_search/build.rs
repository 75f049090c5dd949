//! Routes to layout: one pass.

use core::ops::ControlFlow;

use crate::fib::BuildError;
use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Limits};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::{NAME, RangeSearch};

impl<K: Key> RangeSearch<K> {
    /// Builds the ranges of the routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let (mut starts, mut next_hops) = (Vec::new(), Vec::new());
        let mut refused = None;
        let _ = ranges::visit(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            let start = budget.push(&mut starts, range.start);
            match start.and_then(|()| budget.push(&mut next_hops, NextHop::word(range.next_hop))) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    refused = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = refused {
            return Err(BuildError::memory(NAME, error));
        }
        budget.shrink(&mut starts);
        budget.shrink(&mut next_hops);
        Ok(Self { starts, next_hops })
    }
}
