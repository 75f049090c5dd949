//! Readers: each looks addresses up for one thread, in a table that other threads change.

use core::fmt;
use std::sync::Arc;

use crate::net::{Batch, BatchLookup, IntoIpAddr, Keys, NextHop};

use super::epoch::{Domain, ReaderSlot};
use super::options::TableError;
use super::root::{self, CurrentRoot, TableRoots};
use super::table::{Table, TableKey};

/// The types that have readers: [`Table`], [`Vrfs`](crate::Vrfs), [`NextHops`](crate::hops::NextHops) and
/// [`SharedPrefixMap`](crate::map::SharedPrefixMap).
pub trait Readable: sealed::Readable {}

impl<T: sealed::Readable> Readable for T {}

pub(crate) mod sealed {
    use super::{Arc, CurrentRoot, Domain, TableError};

    /// The parts of a table that its readers need.
    ///
    /// The root and the domain of a handle are always the same ones. The writer retires the old roots of each swap in that
    /// domain before it ends the epoch, and drops them when they are collected.
    #[allow(private_interfaces)]
    pub trait Readable: Sized {
        /// The roots that a pin keeps in place.
        type Roots;
        /// The handle that a reader keeps, so that the table lives as long as it.
        type Handle: Clone;
        /// State that belongs to one reader, for example its counts.
        type Own;

        fn root(handle: &Self::Handle) -> &CurrentRoot<Self::Roots>;

        fn domain(handle: &Self::Handle) -> &Arc<Domain>;

        /// Returns the state of a new reader.
        fn own(handle: &Self::Handle) -> Result<Self::Own, TableError>;
    }
}

/// Looks up addresses for one thread in a `T` that changes: a [`Table`], [`Vrfs`](crate::Vrfs), a
/// [`SharedPrefixMap`](crate::map::SharedPrefixMap), or a table with its [`NextHops`](crate::hops::NextHops).
///
/// It may move to another thread, but two threads do not share it: each has its own, from [`Table::reader`] or a clone.
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
pub struct Reader<T: Readable = Table> {
    handle: T::Handle,
    slot: ReaderSlot,
    own: T::Own,
}

impl<T: Readable> Reader<T> {
    pub(crate) fn new(handle: T::Handle) -> Result<Self, TableError> {
        let slot = ReaderSlot::register(T::domain(&handle))?;
        Ok(Self { own: T::own(&handle)?, handle, slot })
    }

    /// Returns the number by which errors name this reader.
    #[must_use]
    pub fn number(&self) -> usize {
        self.slot.number()
    }

    /// Pins the table: memory that the pin can reach is not freed until the pin is dropped.
    ///
    /// A pin takes no lock, waits for nothing and writes only a word of this reader's. It costs a few nanoseconds, so once a
    /// batch is often enough. Lookups may or may not see changes that are made meanwhile, see [`Table`].
    #[inline]
    #[allow(unsafe_code)]
    pub fn pin(&mut self) -> Pinned<'_, T> {
        let Self { handle, slot, own } = self;
        // SAFETY: the slot is of the handle's domain, in which the writer retires the old roots: see `sealed::Readable`.
        let roots = unsafe { T::root(handle).pin(slot) };
        Pinned { roots, handle, own }
    }

    /// Returns another reader of the same table, for another thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_clone(&self) -> Result<Self, TableError> {
        Self::new(self.handle.clone())
    }
}

impl<T: Readable> Clone for Reader<T> {
    /// # Panics
    /// When memory runs out, where [`try_clone`](Self::try_clone) returns an error.
    fn clone(&self) -> Self {
        self.try_clone().expect("memory for another reader")
    }
}

impl<T: Readable> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("number", &self.number()).finish_non_exhaustive()
    }
}

/// A reader that is pinned. It does not leave its thread.
///
/// The lookups depend on `T`: in a [`Table`] they take an address, in [`Vrfs`](crate::Vrfs) a VRF too, with
/// [`NextHops`](crate::hops::NextHops) the hash of a flow too, and a [`SharedPrefixMap`](crate::map::SharedPrefixMap) answers
/// by references to its values.
pub struct Pinned<'r, T: Readable = Table> {
    pub(crate) roots: root::Pinned<'r, T::Roots>,
    pub(crate) handle: &'r T::Handle,
    pub(crate) own: &'r T::Own,
}

impl<T: Readable> Pinned<'_, T> {
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

impl<T: Readable> fmt::Debug for Pinned<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl Table {
    /// Returns a reader, for one thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn reader(&self) -> Result<Reader, TableError> {
        Reader::new(self.clone())
    }
}

#[allow(private_interfaces)]
impl sealed::Readable for Table {
    type Roots = TableRoots;
    type Handle = Self;
    type Own = ();

    #[inline]
    fn root(table: &Self) -> &CurrentRoot {
        &table.shared().root
    }

    fn domain(table: &Self) -> &Arc<Domain> {
        &table.shared().domain
    }

    fn own(_: &Self) -> Result<(), TableError> {
        Ok(())
    }
}

/// Lookups in a [`Table`].
impl Pinned<'_> {
    /// Returns the next hop of the longest prefix that contains an address; `None` if no route matches.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr) -> Option<NextHop> {
        self.roots.lookup(address)
    }

    /// Looks up `keys`, writing the next hop of `keys[i]` to `results[i]`.
    ///
    /// # Panics
    /// When the two differ in length.
    #[inline]
    pub fn lookup_batch<K: TableKey>(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        K::of(&self.roots).lookup_batch(keys, results);
    }

    /// Returns a batch of lookups of keys in any of the shapes of [`Keys`], to be run: see [`Batch`].
    pub fn batch<'k, K: TableKey>(
        &self,
        keys: impl Into<Keys<'k, K>>,
    ) -> Batch<'k, K, impl BatchLookup<K, Option<NextHop>>> {
        Batch::new(keys.into(), |isa, _, keys, results| K::of(&self.roots).lookup_keys_on(isa, keys, results))
    }
}

impl TableRoots {
    /// Returns the next hop of the longest prefix that contains an address.
    #[inline]
    pub(crate) fn lookup(&self, address: impl IntoIpAddr) -> Option<NextHop> {
        address.by_family(|key| self.v4.lookup_key(key), |key| self.v6.lookup_key(key))
    }
}

/// A pin, which keeps a reader's epoch from ending. Values retired after it in its domain are not freed as long as it lives.
pub(crate) trait Pin {
    /// Returns the domain in which this is pinned.
    fn domain(&self) -> &Domain;
}

impl<T: Readable> Pin for Pinned<'_, T> {
    #[inline]
    fn domain(&self) -> &Domain {
        self.roots.domain()
    }
}
