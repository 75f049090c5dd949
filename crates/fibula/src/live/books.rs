//! State that every writer has in addition to its tables: retired items, the counts of routes by next hop, and totals.

use core::time::Duration;

use crate::fib::in_place;
use crate::memory::{Budget, Limits, Memory, OutOfMemory, allocated};
use crate::net::{Change, Dual};

use super::epoch::{Domain, RetireList};
use super::options::{Outcome, TableError};
use super::uses::Uses;

/// The books of a writer whose retired items are `I`.
pub(crate) struct Books<I> {
    pub(crate) retired: RetireList<I>,
    pub(crate) budget: Budget,
    /// Units that are being retired.
    pub(crate) units: Vec<in_place::RetiredUnit>,
    pub(crate) totals: Outcome,
    /// How many routes have each next hop, if next hops are numbered.
    pub(crate) uses: Option<Uses>,
}

impl<I> Books<I> {
    pub(crate) fn new(limits: Limits) -> Self {
        let (retired, units) = (RetireList::default(), Vec::new());
        Self { retired, budget: Budget::new(limits), units, totals: Outcome::default(), uses: None }
    }

    /// Waits until at most `limit` bytes are retired.
    pub(crate) fn make_room(
        &mut self,
        domain: &Domain,
        limit: usize,
        patience: Duration,
        free: impl FnMut(I),
    ) -> Result<(), TableError> {
        if self.retired.bytes() <= limit {
            return Ok(());
        }
        let waited = self.retired.wait(domain, limit, patience, free);
        waited.map_err(|stalled| TableError::stalled(stalled, self.retired.bytes()))
    }

    /// Reserves space to retire this many units, and roots.
    pub(crate) fn reserve(&mut self, units: usize) -> Result<(), OutOfMemory> {
        if self.units.capacity() < units {
            self.budget.reserve(&mut self.units, units)?;
        }
        // One more, for the old roots.
        self.retired.reserve(units + 1, &mut self.budget)
    }

    /// Makes room to count the next hops of changed routes.
    pub(crate) fn expect_uses(
        &mut self,
        changes: Dual<&[Change<u32>], &[Change<u128>]>,
    ) -> Result<(), OutOfMemory> {
        if let Some(uses) = &mut self.uses {
            uses.expect(changes.v4)?;
            uses.expect(changes.v6)?;
        }
        Ok(())
    }

    /// Completes the outcome of a call, and adds it to the totals.
    pub(crate) fn end(&mut self, outcome: &mut Outcome) {
        outcome.retired_bytes = self.retired.bytes();
        self.totals.changed += outcome.changed;
        self.totals.unchanged += outcome.unchanged;
        self.totals.absent += outcome.absent;
        self.totals.rebuilt += outcome.rebuilt;
        self.totals.version = outcome.version;
    }

    /// Gives back the space that a long list has left.
    pub(crate) fn shrink(&mut self) {
        self.retired.shrink(&mut self.budget);
    }

    /// Returns the reader that keeps the oldest retired unit from being freed, and the number of changes since its pin.
    pub(crate) fn stalled(&self, domain: &Domain) -> Option<(usize, u64)> {
        self.retired.stalled(domain).map(|stalled| (stalled.reader, stalled.epochs))
    }

    /// Returns the memory of the lists, and of the counts of next hops.
    pub(crate) fn memory(&self) -> Memory {
        let units = Memory { allocated_bytes: allocated(&self.units), ..Memory::default() };
        units + self.retired.memory() + self.uses.as_ref().map_or_else(Memory::default, Uses::memory)
    }
}
