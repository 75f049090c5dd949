//! Routes to layout, in one pass.

use fibula::fib::BuildError;
use fibula::net::{Key, Prefix, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits};
use fibula::unstable::parts::ranges::{self, Merge};

use super::NAME;
use super::layout::SortedRanges;

impl<K: Key> SortedRanges<K> {
    /// Builds the ranges of the routes, equal neighbours merged.
    ///
    /// # Errors
    /// When memory runs out: the budget refuses what `limits` do not allow, and nothing here aborts.
    pub(super) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let mut all = Buffer::new();
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            budget.push(&mut all, range)
        })
        .map_err(|error| BuildError::memory(NAME, error))?;
        budget.shrink(&mut all);
        Ok(Self { ranges: all })
    }
}
