//! The map that changes while other threads look up in it.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::check::CheckError;
use crate::live::readable::Readable as _;
use crate::live::{Hold, Options, Reader, Table, TableError, TableGuard, TableKey, ValueSlots, ValueStore};
use crate::memory::{self, Budget, Memory, OutOfMemory};
use crate::net::{Change, IntoIpPrefix, IpPrefix, NextHop, Prefix, Route};
use crate::rib::DualRib;

use super::slab::{index, number};

/// A map from prefixes of both families to values of any type, that changes while other threads look addresses up in it.
///
/// It is made for firewalls and services that answer by address: threads look up while the rules are loaded again. Here
/// 100,000 prefixes are replaced every minute, and each of four threads has a reader.
///
/// ```
/// use fibula::live::Options;
/// use fibula::map::SharedPrefixMap;
/// use fibula::net::Prefix;
///
/// #[derive(Clone, Copy, PartialEq, Eq, Hash)]
/// enum Action {
///     Permit,
///     Deny,
/// }
///
/// // In a program, this reads a file.
/// let load = |minute: u32| {
///     let action = move |rule| if (rule + minute) % 50 == 0 { Action::Deny } else { Action::Permit };
///     (0..100_000_u32).filter_map(move |rule| Some((Prefix::masked(rule << 8, 24).ok()?, action(rule))))
/// };
/// let rules = SharedPrefixMap::from_entries_interning(load(0), Options::default())?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         let mut reader = rules.reader()?;
///         scope.spawn(move || {
///             let (sources, mut actions) = ([7_u32 << 8; 32], [Action::Deny; 32]);
///             let mut pin = reader.pin();
///             for _burst in 0..1000 {
///                 // A burst sees one version of all rules, because a pin sees a replacement whole or not at all.
///                 pin.refresh();
///                 pin.batch(&sources).for_each(|at, rule| actions[at] = *rule.unwrap_or(&Action::Deny));
///                 assert!(actions.iter().all(|&action| action == actions[0]));
///             }
///         });
///     }
///     for minute in 1..4 {
///         // If this fails, the rules before go on serving.
///         let changed = rules.replace(load(minute))?;
///         assert_eq!(changed, 4000);
///     }
///     Ok::<(), fibula::live::TableError>(())
/// })?;
/// # Ok::<(), fibula::live::TableError>(())
/// ```
///
/// It is a [`Table`] whose next hops number the values. A clone is another handle to the same map. Any thread may change it,
/// one at a time. Each thread that looks up has a [`Reader`], never waits, and gets references to the values.
///
/// A value is never changed in place, because readers may be reading it: [`insert`](Self::insert) puts another one in its place,
/// and the one before is dropped when no reader has it any more, by a later change or by [`maintain`](Self::maintain).
///
/// ```
/// use std::net::IpAddr;
///
/// use fibula::ipnet::IpNet;
/// use fibula::map::SharedPrefixMap;
///
/// let sites = SharedPrefixMap::new()?;
/// sites.insert("192.0.2.0/24".parse::<IpNet>()?, "office".to_owned())?;
/// sites.insert("2001:db8::/32".parse::<IpNet>()?, "lab".to_owned())?;
///
/// let mut reader = sites.reader()?;
/// let pin = reader.pin();
/// let office = pin.lookup("192.0.2.1".parse::<IpAddr>()?);
/// sites.insert("192.0.2.0/24".parse::<IpNet>()?, "home".to_owned())?;
/// // A reference stays good as long as the pin. A new lookup finds the new value.
/// assert_eq!(office.map(String::as_str), Some("office"));
/// assert_eq!(pin.lookup("192.0.2.1".parse::<IpAddr>()?).map(String::as_str), Some("home"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | operation | cost |
/// |---|---|
/// | lookups, alone and in batches | those of the table, and a load a value |
/// | `insert`, `remove` | a change of the table, and a slot for the value |
/// | `interning` maps: `insert` | also a hash of the value; equal values take one slot |
/// | `replace`, `from_entries` | a sort of all entries; then the changes, or a build where there are many: see [`replace`](Self::replace) |
/// | `get`, `lookup` and the other reads without a reader | the lock of the map, and a walk down the tree of a [`Rib`](crate::rib::Rib) |
///
/// Engines are smaller and faster with fewer values. If your map has few different ones, for example a permit and a deny, make
/// it by [`interning`](Self::interning).
pub struct SharedPrefixMap<V> {
    pub(super) shared: Arc<SharedValues<V>>,
}

