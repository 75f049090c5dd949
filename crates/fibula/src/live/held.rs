//! A table whose lock is held while its next hops or the values of its routes change. The same goes for VRFs.

use std::sync::MutexGuard;

use crate::net::{Change, NextHop, Prefix, Route};
use crate::rib::Rib;

use super::options::{Outcome, TableError};
use super::table::{SharedTable, Table, TableKey};
use super::uses::Uses;
use super::writer::{ReplacementRoutes, TableWriter};

/// The lock of a table or of VRFs. One thread at a time holds it, to retire and collect in their domain.
pub(crate) trait Hold {
    /// Returns the counts of routes by next hop, if next hops are numbered.
    fn uses(&mut self) -> &mut Option<Uses>;

    /// Returns whether lookups may find a next hop that no route has, since changes wait.
    fn waits(&self) -> bool;

    /// Calls `each` for the next hop of every route, of both families.
    fn for_each_next_hop(&self, each: &mut dyn FnMut(NextHop));
}

/// The lock of a table, with which one thread at a time retires and collects in the table's domain.
pub(crate) struct TableGuard<'a> {
    shared: &'a SharedTable,
    writer: MutexGuard<'a, TableWriter>,
}

impl Table {
    /// Waits for changes in progress, and holds others up.
    pub(crate) fn hold(&self) -> Result<TableGuard<'_>, TableError> {
        Ok(TableGuard { shared: self.shared(), writer: self.lock()? })
    }
}

impl TableGuard<'_> {
    /// Applies changes of a family.
    pub(crate) fn apply<K: TableKey>(&mut self, changes: &[Change<K>]) -> Result<Outcome, TableError> {
        let (v4, v6) = K::split(changes);
        self.writer.apply(&self.shared.domain, &self.shared.root, v4, v6, false)
    }

    /// Applies changes of both families, as [`Table::apply_atomic`].
    pub(crate) fn apply_atomic(
        &mut self,
        v4: &[Change<u32>],
        v6: &[Change<u128>],
    ) -> Result<Outcome, TableError> {
        self.writer.apply(&self.shared.domain, &self.shared.root, v4, v6, true)
    }

    /// Puts other routes in the place of all, at once for new pins. A family without any stays as it is, and so do its changes
    /// that wait. `changed` prefixes are different.
    pub(crate) fn replace(
        &mut self,
        routes: ReplacementRoutes<'_>,
        changed: usize,
    ) -> Result<Outcome, TableError> {
        self.writer.replace(&self.shared.domain, &self.shared.root, routes, changed)
    }

    /// Publishes waiting changes, like [`Table::flush`].
    pub(crate) fn flush(&mut self) -> Result<Outcome, TableError> {
        self.writer.publish_waiting(&self.shared.domain, &self.shared.root, true)
    }

    /// Returns the next hop of exactly a prefix.
    pub(crate) fn get<K: TableKey>(&self, prefix: Prefix<K>) -> Option<NextHop> {
        K::rib(&self.writer).get(prefix)
    }

    /// Returns the routes of a family.
    pub(crate) fn rib<K: TableKey>(&self) -> &Rib<K> {
        K::rib(&self.writer)
    }

    /// Returns all routes of a family, in order.
    pub(crate) fn routes<K: TableKey>(&self) -> impl Iterator<Item = Route<K>> {
        self.rib().iter()
    }
}

impl Hold for TableGuard<'_> {
    fn uses(&mut self) -> &mut Option<Uses> {
        &mut self.writer.books.uses
    }

    fn waits(&self) -> bool {
        self.writer.waiting() > 0
    }

    fn for_each_next_hop(&self, each: &mut dyn FnMut(NextHop)) {
        self.routes::<u32>().for_each(|route| each(route.next_hop));
        self.routes::<u128>().for_each(|route| each(route.next_hop));
    }
}
