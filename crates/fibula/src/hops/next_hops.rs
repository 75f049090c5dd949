//! The table of next hops, for the threads that change it.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::check::CheckError;
use crate::live::{Hold, Reader, Table, TableError, Uses};
use crate::memory::{Limits, Memory};
use crate::net::NextHop;

use super::HopsError;
use super::check;
use super::routed::Routed;
use super::shared::{MissCounts, SharedHops};
use super::state::{HopsState, NumberKind};
use super::words::HopWords;

/// The next hops of a [`Table`], or of [`Vrfs`](crate::vrf::Vrfs): values of any type by number, and weighted groups of them.
/// See the [module](super).
///
/// A clone is another handle. Any thread may change them; each call waits for changes of the table in progress. Lookups that
/// begin after the call returns see the change.
///
/// Each call that returns a number adds a hold on it: end each hold with [`release`](Self::release).
pub struct NextHops<T, R = Table> {
    shared: Arc<OwnedState<T, R>>,
}

impl<T, R> Clone for NextHops<T, R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// The state that handles share and readers do not: when the last handle is dropped, no more numbers are given out.
struct OwnedState<T, R> {
    shared: Arc<SharedHops<T, R>>,
    /// Identifies the owner to the table's counts of routes.
    _mark: Arc<()>,
}

impl<T: Send + Sync, R: Routed> NextHops<T, R> {
    /// Returns an empty set of next hops for a table or for VRFs. Routes that are there already keep their numbers. Those
    /// numbers resolve to [`Unknown`](super::Resolved::Unknown) and are not given out before the routes are gone.
    ///
    /// # Errors
    /// When memory runs out, or the table already has next hops that are still in use.
    pub fn new(routed: &R) -> Result<Self, HopsError> {
        Self::within(routed, Limits::default())
    }

    /// Like [`new`](Self::new), with limits. The memory of values and all other memory are limited separately.
    ///
    /// # Errors
    /// When memory runs out, or the table already has next hops that are still in use.
    pub fn within(routed: &R, limits: Limits) -> Result<Self, HopsError> {
        let mark = Arc::new(());
        let mut held = routed.hold()?;
        if held.uses().as_ref().is_some_and(Uses::is_owned) {
            return Err(HopsError::Numbered);
        }
        let mut uses = Uses::new(limits, Arc::downgrade(&mark));
        let mut refused = None;
        // Routes that are there already are counted, so that their numbers are not given out.
        held.for_each_next_hop(&mut |next_hop| {
            if refused.is_none() {
                refused = uses.add(next_hop).err();
            }
        });
        if let Some(refused) = refused {
            return Err(refused.into());
        }
        *held.uses() = Some(uses);
        let words = Arc::new(HopWords::new());
        let state = HopsState::new(Arc::clone(R::domain(routed)), Arc::clone(&words), limits);
        let values = Arc::clone(state.values.slots());
        let (state, tallies) = (Mutex::new(state), Mutex::new(MissCounts::default()));
        let shared = Arc::new(SharedHops { routed: routed.clone(), words, values, state, tallies });
        drop(held);
        Ok(Self { shared: Arc::new(OwnedState { shared, _mark: mark }) })
    }

    /// Returns the table or the VRFs that have the routes.
    #[must_use]
    pub fn routed(&self) -> &R {
        &self.shared.shared.routed
    }

