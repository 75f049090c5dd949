//! The kinds of tables that are measured apart.

use core::fmt;

/// One route of so many with a wide next hop makes a table wide. `dir-btree` is far ahead of `planb` without wide next hops,
/// and level with it where 7 to 22 % of the routes have one: tables of 10,000 to 640,000 routes, Zen 4, AVX-512, batches of
/// 256, interpolated between shares of none and of a quarter to two thirds.
const WIDE_SHARE: usize = 8;

/// A kind of table. Engines are fast for one kind and slow for another of the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// A table that is none of the others.
    Plain,
    /// A table with mostly host routes, whatever its next hops.
    Hosts,
    /// A table with many [wide](super::Workload::wide_routes) next hops, those of at least an eighth of the routes.
    Wide,
}

impl TableKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Hosts, Self::Wide];

    /// Returns the kind of a table with so many routes, of which so many are host routes, and so many have a wide next hop.
    #[must_use]
    pub fn of(routes: usize, host_routes: usize, wide_routes: usize) -> Self {
        if host_routes * 2 > routes {
            Self::Hosts
        } else if wide_routes > 0 && wide_routes * WIDE_SHARE >= routes {
            Self::Wide
        } else {
            Self::Plain
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Hosts => "hosts",
            Self::Wide => "wide",
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
