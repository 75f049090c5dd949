//! The table: routes of both families, changed by any thread, one at a time, and looked up by readers meanwhile.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::sync::{Arc, MutexGuard, Weak};
use std::thread::{self, JoinHandle};

use crate::check::CheckError;
use crate::fib::registry::Engine;
use crate::memory::Memory;
use crate::net::{Change, Dual, IntoIpAddr, IntoIpPrefix, IpPrefix, Key, NextHop, Prefix, Route};
use crate::rib::{DualRib, Rib, lookup_prefix};

use super::family::FamilyWriter;
use super::listener::Listener;
use super::options::{Options, Outcome, TableError};
use super::root::TableRoots;
use super::writer::{OtherEngines, TableWriter};
use crate::fib::in_place::Rooms;

/// A routing table that changes while other threads look addresses up in it.
///
/// A clone is another handle to the same table. Any thread may change it; changes are made one after the other. Each thread
/// that looks up has a [`Reader`](super::Reader) of its own.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// use fibula::Table;
/// use fibula::net::NextHop;
///
/// let table = Table::new()?;
/// let (one, two) = (NextHop::try_from(1)?, NextHop::try_from(2)?);
/// table.insert("192.0.2.0/24".parse::<fibula::net::IpPrefix>()?, one)?;
///
/// let mut reader = table.reader()?;
/// std::thread::scope(|scope| {
///     scope.spawn(move || {
///         // Once a batch: lookups through the pin see one state of the table or a later one.
///         let pin = reader.pin();
///         assert!(pin.lookup(Ipv4Addr::new(192, 0, 2, 1)).is_some());
///     });
///     scope.spawn(|| table.insert("192.0.2.0/25".parse::<fibula::net::IpPrefix>().unwrap(), two));
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What lookups see
///
/// Of one call of [`apply`](Self::apply), every address goes straight from its answer before the call to its answer after
/// it; other addresses may go earlier or later, and the answers of a batch may be of either side. Of
/// [`apply_atomic`](Self::apply_atomic), a pin sees everything or nothing.
#[derive(Clone)]
pub struct Table {
    shared: Arc<SharedTable>,
}

/// The state that handles and readers of a table share.
pub(super) type SharedTable = super::shared::Shared<TableRoots, TableWriter>;

/// A key of a family that a table has: `u32` for IPv4, `u128` for IPv6.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of a batch in a table",
    label = "expected `u32` (IPv4) or `u128` (IPv6)",
    note = "a batch is of one family, in host order: `u32::from(address)`, `u128::from(address)`; `lookup` takes any address",
    note = "addresses in network byte order are `[u8; 4]` or `[u8; 16]`: `batch(&addresses)`"
)]
pub trait TableKey: Key + IntoIpAddr + sealed::Of {}

impl TableKey for u32 {}
impl TableKey for u128 {}

pub(super) mod sealed {
    #[cfg(test)]
    use super::FamilyWriter;
    use super::{Change, Dual, Engine, OtherEngines, Rib, TableRoots, TableWriter};
    use crate::fib::Fib;

    /// Where a family is.
    pub trait Of: Sized {
        /// The roots of the family.
        #[allow(private_interfaces)]
        fn of(roots: &TableRoots) -> &dyn Fib<Self>
        where
            Self: crate::net::Key;

        /// Returns the routes of the family, of those of both.
        fn rib_of<'r>(v4: &'r Rib<u32>, v6: &'r Rib<u128>) -> &'r Rib<Self>;

        /// The routes of the family.
        #[allow(private_interfaces)]
        fn rib(writer: &TableWriter) -> &Rib<Self> {
            Self::rib_of(&writer.families.v4.rib, &writer.families.v6.rib)
        }

        /// The writer of the family.
        #[cfg(test)]
        #[allow(private_interfaces)]
        fn writer(writer: &TableWriter) -> &FamilyWriter<Self>
        where
            Self: crate::net::Key;

        /// Splits the changes by family; the other family has none.
        fn split(changes: &[Change<Self>]) -> (&[Change<u32>], &[Change<u128>]);