    /// Returns a reader of the routes and their next hops, for one thread.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn reader(&self) -> Result<Reader<Self>, TableError> {
        Reader::new(Arc::clone(&self.shared.shared))
    }

    /// Adds a next hop. It gets the number that was freed last, or the next new number if none is free.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn add(&self, value: T) -> Result<NextHop, HopsError> {
        self.change_state(|state, held| state.add(value, held))
    }

    /// Replaces the value of a next hop: all routes and groups through it follow at once, by one store. A withdrawn next hop
    /// comes back, and takes buckets in its groups as a new member does. The old value is dropped once no reader has it.
    ///
    /// # Errors
    /// When memory runs out, or the number is not of a next hop that was added.
    pub fn change(&self, id: NextHop, value: T) -> Result<(), HopsError> {
        self.change_state(|state, _| state.change(id, value))
    }

    /// Withdraws a next hop: all routes through it lead nowhere at once, by one store. In its groups, the other members take
    /// its flows, and no other flow moves. See [the module](super#withdrawn) for the consequences. Returns `false` if the next
    /// hop was withdrawn already. Needs no memory.
    ///
    /// # Errors
    /// When the number is not of a next hop that was added.
    pub fn withdraw(&self, id: NextHop) -> Result<bool, HopsError> {
        self.change_state(|state, _| state.withdraw(id))
    }

    /// Ends a hold on a next hop or a group. The number of a next hop without any hold is reused when no route and no group has
    /// it and no reader can have found it. Until then it resolves as before. Needs no memory.
    ///
    /// # Errors
    /// When the number has no hold.
    pub fn release(&self, id: NextHop) -> Result<(), HopsError> {
        self.change_state(|state, _| state.release(id))
    }

    /// Withdraws and releases a next hop, as when a routing daemon deletes it.
    ///
    /// # Errors
    /// When the number is not of a next hop that was added.
    pub fn remove(&self, id: NextHop) -> Result<(), HopsError> {
        self.change_state(|state, _| {
            // In this order, because a number without a hold cannot be withdrawn.
            state.withdraw(id)?;
            state.release(id)
        })
    }

    /// Adds a group of next hops with weights, or returns the number of the existing group with the same members and weights.
    /// Members that are withdrawn get no flows. The number of buckets is a power of two: at least 64, at least 16 a member,
    /// and exact for weights with a sum of up to 1,024.
    ///
    /// # Errors
    /// When memory runs out, a member is not a next hop that was added or is listed twice, a weight is 0, or there are none or
    /// more than [`MOST_BUCKETS`](super::MOST_BUCKETS) members.
    pub fn add_group(&self, members: &[(NextHop, u32)]) -> Result<NextHop, HopsError> {
        self.change_state(|state, held| state.add_group(members, None, held))
    }

    /// Like [`add_group`](Self::add_group), with a number of buckets, which must be a power of two. More buckets divide flows
    /// more finely; each takes 4 bytes.
    ///
    /// # Errors
    /// As for [`add_group`](Self::add_group); when the number of buckets is not a power of two, or too large or small.
    pub fn add_group_with(&self, members: &[(NextHop, u32)], buckets: usize) -> Result<NextHop, HopsError> {
        self.change_state(|state, held| state.add_group(members, Some(buckets), held))
    }

    /// Replaces the members of a group: all routes through it follow at once, by one store. The number of buckets stays the
    /// same if it is enough. Buckets of members that stay move only as far as the weights demand.
    ///
    /// # Errors
    /// As for [`add_group`](Self::add_group); when the group was added more than once and not released.
    pub fn change_group(&self, id: NextHop, members: &[(NextHop, u32)]) -> Result<(), HopsError> {
        self.change_state(|state, _| state.change_group(id, members))
    }

    /// Retires all numbers that no route and no group has any more, and frees those that no reader has. Each change does the
    /// same for a few numbers.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn maintain(&self) -> Result<(), HopsError> {
        let (mut held, mut state) = self.lock()?;
        state.finish(&mut *held, true);
        Self::unlock(held, state);
        Ok(())
    }

    /// Returns a copy of the value of a next hop; `None` if it is withdrawn.
    ///
    /// # Errors
    /// When the number is not of a next hop that was added.
    pub fn get(&self, id: NextHop) -> Result<Option<T>, HopsError>
    where
        T: Clone,
    {
        let (_held, state) = self.lock()?;
        Ok(state.hop(id)?.and_then(|slot| state.values.get(slot).cloned()))
    }

    /// Returns the members of a group, in the order of their numbers, each with its weight and its number of buckets. The
    /// weights have no common factor. A withdrawn member has no buckets, unless all members are withdrawn.
    ///
    /// # Errors
    /// When the number is not of a group that was added.
    pub fn members(&self, group: NextHop) -> Result<Vec<(NextHop, u32, u32)>, HopsError> {
        let (_held, state) = self.lock()?;
        let group = state.group(group)?;
        let mut members: Vec<_> = group.members.iter().map(|&(hop, weight)| (hop, weight, 0)).collect();
        for at in 0..group.block.len() {
            if let Some(place) = state.words.bucket(group.block, at).and_then(|member| group.place(member)) {
                members[place].2 += 1;
            }
        }
        Ok(members)
    }

    /// Returns the number of routes that have a number as their next hop.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn routes_of(&self, id: NextHop) -> Result<usize, HopsError> {
        let mut held = self.routed().hold()?;
        Ok(held.uses().as_ref().map_or(0, |uses| uses.of(id) as usize))
    }

    /// Returns counts of next hops, groups and numbers, and of changes and lookups so far.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn statistics(&self) -> Result<Statistics, HopsError> {
        let (_held, state) = self.lock()?;
        let [withdrawn_lookups, unknown_lookups] = self.tallies().sum();
        let mut statistics = Statistics {
            moved_buckets: state.totals.moved_buckets,
            shared_groups: state.totals.shared_groups,
            withdrawn_lookups,
            unknown_lookups,
            numbers: state.entries.len(),
            free: state.free.len(),
            leaving: state.leaving.len(),
            memory: state.memory(),
            ..Statistics::default()
        };
        for entry in state.entries.iter().filter(|entry| !entry.is_gone) {
            match &entry.kind {
                NumberKind::Hop(slot) => {
                    statistics.hops += 1;
                    statistics.withdrawn += usize::from(slot.is_none());
                }
                NumberKind::Group(group) => {
                    statistics.groups += 1;
                    statistics.buckets += group.block.len() as usize;
                }
                NumberKind::Nothing => {}
            }
        }
        Ok(statistics)
    }

    /// Verifies all [invariants](super#invariants), while changes wait.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), CheckError> {
        match self.lock() {
            Ok((mut held, state)) => check::check(&state, &mut *held),
            Err(_) => Err(CheckError::new("no thread panicked in a change", 0)),
        }
    }

    fn tallies(&self) -> MutexGuard<'_, MissCounts> {
        // No step under this lock can panic halfway, so the counts are intact.
        self.shared.shared.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> Result<Locked<'_, T>, HopsError> {
        let SharedHops { routed, state, .. } = &*self.shared.shared;
        let held = routed.hold()?;
        let state = state.lock().map_err(|_| TableError::Poisoned)?;
        Ok((held, state))
    }

    fn change_state<C>(
        &self,
        change: impl FnOnce(&mut HopsState<T>, &mut dyn Hold) -> Result<C, HopsError>,
    ) -> Result<C, HopsError> {
        let (mut held, mut state) = self.lock()?;
        let changed = change(&mut state, &mut *held);
        // A call that failed has changed nothing.
        if changed.is_ok() {
            state.finish(&mut *held, false);
        }
        // After an error, too, because a value that was refused waits to be dropped.
        Self::unlock(held, state);
        changed
    }

    /// Ends a change. Unused values are dropped only after the locks are released, because their `Drop` may call this table.
    fn unlock(held: Box<dyn Hold + '_>, mut state: MutexGuard<'_, HopsState<T>>) {
        let gone = state.values.take_gone();
        drop(state);
        drop(held);
        drop(gone);
    }
}

