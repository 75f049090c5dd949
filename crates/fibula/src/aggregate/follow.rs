//! An aggregated table that follows the changes of another.

use crate::check::CheckError;
use crate::memory::{Limits, Memory, OutOfMemory};
use crate::net::{Change, Key, NextHop, Prefix, Route, Routes};
use crate::rib::{Before, Rib};

use super::tree::AnswerTree;
use super::{first_difference, minimal};

/// Fewer routes with the answers of a table that changes.
#[derive(Debug)]
pub struct Aggregated<K> {
    rib: Rib<K>,
    /// Number of routes when it was minimal, here and in the other table.
    least: [usize; 2],
    limits: Limits,
    tree: AnswerTree<K>,
    fewest: Vec<Route<K>>,
    changes: Vec<Change<K>>,
    /// What the changes of the last call replaced, in order.
    log: Vec<Before<K>>,
    some: Vec<Before<K>>,
}

impl<K: Key> Aggregated<K> {
    /// Aggregates a table.
    ///
    /// # Errors
    /// As for [`minimal`].
    pub fn new(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, OutOfMemory> {
        let rib = minimal(routes, limits)?;
        Ok(Self {
            least: [rib.len(), routes.len()],
            rib,
            limits,
            tree: AnswerTree::new(limits),
            fewest: Vec::new(),
            changes: Vec::new(),
            log: Vec::new(),
            some: Vec::new(),
        })
    }

    /// Returns the routes.
    #[must_use]
    pub fn rib(&self) -> &Rib<K> {
        &self.rib
    }

    /// Follows changes of the answers in these prefixes, which ascend. `after` has the routes as they are now.
    ///
    /// # Errors
    /// When memory runs out; nothing has changed then.
    pub fn follow(&mut self, prefixes: &[Prefix<K>], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        self.keep();
        let followed = self.follow_all(prefixes, after);
        if followed.is_err() {
            self.undo();
        }
        followed
    }

    fn follow_all(&mut self, prefixes: &[Prefix<K>], after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let mut done: Option<Prefix<K>> = None;
        for &prefix in prefixes {
            if done.is_some_and(|done| done.covers(prefix)) {
                continue;
            }
            done = Some(self.renew(prefix, after)?);
        }
        Ok(())
    }

    /// Takes the changes of the last call of [`follow`](Self::follow) back. Neither fails nor allocates.
    pub fn undo(&mut self) {
        self.rib.undo(&mut self.log);
    }

    /// Leaves [`undo`](Self::undo) nothing to take back.
    pub fn keep(&mut self) {
        self.log.clear();
    }

    /// Makes the routes of a prefix anew. Returns the prefix whose answers have been compared with those of `after`.
    fn renew(&mut self, prefix: Prefix<K>, after: &dyn Routes<K>) -> Result<Prefix<K>, OutOfMemory> {
        let mut within = prefix;
        self.tree.grow(after, within)?;
        if self.tree.has_gap()
            && let Some(widest) = self.rib.covers(within).next()
            && widest.prefix != within
        {
            within = widest.prefix;
            self.tree.grow(after, within)?;
        }
        self.fewest.clear();
        let mut merged = within;
        if let Some(next_hop) = self.tree.uniform() {
            // Halves with one answer become one route, unless that is what they inherit.
            while let Some((parent, sibling)) = family_of(merged)
                && self.rib.parent(parent).is_none_or(|above| above.next_hop != next_hop)
                && self.uniform(sibling) == Some(next_hop)
            {
                merged = parent;
            }
            if self.rib.parent(merged).is_none_or(|above| above.next_hop != next_hop) {
                reserve(&mut self.fewest, 1)?;
                self.fewest.push(Route::new(merged, next_hop));
            }
        } else {
            let inherited = self.rib.parent(within).map(|above| above.next_hop);
            self.tree.routes(inherited, &mut self.fewest)?;
        }
        self.replace(merged)?;
        Ok(within)
    }

    /// Returns the answer of all addresses of a prefix here, if they have one and the same.
    fn uniform(&self, prefix: Prefix<K>) -> Option<NextHop> {
        let mut inside = self.rib.subnets(prefix);
        match (inside.next(), inside.next()) {
            (None, _) => self.rib.parent(prefix).map(|above| above.next_hop),
            (Some(route), None) if route.prefix == prefix => Some(route.next_hop),
            _ => None,
        }
    }

    /// Replaces the routes inside a prefix by `fewest`.
    fn replace(&mut self, within: Prefix<K>) -> Result<(), OutOfMemory> {
        self.changes.clear();
        let mut new = self.fewest.iter().copied().peekable();
        let mut old = self.rib.subnets(within).peekable();
        loop {
            let change = match (old.peek().copied(), new.peek().copied()) {
                (None, None) => break,
                (Some(route), None) => remove(&mut old, route),
                (Some(route), Some(other)) if route.prefix < other.prefix => remove(&mut old, route),
                (was, Some(route)) => {
                    new.next();
                    if was.is_some_and(|was| was.prefix == route.prefix) {
                        old.next();
                    }
                    if was == Some(route) {
                        continue;
                    }
                    Change::Insert(route)
                }
            };
            reserve(&mut self.changes, 1)?;
            self.changes.push(change);
        }
        reserve(&mut self.log, self.changes.len())?;
        let applied = self.rib.apply_logged(&self.changes, &mut self.some);
        applied.map_err(|error| error.out_of_memory())?;
        self.log.append(&mut self.some);
        Ok(())
    }

    /// Returns whether there are an eighth more routes than when this was minimal, given the number of the other table's.
    #[must_use]
    pub fn is_loose(&self, routes: usize) -> bool {
        let [least, of] = self.least.map(|number| number as u128);
        let expected = least * routes as u128 / of.max(1);
        self.rib.len() as u128 > expected + expected / 8 + 64
    }

    /// Makes the table minimal. No answer changes.
    ///
    /// # Errors
    /// As for [`minimal`]; nothing has changed then.
    pub fn rebuild(&mut self, routes: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        self.rib = minimal(routes, self.limits)?;
        self.least = [self.rib.len(), routes.len()];
        self.log.clear();
        self.tree.shrink();
        Ok(())
    }

    /// Returns the memory of the routes; what a change needs is not counted.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.rib.memory()
    }

    /// Verifies that the answers are those of `routes`.
    ///
    /// # Errors
    /// The first address with another answer.
    pub fn check(&self, routes: &dyn Routes<K>) -> Result<(), CheckError> {
        self.rib.check()?;
        let difference = first_difference(&self.rib, routes).ok().flatten();
        CheckError::unless(difference.is_none(), "the aggregated table has all answers", 0)
    }
}

fn remove<K: Key>(old: &mut impl Iterator<Item = Route<K>>, route: Route<K>) -> Change<K> {
    old.next();
    Change::Remove(route.prefix)
}

/// Returns the prefix one bit shorter, and its other half.
fn family_of<K: Key>(prefix: Prefix<K>) -> Option<(Prefix<K>, Prefix<K>)> {
    let parent = Prefix::masked(prefix.addr(), prefix.len().checked_sub(1)?).ok()?;
    let (left, right) = parent.halves()?;
    Some((parent, if prefix == left { right } else { left }))
}

fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    list.try_reserve(more).map_err(|_| {
        let wanted_bytes = more.saturating_mul(size_of::<T>());
        OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None }
    })
}
