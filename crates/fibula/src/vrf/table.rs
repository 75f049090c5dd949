//! The handle: VRFs that any thread makes, changes and drops, one at a time, and that readers look up in meanwhile.

use core::fmt;
use std::sync::{Arc, MutexGuard};

use crate::check::CheckError;
use crate::live::epoch::Domain;
use crate::live::root::CurrentRoot;
use crate::live::{Hold, Outcome, Reader, TableError, TableKey, Uses, readable};
use crate::memory::Memory;
use crate::net::{Change, Dual, IntoIpAddr, IntoIpPrefix, IpPrefix, Key, NextHop, Prefix, Route};
use crate::rib::{DualRib, lookup_prefix};

use super::Vrf;
use super::family::{EditMode, VrfTable};
use super::options::{Options, Statistics};
use super::roots::VrfRoots;
use super::writer::{VrfsWriter, next_hops};

/// Many routing tables in one handle, which change while other threads look addresses up in them.
///
/// A clone is another handle to the same VRFs. Any thread may make, change and drop VRFs; that is done one after the other.
/// Each thread that looks up has a [`Reader`] of its own, which serves all VRFs. Tables with equal routes share one block, so
/// that a thousand VRFs with the same few routes take the memory of one.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// use fibula::Vrfs;
/// use fibula::net::{IpPrefix, NextHop};
///
/// let vrfs = Vrfs::new()?;
/// let [red, blue] = [vrfs.create()?, vrfs.create()?];
/// let prefix: IpPrefix = "192.0.2.0/24".parse()?;
/// vrfs.insert(red, prefix, NextHop::try_from(1)?)?;
/// vrfs.insert(blue, prefix, NextHop::try_from(2)?)?;
///
/// let mut reader = vrfs.reader()?;
/// let pin = reader.pin();
/// let address = Ipv4Addr::new(192, 0, 2, 1);
/// assert_eq!(pin.lookup(red, address).map(NextHop::id), Some(1));
///
/// // Columns, in any mix.
/// let mut next_hops = [None; 3];
/// pin.lookup_batch(&[blue, red, blue], &[u32::from(address), u32::from(address), 0], &mut next_hops);
/// assert_eq!(next_hops.map(|next_hop| next_hop.map_or(0, NextHop::id)), [2, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What lookups see
///
/// A change of one VRF is never seen in another. Of one call of [`apply`](Self::apply), every address of the VRF goes straight
/// from its answer before the call to that after it. Of [`apply_atomic`](Self::apply_atomic) and [`swap`](Self::swap), a pin
/// sees everything or nothing, but for tables in blocks: a pin that began before may see the new routes, those of both
/// families at once. The number of a dropped VRF is given to another one only when no pin is left that began before.
#[derive(Clone)]
pub struct Vrfs {
    shared: Arc<Shared>,
}

/// The state that handles and readers share.
type Shared = crate::live::Shared<VrfRoots, VrfsWriter>;

#[allow(private_interfaces)]
impl readable::Readable for Vrfs {
    type Roots = VrfRoots;
    type Handle = Self;
    type Own = ();

    #[inline]
    fn root(vrfs: &Self) -> &CurrentRoot<VrfRoots> {
        &vrfs.shared.root
    }

    fn domain(vrfs: &Self) -> &Arc<Domain> {
        &vrfs.shared.domain
    }

    fn own(_: &Self) -> Result<(), TableError> {
        Ok(())
    }
}

impl Vrfs {
    /// Returns a handle without VRFs, with default [`Options`].
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new() -> Result<Self, TableError> {
        Self::with_options(Options::default())
    }