/// The two locks of a change, in the order in which they are taken: the lock of the routes, then that of the next hops.
type Locked<'a, T> = (Box<dyn Hold + 'a>, MutexGuard<'a, HopsState<T>>);

impl<T, R: fmt::Debug> fmt::Debug for NextHops<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextHops").field("routed", &self.shared.shared.routed).finish_non_exhaustive()
    }
}

/// The counts of a table of next hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Next hops, withdrawn and leaving ones included.
    pub hops: usize,
    /// Next hops that are withdrawn.
    pub withdrawn: usize,
    /// Groups, leaving ones included.
    pub groups: usize,
    /// Buckets of all groups.
    pub buckets: usize,
    /// Numbers that were ever given out or kept back, which is the highest number.
    pub numbers: usize,
    /// Numbers that are free.
    pub free: usize,
    /// Numbers without a hold that routes or groups still have.
    pub leaving: usize,
    /// Buckets that were given to another member, each with its part of the group's flows.
    pub moved_buckets: u64,
    /// Calls that returned a group that already existed.
    pub shared_groups: u64,
    /// Lookups that led to a withdrawn next hop or group, by all readers.
    pub withdrawn_lookups: u64,
    /// Lookups that led to a number that was not given out or is free, by all readers.
    pub unknown_lookups: u64,
    /// Memory of everything except the memory that values allocate themselves.
    pub memory: Memory,
}