        /// Returns another engine for the family, and none for the other family.
        #[allow(private_interfaces)]
        fn other(engine: Engine<Self>) -> OtherEngines
        where
            Self: crate::net::Key;

        /// Returns the engine of the family.
        #[allow(private_interfaces)]
        fn engine(writer: &TableWriter) -> Engine<Self>
        where
            Self: crate::net::Key;
    }

    #[allow(private_interfaces)]
    impl Of for u32 {
        #[inline]
        fn of(roots: &TableRoots) -> &dyn Fib<Self> {
            &*roots.v4
        }

        fn rib_of<'r>(v4: &'r Rib<u32>, _: &'r Rib<u128>) -> &'r Rib<Self> {
            v4
        }

        #[cfg(test)]
        fn writer(writer: &TableWriter) -> &FamilyWriter<Self> {
            &writer.families.v4
        }

        fn split(changes: &[Change<Self>]) -> (&[Change<u32>], &[Change<u128>]) {
            (changes, &[])
        }

        fn other(engine: Engine<Self>) -> OtherEngines {
            Dual { v4: Some(engine), v6: None }
        }

        fn engine(writer: &TableWriter) -> Engine<Self> {
            writer.families.v4.engine()
        }
    }

    #[allow(private_interfaces)]
    impl Of for u128 {
        #[inline]
        fn of(roots: &TableRoots) -> &dyn Fib<Self> {
            &*roots.v6
        }

        fn rib_of<'r>(_: &'r Rib<u32>, v6: &'r Rib<u128>) -> &'r Rib<Self> {
            v6
        }

        #[cfg(test)]
        fn writer(writer: &TableWriter) -> &FamilyWriter<Self> {
            &writer.families.v6
        }

        fn split(changes: &[Change<Self>]) -> (&[Change<u32>], &[Change<u128>]) {
            (&[], changes)
        }

        fn other(engine: Engine<Self>) -> OtherEngines {
            Dual { v4: None, v6: Some(engine) }
        }

        fn engine(writer: &TableWriter) -> Engine<Self> {
            writer.families.v6.engine()
        }
    }
}

/// Returns the routes of the family of `K`.
pub(crate) fn rib_of<'r, K: TableKey>(v4: &'r Rib<u32>, v6: &'r Rib<u128>) -> &'r Rib<K> {
    K::rib_of(v4, v6)
}

/// Splits the changes by family; one of the two slices is empty.
pub(crate) fn split<K: TableKey>(changes: &[Change<K>]) -> (&[Change<u32>], &[Change<u128>]) {
    K::split(changes)
}

impl Table {
    /// Returns an empty table with default [`Options`].
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new() -> Result<Self, TableError> {
        Self::from_routes(DualRib::default(), Options::default())
    }

    /// Returns a table of these routes, which is much faster than to insert them one by one.
    ///
    /// # Errors
    /// When memory runs out, an engine refuses the routes, or there is none of the name.
    pub fn from_routes(routes: DualRib, options: Options) -> Result<Self, TableError> {
        let DualRib { v4, v6 } = routes;
        let families = Dual {
            v4: FamilyWriter::new(v4, options.ipv4, &options)?,
            v6: FamilyWriter::new(v6, options.ipv6, &options)?,
        };
        let writer = TableWriter::new(families, options);
        Ok(Self { shared: Arc::new(SharedTable::new(writer.roots(), writer, options.limits)) })
    }