impl<V> Clone for SharedPrefixMap<V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// The state that handles and readers share.
pub(super) struct SharedValues<V> {
    pub(super) table: Table,
    pub(super) values: Arc<ValueSlots<V>>,
    /// Taken after the lock of the table.
    state: Mutex<ValueState<V>>,
}

/// The writer's side of the values.
pub(super) struct ValueState<V> {
    pub(super) values: ValueStore<V>,
    /// Prefixes by slot.
    uses: Vec<u32>,
    /// Values that no prefix has, but lookups may find while changes wait.
    stale: Vec<u32>,
    /// Changes that are being made, by family.
    v4: Vec<Change<u32>>,
    v6: Vec<Change<u128>>,
    pub(super) interned: Option<Interned<V>>,
    budget: Budget,
}

/// Values that are in slots, by hash.
pub(super) struct Interned<V> {
    hasher: RandomState,
    hash: fn(&RandomState, &V) -> u64,
    equal: fn(&V, &V) -> bool,
    /// Values whose hashes collide share one entry here, which leads to the last of them. An equal value in another slot is
    /// then not found: that costs a slot, and nothing else.
    slots: HashMap<u64, u32>,
}

impl<V: Send + Sync> SharedPrefixMap<V> {
    /// Returns an empty map, in which each prefix has a slot for its value.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new() -> Result<Self, TableError> {
        Self::with(Options::default())
    }

    /// Like [`new`](Self::new), with options of the [`Table`]. The memory limit applies to the values too, by themselves.
    ///
    /// # Errors
    /// When memory runs out, or there is no structure of a name.
    pub fn with(options: Options) -> Result<Self, TableError> {
        Self::build(options, None)
    }

    /// Returns an empty map in which equal values share a slot.
    ///
    /// # Errors
    /// When memory runs out, or there is no structure of a name.
    pub fn interning(options: Options) -> Result<Self, TableError>
    where
        V: Eq + Hash,
    {
        let interned = Interned {
            hasher: RandomState::new(),
            hash: |hasher, value| hasher.hash_one(value),
            equal: V::eq,
            slots: HashMap::new(),
        };
        Self::build(options, Some(interned))
    }

    fn build(options: Options, interned: Option<Interned<V>>) -> Result<Self, TableError> {
        let table = Table::from_routes(DualRib::default(), options)?;
        // The domain of the table's engines: one pin then keeps the values as well as the engines that lead to them.
        let values = ValueStore::new(Arc::clone(Table::domain(&table)), options.limits);
        let slots = Arc::clone(values.slots());
        let budget = Budget::new(options.limits);
        let (uses, stale, v4, v6) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let state = Mutex::new(ValueState { values, uses, stale, v4, v6, interned, budget });
        Ok(Self { shared: Arc::new(SharedValues { table, values: slots, state }) })
    }

    /// Returns a reader, for one thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn reader(&self) -> Result<Reader<Self>, TableError> {
        Reader::new(self.clone())
    }

    /// Maps a prefix to a value. Returns whether it had one before, which is dropped when no reader has it.
    ///
    /// # Errors
    /// When memory runs out, the structure refuses the prefix, or a reader holds up too much: see
    /// [`Table::apply`]. The map is as it was, and the value is dropped.
    pub fn insert(&self, prefix: impl IntoIpPrefix, value: V) -> Result<bool, TableError> {
        let prefix = prefix.into_ip_prefix();
        self.change(|held, state| match prefix {
            IpPrefix::V4(prefix) => state.insert(held, prefix, value),
            IpPrefix::V6(prefix) => state.insert(held, prefix, value),
        })
    }

    /// Removes a prefix. Returns whether it was there. Its value is dropped when no reader has it.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    pub fn remove(&self, prefix: impl IntoIpPrefix) -> Result<bool, TableError> {
        let prefix = prefix.into_ip_prefix();
        self.change(|held, state| match prefix {
            IpPrefix::V4(prefix) => state.remove(held, prefix),
            IpPrefix::V6(prefix) => state.remove(held, prefix),
        })
    }

    /// Makes many changes, in order: maps prefixes to values, and removes those with `None`. They are applied 64 at a time,
    /// because a change in a group takes less time than a single one. Changes of other threads may come between two groups.
    /// Returns the number of changes.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert). Changes before the 64 that were refused are made.
    pub fn apply<P: IntoIpPrefix>(
        &self,
        changes: impl IntoIterator<Item = (P, Option<V>)>,
    ) -> Result<usize, TableError> {
        let mut changes = changes.into_iter().map(|(prefix, value)| (prefix.into_ip_prefix(), value));
        let mut some = Budget::default().vec(BATCH)?;
        let mut count = 0;
        loop {
            // Collected before the lock is taken, because the caller's iterator may call the map, or take its time.
            some.extend(changes.by_ref().take(BATCH));
            if some.is_empty() {
                return Ok(count);
            }
            count += some.len();
            let mut some = some.drain(..);
            self.change(|held, state| state.apply(held, &mut some))?;
        }
    }

    /// Returns the number of prefixes of both families.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn len(&self) -> Result<usize, TableError> {
        self.shared.table.len()
    }

    /// Returns whether there are no prefixes.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn is_empty(&self) -> Result<bool, TableError> {
        self.shared.table.is_empty()
    }

    /// Does the work that changes leave for later, as [`Table::maintain`] does, and drops values that no reader has.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    pub fn maintain(&self) -> Result<(), TableError> {
        self.shared.table.maintain()?;
        // A change of nothing: its end retires and drops the values that earlier changes left.
        self.change(|_, _| Ok(()))
    }

    /// Publishes all changes that wait, as [`Table::flush`].
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    pub fn flush(&self) -> Result<(), TableError> {
        self.change(|held, _| held.flush().map(drop))
    }

    /// Returns the number of values in slots: those of prefixes, and those that readers may still have.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn value_count(&self) -> Result<usize, TableError> {
        Ok(self.lock()?.1.values.len())
    }

    /// Returns the memory of prefixes, engines and slots. Memory that values allocate themselves is not included.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn memory(&self) -> Result<Memory, TableError> {
        // Before this thread takes the locks, because the table would wait for its own lock for ever.
        let table = self.shared.table.statistics()?;
        let structures = table.structures.v4 + table.structures.v6;
        let routes = Memory { lookup_bytes: 0, ..table.routes + table.bookkeeping };
        Ok(routes + structures + self.lock()?.1.memory())
    }

    /// Verifies all invariants: those of the table, and that every prefix has a value and every value that is kept its
    /// prefixes.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn check(&self) -> Result<(), CheckError> {
        // As in `memory`: the table takes its lock itself.
        self.shared.table.check()?;
        match self.lock() {
            Ok((held, state)) => state.check(&held),
            Err(_) => Err(CheckError::new("no thread panicked in a change", 0)),
        }
    }

    pub(super) fn lock(&self) -> Result<(TableGuard<'_>, MutexGuard<'_, ValueState<V>>), TableError> {
        // Always the table's lock first. Two threads that took them in different orders could wait for each other.
        let held = self.shared.table.hold()?;
        let state = self.shared.state.lock().map_err(|_| TableError::Poisoned)?;
        Ok((held, state))
    }

    /// Makes a change. Unused values are dropped after the locks are released: their `Drop` may call the map.
    pub(super) fn change<C>(
        &self,
        change: impl FnOnce(&mut TableGuard<'_>, &mut ValueState<V>) -> Result<C, TableError>,
    ) -> Result<C, TableError> {
        let (mut held, mut state) = self.lock()?;
        let changed = change(&mut held, &mut state);
        // After a failure too, because the values of a change that was refused have to go.
        state.finish(&held);
        // The order matters: `Drop` of a value may call this map, and would wait for these locks for ever.
        let gone = state.values.take_gone();
        drop(state);
        drop(held);
        drop(gone);
        changed
    }
}

