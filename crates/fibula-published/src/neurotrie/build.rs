//! Routes to layout: ranges and routes in lists, strides, and nodes from the root on.

use core::marker::PhantomData;

use fibula::fib::BuildError;
use fibula::net::{Key, NextHop, Prefix, Route, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits, OutOfMemory};
use fibula::unstable::parts::next_hop_dictionary::NextHopDictionary;
use fibula::unstable::parts::ranges::{self, Merge};

use super::NAME;
use super::layout::{ENTRIES_MAX, LEAF, Neurotrie, node};
use super::strides::{Span, best_noting, divided, greedy, price};

/// How strides are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Choice {
    /// The fewest accesses within a budget of entries, so many a route and some more.
    Best { a_route: u32, more: u32 },
    /// The longest stride at which this share of the entries begins a range or is divided.
    Greedy { percent: u32 },
}

impl<K: Key> Neurotrie<K> {
    /// Builds the trie of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when there are more than 2^28 entries.
    pub(crate) fn build(routes: &dyn Routes<K>, choice: Choice, limits: Limits) -> Result<Self, BuildError> {
        let memory = |error| BuildError::memory(NAME, error);
        let mut budget = Budget::new(limits);
        let lists = Lists::new(routes, &mut budget).map_err(memory)?;
        let all = lists.all();
        let policy = match choice {
            Choice::Best { a_route, more } => {
                let entries = f64::from(more) + f64::from(a_route) * lists.routes.len() as f64;
                let mut strides = budget.vec(divided(&all)).map_err(memory)?;
                let needed = best_noting(&all, price(&all, entries), &mut strides).entries() as u64;
                if needed > ENTRIES_MAX {
                    return Err(BuildError::limit(NAME, "entries", ENTRIES_MAX, needed));
                }
                Policy::Noted(strides)
            }
            Choice::Greedy { percent } => Policy::Share(f64::from(percent) / 100.0),
        };
        let mut building = Building { policy, entries: Buffer::new(), budget, met: 0, needed: 0 };
        let root = building.entry(&all).map_err(memory)?;
        let Building { policy, mut entries, mut budget, needed, .. } = building;
        if let Policy::Noted(strides) = policy {
            budget.free(strides);
        }
        if needed > ENTRIES_MAX {
            return Err(BuildError::limit(NAME, "entries", ENTRIES_MAX, needed));
        }
        let Lists { ranges, routes, dictionary, .. } = lists;
        budget.free(ranges);
        budget.free(routes);
        budget.shrink(&mut entries);
        let next_hops = dictionary.map(|dictionary| dictionary.into_next_hops(&mut budget)).transpose();
        Ok(Self { root, entries, next_hops: next_hops.map_err(memory)?, keys: PhantomData })
    }
}

/// The routes in the two forms that the choice of strides needs.
struct Lists<K: Copy> {
    /// The code of the first address.
    code: u32,
    /// First address and code of all other ranges.
    ranges: Buffer<(K, u32)>,
    routes: Buffer<(K, u8)>,
    dictionary: Option<NextHopDictionary>,
}

impl<K: Key> Lists<K> {
    fn new(routes: &dyn Routes<K>, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let is_narrow =
            |route: Route<K>| if route.next_hop.id() <= Neurotrie::<K>::ID_MAX { Ok(()) } else { Err(()) };
        let mut lists = Self {
            code: 0,
            ranges: Buffer::new(),
            routes: budget.buffer(routes.len())?,
            dictionary: match routes.try_for_each(Prefix::ALL, is_narrow) {
                Ok(()) => None,
                Err(()) => Some(NextHopDictionary::new(budget)?),
            },
        };
        routes.try_for_each(Prefix::ALL, |route| {
            budget.push(&mut lists.routes, (route.prefix.addr(), route.prefix.len()))
        })?;
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            let code = match &mut lists.dictionary {
                None => NextHop::word(range.next_hop),
                Some(dictionary) => dictionary.code(range.next_hop, budget)?,
            };
            if range.start == K::ZERO {
                lists.code = code;
                return Ok(());
            }
            budget.push(&mut lists.ranges, (range.start, code))
        })?;
        Ok(lists)
    }

    /// Returns the whole space.
    fn all(&self) -> Span<'_, K> {
        Span {
            first: K::ZERO,
            len: 0,
            ranges: &self.ranges,
            code: self.code,
            routes: &self.routes,
            from_above: 0.0,
        }
    }
}

/// How the stride of a node is found.
enum Policy {
    /// Each is noted, by the number of its span.
    Noted(Vec<u8>),
    /// From the share of the entries that begin a range or are divided.
    Share(f64),
}

struct Building {
    policy: Policy,
    entries: Buffer<u32>,
    budget: Budget,
    /// Divided spans that were met, each before its halves.
    met: usize,
    /// Entries of all nodes, those beyond the limit included, which are not stored.
    needed: u64,
}

impl Building {
    /// Returns the entry of a span, having made the node that it leads to if there is one.
    fn entry<K: Key>(&mut self, span: &Span<'_, K>) -> Result<u32, OutOfMemory> {
        if !span.is_divided() {
            return Ok(LEAF | span.code);
        }
        let stride = match &self.policy {
            Policy::Noted(strides) => strides[self.met],
            Policy::Share(share) => greedy(span, *share),
        };
        let (first, count) = (self.entries.len(), 1usize << stride);
        self.needed += count as u64;
        if self.needed > ENTRIES_MAX {
            return Ok(LEAF);
        }
        self.budget.reserve(&mut self.entries, count)?;
        self.entries.resize(first + count, 0);
        self.fill(span, first, count)?;
        Ok(node(first, stride))
    }

    /// Fills so many entries with the parts of a span.
    fn fill<K: Key>(&mut self, span: &Span<'_, K>, first: usize, count: usize) -> Result<(), OutOfMemory> {
        if count == 1 {
            self.entries[first] = self.entry(span)?;
            return Ok(());
        }
        if !span.is_divided() {
            self.entries[first..first + count].fill(LEAF | span.code);
            return Ok(());
        }
        self.met += 1;
        let [left, right] = span.halves();
        self.fill(&left, first, count / 2)?;
        self.fill(&right, first + count / 2, count / 2)
    }
}