    /// Adds a route, or replaces the next hop of its prefix.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn insert(&self, prefix: impl IntoIpPrefix, next_hop: NextHop) -> Result<Outcome, TableError> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.apply(&[Change::Insert(Route::new(prefix, next_hop))]),
            IpPrefix::V6(prefix) => self.apply(&[Change::Insert(Route::new(prefix, next_hop))]),
        }
    }

    /// Removes a prefix, if it is there.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn remove(&self, prefix: impl IntoIpPrefix) -> Result<Outcome, TableError> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.apply(&[Change::Remove(prefix)]),
            IpPrefix::V6(prefix) => self.apply(&[Change::Remove(prefix)]),
        }
    }

    /// Applies changes in order. Each address goes straight from its answer before all of them to that after all of them.
    /// Lookups that are pinned after the call see them, unless the [`Options`] say that changes may wait. Batches of 64 take
    /// half the time a change that single ones do.
    ///
    /// # Errors
    /// When memory runs out, when the engine refuses the table, when a reader has kept replaced memory from being freed for longer
    /// than the table's patience, or when a thread panicked in a change before. The table is then as it was.
    pub fn apply<K: TableKey>(&self, changes: &[Change<K>]) -> Result<Outcome, TableError> {
        let (v4, v6) = split(changes);
        self.lock()?.apply(&self.shared.domain, &self.shared.root, v4, v6, false)
    }

    /// Applies changes of both families so that a pin sees all of them or none. The engines keep a second array of entries
    /// for it (512 KiB for the default engine of IPv4), which is brought up to date in microseconds; while a reader is in it, or
    /// after thousands of changes, all entries are copied, which takes tens of microseconds. Costs readers some cache misses: for
    /// changes that have to be seen together, not for feeds.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn apply_atomic(&self, v4: &[Change<u32>], v6: &[Change<u128>]) -> Result<Outcome, TableError> {
        self.lock()?.apply(&self.shared.domain, &self.shared.root, v4, v6, true)
    }

    /// Returns the next hop of exactly this prefix.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn get(&self, prefix: impl IntoIpPrefix) -> Result<Option<NextHop>, TableError> {
        let writer = self.lock()?;
        Ok(match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => writer.families.v4.rib.get(prefix),
            IpPrefix::V6(prefix) => writer.families.v6.rib.get(prefix),
        })
    }

    /// Returns the next hop of the longest prefix that contains an address, from the routes themselves. It waits for
    /// changes in progress: for occasional questions. Lookups at speed go through a [`Reader`](super::Reader).
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn lookup(&self, address: impl IntoIpAddr) -> Result<Option<NextHop>, TableError> {
        let writer = self.lock()?;
        Ok(match address.into_ip_addr() {
            IpAddr::V4(address) => writer.families.v4.rib.lookup(address),
            IpAddr::V6(address) => writer.families.v6.rib.lookup(address),
        })
    }

    /// Returns the longest prefix that contains an address, and its next hop, from the routes themselves. Like
    /// [`lookup`](Self::lookup), it waits for changes in progress; it takes one walk down the tree of the routes.
    ///
    /// ```
    /// use std::net::IpAddr;
    ///
    /// use fibula::Table;
    /// use fibula::net::{IpPrefix, NextHop};
    ///
    /// let table = Table::new()?;
    /// let (prefix, next_hop) = ("192.0.2.0/24".parse::<IpPrefix>()?, NextHop::try_from(1)?);
    /// table.insert(prefix, next_hop)?;
    /// assert_eq!(table.lookup_prefix("192.0.2.1".parse::<IpAddr>()?)?, Some((prefix, next_hop)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn lookup_prefix(&self, address: impl IntoIpAddr) -> Result<Option<(IpPrefix, NextHop)>, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = &writer.families;
        Ok(lookup_prefix(&v4.rib, &v6.rib, address.into_ip_addr()))
    }

    /// Returns the routes that contain a prefix, itself included, shortest first. The last of them is the longest route that
    /// contains the prefix.
    ///
    /// It waits for changes in progress and takes one walk down the tree of the routes. The list has at most one route for each
    /// length: 33 for IPv4, 129 for IPv6.
    ///
    /// ```
    /// use fibula::Table;
    /// use fibula::net::{NextHop, Prefix};
    ///
    /// let table = Table::new()?;
    /// for (text, id) in [("10.0.0.0/8", 1), ("10.1.0.0/16", 2)] {
    ///     table.insert(text.parse::<Prefix<u32>>()?, NextHop::try_from(id)?)?;
    /// }
    /// let covers = table.covers("10.1.2.0/24".parse::<Prefix<u32>>()?)?;
    /// assert_eq!(covers.iter().map(|route| route.prefix.len()).collect::<Vec<_>>(), [8, 16]);
    /// assert_eq!(covers.last().map(|route| route.next_hop.id()), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn covers<K: TableKey>(&self, prefix: Prefix<K>) -> Result<Vec<Route<K>>, TableError> {
        let writer = self.lock()?;
        Ok(K::rib(&writer).covers(prefix).collect())
    }

    /// Returns all routes of a family, in order: by address, then by length. Changes may be made between any two of them,
    /// unlike with [`for_each`](Self::for_each): a route that is there from the first to the last call is returned once.
    #[must_use]
    pub fn iter<K: TableKey>(&self) -> TableRoutes<'_, K> {
        TableRoutes { table: self, page: Vec::new().into_iter(), last: None, has_ended: false }
    }

    /// Returns the routes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not.
    #[must_use]
    pub fn iter_after<K: TableKey>(&self, prefix: Prefix<K>) -> TableRoutes<'_, K> {
        TableRoutes { table: self, page: Vec::new().into_iter(), last: Some(prefix), has_ended: false }
    }

    /// Calls `each` for all routes of a family, in order, while changes wait.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn for_each<K: TableKey>(&self, each: impl FnMut(Route<K>)) -> Result<(), TableError> {
        let writer = self.lock()?;
        K::rib(&writer).iter().for_each(each);
        Ok(())
    }

    /// Returns the routes inside a prefix, itself included, in order.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn subnets<K: TableKey>(&self, within: Prefix<K>) -> Result<Vec<Route<K>>, TableError> {
        let writer = self.lock()?;
        Ok(K::rib(&writer).subnets(within).collect())
    }

    /// Returns a copy of all routes.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn routes(&self) -> Result<DualRib, TableError> {
        let writer = self.lock()?;
        Ok(DualRib::new(writer.families.v4.rib.clone(), writer.families.v6.rib.clone()))
    }

    /// Returns the number of routes of both families.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn len(&self) -> Result<usize, TableError> {
        let writer = self.lock()?;
        Ok(writer.families.v4.rib.len() + writer.families.v6.rib.len())
    }

    /// Returns the number of routes of one family.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn len_of<K: TableKey>(&self) -> Result<usize, TableError> {
        Ok(K::rib(&*self.lock()?).len())
    }

    /// Returns whether the table has no routes.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn is_empty(&self) -> Result<bool, TableError> {
        Ok(self.len()? == 0)
    }

    /// Returns the memory of everything: routes, engines, retired units, and the lists of writer and readers.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn memory(&self) -> Result<Memory, TableError> {
        let Statistics { routes, structures, bookkeeping, .. } = self.statistics()?;
        Ok(routes + structures.v4 + structures.v6 + bookkeeping)
    }

    /// Returns the memory, the counts and the totals of the table.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn statistics(&self) -> Result<Statistics, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = &writer.families;
        Ok(Statistics {
            routes: v4.routes_memory() + v6.routes_memory(),
            structures: Dual { v4: v4.structure_memory(), v6: v6.structure_memory() },
            bookkeeping: self.shared.domain.memory() + writer.books.memory(),
            retired_bytes: writer.books.retired.bytes(),
            stalled: writer.books.stalled(&self.shared.domain),
            readers: self.shared.domain.readers(),
            totals: Outcome {
                // Current, whereas the sums over all calls are in `totals`.
                version: self.shared.domain.epoch(),
                waiting: writer.waiting(),
                retired_bytes: writer.books.retired.bytes(),
                ..writer.books.totals
            },
        })
    }

    /// Does deferred work, for tables that change rarely and tables whose changes wait. It publishes waiting
    /// changes, unless their engine is still being built; frees memory that no reader can see any more; fills gaps in
    /// engines, as each change does for a few; and rebuilds engines whose memory per route has grown by a sixth since
    /// their last build. Such a build takes 20 to 60 ms for a full table, in a thread of its own if
    /// [`Options::background`] says so.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply); changes that wait still do then.
    pub fn maintain(&self) -> Result<Outcome, TableError> {
        let (mut writer, SharedTable { domain, root, .. }) = (self.lock()?, &*self.shared);
        let outcome = writer.publish_waiting(domain, root, false)?;
        // The number of entries bounds the time for which other calls wait.
        writer.tidy(domain, Dual { v4: 1 << 12, v6: 1 << 12 });
        writer.shrink(domain);
        Ok(outcome)
    }

    /// Puts another engine in the place of a family's, built of its routes as they are. Lookups go on meanwhile, and changes wait: a
    /// full table takes some 50 ms. Changes that waited are published with it.
    ///
    /// ```
    /// use fibula::Table;
    /// use fibula::engines::{Dir248, EngineType};
    ///
    /// let table = Table::new()?;
    /// table.set_engine(Dir248::engine())?;
    /// assert_eq!(table.engine::<u32>()?.name, "dir-24-8");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When memory runs out, the engine refuses the routes, a listener has no room for it, a reader has held up too many changes, or a
    /// thread panicked in a change. The table is then as it was.
    pub fn set_engine<K: TableKey>(&self, engine: Engine<K>) -> Result<Outcome, TableError> {
        self.lock()?.set_engines(&self.shared.domain, &self.shared.root, K::other(engine))
    }

    /// Returns the engine of a family.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn engine<K: TableKey>(&self) -> Result<Engine<K>, TableError> {
        Ok(K::engine(&*self.lock()?))
    }

    /// Publishes all changes that wait, building engines where they have to be built.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply); changes that wait still do then.
    pub fn flush(&self) -> Result<Outcome, TableError> {
        self.lock()?.publish_waiting(&self.shared.domain, &self.shared.root, true)
    }

    /// Reports to a listener all words that lookups read, and from then on every word that any call or thread stores: first
    /// the units that entries lead to, then the entries. Without a listener this costs nothing. A table has one listener;
    /// the previous one is dropped. Waiting changes ([`Options::coalesce`]) are reported when they are published.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn listen(&self, listener: impl Listener + 'static) -> Result<(), TableError> {
        self.listen_within(listener, Dual::default())
    }

    /// Like [`listen`](Self::listen), for a listener whose copy cannot grow: `rooms` are the most words of each array, by
    /// family. A change that needs more is refused with [`TableError::Room`], unless an engine that is built again needs less.
    /// The table and the copy then still have everything from before.
    ///
    /// ```
    /// use fibula::Table;
    /// use fibula::live::{Listener, Rooms, Stored, Structure, TableError};
    /// use fibula::net::{Dual, NextHop, Prefix};
    ///
    /// struct Mirror;
    /// impl Listener for Mirror {
    ///     fn structure(&mut self, _: &Structure<'_>) {}
    ///     fn stored(&mut self, stored: &Stored<'_>) {
    ///         assert!(stored.array != 1 || stored.first + stored.words.len() <= 4_096);
    ///     }
    /// }
    ///
    /// let table = Table::new()?;
    /// let rooms = Rooms([usize::MAX, 4_096, usize::MAX, usize::MAX]);
    /// table.listen_within(Mirror, Dual::new(rooms, Rooms::default()))?;
    /// let hop = NextHop::try_from(1)?;
    /// let mut prefixes = (0u32..1 << 17).map(|at| Prefix::<u32>::masked(at << 15 | 1 << 8, 24));
    /// let refused = prefixes.find_map(|prefix| table.insert(prefix.ok()?, hop).err());
    /// assert!(matches!(refused, Some(TableError::Room { array: 1, room: 4_096, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the table has outgrown the rooms already, or an engine takes no limits; the previous listener then stays. When a
    /// thread panicked in a change.
    pub fn listen_within(
        &self,
        listener: impl Listener + 'static,
        rooms: Dual<Rooms, Rooms>,
    ) -> Result<(), TableError> {
        let previous = self.lock()?.listen(&self.shared.domain, Some(Box::new(listener)), rooms);
        // After the lock is released, because what a listener drops may call this table.
        previous.map(drop)
    }

    /// Removes the listener that [`listen`](Self::listen) set, and returns it.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn stop_listening(&self) -> Result<Option<Box<dyn Listener>>, TableError> {
        self.lock()?.listen(&self.shared.domain, None, Dual::default())
    }

    /// Calls [`maintain`](Self::maintain) at intervals in a thread of its own, until the guard or the last handle is
    /// dropped.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn maintain_every(&self, interval: Duration) -> std::io::Result<Maintenance> {
        // Weak, because the thread must not keep the table alive.
        let shared = Arc::downgrade(&self.shared);
        let stop = Arc::new(());
        let stopped = Arc::downgrade(&stop);
        let work = move || maintain(&shared, &stopped, interval);
        let thread = thread::Builder::new().name("fibula-maintain".to_owned()).spawn(work)?;
        Ok(Maintenance { stop: Some(stop), thread: Some(thread) })
    }

    /// Verifies all invariants of routes and engines, while changes wait.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), CheckError> {
        match self.lock() {
            Ok(writer) => writer.check(),
            Err(_) => Err(CheckError::new("no thread panicked in a change", 0)),
        }
    }

    pub(super) fn shared(&self) -> &SharedTable {
        &self.shared
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, TableWriter>, TableError> {
        self.shared.lock()
    }
}