/// Changes that are applied at a time.
pub(super) const BATCH: usize = 64;

impl<V: Send + Sync> ValueState<V> {
    fn insert<K: TableKey>(
        &mut self,
        held: &mut TableGuard<'_>,
        prefix: Prefix<K>,
        value: V,
    ) -> Result<bool, TableError> {
        // The slot is filled first: readers may find the prefix as soon as the table has it.
        let at = self.take(value)?;
        let old = held.get(prefix);
        match held.apply(&[Change::Insert(Route::new(prefix, number(at as usize)))]) {
            Ok(_) => {
                if let Some(old) = old {
                    self.forget(index(old) as u32);
                }
                Ok(old.is_some())
            }
            Err(error) => {
                self.forget(at);
                Err(error)
            }
        }
    }

    fn remove<K: TableKey>(
        &mut self,
        held: &mut TableGuard<'_>,
        prefix: Prefix<K>,
    ) -> Result<bool, TableError> {
        let Some(old) = held.get(prefix) else { return Ok(false) };
        // Before the table changes, because `forget` must not fail afterwards.
        self.expect(0)?;
        held.apply(&[Change::Remove(prefix)])?;
        self.forget(index(old) as u32);
        Ok(true)
    }

    /// Makes at most [`BATCH`] changes.
    pub(super) fn apply(
        &mut self,
        held: &mut TableGuard<'_>,
        changes: &mut impl Iterator<Item = (IpPrefix, Option<V>)>,
    ) -> Result<(), TableError> {
        self.v4.clear();
        self.v6.clear();
        // A group may be all of one family. With this room `note` cannot fail to list a change whose value has a slot
        // already.
        self.budget.reserve(&mut self.v4, BATCH)?;
        self.budget.reserve(&mut self.v6, BATCH)?;
        let noted = changes.try_for_each(|(prefix, value)| self.note(prefix, value));
        let published = noted.map_err(TableError::from).and_then(|()| {
            self.publish(held, |state| &mut state.v4)?;
            self.publish(held, |state| &mut state.v6)
        });
        published.inspect_err(|_| self.abandon())
    }