    /// Returns a handle without VRFs.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn with_options(options: Options) -> Result<Self, TableError> {
        let mut writer = VrfsWriter::new(options)?;
        Ok(Self { shared: Arc::new(Shared::new(writer.roots()?, writer, options.limits)) })
    }

    /// Returns a reader, for one thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn reader(&self) -> Result<Reader<Self>, TableError> {
        Reader::new(self.clone())
    }

    /// Makes a VRF without routes, and returns its number: the one that was freed last, or the next.
    ///
    /// # Errors
    /// When all numbers are in use, memory runs out, or a thread panicked in a change before.
    pub fn create(&self) -> Result<Vrf, TableError> {
        self.lock()?.create(&self.shared.domain)
    }

    /// Drops a VRF, and returns its routes. Its number is given to another one when no reader can have seen it.
    ///
    /// # Errors
    /// When there is no such VRF, memory runs out, or readers keep too much memory from being freed: the VRF is then as it was.
    pub fn delete(&self, vrf: Vrf) -> Result<DualRib, TableError> {
        let Shared { root, domain, .. } = &*self.shared;
        self.lock()?.delete(domain, root, vrf)
    }

    /// Exchanges all routes of a VRF with others, of both families, which is how it is filled: `routes` are then those that it
    /// had. On an error they are unchanged, and so is the VRF. Takes microseconds for hundreds of routes, some tens of
    /// milliseconds for a full table. [`Outcome::changed`] is the number of the new routes.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn swap(&self, vrf: Vrf, routes: &mut DualRib) -> Result<Outcome, TableError> {
        let Shared { root, domain, .. } = &*self.shared;
        self.lock()?.swap(domain, root, vrf, routes)
    }

    /// Adds a route to a VRF, or replaces the next hop of its prefix.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn insert(
        &self,
        vrf: Vrf,
        prefix: impl IntoIpPrefix,
        next_hop: NextHop,
    ) -> Result<Outcome, TableError> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.apply(vrf, &[Change::Insert(Route::new(prefix, next_hop))]),
            IpPrefix::V6(prefix) => self.apply(vrf, &[Change::Insert(Route::new(prefix, next_hop))]),
        }
    }

    /// Removes a prefix from a VRF, if it is there.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn remove(&self, vrf: Vrf, prefix: impl IntoIpPrefix) -> Result<Outcome, TableError> {
        match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => self.apply(vrf, &[Change::Remove(prefix)]),
            IpPrefix::V6(prefix) => self.apply(vrf, &[Change::Remove(prefix)]),
        }
    }

    /// Applies changes to a VRF in order. Each address switches directly from its old answer to its new one.
    /// Up to [`Options::small_routes`] routes, a call rebuilds the VRF's block, so it is best to make many changes in one call.
    /// With more routes, a change costs as much as in a [`Table`](crate::Table).
    ///
    /// # Errors
    /// When there is no such VRF, when memory runs out, when an engine refuses the table, when a reader has kept replaced memory
    /// from being freed for longer than the options' patience, or when a thread panicked in a change before. All VRFs are then as
    /// they were.
    pub fn apply<K: TableKey>(&self, vrf: Vrf, changes: &[Change<K>]) -> Result<Outcome, TableError> {
        let (v4, v6) = crate::live::split(changes);
        self.change(vrf, Dual { v4, v6 }, false, false)
    }

    /// Applies changes of both families to a VRF so that a pin sees all of them or none. For a VRF with a structure of its own
    /// this copies the entries of the structure.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn apply_atomic(
        &self,
        vrf: Vrf,
        v4: &[Change<u32>],
        v6: &[Change<u128>],
    ) -> Result<Outcome, TableError> {
        self.change(vrf, Dual { v4, v6 }, true, false)
    }

    fn change(
        &self,
        vrf: Vrf,
        changes: Dual<&[Change<u32>], &[Change<u128>]>,
        atomic: bool,
        compact: bool,
    ) -> Result<Outcome, TableError> {
        let Shared { root, domain, .. } = &*self.shared;
        self.lock()?.change(domain, root, vrf, changes, EditMode { atomic, compact })
    }

    /// Does deferred work: frees memory that no reader can see any more, fills gaps in engines, rebuilds engines that have
    /// grown by changes, and puts tables that have few routes now into blocks. Takes the VRFs one by one; changes may be made
    /// in between.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub fn maintain(&self) -> Result<(), TableError> {
        let Shared { root, domain, .. } = &*self.shared;
        let numbers = self.lock()?.tables.len() as u32;
        for vrf in (0..numbers).map(Vrf) {
            let mut writer = self.lock()?;
            // Other threads may have dropped it, because the lock is free between two VRFs.
            let Ok(sides) = writer.table(vrf) else { continue };
            // A block is rebuilt by each of its changes, so only engines leave work.
            if sides.v4.is_large() || sides.v6.is_large() {
                // Into a block first, if it can be: an engine that was rebuilt before would be dropped again.
                writer.shrink(domain, root, vrf);
                let none = Dual { v4: &[][..], v6: &[][..] };
                let _ = writer.change(domain, root, vrf, none, EditMode { atomic: false, compact: true })?;
                // The number of entries bounds the time for which this VRF keeps other changes waiting.
                writer.tidy(domain, root, vrf, 1 << 12);
            }
        }
        let mut writer = self.lock()?;
        writer.collect(domain);
        writer.books.shrink();
        Ok(())
    }

    /// Returns the VRFs, in the order of their numbers.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn vrfs(&self) -> Result<Vec<Vrf>, TableError> {
        let writer = self.lock()?;
        let there = writer.tables.iter().enumerate().filter(|(_, sides)| sides.is_some());
        Ok(there.map(|(number, _)| Vrf(number as u32)).collect())
    }

    /// Returns whether there is such a VRF.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn contains(&self, vrf: Vrf) -> Result<bool, TableError> {
        Ok(self.lock()?.table(vrf).is_ok())
    }

    /// Returns the next hop of exactly this prefix in a VRF.
    ///
    /// # Errors
    /// When there is no such VRF, or a thread panicked in a change.
    pub fn get(&self, vrf: Vrf, prefix: impl IntoIpPrefix) -> Result<Option<NextHop>, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = writer.table(vrf)?;
        Ok(match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => v4.rib().get(prefix),
            IpPrefix::V6(prefix) => v6.rib().get(prefix),
        })
    }

    /// Returns the longest prefix of a VRF that contains an address, and its next hop, from the routes themselves. It waits for
    /// changes in progress and takes one walk down the tree of the routes: for occasional queries. Lookups at speed go
    /// through a [`Reader`].
    ///
    /// # Errors
    /// When there is no such VRF, or a thread panicked in a change.
    pub fn lookup_prefix(
        &self,
        vrf: Vrf,
        address: impl IntoIpAddr,
    ) -> Result<Option<(IpPrefix, NextHop)>, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = writer.table(vrf)?;
        Ok(lookup_prefix(v4.rib(), v6.rib(), address.into_ip_addr()))
    }

    /// Returns the routes of a VRF that contain a prefix, itself included, shortest first. The last of them is the longest route
    /// that contains the prefix.
    ///
    /// It waits for changes in progress and takes one walk down the tree of the routes. The list has at most one route for each
    /// length: 33 for IPv4, 129 for IPv6.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    ///
    /// use fibula::Vrfs;
    /// use fibula::net::{NextHop, Prefix};
    ///
    /// let vrfs = Vrfs::new()?;
    /// let red = vrfs.create()?;
    /// for (text, id) in [("10.0.0.0/8", 1), ("10.1.0.0/16", 2)] {
    ///     vrfs.insert(red, text.parse::<Prefix<u32>>()?, NextHop::try_from(id)?)?;
    /// }
    /// let covers = vrfs.covers(red, "10.1.2.0/24".parse::<Prefix<u32>>()?)?;
    /// assert_eq!(covers.iter().map(|route| route.next_hop.id()).collect::<Vec<_>>(), [1, 2]);
    /// let (longest, _) = vrfs.lookup_prefix(red, Ipv4Addr::new(10, 9, 0, 1))?.unwrap();
    /// assert_eq!(longest.to_string(), "10.0.0.0/8");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such VRF, or a thread panicked in a change.
    pub fn covers<K: TableKey>(&self, vrf: Vrf, prefix: Prefix<K>) -> Result<Vec<Route<K>>, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = writer.table(vrf)?;
        Ok(crate::live::rib_of(v4.rib(), v6.rib()).covers(prefix).collect())
    }

    /// Returns the number of routes of a VRF, of both families.
    ///
    /// # Errors
    /// When there is no such VRF, or a thread panicked in a change.
    pub fn len(&self, vrf: Vrf) -> Result<usize, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = writer.table(vrf)?;
        Ok(v4.rib().len() + v6.rib().len())
    }

    /// Returns a copy of all routes of a VRF.
    ///
    /// # Errors
    /// When there is no such VRF, or a thread panicked in a change.
    pub fn routes(&self, vrf: Vrf) -> Result<DualRib, TableError> {
        let writer = self.lock()?;
        let Dual { v4, v6 } = writer.table(vrf)?;
        Ok(DualRib::new(v4.rib().clone(), v6.rib().clone()))
    }

    /// Returns memory, counts and totals, summed over all VRFs.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn statistics(&self) -> Result<Statistics, TableError> {
        let writer = self.lock()?;
        let domain = &self.shared.domain;
        let Dual { v4, v6 } = &writer.families;
        let sides = || writer.tables.iter().flatten();
        let [of_v4, of_v6] = [sums(sides().map(|sides| &sides.v4)), sums(sides().map(|sides| &sides.v6))];
        Ok(Statistics {
            vrfs: sides().count(),
            route_count: Dual { v4: of_v4.routes, v6: of_v6.routes },
            routes: of_v4.routes_memory + of_v6.routes_memory,
            directory: writer.directory_memory(),
            blocks: Dual { v4: v4.arena.memory(), v6: v6.arena.memory() },
            block_count: Dual { v4: v4.arena.blocks(), v6: v6.arena.blocks() },
            in_blocks: Dual { v4: of_v4.in_blocks, v6: of_v6.in_blocks },
            structures: Dual { v4: of_v4.structures_memory, v6: of_v6.structures_memory },
            structure_count: Dual { v4: of_v4.structures, v6: of_v6.structures },
            bookkeeping: writer.bookkeeping() + domain.memory(),
            stalled: writer.books.stalled(domain),
            readers: domain.readers(),
            // Current, whereas the other totals are sums over all calls.
            totals: Outcome { retired_bytes: writer.books.retired.bytes(), ..writer.books.totals },
        })
    }

    /// Verifies all invariants: routes, blocks (which it rebuilds to compare), engines, counts and the directory. Changes
    /// wait meanwhile.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), CheckError> {
        match self.lock() {
            Ok(writer) => writer.check(),
            Err(_) => Err(CheckError::new("no thread panicked in a change", 0)),
        }
    }

    /// Waits for changes in progress, and holds others up.
    pub(crate) fn hold(&self) -> Result<VrfsGuard<'_>, TableError> {
        Ok(VrfsGuard(self.shared.lock()?))
    }

    fn lock(&self) -> Result<MutexGuard<'_, VrfsWriter>, TableError> {
        self.shared.lock()
    }
}