fn maintain(shared: &Weak<SharedTable>, stopped: &Weak<()>, interval: Duration) {
    loop {
        // Parked, not asleep: `Maintenance` wakes the thread to end it.
        thread::park_timeout(interval);
        // The table is kept for one round alone. If its last handle goes meanwhile, the thread ends.
        let (Some(_), Some(shared)) = (stopped.upgrade(), shared.upgrade()) else { return };
        // Any other error is temporary, so the next round tries again; a poisoned table cannot change any more.
        if (Table { shared }).maintain() == Err(TableError::Poisoned) {
            return;
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("version", &self.shared.domain.epoch()).finish_non_exhaustive()
    }
}

/// Iterator over the routes of a table that may change meanwhile: see [`Table::iter`]. An item is an error, the last one, when
/// a thread panicked in a change.
#[derive(Debug)]
pub struct TableRoutes<'a, K> {
    table: &'a Table,
    page: std::vec::IntoIter<Route<K>>,
    /// The last route of the page.
    last: Option<Prefix<K>>,
    has_ended: bool,
}

/// Routes that are read at once.
const PAGE: usize = 256;

impl<K: TableKey> Iterator for TableRoutes<'_, K> {
    type Item = Result<Route<K>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(route) = self.page.next() {
            return Some(Ok(route));
        }
        if self.has_ended {
            return None;
        }
        let writer = match self.table.lock() {
            Ok(writer) => writer,
            Err(error) => {
                self.has_ended = true;
                return Some(Err(error));
            }
        };
        let rib = K::rib(&writer);
        // After the last prefix, even if it is gone by now: changes may have been made since the last page.
        let rest = self.last.map_or_else(|| rib.iter(), |last| rib.iter_after(last));
        let page: Vec<_> = rest.take(PAGE).collect();
        self.has_ended = page.len() < PAGE;
        // An empty page has no last prefix, but has ended the iterator, so it does not begin anew.
        self.last = page.last().map(|route| route.prefix);
        self.page = page.into_iter();
        self.page.next().map(Ok)
    }
}

/// A thread that maintains a table. It ends when this is dropped.
#[derive(Debug)]
pub struct Maintenance {
    stop: Option<Arc<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        // Before the thread wakes up, because it looks for this once.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of a listener or of a build has poisoned the table, whose calls report it.
            let _ = thread.join();
        }
    }
}

/// Memory, counts and totals of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Memory of the routes of both families.
    pub routes: Memory,
    /// Memory of the engines, including retired units.
    pub structures: Dual<Memory>,
    /// Memory of the slots of readers, and of the list of retired units.
    pub bookkeeping: Memory,
    /// Bytes that were replaced, and that readers may still see.
    pub retired_bytes: usize,
    /// The number of the reader that keeps the oldest of these from being freed, and the changes since it was pinned.
    pub stalled: Option<(usize, u64)>,
    /// Number of readers.
    pub readers: usize,
    /// Changes since the table was made.
    pub totals: Outcome,
}
