//! The levels, the direct array, and how they are built.

use core::marker::PhantomData;

use fibula::fib::BuildError;
use fibula::net::{Key, NextHop, Prefix, Route, Routes};
use fibula::unstable::memory::{self, Budget, Buffer, Limits, Memory, OutOfMemory};

use super::expansion::{Between, for_each_length, for_each_run};
use super::hash::{Hashes, Stored, short_bits};
use super::lengths::{Choice, Counts};
use super::level::{ENTRIES_MAX, Level};
use super::sizes::Ratio;

/// The most levels of one kind: a key has 128 bits.
pub(super) const LEVELS_MAX: usize = 128;

/// Which lengths have a level.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expansion {
    /// Every length.
    Naive,
    /// Every length that occurs: no expansion, and no level more than that needs.
    Distinct,
    /// Two levels, of this length and of all bits, after a direct array of so many.
    Fixed { direct: u8, first: u8 },
    /// So many lengths, by choice; if they must be no more, a table that is too large with them is refused.
    Chosen { choice: Choice, levels: u8, strict: bool },
}

/// What a structure is made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters<H> {
    /// The name in errors.
    pub(crate) name: &'static str,
    pub(crate) expansion: Expansion,
    pub(crate) ratio: Ratio,
    pub(crate) hashes: H,
}

/// Prefixes after expansion that a table may have in levels that are chosen, for each of its routes.
const EXPANDED_A_ROUTE: u128 = 32;

/// The same of a table of few routes.
const EXPANDED_MIN: u128 = 1 << 10;

/// Levels of prefixes before a direct array.
#[derive(Debug)]
pub(crate) struct Table<K, S, H> {
    /// Next hops by the leading bits of a key, 0 for none. Without leading bits, it holds the default route.
    pub(crate) direct: Buffer<u32>,
    pub(crate) direct_bits: u8,
    /// Levels of lengths up to [`short_bits`], longest first.
    pub(crate) levels: Vec<Level<S>>,
    /// Levels of longer prefixes, which are not expanded, longest first.
    pub(crate) long: Vec<Level<u128>>,
    pub(crate) parameters: Parameters<H>,
    pub(super) budget: Budget,
    pub(super) keys: PhantomData<fn(K)>,
}

impl<K: Key, S: Stored, H: Hashes<S> + Hashes<u128>> Table<K, S, H> {
    /// Builds the levels of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when a level would have more than 2^26 prefixes.
    pub(crate) fn build(
        routes: &dyn Routes<K>,
        parameters: Parameters<H>,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let refused = |error| BuildError::memory(parameters.name, error);
        let direct_bits = match parameters.expansion {
            Expansion::Fixed { direct, .. } => direct,
            _ => 0,
        };
        let mut budget = Budget::new(limits);
        let mut table = Self {
            direct: budget.buffer(1 << direct_bits).map_err(refused)?,
            direct_bits,
            levels: Vec::new(),
            long: Vec::new(),
            parameters,
            budget,
            keys: PhantomData,
        };
        table.plan(routes).map_err(refused)?;
        let mut sizes = [0; LEVELS_MAX];
        table.sizes(routes, &mut sizes);
        if let Some(&need) = sizes.iter().filter(|&&size| size > u128::from(ENTRIES_MAX)).max() {
            let need = u64::try_from(need).unwrap_or(u64::MAX);
            let what = "prefixes of one length after expansion";
            return Err(BuildError::limit(parameters.name, what, ENTRIES_MAX, need));
        }
        table.make_room(&sizes).map_err(refused)?;
        table.fill(routes);
        Ok(table)
    }

    /// Makes the levels, without room for entries.
    fn plan(&mut self, routes: &dyn Routes<K>) -> Result<(), OutOfMemory> {
        let short = short_bits::<K, S>();
        let captures = matches!(self.parameters.expansion, Expansion::Chosen { choice: Choice::Capture, .. });
        let mut counts = Counts::new(short, captures, &mut self.budget)?;
        // Bit 0 for the length after the short ones.
        let mut long = 0u128;
        for_each_length(routes, &mut |len, cover| {
            if len <= short {
                counts.add(len, cover);
            } else {
                long |= 1 << (len - short - 1);
            }
        });
        counts.finish();
        let occurring = || (1..=short).filter(|&len| counts.of_length[usize::from(len)] > 0);
        let bits = match self.parameters.expansion {
            Expansion::Naive => {
                long = (0..K::BITS - short).map(|at| 1 << at).sum();
                (1..=short).map(|len| 1u128 << len).sum()
            }
            Expansion::Distinct => occurring().map(|len| 1u128 << len).sum(),
            Expansion::Fixed { first, .. } => 1 << first | 1 << short,
            Expansion::Chosen { choice, levels, strict } => {
                let routes = counts.of_length.iter().sum::<u64>();
                let allowance = (u128::from(routes) * EXPANDED_A_ROUTE).max(EXPANDED_MIN);
                let allowance = if strict { u128::MAX } else { allowance };
                counts.choose(choice, levels, allowance, &mut self.budget)?.bits
            }
        };
        self.budget.free(counts.covered_up_to);
        self.levels = self.budget.vec(bits.count_ones() as usize)?;
        self.long = self.budget.vec(long.count_ones() as usize)?;
        for len in (1..=short).rev().filter(|&len| bits >> len & 1 != 0) {
            let next = (1..len).rev().find(|&next| bits >> next & 1 != 0);
            let shortest = if self.expands() { next.unwrap_or(self.direct_bits) + 1 } else { len };
            self.levels.push(Level::empty(shortest, len));
        }
        for len in (short + 1..=K::BITS).rev().filter(|&len| long >> (len - short - 1) & 1 != 0) {
            self.long.push(Level::empty(len, len));
        }
        Ok(())
    }

