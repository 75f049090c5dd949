//! Lookups that end at a next hop.

use core::fmt;
use core::sync::atomic::{Ordering, fence};
use std::sync::{Arc, PoisonError};

use crate::live::{Pinned, Table, TableError, TableKey};
use crate::memory::OutOfMemory;
use crate::net::{IntoIpAddr, Keys, NextHop};

use super::HopsError;
use super::routed::Routed;
use super::shared::{Shared, Tally, Target};
use super::word::Meaning;

/// A thread's reader, which looks addresses up down to the values of next hops.
///
/// It may move to another thread, but two threads cannot share it: each has its own, from
/// [`NextHops::reader`](super::NextHops::reader) or [`try_clone`](Self::try_clone). Sharing a reader does not compile, as with
/// the reader of [a table](crate::Reader):
///
/// ```compile_fail,E0277
/// let hops = fibula::hops::NextHops::<String>::new(&fibula::Table::new()?)?;
/// let reader = std::sync::Arc::new(hops.reader()?);
/// std::thread::spawn(move || reader.try_clone().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HopReader<T, R: Routed = Table> {
    reader: R::Reader,
    shared: Arc<Shared<T, R>>,
    tally: Arc<Tally>,
}

impl<T, R: Routed> HopReader<T, R> {
    pub(super) fn new(shared: Arc<Shared<T, R>>) -> Result<Self, HopsError> {
        let reader = shared.routed.new_reader()?;
        let tally = shared.tallies.lock().unwrap_or_else(PoisonError::into_inner).add();
        let bytes = size_of::<Tally>();
        let full = OutOfMemory { wanted_bytes: bytes, used_bytes: 0, limit_bytes: None };
        Ok(Self { reader, tally: tally.ok_or(TableError::Memory(full))?, shared })
    }

    /// Pins the routes and their next hops, as [`Reader::pin`](crate::Reader::pin) does: everything that lookups find stays
    /// in place until the pin ends.
    #[inline]
    pub fn pin(&mut self) -> PinnedHops<'_, T, R> {
        let Self { reader, shared, tally } = self;
        PinnedHops { pin: R::pin(reader), shared, tally }
    }

    /// Returns another reader, for another thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn try_clone(&self) -> Result<Self, HopsError> {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<T, R: Routed> Drop for HopReader<T, R> {
    fn drop(&mut self) {
        self.shared.tallies.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.tally);
    }
}

impl<T, R: Routed> fmt::Debug for HopReader<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HopReader").field("reader", &self.reader).finish_non_exhaustive()
    }
}

/// The next hop of a flow, or why it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved<'p, T> {
    /// To this next hop.
    Found {
        /// The next hop: the member that the flow goes to, never a group.
        member: NextHop,
        /// Its value.
        value: &'p T,
    },
    /// No route matches the address.
    NoRoute,
    /// The route leads to a next hop, or to a group of next hops, that is withdrawn.
    Withdrawn(NextHop),
    /// The route has a number that was not given out.
    Unknown(NextHop),
}

impl<'p, T> Resolved<'p, T> {
    /// Returns the value of the next hop; `None` if the flow goes nowhere, for whatever reason.
    #[must_use]
    pub fn value(self) -> Option<&'p T> {
        match self {
            Self::Found { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Returns the number of the next hop; `None` if the flow goes nowhere, for whatever reason.
    #[must_use]
    pub fn member(self) -> Option<NextHop> {
        match self {
            Self::Found { member, .. } => Some(member),
            _ => None,
        }
    }
}

/// The number of flows of a batch with each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Flows with a next hop.
    pub found: usize,
    /// Flows without a route.
    pub no_route: usize,
    /// Flows whose next hop, or group of next hops, is withdrawn.
    pub withdrawn: usize,
    /// Flows whose route has a number that was not given out.
    pub unknown: usize,
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.found += other.found;
        self.no_route += other.no_route;
        self.withdrawn += other.withdrawn;
        self.unknown += other.unknown;
    }
}

/// A pinned reader. It does not leave its thread.
pub struct PinnedHops<'r, T, R: Routed = Table> {
    pub(super) pin: R::Pin<'r>,
    pub(super) shared: &'r Shared<T, R>,
    pub(super) tally: &'r Tally,
}

impl<T> PinnedHops<'_, T> {
    /// Returns the next hop of a flow to `address`. Flows with equal hashes take the same path.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr, flow_hash: u32) -> Resolved<'_, T> {
        self.resolve(self.pin.lookup(address), flow_hash)
    }

    /// Like [`lookup`](Self::lookup), for an address of one family as an integer in host order.
    #[inline]
    #[must_use]
    pub fn lookup_key<K: TableKey>(&self, key: K, flow_hash: u32) -> Resolved<'_, T> {
        self.resolve(self.pin.lookup_key(key), flow_hash)
    }

    /// Looks up `keys` and writes to `members[i]` the next hop of a flow addressed to `keys[i]` with `flow_hashes[i]`; `None`
    /// if it goes nowhere. [`get`](Self::get) has the value of each. Returns the number of flows with each result.
    ///
    /// # Panics
    /// When the three slices differ in length.
    pub fn lookup_batch<K: TableKey>(
        &self,
        keys: &[K],
        flow_hashes: &[u32],
        members: &mut [Option<NextHop>],
    ) -> Counts {
        assert_eq!(keys.len(), members.len(), "a batch needs one result a key");
        assert_eq!(keys.len(), flow_hashes.len(), "a batch needs one flow hash a key");
        let mut counts = Counts::default();
        for ((keys, hashes), members) in
            keys.chunks(BLOCK).zip(flow_hashes.chunks(BLOCK)).zip(members.chunks_mut(BLOCK))
        {
            self.pin.lookup_batch(keys, members);
            counts.add(self.resolve_block(members, hashes));
        }
        self.tally.count(counts.withdrawn as u64, counts.unknown as u64);
        counts
    }

    /// Like [`lookup_batch`](Self::lookup_batch), for keys in any of the shapes of [`Keys`].
    ///
    /// # Panics
    /// When the three slices differ in length.
    pub fn lookup_keys<K: TableKey>(
        &self,
        keys: Keys<'_, K>,
        flow_hashes: &[u32],
        members: &mut [Option<NextHop>],
    ) -> Counts {
        assert_eq!(keys.len(), flow_hashes.len(), "a batch needs one flow hash a key");
        self.pin.lookup_keys(keys, members);
        self.resolve_in_place(members, flow_hashes)
    }

    /// Returns the pin of the table alone. Its lookups return numbers that are not resolved, those of groups included.
    #[must_use]
    pub fn unresolved(&self) -> &Pinned<'_> {
        &self.pin
    }
}

