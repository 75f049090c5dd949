//! The routes of a file, in the columns that the file has.

use core::ops::ControlFlow;

use crate::memory::{Cell, Memory, Shared};
use crate::net::{IntoKey, Key, NextHop, Prefix, Route, Routes};

/// The routes of a file, in order. Engines are built from them, and single addresses can be looked up.
#[derive(Debug)]
pub struct StoredRoutes<K> {
    addresses: Addresses,
    lengths: Shared<u16>,
    next_hops: Shared<u32>,
    keys: core::marker::PhantomData<fn(K)>,
}

#[derive(Debug)]
pub(super) enum Addresses {
    Narrow(Shared<u32>),
    /// The upper half of each, then the lower half.
    Wide(Shared<u64>),
}

impl<K: Key> StoredRoutes<K> {
    /// Returns the routes of these columns, `None` if they differ in length.
    pub(super) fn new(addresses: Addresses, lengths: Shared<u16>, next_hops: Shared<u32>) -> Option<Self> {
        let count = match &addresses {
            Addresses::Narrow(words) => words.len(),
            Addresses::Wide(words) => words.len() / 2,
        };
        let is_even = !matches!(&addresses, Addresses::Wide(words) if words.len() % 2 == 1);
        let is_equal = is_even && count == lengths.len() && count == next_hops.len();
        is_equal.then_some(Self { addresses, lengths, next_hops, keys: core::marker::PhantomData })
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn address(&self, at: usize) -> K {
        K::from_bits(match &self.addresses {
            Addresses::Narrow(words) => words[at].read().into(),
            Addresses::Wide(words) => {
                u128::from(words[2 * at].read()) << 64 | u128::from(words[2 * at + 1].read())
            }
        })
    }

    /// Returns a prefix. It is a valid prefix even if the words of a mapped file are not.
    fn prefix(&self, at: usize) -> Prefix<K> {
        Prefix::of(self.address(at), self.lengths[at].read().min(K::BITS.into()) as u8)
    }

    /// Returns a route by its number in order; `None` if the number is too large.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Route<K>> {
        if at < self.len() { self.route(at) } else { None }
    }

    fn route(&self, at: usize) -> Option<Route<K>> {
        Some(Route::new(self.prefix(at), NextHop::new(self.next_hops[at].read())?))
    }

    /// Returns the number of the first element that is not a valid route, or not greater than the one before it.
    pub(super) fn disorder(&self) -> Option<usize> {
        let mut before = None;
        (0..self.len()).find(|&at| {
            let prefix = self.prefix(at);
            let is_exact =
                prefix.addr() == self.address(at) && u16::from(prefix.len()) == self.lengths[at].read();
            let is_route = is_exact && self.next_hops[at].read() != 0;
            // `None` is less than any prefix, so the first route passes.
            !is_route || before.replace(prefix) >= Some(prefix)
        })
    }

    /// Calls `each` for all routes in order.
    pub fn iter(&self) -> impl Iterator<Item = Route<K>> {
        (0..self.len()).filter_map(|at| self.route(at))
    }

    /// Returns the number of routes whose prefix is at most this one.
    fn up_to(&self, prefix: Prefix<K>) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.prefix(middle) <= prefix { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Returns the longest route that covers a prefix, itself included.
    fn longest(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        let mut end = self.up_to(prefix);
        while let Some(at) = end.checked_sub(1) {
            let last = self.prefix(at);
            if last.covers(prefix) {
                return self.route(at);
            }
            // A shorter route that covers the prefix comes before this one, and covers the common prefix too.
            let common = last.addr().common_len(prefix.addr()).min(prefix.len());
            end = self.up_to(Prefix::of(prefix.addr(), common)).min(at);
        }
        None
    }

    /// Returns the route of the longest prefix that contains `key`, which may also be an address of the standard library.
    /// A few binary searches: a microsecond in a full table.
    #[must_use]
    pub fn lookup_prefix(&self, key: impl IntoKey<K>) -> Option<Route<K>> {
        self.longest(Prefix::host(key.into_key()))
    }

    /// Returns the memory of the columns.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let addresses = match &self.addresses {
            Addresses::Narrow(words) => words.memory(),
            Addresses::Wide(words) => words.memory(),
        };
        addresses + self.lengths.memory() + self.next_hops.memory()
    }
}

impl<K: Key> Routes<K> for StoredRoutes<K> {
    fn len(&self) -> usize {
        self.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        let before = self.up_to(within);
        // `up_to` counts the prefix itself, which is one of the routes to visit.
        let start = before - usize::from(before > 0 && self.prefix(before - 1) == within);
        for at in start..self.len() {
            if !within.covers(self.prefix(at)) {
                break;
            }
            // A mapped file may have changed to a next hop of 0, which is skipped.
            if let Some(route) = self.route(at) {
                each(route)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.longest(Prefix::of(prefix.addr(), prefix.len().checked_sub(1)?))
    }

    fn shared(&self) -> Option<&(dyn Routes<K> + Sync)> {
        Some(self)
    }
}
