//! How many routes have each next hop, for those that number next hops and reuse the numbers.

use std::collections::HashMap;
use std::sync::Weak;

use crate::memory::{self, Budget, Limits, Memory, OutOfMemory};
use crate::net::{Change, Key, NextHop};
use crate::rib::Before;

/// The routes of a table by next hop.
pub(crate) struct Uses {
    /// Of the next hops that were given out, by number less one.
    given: Vec<u32>,
    /// Of others, which routes have all the same.
    others: HashMap<u32, u32>,
    budget: Budget,
    /// The owner of the numbers, if it still exists.
    owner: Weak<()>,
}

impl Uses {
    pub(crate) fn new(limits: Limits, owner: Weak<()>) -> Self {
        Self { given: Vec::new(), others: HashMap::new(), budget: Budget::new(limits), owner }
    }

    /// Returns whether the one that gives out the numbers is still there.
    pub(crate) fn is_owned(&self) -> bool {
        self.owner.strong_count() > 0
    }

    /// Counts a next hop as given out: the next one in order.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn give(&mut self) -> Result<(), OutOfMemory> {
        self.budget.reserve(&mut self.given, 1)?;
        let id = self.given.len() as u32 + 1;
        // Routes may have had the number before it was given out. Their count moves with it.
        self.given.push(self.others.remove(&id).unwrap_or(0));
        Ok(())
    }

    /// Returns how many routes have a next hop.
    pub(crate) fn of(&self, next_hop: NextHop) -> u32 {
        let id = next_hop.id();
        match self.given.get(id as usize - 1) {
            Some(&uses) => uses,
            None => self.others.get(&id).copied().unwrap_or(0),
        }
    }

    /// Reserves space to count the next hops of these changes.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn expect<K>(&mut self, changes: &[Change<K>]) -> Result<(), OutOfMemory> {
        // A removal only lowers a count, which needs no memory.
        self.expect_all(changes.iter().filter_map(|change| match change {
            Change::Insert(route) => Some(route.next_hop),
            Change::Remove(_) => None,
        }))
    }

    fn expect_others(&mut self, count: usize) -> Result<(), OutOfMemory> {
        let wanted_bytes = count.saturating_mul(size_of::<[u32; 2]>());
        let refused = |_| OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None };
        self.others.try_reserve(count).map_err(refused)
    }

    /// Counts a route that was there before.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn add(&mut self, next_hop: NextHop) -> Result<(), OutOfMemory> {
        self.expect_others(1)?;
        self.replace(None, Some(next_hop));
        Ok(())
    }

    /// Counts a change of a route, for which there is room.
    pub(crate) fn replace(&mut self, old: Option<NextHop>, new: Option<NextHop>) {
        if old == new {
            return;
        }
        if let Some(new) = new {
            match self.given.get_mut(new.id() as usize - 1) {
                Some(uses) => *uses += 1,
                None => *self.others.entry(new.id()).or_default() += 1,
            }
        }
        if let Some(old) = old {
            match self.given.get_mut(old.id() as usize - 1) {
                Some(uses) => *uses -= 1,
                None => self.forget(old.id()),
            }
        }
    }

    /// Counts changes of routes. Space must be reserved. `before` has the next hop that each change replaced.
    pub(crate) fn change<K: Key>(&mut self, changes: &[Change<K>], before: &[Before<K>]) {
        for (change, before) in changes.iter().zip(before) {
            let after = match change {
                Change::Insert(route) => Some(route.next_hop),
                Change::Remove(_) => None,
            };
            self.replace(before.next_hop, after);
        }
    }

    /// Makes room to count these next hops.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn expect_all(&mut self, next_hops: impl Iterator<Item = NextHop>) -> Result<(), OutOfMemory> {
        // Numbers that were given out have places. Others may each need an entry of the map.
        match next_hops.filter(|next_hop| next_hop.id() as usize > self.given.len()).count() {
            0 => Ok(()),
            count => self.expect_others(count),
        }
    }

    fn forget(&mut self, id: u32) {
        if let Some(uses) = self.others.get_mut(&id) {
            *uses -= 1;
            if *uses == 0 {
                self.others.remove(&id);
            }
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        let given = Memory { lookup_bytes: 0, ..memory::of(&self.given) };
        // An entry takes 8 bytes, and one for the control byte of the standard hash table.
        let others = Memory { allocated_bytes: self.others.capacity() * 9, ..Memory::default() };
        given + others
    }
}
