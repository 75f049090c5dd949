//! Lookups that end at a next hop.

use core::sync::atomic::{Ordering, fence};
use std::sync::{Arc, PoisonError};

use crate::live::epoch::Domain;
use crate::live::root::CurrentRoot;
use crate::live::{Pinned, TableError, TableKey, readable};
use crate::memory::OutOfMemory;
use crate::net::{Batch, BatchLookup, IntoIpAddr, Key, Keys, NextHop};

use super::NextHops;
use super::routed::Routed;
use super::shared::{MissCount, SharedHops};
use super::word::Meaning;
use super::words::Target;

#[allow(private_interfaces)]
impl<T, R: Routed> readable::Readable for NextHops<T, R> {
    type Roots = R::Roots;
    type Handle = Arc<SharedHops<T, R>>;
    type Own = Counted<T, R>;

    #[inline]
    fn root(shared: &Self::Handle) -> &CurrentRoot<R::Roots> {
        R::root(&shared.routed)
    }

    fn domain(shared: &Self::Handle) -> &Arc<Domain> {
        R::domain(&shared.routed)
    }

    fn own(shared: &Self::Handle) -> Result<Self::Own, TableError> {
        // A thread that panicked under this lock has left the counts whole.
        let tally = shared.tallies.lock().unwrap_or_else(PoisonError::into_inner).add();
        let full = OutOfMemory { wanted_bytes: size_of::<MissCount>(), used_bytes: 0, limit_bytes: None };
        Ok(Counted { tally: tally.ok_or(full)?, shared: Arc::clone(shared) })
    }
}

/// A reader's count of its lookups that lead nowhere. When the reader is dropped, its counts are added to those of the past.
pub struct Counted<T, R> {
    pub(super) tally: Arc<MissCount>,
    shared: Arc<SharedHops<T, R>>,
}

impl<T, R> Drop for Counted<T, R> {
    fn drop(&mut self) {
        self.shared.tallies.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.tally);
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

/// Lookups in a table with [`NextHops`], down to their values.
impl<T> Pinned<'_, NextHops<T>> {
    /// Returns the next hop of a flow to `address`. Flows with equal hashes take the same path.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl IntoIpAddr, flow_hash: u32) -> Resolved<'_, T> {
        self.resolve(self.roots.lookup(address), flow_hash)
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
        self.batch(keys, flow_hashes).run(members)
    }

    /// Returns a batch of lookups of keys in any of the shapes of [`Keys`], to be run: see [`Batch`]. A run returns the number
    /// of flows with each result.
    pub fn batch<'k, K: TableKey>(
        &self,
        keys: impl Into<Keys<'k, K>>,
        flow_hashes: &[u32],
    ) -> Batch<'k, K, impl BatchLookup<K, Option<NextHop>, Counts>> {
        let lookup = move |isa, at, keys: Keys<'_, K>, members: &mut [Option<NextHop>]| {
            self.resolve_blocks(keys, &flow_hashes[at..], members, |_, keys, members| {
                K::of(&self.roots).lookup_batch_on(isa, keys, members);
            })
        };
        Batch::new(keys.into(), lookup).beside(flow_hashes.len())
    }
}

impl<T, R: Routed> Pinned<'_, NextHops<T, R>> {
    /// Returns the next hop of a flow, given the number of its route if it has one.
    #[inline]
    #[must_use]
    pub fn resolve(&self, next_hop: Option<NextHop>, flow_hash: u32) -> Resolved<'_, T> {
        let Some(id) = next_hop else { return Resolved::NoRoute };
        // The word and the value were stored before the route. The lookup of the route may have had no fence, so one is here.
        fence(Ordering::Acquire);
        match self.handle.words.resolve(id, flow_hash) {
            Target::Hop(member, slot) => match self.handle.values.read(self).get(slot) {
                Some(value) => Resolved::Found { member, value },
                // A slot that this pin finds stays open as long as the pin. It is checked all the same, because
                // safety must not depend on the words.
                None => self.withdrawn(id),
            },
            Target::Withdrawn => self.withdrawn(id),
            Target::Unknown => {
                self.own.tally.count(0, 1);
                Resolved::Unknown(id)
            }
        }
    }

    #[cold]
    fn withdrawn(&self, id: NextHop) -> Resolved<'_, T> {
        self.own.tally.count(1, 0);
        Resolved::Withdrawn(id)
    }

    /// Resolves the results of a batch of lookups in the routes by another reader: writes to `members[i]` the next hop of a
    /// flow with `flow_hashes[i]` whose route has `next_hops[i]`. Returns the number of flows with each result.
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
        self.own.tally.count(counts.withdrawn as u64, counts.unknown as u64);
        counts
    }

    /// Looks up keys by `lookup`, which takes the index of the first of a block, and resolves the results block by block: so few
    /// numbers stay in the nearest cache meanwhile.
    #[inline]
    pub(super) fn resolve_blocks<K: Key>(
        &self,
        keys: Keys<'_, K>,
        flow_hashes: &[u32],
        members: &mut [Option<NextHop>],
        lookup: impl Fn(usize, &[K], &mut [Option<NextHop>]),
    ) -> Counts {
        let mut counts = Counts::default();
        keys.for_each_block(|mut first, block| {
            for keys in block.chunks(BLOCK) {
                let rows = first..first + keys.len();
                let members = &mut members[rows.clone()];
                lookup(first, keys, members);
                counts.add(self.resolve_block(members, &flow_hashes[rows]));
                first += keys.len();
            }
        });
        // Once for all blocks, because each count is a store.
        self.own.tally.count(counts.withdrawn as u64, counts.unknown as u64);
        counts
    }

    #[inline]
    pub(super) fn resolve_block(&self, next_hops: &mut [Option<NextHop>], flow_hashes: &[u32]) -> Counts {
        // As in `resolve`: the words were stored before the routes that lead to them.
        fence(Ordering::Acquire);
        let words = &*self.handle.words;
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
        // The rest, so that the common case has nothing to count.
        counts.found = next_hops.len() - counts.no_route - counts.withdrawn - counts.unknown;
        counts
    }

    /// Returns the value of a next hop that was found under this pin; `None` if it was withdrawn since, or is a group.
    #[inline]
    #[must_use]
    pub fn get(&self, member: NextHop) -> Option<&T> {
        match self.handle.words.meaning(member) {
            Meaning::Hop(slot) => self.handle.values.read(self).get(slot),
            _ => None,
        }
    }
}

/// Addresses that are looked up before they are resolved.
const BLOCK: usize = 256;

#[cfg(test)]
impl<T, R: Routed> Pinned<'_, NextHops<T, R>> {
    /// Returns the words and buckets by which readers resolve numbers.
    pub(super) fn shared_words(&self) -> &super::words::HopWords {
        &self.handle.words
    }
}
