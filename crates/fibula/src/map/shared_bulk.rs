//! A map that changes, made and replaced as a whole.

use core::hash::Hash;
use std::vec::IntoIter;

use crate::live::{Hold, Options, TableError, TableGuard, TableKey};
use crate::memory::{Budget, OutOfMemory};
use crate::net::{Change, Dual, IpPrefix, Prefix, Route};

use super::join::MergeJoin;
use super::shared::{SharedPrefixMap, ValueState, change};
use super::slab::{index, number};

/// A replacement changes engines in place if at most one prefix in this many is different. Otherwise it builds them of all
/// prefixes. With 100,000 prefixes that all get other values, changes in place take two thirds of the time of a build.
/// However, they leave gaps in the engines, and adding or removing a prefix takes longer than changing a value.
const FEW: usize = 4;

impl<V: Send + Sync> SharedPrefixMap<V> {
    /// Returns a map of these prefixes and values. This is many times as fast as inserting them one by one, because each engine
    /// is built once. If a prefix comes twice, its last value counts.
    ///
    /// ```
    /// use fibula::ipnet::IpNet;
    /// use fibula::live::Options;
    /// use fibula::map::SharedPrefixMap;
    ///
    /// let entries = [("192.0.2.0/24".parse::<IpNet>()?, "office"), ("2001:db8::/32".parse()?, "lab")];
    /// assert_eq!(SharedPrefixMap::from_entries(entries, Options::default())?.len()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When memory runs out, or a structure refuses the prefixes.
    pub fn from_entries<P: Into<IpPrefix>>(
        entries: impl IntoIterator<Item = (P, V)>,
        options: Options,
    ) -> Result<Self, TableError> {
        let map = Self::with(options)?;
        map.replace(entries)?;
        Ok(map)
    }

    /// Like [`from_entries`](Self::from_entries), but equal values share a slot, as in all [`interning`](Self::interning) maps.
    ///
    /// # Errors
    /// As for [`from_entries`](Self::from_entries).
    pub fn from_entries_interning<P: Into<IpPrefix>>(
        entries: impl IntoIterator<Item = (P, V)>,
        options: Options,
    ) -> Result<Self, TableError>
    where
        V: Eq + Hash,
    {
        let map = Self::interning(options)?;
        map.replace(entries)?;
        Ok(map)
    }

    /// Maps prefixes to values, 64 at a time, as [`apply`](Self::apply). Returns how many there were.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn extend<P: Into<IpPrefix>>(
        &self,
        entries: impl IntoIterator<Item = (P, V)>,
    ) -> Result<usize, TableError> {
        self.apply(entries.into_iter().map(|(prefix, value)| (prefix, Some(value))))
    }

    /// Replaces all prefixes and values by these, at once: a pin sees the old map or the new one, never a mixture. If a prefix
    /// comes twice, its last value counts. Returns the number of prefixes that were added, removed or got another value.
    ///
    /// Values are compared in [`interning`](Self::interning) maps only. In other maps each prefix gets another value, because
    /// `V` need not have an equality.
    ///
    /// # Cost
    /// The entries are collected and sorted before the map is locked. Then other changes wait while each value is put into a
    /// slot and each prefix is compared with the map; readers never wait. If at most a quarter of the prefixes is different,
    /// these are [changed in place](crate::Table::apply_atomic), in less than a microsecond each. Otherwise the routes and
    /// engines are built of all prefixes. For 100,000 prefixes a call takes some 25 ms, and 50 to 100 ms with a build.
    ///
    /// The old routes, engines and values keep their memory until the call returns and readers have moved on. The old map and
    /// the new one each stay within the limits by themselves. However, the slots of old and new values share one limit.
    ///
    /// # Errors
    /// When memory runs out, a structure refuses the prefixes, or a reader holds up too much: see [`Table::apply`]. The map
    /// is as it was and goes on serving, and the entries are dropped.
    ///
    /// [`Table::apply`]: crate::Table::apply
    pub fn replace<P: Into<IpPrefix>>(
        &self,
        entries: impl IntoIterator<Item = (P, V)>,
    ) -> Result<usize, TableError> {
        // Collected before the lock is taken, because the caller's iterator may call the map, or take its time.
        let Dual { v4, v6 } = collect(entries)?;
        // Values that no slot takes are dropped with these, after the lock is released: their `Drop` may call the map.
        let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
        let changed = self.change(|held, state| state.replace(held, &mut v4, &mut v6))?;
        // The values before were closed. If no reader is pinned, this drops them, so that they do not wait for a next change. The new
        // map serves already, so a table that another thread has poisoned since is no failure of this call.
        let _ = self.change(|_, _| Ok(()));
        Ok(changed)
    }

    /// Removes all prefixes at once, as [`replace`](Self::replace) by nothing. Returns how many there were.
    ///
    /// # Errors
    /// As for [`replace`](Self::replace).
    pub fn clear(&self) -> Result<usize, TableError> {
        self.replace(core::iter::empty::<(IpPrefix, V)>())
    }
}

/// Prefixes of a family with their values, ascending, each once.
type Entries<K, V> = Vec<Entry<K, V>>;