    /// Puts a value into a slot, and notes the change.
    fn note(&mut self, prefix: IpPrefix, value: Option<V>) -> Result<(), OutOfMemory> {
        let at = match value {
            Some(value) => Some(number(self.take(value)? as usize)),
            None => None,
        };
        match prefix {
            IpPrefix::V4(prefix) => self.v4.push(change(prefix, at)),
            IpPrefix::V6(prefix) => self.v6.push(change(prefix, at)),
        }
        Ok(())
    }

    /// Applies the changes of a family that were noted, and forgets the values that they replace.
    fn publish<K: TableKey>(
        &mut self,
        held: &mut TableGuard<'_>,
        of: fn(&mut Self) -> &mut Vec<Change<K>>,
    ) -> Result<(), TableError> {
        if of(self).is_empty() {
            return Ok(());
        }
        // Room for the values that go, because `forget` cannot fail once the table has changed.
        self.expect(0)?;
        let mut changes = core::mem::take(of(self));
        // Read before the change: afterwards the table has only the new numbers.
        let replaced = replaced(held, &changes).map_err(TableError::from);
        let applied = replaced.and_then(|replaced| held.apply(&changes).map(|_| replaced));
        // Changes that were not made stay listed, so that `abandon` finds their values.
        if applied.is_ok() {
            changes.clear();
        }
        *of(self) = changes;
        applied?.into_iter().for_each(|at| self.forget(index(at) as u32));
        Ok(())
    }

    /// Takes back the values of changes that are not made.
    fn abandon(&mut self) {
        let (mut v4, mut v6) = (core::mem::take(&mut self.v4), core::mem::take(&mut self.v6));
        let (of_v4, of_v6) = (v4.drain(..).filter_map(value_of), v6.drain(..).filter_map(value_of));
        of_v4.chain(of_v6).for_each(|at| self.forget(index(at) as u32));
        (self.v4, self.v6) = (v4, v6);
    }

