//! Changes in place, and the tree turned when it does not fit the routes any more.

use core::mem::replace;
use core::ops::ControlFlow;

use fibula::fib::{Applied, BuildError, Updatable};
use fibula::net::{Change, Key, NextHop, Prefix, Route, Routes};
use fibula::unstable::memory::{Budget, OutOfMemory};

use super::NAME;
use super::build::{Covers, make, of_lengths, origin};
use super::layout::{Hbs, Kind, Table};
use super::tree::{LENGTHS, MARKED, Tree};

/// Routes that come or go before the tree is compared with the best one: so many, and an eighth of all.
const SHIFTED: usize = 4;

impl<K: Key> Updatable<K> for Hbs<K> {
    fn apply(&mut self, changes: &[Change<K>], after: &dyn Routes<K>) -> Result<Applied, BuildError> {
        let refused = |error| BuildError::memory(NAME, error);
        for change in changes {
            if let Change::Insert(route) = change
                && !self.add_length(route.prefix.len()).map_err(refused)?
            {
                return Ok(Applied::NeedsRebuild("more lengths to the right of one than a marker has bits"));
            }
        }
        self.reserve_for(changes).map_err(refused)?;
        for change in changes {
            self.follow(change.prefix(), after);
        }
        let routes: usize = self.tables.iter().map(|table| table.routes).sum();
        if self.shifted > SHIFTED + routes / 8 {
            self.shifted = 0;
            // What could not be turned for want of memory will be another time.
            let _ = self.turn(after);
        }
        Ok(Applied::InPlace)
    }
}

impl<K: Key> Hbs<K> {
    /// Adds a length to the tree if it does not occur, as a leaf. Returns whether it is in the tree.
    fn add_length(&mut self, len: u8) -> Result<bool, OutOfMemory> {
        if len == 0 || self.tree.rank(len).is_ok() {
            return Ok(true);
        }
        let mut table = Table::without_slots(len);
        table.reserve(1, &mut self.budget)?;
        let Some(rank) = self.tree.add(len) else {
            self.budget.free(table.slots);
            return Ok(false);
        };
        // The bits for greater lengths move up.
        for (at, table) in self.tables[..rank].iter_mut().enumerate() {
            if rank - at > MARKED {
                continue;
            }
            let below = origin(at, rank) - 1;
            for entry in table.slots.iter_mut() {
                entry.origins = entry.origins & below | (entry.origins & !below) << 1;
            }
        }
        self.tables.insert(rank, table);
        Ok(true)
    }

    /// Makes room for all entries that changes may add, or returns an error.
    fn reserve_for(&mut self, changes: &[Change<K>]) -> Result<(), OutOfMemory> {
        let mut more = [0; LENGTHS];
        for change in changes {
            let Change::Insert(Route { prefix, .. }) = change else { continue };
            let Ok(rank) = self.tree.rank(prefix.len()) else { continue };
            let mut count = |rank: usize| {
                let table = &self.tables[rank];
                more[rank] += usize::from(table.find(prefix.addr().and(table.mask)).is_none());
            };
            count(rank);
            self.tree.marked(rank).for_each(count);
        }
        self.tables.iter_mut().zip(more).try_for_each(|(table, more)| table.reserve(more, &mut self.budget))
    }

    /// Makes the entries of a prefix those that it has after all changes.
    fn follow(&mut self, prefix: Prefix<K>, after: &dyn Routes<K>) {
        let now = route_of(after, prefix);
        if prefix.len() == 0 {
            self.default = NextHop::word(now);
            return;
        }
        let Ok(rank) = self.tree.rank(prefix.len()) else { return };
        let table = &self.tables[rank];
        let was = table.find(prefix.addr()).filter(|entry| entry.kind == Kind::Route);
        let was = was.and_then(|entry| NextHop::new(entry.best));
        match (was, now) {
            (None, None) => return,
            (Some(was), Some(now)) if was == now => return,
            (None, Some(now)) => self.insert(rank, prefix, now, after),
            (Some(_), None) => self.remove(rank, prefix, after),
            (Some(_), Some(now)) => {
                if let Some(entry) = self.tables[rank].find_mut(prefix.addr()) {
                    entry.best = now.id();
                }
            }
        }
        self.refresh(prefix, after);
    }

    fn insert(&mut self, rank: usize, prefix: Prefix<K>, next_hop: NextHop, after: &dyn Routes<K>) {
        self.shifted += 1;
        let table = &mut self.tables[rank];
        table.routes += 1;
        let entry = table.entry(prefix.addr(), || 0);
        (entry.kind, entry.best) = (Kind::Route, next_hop.id());
        for at in self.tree.marked(rank) {
            let (table, cover) = (&mut self.tables[at], Prefix::of(prefix.addr(), self.tree.lens()[at]));
            let entry = table.entry(cover.addr(), || best(after, cover));
            entry.origins |= origin(at, rank);
        }
    }

