//! Routes in order, which every structure is built from.

use core::fmt;
use core::ops::ControlFlow;

use super::key::Key;
use super::prefix::Prefix;
use super::route::{NextHop, Route};

/// A set of routes that can be walked in order, covers first: ascending by (address, length), every prefix
/// at most once.
///
/// Builds visit all of them; updates in place visit the subtree of a change. Implementations that break the order get
/// wrong answers or a panic, never undefined behaviour.
pub trait Routes<K: Key> {
    /// Returns the number of routes.
    fn len(&self) -> usize;

    /// Returns whether there are no routes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` for every route whose prefix `within` covers, in order, until it breaks.
    ///
    /// A visitor rather than an iterator, so that a walk allocates nothing.
    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()>;

    /// Returns the longest route that contains `prefix`, other than the route of `prefix` itself.
    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>>;

    /// Calls `each` for [`parent`](Self::parent) of `within`, if there is one, and then as [`visit`](Self::visit) does. The
    /// parent is the only route that is shorter than `within`.
    ///
    /// Implementations may have both from one walk.
    fn visit_from_parent(
        &self,
        within: Prefix<K>,
        each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.parent(within).map_or(ControlFlow::Continue(()), &mut *each)?;
        self.visit(within, each)
    }

    /// Returns the answer of all addresses of a prefix, if it is one and known without a walk. `None` says nothing about them.
    fn sole_answer(&self, _within: Prefix<K>) -> Option<Option<NextHop>> {
        None
    }

    /// Returns the routes for several threads to walk at once, if they can.
    fn shared(&self) -> Option<&(dyn Routes<K> + Sync)> {
        None
    }
}

impl<K: Key> dyn Routes<K> + '_ {
    /// Calls `each` for the routes that `within` covers, in order, until one call fails.
    ///
    /// # Errors
    /// The first failure of `each`.
    pub fn try_for_each<E>(
        &self,
        within: Prefix<K>,
        mut each: impl FnMut(Route<K>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        let _ = self.visit(within, &mut |route| {
            outcome = each(route);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome
    }
}

/// A sorted slice of routes, as [`Routes`].
#[derive(Debug, Clone, Copy)]
pub struct RouteSlice<'a, K>(&'a [Route<K>]);

impl<'a, K: Key> RouteSlice<'a, K> {
    /// Takes a slice that is sorted by (address, length) and has every prefix once. Routes in any order can be
    /// inserted into a [`Rib`](crate::rib::Rib) instead.
    ///
    /// # Errors
    /// The first route that is out of order or a duplicate.
    pub fn new(routes: &'a [Route<K>]) -> Result<Self, OrderError> {
        match routes.windows(2).position(|pair| pair[0].prefix >= pair[1].prefix) {
            None => Ok(Self(routes)),
            Some(at) => {
                Err(OrderError { index: at + 1, duplicate: routes[at].prefix == routes[at + 1].prefix })
            }
        }
    }

    fn get(&self, prefix: Prefix<K>) -> Option<NextHop> {
        let at = self.0.binary_search_by_key(&prefix, |route| route.prefix).ok()?;
        Some(self.0[at].next_hop)
    }
}

impl<K: Key> Routes<K> for RouteSlice<'_, K> {
    fn shared(&self) -> Option<&(dyn Routes<K> + Sync)> {
        Some(self)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        let start = self.0.partition_point(|route| route.prefix < within);
        self.0[start..]
            .iter()
            .take_while(|route| within.covers(route.prefix))
            .try_for_each(|&route| each(route))
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        (0..prefix.len()).rev().find_map(|len| {
            let cover = Prefix::of(prefix.addr(), len);
            self.get(cover).map(|next_hop| Route::new(cover, next_hop))
        })
    }
}

/// The error for a slice of routes that is not in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderError {
    index: usize,
    duplicate: bool,
}

impl OrderError {
    /// Returns the index of the first route that is not greater than the one before it.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault =
            if self.duplicate { "repeats the prefix before it" } else { "sorts before the one it follows" };
        write!(f, "route {} {fault}: sort by (address, length) and keep each prefix once", self.index)
    }
}

impl core::error::Error for OrderError {}
