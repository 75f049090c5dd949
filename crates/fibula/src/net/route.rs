//! Routes and changes to them.

use core::fmt;
use core::num::{NonZeroU32, TryFromIntError};

use super::prefix::Prefix;

/// Where a route leads: a number of the caller's choice, which structures do not interpret.
///
/// Never zero, so that `Option<NextHop>` is one 32-bit word in which 0 means "no route". Converts from and to
/// `NonZeroU32` and `u32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct NextHop(NonZeroU32);

const _: () = assert!(size_of::<Option<NextHop>>() == 4);

impl NextHop {
    /// Returns the next hop with this number; `None` for 0.
    #[inline]
    #[must_use]
    pub const fn new(id: u32) -> Option<Self> {
        match NonZeroU32::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// Returns the number.
    #[inline]
    #[must_use]
    pub const fn id(self) -> u32 {
        self.0.get()
    }

    /// Returns the word that structures store for a result: the number, or 0 for no route.
    #[inline]
    #[doc(hidden)]
    pub fn word(next_hop: Option<Self>) -> u32 {
        next_hop.map_or(0, Self::id)
    }

    /// Returns the results as words, to which vector registers are stored.
    #[inline]
    #[allow(unsafe_code)]
    #[doc(hidden)]
    pub fn words(results: &mut [Option<Self>]) -> &mut [u32] {
        let (words, count) = (results.as_mut_ptr().cast::<u32>(), results.len());
        // SAFETY: `Option<NonZeroU32>`, and so the transparent `Option<NextHop>`, has the layout of `u32` and every
        // value of it is valid (`core::num::NonZero`); the slice is borrowed for as long as the words are.
        unsafe { core::slice::from_raw_parts_mut(words, count) }
    }
}

impl From<NonZeroU32> for NextHop {
    fn from(id: NonZeroU32) -> Self {
        Self(id)
    }
}

/// Refuses 0.
impl TryFrom<u32> for NextHop {
    type Error = TryFromIntError;

    fn try_from(id: u32) -> Result<Self, TryFromIntError> {
        NonZeroU32::try_from(id).map(Self)
    }
}

impl From<NextHop> for NonZeroU32 {
    fn from(next_hop: NextHop) -> Self {
        next_hop.0
    }
}

impl From<NextHop> for u32 {
    fn from(next_hop: NextHop) -> Self {
        next_hop.id()
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A prefix and its next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route<K> {
    /// The addresses that the route covers.
    pub prefix: Prefix<K>,
    /// Their next hop.
    pub next_hop: NextHop,
}

impl<K> Route<K> {
    /// Returns the route of `prefix` to `next_hop`.
    pub const fn new(prefix: Prefix<K>, next_hop: NextHop) -> Self {
        Self { prefix, next_hop }
    }
}

/// The route of a prefix, an [`ipnet`] prefix or an address to a next hop.
impl<K, P: Into<Prefix<K>>> From<(P, NextHop)> for Route<K> {
    fn from((prefix, next_hop): (P, NextHop)) -> Self {
        Self::new(prefix.into(), next_hop)
    }
}

/// A change to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change<K> {
    /// Adds the route, or changes the next hop if the prefix is present.
    Insert(Route<K>),
    /// Removes the prefix, if it is present.
    Remove(Prefix<K>),
}

impl<K: Copy> Change<K> {
    /// Returns the prefix that changes.
    pub fn prefix(&self) -> Prefix<K> {
        match self {
            Self::Insert(route) => route.prefix,
            Self::Remove(prefix) => *prefix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hops_and_routes_convert() {
        let hop = NextHop::try_from(7).unwrap();
        assert!(NextHop::try_from(0).is_err());
        assert_eq!((u32::from(hop), NonZeroU32::from(hop)), (7, NonZeroU32::new(7).unwrap()));
        assert_eq!(NextHop::from(NonZeroU32::from(hop)), hop);
        let net: ipnet::Ipv4Net = "192.0.2.0/24".parse().unwrap();
        let route = Route::<u32>::new(net.into(), hop);
        assert_eq!(Route::from((net, hop)), route);
        assert_eq!(Route::from((route.prefix, hop)), route);
        let host = Route::<u128>::from((core::net::Ipv6Addr::LOCALHOST, hop));
        assert_eq!(host.prefix.to_string(), "::1/128");
    }
}
