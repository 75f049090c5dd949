//! Accounts for all memory of a load that grows with its input, against one limit.
//!
//! Memory is charged before it is allocated. When a larger block replaces an old one, both count until the old one is
//! freed, so the limit holds at every moment.

use core::hash::Hash;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::collections::hash_map::{IntoIter, Values};
use std::sync::Arc;

use fibula::memory::OutOfMemory;
use indexmap::IndexSet;

/// The bytes charged so far and the limit on them; clones share one account.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Account>);

#[derive(Debug, Default)]
struct Account {
    limit_bytes: Option<usize>,
    used_bytes: AtomicUsize,
}

impl Ledger {
    pub(crate) fn new(limit_bytes: Option<usize>) -> Self {
        Self(Arc::new(Account { limit_bytes, used_bytes: AtomicUsize::new(0) }))
    }

    pub(crate) fn limit_bytes(&self) -> Option<usize> {
        self.0.limit_bytes
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.0.used_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes that can still be charged; `None` if there is no limit.
    pub(crate) fn free_bytes(&self) -> Option<usize> {
        self.0.limit_bytes.map(|limit| limit.saturating_sub(self.used_bytes()))
    }

    pub(crate) fn charge(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let limit = self.0.limit_bytes.unwrap_or(usize::MAX);
        let add = |used: usize| used.checked_add(bytes).filter(|&used| used <= limit);
        match self.0.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(used_bytes) => {
                Err(OutOfMemory { wanted_bytes: bytes, used_bytes, limit_bytes: self.0.limit_bytes })
            }
        }
    }

    fn release(&self, bytes: usize) {
        self.0.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn refused(&self, wanted_bytes: usize) -> OutOfMemory {
        OutOfMemory { wanted_bytes, used_bytes: self.used_bytes(), limit_bytes: None }
    }
}

/// Charged bytes, released when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    ledger: Ledger,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        Self { ledger: ledger.clone(), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.ledger.charge(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    pub(crate) fn sub(&mut self, bytes: usize) {
        self.ledger.release(bytes);
        self.bytes -= bytes;
    }

    /// Charges or releases the difference to `bytes`.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.add(more),
            None => {
                self.sub(self.bytes - bytes);
                Ok(())
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.release(self.bytes);
    }
}

/// Returns the bytes of a hash table with this many buckets: each has a control byte, and there is one more group of
/// those.
const fn table_bytes(buckets: usize, entry_bytes: usize) -> usize {
    if buckets == 0 { 0 } else { buckets * (entry_bytes + 1) + 32 }
}

/// Returns the buckets of a table with room for `capacity` entries, which may fill seven eighths of a power of two.
const fn buckets(capacity: usize) -> usize {
    match capacity {
        0 => 0,
        1..=7 => (capacity + 1).next_power_of_two(),
        _ => (capacity * 8).div_ceil(7).next_power_of_two(),
    }
}

/// Returns the number of entries that fit once a full table has doubled its buckets.
const fn doubled(capacity: usize) -> usize {
    match capacity {
        0 => 3,
        1..=3 => 7,
        4..=7 => 14,
        _ => capacity * 2,
    }
}

/// A hash map whose memory is charged.
#[derive(Debug)]
pub(crate) struct Map<K, V> {
    map: HashMap<K, V>,
    /// Number of entries that the table has room for if none were removed.
    room: usize,
    held: Held,
}

impl<K: Hash + Eq, V> Map<K, V> {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        Self { map: HashMap::new(), room: 0, held: Held::new(ledger) }
    }

    /// Makes room for one more entry.
    pub(crate) fn reserve(&mut self) -> Result<(), OutOfMemory> {
        let len = self.map.len();
        if len < self.map.capacity() {
            return Ok(());
        }
        if len < self.room / 2 {
            // The places of entries that were removed are cleared; nothing is allocated.
            return self.map.try_reserve(1).map_err(|_| self.held.ledger.refused(0));
        }
        let room = doubled(self.room);
        let bytes = table_bytes(buckets(room), size_of::<(K, V)>());
        let before = self.held.bytes();
        self.held.add(bytes)?;
        if self.map.try_reserve(room - len).is_err() {
            self.held.sub(bytes);
            return Err(self.held.ledger.refused(bytes));
        }
        self.held.sub(before);
        self.room = room;
        Ok(())
    }

    /// Inserts like [`HashMap::insert`], and charges the memory.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Result<Option<V>, OutOfMemory> {
        self.reserve()?;
        Ok(self.map.insert(key, value))
    }

    pub(crate) fn get_or_insert_with(
        &mut self,
        key: K,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, OutOfMemory> {
        self.reserve()?;
        Ok(self.map.entry(key).or_insert_with(value))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.map.remove(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.map.values_mut()
    }

    pub(crate) fn values(&self) -> Values<'_, K, V> {
        self.map.values()
    }

    /// Returns the entries, and the charge for the table that they come from.
    pub(crate) fn into_entries(self) -> (IntoIter<K, V>, Held) {
        (self.map.into_iter(), self.held)
    }
}

