//! Routes to layout, in one pass.

use fibula::fib::BuildError;
use fibula::net::{Key, NextHop, Prefix, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits};
use fibula::unstable::parts::ranges::{self, Merge};

use super::{NAME, RangeSearch};

impl<K: Key> RangeSearch<K> {
    /// Builds the ranges of the routes, equal neighbours merged.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let (mut starts, mut next_hops) = (Buffer::new(), Buffer::new());
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            budget.push(&mut starts, range.start)?;
            budget.push(&mut next_hops, NextHop::word(range.next_hop))
        })
        .map_err(|error| BuildError::memory(NAME, error))?;
        budget.shrink(&mut starts);
        budget.shrink(&mut next_hops);
        Ok(Self { starts, next_hops })
    }
}