impl<T, R: Routed> PinnedHops<'_, T, R> {
    /// Returns the next hop of a flow, given the number of its route if it has one.
    #[inline]
    #[must_use]
    pub fn resolve(&self, next_hop: Option<NextHop>, flow_hash: u32) -> Resolved<'_, T> {
        let Some(id) = next_hop else { return Resolved::NoRoute };
        // The word and the value were stored before the route. The lookup of the route may have had no fence, so one is here.
        fence(Ordering::Acquire);
        match self.shared.words.resolve(id, flow_hash) {
            Target::Hop(member, slot) => match self.shared.values.read(&self.pin).get(slot) {
                Some(value) => Resolved::Found { member, value },
                None => self.withdrawn(id),
            },
            Target::Withdrawn => self.withdrawn(id),
            Target::Unknown => {
                self.tally.count(0, 1);
                Resolved::Unknown(id)
            }
        }
    }

    #[cold]
    fn withdrawn(&self, id: NextHop) -> Resolved<'_, T> {
        self.tally.count(1, 0);
        Resolved::Withdrawn(id)
    }

    /// Resolves the results of a batch of lookups in the table under this pin: writes to `members[i]` the next hop of a flow
    /// with `flow_hashes[i]` whose route has `next_hops[i]`. Returns the number of flows with each result.
    ///
    /// # Panics
    /// When the three slices differ in length.
    pub fn resolve_batch(
        &self,
        next_hops: &[Option<NextHop>],
        flow_hashes: &[u32],
        members: &mut [Option<NextHop>],
    ) -> Counts {
        members.copy_from_slice(next_hops);
        self.resolve_in_place(members, flow_hashes)
    }

    /// Like [`resolve_batch`](Self::resolve_batch), in place.
    ///
    /// # Panics
    /// When the two slices differ in length.
    pub fn resolve_in_place(&self, next_hops: &mut [Option<NextHop>], flow_hashes: &[u32]) -> Counts {
        assert_eq!(next_hops.len(), flow_hashes.len(), "a batch needs one flow hash a next hop");
        let counts = self.resolve_block(next_hops, flow_hashes);
        self.tally.count(counts.withdrawn as u64, counts.unknown as u64);
        counts
    }

    #[inline]
    pub(super) fn resolve_block(&self, next_hops: &mut [Option<NextHop>], flow_hashes: &[u32]) -> Counts {
        fence(Ordering::Acquire);
        let words = &*self.shared.words;
        let mut counts = Counts::default();
        for (next_hop, &flow_hash) in next_hops.iter_mut().zip(flow_hashes) {
            let Some(id) = *next_hop else {
                counts.no_route += 1;
                continue;
            };
            *next_hop = match words.resolve(id, flow_hash) {
                Target::Hop(member, _) => Some(member),
                Target::Withdrawn => {
                    counts.withdrawn += 1;
                    None
                }
                Target::Unknown => {
                    counts.unknown += 1;
                    None
                }
            };
        }
        counts.found = next_hops.len() - counts.no_route - counts.withdrawn - counts.unknown;
        counts
    }

    /// Returns the value of a next hop that was found under this pin; `None` if it was withdrawn since, or is a group.
    #[inline]
    #[must_use]
    pub fn get(&self, member: NextHop) -> Option<&T> {
        match self.shared.words.meaning(member) {
            Meaning::Hop(slot) => self.shared.values.read(&self.pin).get(slot),
            _ => None,
        }
    }

    /// Renews the pin, as [`Pinned::refresh`] does.
    #[inline]
    pub fn refresh(&mut self) {
        R::refresh(&mut self.pin);
    }

    /// Returns the version of the routes that lookups see at least, as [`Pinned::version`] does.
    #[must_use]
    pub fn version(&self) -> u64 {
        R::version(&self.pin)
    }
}

/// Addresses that are looked up before they are resolved. So few numbers stay in the nearest cache meanwhile.
pub(super) const BLOCK: usize = 256;

impl<T, R: Routed> fmt::Debug for PinnedHops<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedHops").field("pin", &self.pin).finish_non_exhaustive()
    }
}

#[cfg(test)]
impl<T, R: Routed> PinnedHops<'_, T, R> {
    /// Returns the words and buckets by which readers resolve numbers.
    pub(super) fn shared_words(&self) -> &super::shared::Words {
        &self.shared.words
    }
}