    fn remove(&mut self, rank: usize, prefix: Prefix<K>, after: &dyn Routes<K>) {
        self.shifted += 1;
        let table = &mut self.tables[rank];
        table.routes -= 1;
        if let Some(entry) = table.find_mut(prefix.addr()) {
            (entry.kind, entry.best) = (Kind::Marker, best(after, prefix));
            if entry.origins == 0 {
                table.remove(prefix.addr());
            }
        }
        for at in self.tree.marked(rank) {
            let (table, cover) = (&mut self.tables[at], Prefix::of(prefix.addr(), self.tree.lens()[at]));
            let Some(entry) = table.find_mut(cover.addr()) else { continue };
            if has_length(after, cover, prefix.len()) {
                continue;
            }
            entry.origins &= !origin(at, rank);
            if entry.origins == 0 && entry.kind == Kind::Marker {
                table.remove(cover.addr());
            }
        }
    }

    /// Gives the markers below a prefix their best matches.
    fn refresh(&mut self, prefix: Prefix<K>, after: &dyn Routes<K>) {
        let mut covers = Covers::new();
        let _ = after.visit_from_parent(prefix, &mut |route| {
            covers.push(route);
            if let Ok(rank) = self.tree.rank(route.prefix.len()) {
                for at in self.tree.marked(rank) {
                    let (table, len) = (&mut self.tables[at], self.tree.lens()[at]);
                    if len < prefix.len() {
                        continue;
                    }
                    let entry = table.find_mut(route.prefix.addr().and(table.mask));
                    if let Some(entry) = entry.filter(|entry| entry.kind == Kind::Marker) {
                        entry.best = covers.best(len);
                    }
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// Takes the best tree for the routes if searches have an eighth more steps in the present one. Tables whose lengths to the
    /// right change are made anew, the others stay.
    ///
    /// # Errors
    /// When memory runs out; nothing is changed.
    fn turn(&mut self, after: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let mut routes = [0; LENGTHS + 1];
        for (table, &len) in self.tables.iter().zip(self.tree.lens()) {
            routes[usize::from(len)] = table.routes;
        }
        let (weights, count) = of_lengths(routes);
        let weights = &weights[..count];
        let mut tree = Tree::new(K::BITS, &mut self.budget)?;
        let shaped = tree.shape(weights, &mut self.budget);
        if shaped.is_err() || self.tree.steps(weights) * 8 <= tree.steps(weights) * 9 {
            self.budget.free(tree.into_array());
            return shaped;
        }
        let mut tables = match self.budget.vec(K::BITS.into()) {
            Ok(tables) => tables,
            Err(error) => {
                self.budget.free(tree.into_array());
                return Err(error);
            }
        };
        let stays = |rank: usize| tree.has_markers_of(&self.tree, tree.lens()[rank]);
        if let Err(error) = make(after, &tree, |rank| !stays(rank), &mut tables, &mut self.budget) {
            free(tables, &mut self.budget);
            self.budget.free(tree.into_array());
            return Err(error);
        }
        for (rank, table) in tables.iter_mut().enumerate() {
            if stays(rank)
                && let Ok(old) = self.tree.rank(tree.lens()[rank])
            {
                core::mem::swap(table, &mut self.tables[old]);
            }
        }
        free(replace(&mut self.tables, tables), &mut self.budget);
        let old = replace(&mut self.tree, tree);
        self.budget.free(old.into_array());
        Ok(())
    }
}

fn free<K: Key>(mut tables: Vec<Table<K>>, budget: &mut Budget) {
    tables.drain(..).for_each(|table| budget.free(table.slots));
    budget.free(tables);
}

/// Returns the next hop of the route of a prefix.
fn route_of<K: Key>(routes: &dyn Routes<K>, prefix: Prefix<K>) -> Option<NextHop> {
    let mut found = None;
    let _ = routes.visit(prefix, &mut |route| {
        found = (route.prefix == prefix).then_some(route.next_hop);
        ControlFlow::Break(())
    });
    found
}

/// Returns the next hop of the longest route that contains all of a prefix, but not of length 0; 0 for none.
fn best<K: Key>(routes: &dyn Routes<K>, prefix: Prefix<K>) -> u32 {
    let shorter = || routes.parent(prefix).filter(|route| route.prefix.len() > 0);
    NextHop::word(route_of(routes, prefix).or_else(|| Some(shorter()?.next_hop)))
}

/// Returns whether there is a route of this length in a prefix.
fn has_length<K: Key>(routes: &dyn Routes<K>, within: Prefix<K>, len: u8) -> bool {
    let each = &mut |route: Route<K>| {
        if route.prefix.len() == len { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    routes.visit(within, each).is_break()
}