/// Sums over the tables of a family.
#[derive(Default)]
struct Sums {
    routes: usize,
    routes_memory: Memory,
    in_blocks: usize,
    structures: usize,
    structures_memory: Memory,
}

fn sums<'a, K: Key>(sides: impl Iterator<Item = &'a VrfTable<K>>) -> Sums {
    let mut sums = Sums::default();
    for side in sides {
        sums.routes += side.rib().len();
        sums.routes_memory = sums.routes_memory + side.routes_memory();
        match side {
            VrfTable::Small { block, .. } => sums.in_blocks += usize::from(block.is_some()),
            VrfTable::Large { family, .. } => {
                sums.structures += 1;
                sums.structures_memory = sums.structures_memory + family.structure_memory();
            }
        }
    }
    sums
}

impl fmt::Debug for Vrfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vrfs").field("version", &self.shared.domain.epoch()).finish_non_exhaustive()
    }
}

/// The lock of VRFs, with which one thread at a time retires and collects in their domain.
pub(crate) struct VrfsGuard<'a>(MutexGuard<'a, VrfsWriter>);

impl Hold for VrfsGuard<'_> {
    fn uses(&mut self) -> &mut Option<Uses> {
        &mut self.0.books.uses
    }

    fn waits(&self) -> bool {
        // A call returns when its changes are published.
        false
    }

    fn for_each_next_hop(&self, each: &mut dyn FnMut(NextHop)) {
        for sides in self.0.tables.iter().flatten() {
            next_hops(sides).for_each(&mut *each);
        }
    }
}