    /// Returns whether prefixes are expanded.
    pub(super) fn expands(&self) -> bool {
        matches!(self.parameters.expansion, Expansion::Fixed { .. } | Expansion::Chosen { .. })
    }

    /// Returns the index of the level for a length, among all levels; `None` if there is none.
    pub(super) fn level_of(&self, len: u8) -> Option<usize> {
        let long = self.long.len();
        if len > short_bits::<K, S>() {
            return self.long.iter().position(|level| level.len == len);
        }
        // The last level that is long enough.
        let at = self.levels.partition_point(|level| level.len >= len).checked_sub(1)?;
        (self.levels[at].shortest <= len).then_some(long + at)
    }

    /// Counts the entries of each level.
    fn sizes(&self, routes: &dyn Routes<K>, sizes: &mut [u128; LEVELS_MAX]) {
        for_each_length(routes, &mut |len, cover| {
            let Some(at) = self.level_of(len) else { return };
            // A prefix within another of its level expands to nothing new.
            match at.checked_sub(self.long.len()).map(|at| &self.levels[at]) {
                Some(level) if cover < level.shortest => sizes[at] += 1 << (level.len - len),
                Some(_) => {}
                None => sizes[at] += 1,
            }
        });
    }

    fn make_room(&mut self, sizes: &[u128; LEVELS_MAX]) -> Result<(), OutOfMemory> {
        let Self { levels, long, parameters: Parameters { ratio, hashes, .. }, budget, .. } = self;
        let (of_long, of_short) = sizes.split_at(long.len());
        for (level, &size) in levels.iter_mut().zip(of_short).filter(|(_, size)| **size > 0) {
            level.entries = budget.buffer(size as usize)?;
            level.resize(size as usize, *ratio, *hashes, budget)?;
        }
        for (level, &size) in long.iter_mut().zip(of_long).filter(|(_, size)| **size > 0) {
            level.entries = budget.buffer(size as usize)?;
            level.resize(size as usize, *ratio, *hashes, budget)?;
        }
        Ok(())
    }

    /// Fills levels that have room, and the direct array.
    fn fill(&mut self, routes: &dyn Routes<K>) {
        let hashes = self.parameters.hashes;
        self.direct.resize(1 << self.direct_bits, 0);
        let up_to_direct = Between::new(routes, 0, self.direct_bits);
        let Self { direct, direct_bits, .. } = self;
        for_each_run(&up_to_direct, Prefix::ALL, *direct_bits, &mut |run| {
            let at = run.first.window(0, *direct_bits) as usize;
            direct[at..at + run.count as usize].fill(NextHop::word(run.next_hop));
        });
        for level in self.levels.iter_mut().filter(|level| level.shortest < level.len) {
            let between = Between::new(routes, level.shortest, level.len);
            for_each_run(&between, Prefix::ALL, level.len, &mut |run| {
                let Some(next_hop) = run.next_hop else { return };
                for key in run.prefixes(level.len) {
                    level.add(S::of(key), next_hop.id(), hashes);
                }
            });
        }
        let _ = routes.visit(Prefix::ALL, &mut |route| {
            self.fill_exact(route);
            core::ops::ControlFlow::Continue(())
        });
    }

    /// Adds a route to its level, if that has only one length.
    fn fill_exact(&mut self, route: Route<K>) {
        let (hashes, key, next_hop) = (self.parameters.hashes, route.prefix.addr(), route.next_hop.id());
        let Some(at) = self.level_of(route.prefix.len()) else { return };
        match at.checked_sub(self.long.len()).map(|at| &mut self.levels[at]) {
            Some(level) if level.shortest == level.len => level.add(S::of(key), next_hop, hashes),
            Some(_) => {}
            None => self.long[at].add(u128::of(key), next_hop, hashes),
        }
    }

    /// Looks up one key.
    #[inline]
    pub(crate) fn one(&self, key: K) -> Option<NextHop> {
        NextHop::new(match self.find_long(key) {
            0 => self.find_short(key),
            found => found,
        })
    }

    /// Returns the next hop of the longest prefix beyond [`short_bits`], 0 for none.
    #[inline]
    pub(crate) fn find_long(&self, key: K) -> u32 {
        let hashes = self.parameters.hashes;
        self.long.iter().map(|level| level.find(u128::of(key), hashes)).find(|&found| found != 0).unwrap_or(0)
    }

    #[inline]
    fn find_short(&self, key: K) -> u32 {
        let (hashes, stored) = (self.parameters.hashes, S::of(key));
        for level in &self.levels {
            match level.find(stored, hashes) {
                0 => {}
                found => return found,
            }
        }
        self.direct[key.window(0, self.direct_bits) as usize]
    }

    /// Returns the memory.
    pub(crate) fn memory(&self) -> Memory {
        let levels = self.levels.iter().map(Level::memory).fold(memory::of(&self.levels), |a, b| a + b);
        let long = self.long.iter().map(Level::memory).fold(memory::of(&self.long), |a, b| a + b);
        memory::of(&self.direct) + levels + long
    }
}
