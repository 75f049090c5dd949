//! Changes in place. An expanded prefix does not know its route, so that what takes the place of a removed one comes from
//! the routes: for every prefix that changes, its level is made to agree with them.

use fibula::fib::{Applied, BuildError};
use fibula::net::{Change, Key, NextHop, Prefix, Routes};
use fibula::unstable::memory::{Budget, OutOfMemory};

use super::expansion::{Between, for_each_run};
use super::hash::{Hashes, Stored, short_bits};
use super::level::{ENTRIES_MAX, Level};
use super::table::{Parameters, Table};

/// Why a table is built anew.
const TOO_MANY: &str = "a level would have too many prefixes after expansion";

impl<K: Key, S: Stored, H: Hashes<S> + Hashes<u128>> Table<K, S, H> {
    /// Applies changes, as [`Updatable::apply`](fibula::fib::Updatable::apply) does.
    pub(crate) fn apply(
        &mut self,
        changes: &[Change<K>],
        after: &dyn Routes<K>,
    ) -> Result<Applied, BuildError> {
        self.begin();
        match self.reserve(changes) {
            Ok(true) => {}
            Ok(false) => return Ok(Applied::NeedsRebuild(TOO_MANY)),
            Err(error) => return Err(BuildError::memory(self.parameters.name, error)),
        }
        for change in changes {
            self.change(change, after);
        }
        Ok(Applied::InPlace)
    }

    /// Forgets what the last batch wanted.
    fn begin(&mut self) {
        self.levels.iter_mut().for_each(|level| (level.wanted, level.before) = (0, level.count));
        self.long.iter_mut().for_each(|level| (level.wanted, level.before) = (0, level.count));
    }

    /// Makes room for all that the changes can add. Returns whether the levels can hold that much.
    fn reserve(&mut self, changes: &[Change<K>]) -> Result<bool, OutOfMemory> {
        let inserted = changes.iter().filter_map(|change| match change {
            Change::Insert(route) => Some(route.prefix.len()),
            Change::Remove(_) => None,
        });
        let direct_bits = self.direct_bits;
        for len in inserted.filter(|&len| len > direct_bits) {
            let at = match self.level_of(len) {
                Some(at) => at,
                None => self.new_level(len)?,
            };
            match at.checked_sub(self.long.len()).map(|at| &mut self.levels[at]) {
                Some(level) => {
                    let added = 1u64.checked_shl((level.len - len).into()).unwrap_or(u64::MAX);
                    level.wanted = level.wanted.saturating_add(added);
                }
                None => self.long[at].wanted += 1,
            }
        }
        let fits = |count: usize, wanted: u64| wanted.saturating_add(count as u64) <= ENTRIES_MAX;
        if !self.levels.iter().all(|level| fits(level.count, level.wanted))
            || !self.long.iter().all(|level| fits(level.count, level.wanted))
        {
            return Ok(false);
        }
        let Self { levels, long, parameters, budget, .. } = self;
        levels.iter_mut().try_for_each(|level| make_room(level, parameters, budget))?;
        long.iter_mut().try_for_each(|level| make_room(level, parameters, budget))?;
        Ok(true)
    }

    /// Adds a level of one length. Returns its index.
    fn new_level(&mut self, len: u8) -> Result<usize, OutOfMemory> {
        if len > short_bits::<K, S>() {
            self.budget.reserve(&mut self.long, 1)?;
            let at = self.long.partition_point(|level| level.len > len);
            self.long.insert(at, Level::empty(len, len));
            return Ok(at);
        }
        self.budget.reserve(&mut self.levels, 1)?;
        let at = self.levels.partition_point(|level| level.len > len);
        self.levels.insert(at, Level::empty(len, len));
        Ok(self.long.len() + at)
    }

    /// Makes the levels agree with the routes in one prefix.
    fn change(&mut self, change: &Change<K>, after: &dyn Routes<K>) {
        let prefix = change.prefix();
        if prefix.len() <= self.direct_bits {
            return self.change_direct(prefix, after);
        }
        let Some(at) = self.level_of(prefix.len()) else { return };
        let hashes = self.parameters.hashes;
        match at.checked_sub(self.long.len()) {
            Some(at) if self.levels[at].shortest < self.levels[at].len => {
                self.change_expanded(at, change, after);
            }
            Some(at) => set(&mut self.levels[at], S::of(prefix.addr()), next_hop(change), hashes),
            None => set(&mut self.long[at], u128::of(prefix.addr()), next_hop(change), hashes),
        }
    }

    fn change_direct(&mut self, prefix: Prefix<K>, after: &dyn Routes<K>) {
        let Self { direct, direct_bits, .. } = self;
        let routes = Between::new(after, 0, *direct_bits);
        for_each_run(&routes, prefix, *direct_bits, &mut |run| {
            let at = run.first.window(0, *direct_bits) as usize;
            direct[at..at + run.count as usize].fill(NextHop::word(run.next_hop));
        });
    }

    fn change_expanded(&mut self, at: usize, change: &Change<K>, after: &dyn Routes<K>) {
        let (level, hashes) = (&mut self.levels[at], self.parameters.hashes);
        let prefix = change.prefix();
        // A route that had been there would have all its prefixes here. This bounds the time that a removal takes of
        // something that is not there.
        let expanded = 1u64.checked_shl((level.len - prefix.len()).into()).unwrap_or(u64::MAX);
        if matches!(change, Change::Remove(_)) && expanded > level.before as u64 {
            return;
        }
        let routes = Between::new(after, level.shortest, level.len);
        for_each_run(&routes, prefix, level.len, &mut |run| {
            for key in run.prefixes(level.len) {
                set(level, S::of(key), run.next_hop, hashes);
            }
        });
    }
}

/// Makes room in a level for what a batch of changes can add.
fn make_room<S: Stored, H: Hashes<S>>(
    level: &mut Level<S>,
    parameters: &Parameters<H>,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    match level.wanted {
        0 => Ok(()),
        wanted => level.reserve(wanted as usize, parameters.ratio, parameters.hashes, budget),
    }
}

/// Returns the next hop of an inserted route.
fn next_hop<K: Copy>(change: &Change<K>) -> Option<NextHop> {
    match change {
        Change::Insert(route) => Some(route.next_hop),
        Change::Remove(_) => None,
    }
}

/// Gives an entry a next hop, or removes it.
fn set<S: Stored, H: Hashes<S>>(level: &mut Level<S>, key: S, next_hop: Option<NextHop>, hashes: H) {
    match next_hop {
        Some(next_hop) => level.put(key, next_hop.id(), hashes),
        None => level.take(key, hashes),
    }
}
