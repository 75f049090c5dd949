//! Controlled prefix expansion: the routes of some lengths as prefixes of one length, none of them twice.

use core::ops::ControlFlow;

use fibula::net::{Key, NextHop, Prefix, Route, Routes};
use fibula::unstable::parts::ranges::{self, Merge};

/// The routes of some lengths.
pub(crate) struct Between<'a, K> {
    routes: &'a dyn Routes<K>,
    shortest: u8,
    longest: u8,
}

impl<'a, K: Key> Between<'a, K> {
    /// Takes the routes from a shortest to a longest length.
    pub(crate) fn new(routes: &'a dyn Routes<K>, shortest: u8, longest: u8) -> Self {
        Self { routes, shortest, longest }
    }
}

impl<K: Key> Routes<K> for Between<'_, K> {
    /// The number of all routes: those of the lengths are not known.
    fn len(&self) -> usize {
        self.routes.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.routes.visit(within, &mut |route| {
            if (self.shortest..=self.longest).contains(&route.prefix.len()) {
                each(route)
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        let mut parent = self.routes.parent(prefix)?;
        while parent.prefix.len() > self.longest {
            parent = self.routes.parent(parent.prefix)?;
        }
        (parent.prefix.len() >= self.shortest).then_some(parent)
    }
}

/// A stretch of prefixes of one length that have the same next hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<K> {
    /// The first address.
    pub(crate) first: K,
    /// Number of prefixes, one after the other.
    pub(crate) count: u128,
    pub(crate) next_hop: Option<NextHop>,
}

/// Calls `each` for the runs of prefixes of length `len` in `within`, by the routes of some lengths up to it. A `dyn`
/// function, because runs are few and this is long.
pub(crate) fn for_each_run<K: Key>(
    routes: &Between<'_, K>,
    within: Prefix<K>,
    len: u8,
    each: &mut dyn FnMut(Run<K>),
) {
    let host_bits = K::BITS - len;
    let mut run: Option<(K, Option<NextHop>)> = None;
    // Where a run ends is known when the next one starts; the last one ends with the prefix.
    let mut end = |run: Option<(K, Option<NextHop>)>, last: K| {
        let Some((first, next_hop)) = run else { return };
        let addresses = last.to_bits() - first.to_bits();
        let count = if host_bits == 128 { 0 } else { addresses >> host_bits } + 1;
        each(Run { first, count, next_hop });
    };
    let _ = ranges::visit(routes, within, Merge::EqualNeighbours, |range| {
        if let Some(last) = range.start.previous() {
            end(run, last);
        }
        run = Some((range.start, range.next_hop));
        ControlFlow::Continue(())
    });
    end(run, within.last());
}

impl<K: Key> Run<K> {
    /// Returns the first address of each prefix.
    pub(crate) fn prefixes(self, len: u8) -> impl Iterator<Item = K> {
        let step = if len == 0 { 0 } else { 1u128 << (K::BITS - len) };
        let first = self.first.to_bits();
        (0..self.count).map(move |at| K::from_bits(first + at * step))
    }
}

/// Calls `each` with the length of every route but the default one and that of its longest cover, 0 for none.
pub(crate) fn for_each_length<K: Key>(routes: &dyn Routes<K>, each: &mut dyn FnMut(u8, u8)) {
    let mut open = [(K::ZERO, 0u8); 129];
    let mut depth = 0;
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        let prefix = route.prefix;
        if prefix.len() == 0 {
            return ControlFlow::Continue(());
        }
        while depth > 0 && open[depth - 1].0 < prefix.addr() {
            depth -= 1;
        }
        each(prefix.len(), if depth > 0 { open[depth - 1].1 } else { 0 });
        open[depth] = (prefix.last(), prefix.len());
        depth += 1;
        ControlFlow::Continue(())
    });
}
