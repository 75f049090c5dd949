//! Lookups in a table that changes.

use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use crate::net::{BatchError, IntoIpAddr, Keys, NextHop};

use super::epoch::{Domain, Slot};
use super::options::TableError;
use super::root;
use super::table::{Shared, TableKey};

/// Looks up addresses in a [`Table`](super::Table) that changes, for one thread.
///
/// It may move to another thread, but two threads do not share it: each has its own, from [`Table::reader`](super::Table::reader)
/// or a clone.
///
/// ```
/// let reader = fibula::Table::new()?.reader()?;
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         let mut reader = reader.clone();
///         scope.spawn(move || reader.pin().lookup(std::net::Ipv4Addr::LOCALHOST));
///     }
/// });
/// # Ok::<(), fibula::live::TableError>(())
/// ```
///
/// A reader that threads share does not compile, because a pin writes to a word that the reader has for itself:
///
/// ```compile_fail,E0277
/// let reader = std::sync::Arc::new(fibula::Table::new()?.reader()?);
/// std::thread::spawn(move || reader.number());
/// # Ok::<(), fibula::live::TableError>(())
/// ```
///
/// ```text
/// error[E0277]: a reader belongs to one thread: threads cannot share it
///    = note: give each thread a reader of its own: `table.reader()?`, or a clone of another reader
/// ```
pub struct Reader {
    shared: Arc<Shared>,
    slot: Slot,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, TableError> {
        let slot = Slot::register(&shared.domain)?;
        Ok(Self { shared, slot })
    }

    /// Returns the number by which errors name this reader.
    #[must_use]
    pub fn number(&self) -> usize {
        self.slot.number()
    }

    /// Pins the table: memory that the pin can reach is not freed until the pin is dropped.
    ///
    /// A pin takes no lock, waits for nothing and writes only a word of this reader's. It costs a few nanoseconds, so once a
    /// batch is often enough. Lookups may or may not see changes that are made meanwhile, see [`Table`](super::Table).
    #[inline]
    #[allow(unsafe_code)]
    pub fn pin(&mut self) -> Pinned<'_> {
        let Self { shared, slot } = self;
        // SAFETY: the slot is of the table's domain, and the table's writer retires the old roots of each swap in that domain
        // before it ends the epoch, and drops them when they are collected.
        Pinned { roots: unsafe { shared.root.pin(slot) } }
    }

    /// Returns another reader of the table, for another thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_clone(&self) -> Result<Self, TableError> {
        Self::new(Arc::clone(&self.shared))
    }
}

impl Clone for Reader {
    /// # Panics
    /// When memory runs out, where [`try_clone`](Self::try_clone) returns an error.
    fn clone(&self) -> Self {
        self.try_clone().expect("memory for another reader")
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("number", &self.number()).finish_non_exhaustive()
    }
}

/// A reader that is pinned. It does not leave its thread.
pub struct Pinned<'r> {
    roots: root::Pinned<'r>,
}

impl Pinned<'_> {
    /// Returns the next hop of the longest prefix that contains an address; `None` if no route matches.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<NextHop> {
        match address.into_ip_addr() {
            IpAddr::V4(address) => self.roots.v4.lookup_key(address.into()),
            IpAddr::V6(address) => self.roots.v6.lookup_key(address.into()),
        }
    }

    /// Like [`lookup`](Self::lookup), for an address of one family as an integer in host order.
    #[inline]
    #[must_use]
    pub fn lookup_key<K: TableKey>(&self, key: K) -> Option<NextHop> {
        K::of(&self.roots).lookup_key(key)
    }

    /// Looks up `keys`, writing the next hop of `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    #[inline]
    pub fn lookup_batch<K: TableKey>(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        K::of(&self.roots).lookup_batch(keys, results);
    }

    /// Like [`lookup_batch`](Self::lookup_batch), but returns an error instead of panicking.
    ///
    /// # Errors
    /// When the two differ in length; `results` is then unchanged.
    pub fn try_lookup_batch<K: TableKey>(
        &self,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) -> Result<(), BatchError> {
        K::of(&self.roots).try_lookup_batch(keys, results)
    }

    /// Like [`lookup_batch`](Self::lookup_batch), for keys in any of the shapes of [`Keys`].
    ///
    /// # Panics
    /// When `keys` and `results` differ in length.
    pub fn lookup_keys<K: TableKey>(&self, keys: Keys<'_, K>, results: &mut [Option<NextHop>]) {
        K::of(&self.roots).lookup_keys(keys, results);
    }

    /// Moves the pin to the present state, which is cheaper than ending the pin and beginning another. Call it once a round in
    /// loops that never end: otherwise the writer cannot free memory. Later lookups see all changes up to now.
    #[inline]
    pub fn refresh(&mut self) {
        self.roots.refresh();
    }

    /// Returns the version that lookups see at least: changes whose [`Outcome::version`](super::Outcome::version) is no
    /// larger are all visible.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.roots.epoch()
    }
}

/// A pin, which keeps a reader's epoch from ending. Values retired after it in its domain are not freed as long as it lives.
pub(crate) trait Pin {
    /// Returns the domain in which this is pinned.
    fn domain(&self) -> &Domain;
}

impl Pin for Pinned<'_> {
    #[inline]
    fn domain(&self) -> &Domain {
        self.roots.domain()
    }
}

impl fmt::Debug for Pinned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("version", &self.version()).finish_non_exhaustive()
    }
}