/// A set whose memory is charged, and which numbers its members in the order of insertion.
#[derive(Debug)]
pub(crate) struct Set<T> {
    set: IndexSet<T>,
    held: Held,
}

impl<T: Hash + Eq> Set<T> {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        Self { set: IndexSet::new(), held: Held::new(ledger) }
    }

    /// Adds the member if it is new, and returns its number.
    pub(crate) fn insert(&mut self, member: T) -> Result<usize, OutOfMemory> {
        if let Some(index) = self.set.get_index_of(&member) {
            return Ok(index);
        }
        if let Some(bytes) = set_growth::<T>(self.set.len(), self.set.capacity()) {
            let before = self.held.bytes();
            self.held.add(bytes)?;
            let more = doubled(self.set.len()) - self.set.len();
            if self.set.try_reserve_exact(more).is_err() {
                self.held.sub(bytes);
                return Err(self.held.ledger.refused(bytes));
            }
            self.held.sub(before);
        }
        Ok(self.set.insert_full(member).0)
    }

    pub(crate) fn get(&self, index: usize) -> &T {
        &self.set[index]
    }
}

/// Returns the bytes of the block that an [`IndexSet`] of `len` members needs for one more; `None` if it has room.
pub(crate) fn set_growth<T>(len: usize, capacity: usize) -> Option<usize> {
    let grown = doubled(len);
    let entries = grown * (size_of::<T>() + size_of::<u64>()).next_multiple_of(8.max(align_of::<T>()));
    (len >= capacity).then(|| table_bytes(buckets(grown), size_of::<usize>()) + entries)
}

/// Returns the number of members for which a full [`IndexSet`] makes room at a time.
pub(crate) fn set_room(len: usize) -> usize {
    doubled(len) - len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_stay_within_the_limit_and_are_given_back() {
        let ledger = Ledger::new(Some(100));
        let mut held = Held::new(&ledger);
        held.add(60).unwrap();
        let error = held.add(41).unwrap_err();
        assert_eq!(error, OutOfMemory { wanted_bytes: 41, used_bytes: 60, limit_bytes: Some(100) });
        held.set(100).unwrap();
        assert_eq!(ledger.free_bytes(), Some(0));
        held.set(10).unwrap();
        assert_eq!((ledger.used_bytes(), ledger.free_bytes()), (10, Some(90)));
        drop(held);
        assert_eq!(ledger.used_bytes(), 0);
        assert!(Ledger::new(None).charge(usize::MAX).is_ok());
    }

    #[test]
    fn the_bytes_of_tables_follow_their_growth() {
        assert_eq!([0, 1, 3, 4, 7, 8, 14, 15, 28].map(buckets), [0, 2, 4, 8, 8, 16, 16, 32, 32]);
        let ledger = Ledger::new(Some(1 << 20));
        let mut map = Map::new(&ledger);
        let mut set = Set::new(&ledger);
        for key in 0..2_000_u64 {
            map.insert(key, key).unwrap();
            assert_eq!(set.insert(key).unwrap(), key as usize);
            let tables = table_bytes(buckets(map.map.capacity()), 16);
            assert_eq!(map.held.bytes(), tables, "{key}");
            assert!(set.held.bytes() >= set.set.capacity() * 16 + set.set.capacity() * 9, "{key}");
        }
        let refused = (2_000..).find(|&key| map.insert(key, key).is_err()).unwrap();
        assert_eq!(map.len() as u64, refused);
        assert!(ledger.used_bytes() <= 1 << 20);
        drop((map, set));
        assert_eq!(ledger.used_bytes(), 0);
    }
}
