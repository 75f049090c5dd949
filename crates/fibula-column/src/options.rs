//! How a column is looked up, and the counts of its rows.

/// Where IPv4-mapped IPv6 addresses (`::ffff:0:0/96`) are looked up, which flow exporters send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum V4MappedRule {
    /// Among the IPv6 routes, as every other IPv6 address.
    #[default]
    Ipv6,
    /// Among the IPv4 routes.
    Ipv4,
}

/// How a column is looked up. End with `..LookupOptions::default()`, because there may be more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupOptions {
    /// Number of threads that share the rows, in contiguous parts; one by default, and for fewer than 65,536 rows. They are started
    /// for the call.
    pub threads: usize,
    /// Where IPv4-mapped IPv6 addresses are looked up.
    pub v4_mapped: V4MappedRule,
    /// Whether an invalid row is an error. By default it has id 0 and is counted.
    pub refuse_invalid: bool,
}

impl Default for LookupOptions {
    fn default() -> Self {
        Self { threads: 1, v4_mapped: V4MappedRule::Ipv6, refuse_invalid: false }
    }
}

/// The rows without an address among those that were looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LookupCounts {
    /// Number of invalid rows. A null is none.
    pub invalid: usize,
    /// The first invalid row, counted from 0.
    pub first_invalid: Option<usize>,
}

impl LookupCounts {
    /// Counts a row.
    pub(crate) fn count(&mut self, row: usize) {
        self.invalid += 1;
        self.first_invalid = Some(self.first_invalid.map_or(row, |first| first.min(row)));
    }

    /// Returns the counts of two parts of a column.
    pub(crate) fn with(self, other: Self) -> Self {
        let first_invalid = self.first_invalid.into_iter().chain(other.first_invalid).min();
        Self { invalid: self.invalid + other.invalid, first_invalid }
    }
}
