//! The consistency check: the tables are those that a build makes of the routes that they hold.

use fibula::fib::CheckError;
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice};
use fibula::unstable::memory::{Budget, Limits};

use super::build::make;
use super::layout::{Hbs, Kind};

impl<K: Key> Hbs<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds(self.tree.is_in_order(), "(1) the lengths are a tree, and a marker has a bit for each", 0)?;
        holds(self.tables.len() == self.tree.len(), "(2) each length has a table", self.tables.len())?;
        let mut routes = Vec::new();
        for (rank, (table, &len)) in self.tables.iter().zip(self.tree.lens()).enumerate() {
            holds(table.mask == K::mask(len), "(2) a table is that of its length", rank)?;
            holds(table.used < table.slots.len(), "(3) a table has a free slot", rank)?;
            let before = routes.len();
            for entry in table.entries() {
                holds(entry.key.and(table.mask) == entry.key, "(2) a key has the bits of its length", rank)?;
                if entry.kind == Kind::Route {
                    let next_hop = NextHop::new(entry.best);
                    let next_hop = next_hop.ok_or(CheckError::new("(5) a route has a next hop", rank))?;
                    routes.push(Route::new(Prefix::of(entry.key, len), next_hop));
                }
            }
            holds(table.routes == routes.len() - before, "(2) a table counts its routes", rank)?;
        }
        routes.sort_unstable_by_key(|route| route.prefix);
        let routes = RouteSlice::new(&routes).map_err(|_| CheckError::new("(3) a key has one entry", 0))?;
        let mut expected = Vec::with_capacity(self.tables.len());
        let made = make(&routes, &self.tree, |_| true, &mut expected, &mut Budget::new(Limits::default()));
        made.map_err(|_| CheckError::new("there is memory for the check", 0))?;
        for (rank, (table, expected)) in self.tables.iter().zip(&expected).enumerate() {
            for entry in expected.entries() {
                let found = table.find(entry.key);
                let found = found.ok_or(CheckError::new("(3), (4) an entry is found", rank))?;
                holds(found.origins == entry.origins, "(4) a marker has the lengths it is made for", rank)?;
                holds(found.best == entry.best, "(5) a marker has the best match", rank)?;
            }
            let used = table.entries().count();
            holds(used == table.used, "(3) a table counts its entries", rank)?;
            holds(used == expected.used, "(4) nothing else is in a table", rank)?;
        }
        Ok(())
    }
}
