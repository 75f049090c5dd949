//! The kinds of tables that are measured apart.

use core::fmt;

/// One route of so many with a wide next hop makes a table wide. `dir-btree` is far ahead of `planb` without wide next hops,
/// and level with it where 7 to 22 % of the routes have one: tables of 10,000 to 640,000 routes, Zen 4, AVX-512, batches of
/// 256, interpolated between shares of none and of a quarter to two thirds.
const WIDE_SHARE: usize = 8;

/// Most next hops of a table that has few: some engines have codes of a byte for those that most routes have.
const FEW_NEXT_HOPS: usize = 512;

/// A kind of table. Engines are fast for one kind and slow for another of the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// A table that is none of the others.
    Plain,
    /// A table with mostly host routes, whatever its next hops.
    Hosts,
    /// A table where an eighth of the routes or more have a [wide](super::Workload::wide_routes) next hop. It has at most 512
    /// different next hops.
    Wide,
    /// A table with over 512 different next hops, of which few are wide.
    Many,
    /// A table that is both of these: over 512 different next hops, and wide ones at an eighth of the routes or more.
    ManyWide,
}

impl TableKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Hosts, Self::Wide, Self::Many, Self::ManyWide];

    /// Returns the kind of a table with these numbers of routes, of host routes, of routes with a wide next hop, and of different
    /// next hops.
    #[must_use]
    pub fn of(routes: usize, host_routes: usize, wide_routes: usize, next_hops: usize) -> Self {
        let is_wide = wide_routes > 0 && wide_routes * WIDE_SHARE >= routes;
        let has_many = next_hops > FEW_NEXT_HOPS;
        match (is_wide, has_many) {
            _ if host_routes * 2 > routes => Self::Hosts,
            (true, true) => Self::ManyWide,
            (true, false) => Self::Wide,
            (false, true) => Self::Many,
            (false, false) => Self::Plain,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Hosts => "hosts",
            Self::Wide => "wide",
            Self::Many => "many",
            Self::ManyWide => "many-wide",
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