/// A prefix, the place of the entry among all of them, and the value.
type Entry<K, V> = (Prefix<K>, usize, V);

/// Entries of both families.
type Collected<V> = Dual<Entries<u32, V>, Entries<u128, V>>;

/// Sorts entries by family and prefix, and keeps the last one of each prefix.
fn collect<P: Into<IpPrefix>, V>(
    entries: impl IntoIterator<Item = (P, V)>,
) -> Result<Collected<V>, OutOfMemory> {
    let (mut v4, mut v6, mut budget) = (Vec::new(), Vec::new(), Budget::default());
    for (at, (prefix, value)) in entries.into_iter().enumerate() {
        match prefix.into() {
            IpPrefix::V4(prefix) => budget.push(&mut v4, (prefix, at, value))?,
            IpPrefix::V6(prefix) => budget.push(&mut v6, (prefix, at, value))?,
        }
    }
    keep_last(&mut v4);
    keep_last(&mut v6);
    Ok(Dual { v4, v6 })
}

fn keep_last<K: TableKey, V>(entries: &mut Entries<K, V>) {
    // Unstable sorting allocates nothing, and the places keep the order of equal prefixes: the last entry comes first.
    entries.sort_unstable_by(|(one, first, _), (two, second, _)| one.cmp(two).then(second.cmp(first)));
    entries.dedup_by_key(|&mut (prefix, ..)| prefix);
}

impl<V: Send + Sync> ValueState<V> {
    /// Replaces all prefixes and values. Returns how many prefixes are different.
    fn replace(
        &mut self,
        held: &mut TableGuard<'_>,
        v4: &mut IntoIter<Entry<u32, V>>,
        v6: &mut IntoIter<Entry<u128, V>>,
    ) -> Result<usize, TableError> {
        let mut budget = Budget::default();
        let mut routes = Dual { v4: budget.vec(v4.len())?, v6: budget.vec(v6.len())? };
        let mut before = budget.vec(held.rib::<u32>().len() + held.rib::<u128>().len())?;
        // Listed before anything changes, because afterwards the table has only the new numbers.
        held.for_each_next_hop(&mut |at| before.push(at));
        // The slots of an interning map are as many as there are different values, which nobody knows before.
        let expected = if self.interned.is_some() { 0 } else { v4.len() + v6.len() };
        self.expect(expected)?;
        let replaced = self
            .put_all(v4, &mut routes.v4)
            .and_then(|()| self.put_all(v6, &mut routes.v6))
            .map_err(TableError::from)
            .and_then(|()| publish(held, &routes));
        // One side loses its values, the old one or the refused one: each value as often as a prefix had it.
        if replaced.is_ok() {
            before.into_iter().for_each(|at| self.forget(index(at) as u32));
        } else {
            let (v4, v6) = (routes.v4.iter(), routes.v6.iter());
            let put = v4.map(|route| route.next_hop).chain(v6.map(|route| route.next_hop));
            put.for_each(|at| self.forget(index(at) as u32));
        }
        replaced
    }

    /// Puts the values of entries into slots, and adds their routes, for which there is room.
    fn put_all<K: TableKey>(
        &mut self,
        entries: &mut IntoIter<Entry<K, V>>,
        routes: &mut Vec<Route<K>>,
    ) -> Result<(), OutOfMemory> {
        entries.try_for_each(|(prefix, _, value)| {
            routes.push(Route::new(prefix, number(self.take(value)? as usize)));
            Ok(())
        })
    }
}

/// Makes these all the routes, for new pins at once. Returns how many prefixes are different.
fn publish(
    held: &mut TableGuard<'_>,
    routes: &Dual<Vec<Route<u32>>, Vec<Route<u128>>>,
) -> Result<usize, TableError> {
    // Counted in a walk of its own, so that a build needs no list of changes.
    let different = Dual { v4: changes(held, &routes.v4).count(), v6: changes(held, &routes.v6).count() };
    let changed = different.v4 + different.v6;
    if changed.saturating_mul(FEW) <= routes.v4.len() + routes.v6.len() {
        let mut budget = Budget::default();
        let (mut v4, mut v6) = (budget.vec(different.v4)?, budget.vec(different.v6)?);
        v4.extend(changes(held, &routes.v4));
        v6.extend(changes(held, &routes.v6));
        held.apply_atomic(&v4, &v6)?;
    } else {
        // A family without a difference stays as it is, unless changes wait: those have to be seen together with these.
        let waits = held.waits();
        let v4 = (waits || different.v4 > 0).then_some(&routes.v4[..]);
        let v6 = (waits || different.v6 > 0).then_some(&routes.v6[..]);
        held.replace(Dual { v4, v6 }, changed)?;
    }
    Ok(changed)
}

/// Returns the changes that lead from the routes of a table to others, in order.
fn changes<K: TableKey>(held: &TableGuard<'_>, routes: &[Route<K>]) -> impl Iterator<Item = Change<K>> {
    let pair = |route: Route<K>| (route.prefix, route.next_hop);
    MergeJoin::new(held.routes().map(pair), routes.iter().copied().map(pair))
        .filter(|(_, before, after)| before != after)
        .map(|(prefix, _, after)| change(prefix, after))
}