    /// Makes room for `values` more values, and for all values to go, so that nothing fails when they do.
    pub(super) fn expect(&mut self, values: usize) -> Result<(), OutOfMemory> {
        self.values.reserve(values)?;
        let most = self.values.len() + values;
        let Self { uses, stale, budget, interned, .. } = self;
        budget.reserve(uses, (most + 1).saturating_sub(uses.len()))?;
        budget.reserve(stale, most.saturating_sub(stale.len()))?;
        if let Some(interned) = interned {
            let wanted_bytes = values.saturating_mul(size_of::<(u64, u32)>());
            let refused = |_| OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None };
            interned.slots.try_reserve(values).map_err(refused)?;
        }
        Ok(())
    }

    /// Makes room for a value, and [puts](Self::put) it there.
    pub(super) fn take(&mut self, value: V) -> Result<u32, OutOfMemory> {
        match self.expect(1) {
            Ok(()) => Ok(self.put(value)),
            Err(error) => {
                self.values.discard(value);
                Err(error)
            }
        }
    }

    /// Puts a value into a slot, or finds an equal one, and counts a prefix for it.
    pub(super) fn put(&mut self, value: V) -> u32 {
        // Hashed by function pointers, so that only `interning` needs `V: Eq + Hash`.
        let hash = self.interned.as_ref().map(|interned| (interned.hash)(&interned.hasher, &value));
        if let (Some(interned), Some(hash)) = (&self.interned, hash)
            && let Some(&at) = interned.slots.get(&hash)
            && self.values.get(at).is_some_and(|other| (interned.equal)(other, &value))
        {
            self.uses[at as usize] += 1;
            // Not dropped here, under the locks: its `Drop` may call the map.
            self.values.discard(value);
            return at;
        }
        let at = self.values.put(value);
        // Within the room that `expect` made, so this does not allocate.
        if self.uses.len() <= at as usize {
            self.uses.resize(at as usize + 1, 0);
        }
        self.uses[at as usize] = 1;
        if let (Some(interned), Some(hash)) = (&mut self.interned, hash) {
            interned.slots.insert(hash, at);
        }
        at
    }

    /// Counts one prefix less for a value. A value without prefixes is retired once no changes wait.
    pub(super) fn forget(&mut self, at: u32) {
        let uses = &mut self.uses[at as usize];
        *uses -= 1;
        if *uses > 0 {
            return;
        }
        if let Some(interned) = &mut self.interned
            && let Some(value) = self.values.get(at)
        {
            let hash = (interned.hash)(&interned.hasher, value);
            // The entry may lead to another value with the same hash, which stays.
            if interned.slots.get(&hash) == Some(&at) {
                interned.slots.remove(&hash);
            }
        }
        // Not retired yet: while changes wait, the engines that readers see may still lead here.
        self.stale.push(at);
    }

    /// Ends a call: retires values that neither a prefix nor a lookup finds, and drops those that no reader has.
    fn finish(&mut self, held: &TableGuard<'_>) {
        if !held.waits() && !self.stale.is_empty() {
            for at in self.stale.drain(..) {
                self.values.retire(at);
            }
            // Ends the epoch after all of them are retired, so that one grace period serves the whole call.
            self.values.advance();
        }
        self.values.collect();
    }

    fn memory(&self) -> Memory {
        let lists = memory::allocated(&self.uses)
            + memory::allocated(&self.stale)
            + memory::allocated(&self.v4)
            + memory::allocated(&self.v6)
            // An entry takes 16 bytes, and one for the control byte of the standard hash table.
            + self.interned.as_ref().map_or(0, |interned| interned.slots.capacity() * 17);
        self.values.memory() + Memory { allocated_bytes: lists, ..Memory::default() }
    }

    fn check(&self, held: &TableGuard<'_>) -> Result<(), CheckError> {
        let mut counts = vec![0; self.uses.len()];
        let v4 = held.routes::<u32>().map(|route| route.next_hop);
        for at in v4.chain(held.routes::<u128>().map(|route| route.next_hop)) {
            let at = index(at);
            let is_kept = self.values.get(at as u32).is_some();
            CheckError::unless(is_kept && at < counts.len(), "every prefix has a value", at)?;
            counts[at] += 1;
        }
        for (at, (&uses, count)) in self.uses.iter().zip(counts).enumerate() {
            CheckError::unless(uses == count, "the prefixes of a value are counted", at)?;
        }
        let used = self.uses.iter().filter(|&&uses| uses > 0).count();
        let all = used + self.stale.len() + self.values.leaving();
        CheckError::unless(self.values.len() == all, "every value has a prefix, or is leaving", all)
    }
}

pub(super) fn change<K>(prefix: Prefix<K>, next_hop: Option<NextHop>) -> Change<K> {
    match next_hop {
        Some(next_hop) => Change::Insert(Route::new(prefix, next_hop)),
        None => Change::Remove(prefix),
    }
}

fn value_of<K>(change: Change<K>) -> Option<NextHop> {
    match change {
        Change::Insert(route) => Some(route.next_hop),
        Change::Remove(_) => None,
    }
}

/// Returns the numbers that the changes replace. A prefix may come several times: each change replaces the one before it.
fn replaced<K: TableKey>(held: &TableGuard<'_>, changes: &[Change<K>]) -> Result<Vec<NextHop>, OutOfMemory> {
    let mut replaced = Budget::default().vec(changes.len())?;
    for (at, change) in changes.iter().enumerate() {
        let prefix = change.prefix();
        // A search of the changes before takes quadratic time, but a group has at most 64.
        let earlier = changes[..at].iter().rev().find(|earlier| earlier.prefix() == prefix);
        replaced.extend(earlier.map_or_else(|| held.get(prefix), |&earlier| value_of(earlier)));
    }
    Ok(replaced)
}

impl<V> fmt::Debug for SharedPrefixMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPrefixMap").field("table", &self.shared.table).finish_non_exhaustive()
    }
}
