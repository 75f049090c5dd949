//! Routes and changes to them.

use core::fmt;
use core::num::{NonZeroU32, TryFromIntError};

use super::prefix::Prefix;

/// What a route leads to: an id of the caller's choice, opaque to every structure.
///
/// Never zero, so that `Option<NextHop>` is one 32-bit word in which 0 means "no route", in a result array
/// as in a vector lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct NextHop(NonZeroU32);

const _: () = assert!(size_of::<Option<NextHop>>() == 4);

impl NextHop {
    /// The next hop of this id, none for 0.
    #[inline]
    #[must_use]
    pub const fn new(id: u32) -> Option<Self> {
        match NonZeroU32::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The id.
    #[inline]
    #[must_use]
    pub const fn id(self) -> u32 {
        self.0.get()
    }

    /// The word that structures store for a result: the id, or 0 for no route. [`NextHop::new`] turns it back.
    #[inline]
    pub(crate) fn word(next_hop: Option<Self>) -> u32 {
        next_hop.map_or(0, Self::id)
    }

    /// Results as the words that [`NextHop::new`] would turn into them: what a vector register is stored to.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn words(results: &mut [Option<Self>]) -> &mut [u32] {
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

/// 0 is no next hop.
impl TryFrom<u32> for NextHop {
    type Error = TryFromIntError;

    fn try_from(id: u32) -> Result<Self, TryFromIntError> {
        NonZeroU32::try_from(id).map(Self)
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

/// A prefix and where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route<K> {
    /// The addresses the route is for.
    pub prefix: Prefix<K>,
    /// Where they go.
    pub next_hop: NextHop,
}

impl<K> Route<K> {
    /// The route of `prefix` to `next_hop`.
    pub const fn new(prefix: Prefix<K>, next_hop: NextHop) -> Self {
        Self { prefix, next_hop }
    }
}

/// One change of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change<K> {
    /// Adds the route, or gives the prefix a new next hop where it is present.
    Insert(Route<K>),
    /// Takes the prefix out; nothing happens where it is absent.
    Remove(Prefix<K>),
}

impl<K: Copy> Change<K> {
    /// The prefix that changes.
    pub fn prefix(&self) -> Prefix<K> {
        match self {
            Self::Insert(route) => route.prefix,
            Self::Remove(prefix) => *prefix,
        }
    }
}
