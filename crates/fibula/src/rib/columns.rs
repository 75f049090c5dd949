//! Tables from columns of addresses, lengths and ids.

use core::fmt;

use crate::memory::{Budget, Limits, OutOfMemory};
use crate::net::{Change, HostBits, Key, NextHop, Prefix, PrefixError, Route};

use super::{Rib, RibError};

/// What to do where several rows have the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// Return an error: more often than not it is a mistake.
    #[default]
    Refuse,
    /// The last row counts.
    LastWins,
}

/// How columns become a table.
#[derive(Debug, Clone, Copy, Default)]
pub struct ColumnRules {
    /// What to do with bits after the length of a prefix.
    pub host_bits: HostBits,
    /// What to do where several rows have the same prefix.
    pub duplicates: Duplicates,
    /// Limits of the table. The rows in order, while it is built, are within them too.
    pub limits: Limits,
}

/// Why columns are no table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RibColumnsError {
    /// The columns have these lengths: addresses, lengths, ids.
    Rows([usize; 3]),
    /// A row is not a prefix.
    Prefix {
        /// The row, counted from 0.
        row: usize,
        /// Why not.
        error: PrefixError,
    },
    /// The id of a row is 0, which is no route.
    Zero {
        /// The row.
        row: usize,
    },
    /// A row has the prefix of a row before it.
    Duplicate {
        /// The later row.
        row: usize,
        /// The prefix as text.
        prefix: String,
    },
    /// Memory ran out.
    Memory(OutOfMemory),
}

impl RibColumnsError {
    /// Returns the row that is wrong, counted from 0.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match self {
            Self::Prefix { row, .. } | Self::Zero { row } | Self::Duplicate { row, .. } => Some(*row),
            Self::Rows(_) | Self::Memory(_) => None,
        }
    }
}

impl From<OutOfMemory> for RibColumnsError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for RibColumnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows([addresses, lengths, ids]) => {
                write!(f, "columns differ in length: {addresses} addresses, {lengths} lengths, {ids} ids")
            }
            Self::Prefix { row, error } => write!(f, "row {row}: {error}"),
            Self::Zero { row } => write!(f, "row {row}: 0 is not the id of a route"),
            Self::Duplicate { row, prefix } => write!(f, "row {row}: {prefix} is there already"),
            Self::Memory(error) => RibError(*error).fmt(f),
        }
    }
}

impl core::error::Error for RibColumnsError {}

/// Changes that are applied together.
const AT_ONCE: usize = 1 << 14;

impl<K: Key> Rib<K> {
    /// Returns the table of columns, in any order: row `i` is the route to the next hop `ids[i]` for `lengths[i]` bits of
    /// `addresses[i]`. Takes a fraction of the time of single inserts, because the rows are sorted first.
    ///
    /// ```
    /// use fibula::rib::{ColumnRules, Rib};
    ///
    /// let rib = Rib::<u32>::from_columns(&[0xc000_0200, 0xc000_0280], &[24, 25], &[1, 2], ColumnRules::default())?;
    /// assert_eq!(rib.lookup(0xc000_0281).map(|id| id.id()), Some(2));
    /// # Ok::<(), fibula::rib::RibColumnsError>(())
    /// ```
    ///
    /// # Errors
    /// The first row that is wrong, or that memory ran out.
    pub fn from_columns(
        addresses: &[K],
        lengths: &[u8],
        ids: &[u32],
        rules: ColumnRules,
    ) -> Result<Self, RibColumnsError> {
        if addresses.len() != lengths.len() || addresses.len() != ids.len() {
            return Err(RibColumnsError::Rows([addresses.len(), lengths.len(), ids.len()]));
        }
        let mut budget = Budget::new(rules.limits);
        let mut rows = budget.vec(addresses.len())?;
        for (row, ((&address, &len), &id)) in addresses.iter().zip(lengths).zip(ids).enumerate() {
            let prefix = match rules.host_bits {
                HostBits::Refuse => Prefix::new(address, len),
                HostBits::Mask => Prefix::masked(address, len),
            };
            let prefix = prefix.map_err(|error| RibColumnsError::Prefix { row, error })?;
            let next_hop = NextHop::new(id).ok_or(RibColumnsError::Zero { row })?;
            rows.push((Route::new(prefix, next_hop), row));
        }
        // Columns that are in order already, as files have them, are not moved.
        rows.sort_unstable_by_key(|(route, row)| (route.prefix, *row));
        if rules.duplicates == Duplicates::Refuse {
            let twice = rows.windows(2).filter(|pair| pair[0].0.prefix == pair[1].0.prefix);
            if let Some((route, row)) = twice.map(|pair| pair[1]).min_by_key(|(_, row)| *row) {
                return Err(RibColumnsError::Duplicate { row, prefix: route.prefix.to_string() });
            }
        }
        let scratch = budget.used_bytes();
        let left = rules.limits.memory_bytes.map(|bytes| bytes.saturating_sub(scratch));
        let mut rib = Self::new(Limits { memory_bytes: left, ..rules.limits });
        let mut changes = Vec::with_capacity(AT_ONCE.min(rows.len()));
        for rows in rows.chunks(AT_ONCE) {
            changes.clear();
            changes.extend(rows.iter().map(|&(route, _)| Change::Insert(route)));
            rib.apply(&changes).map_err(|error| error.out_of_memory())?;
        }
        rib.set_limits(rules.limits);
        Ok(rib)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Random rows, many of them for the same prefix, against inserts one by one.
    #[test]
    fn columns_are_the_table_of_their_rows_one_by_one() {
        let mut random = Random(7);
        for rows in [0, 1, 2, 40, 3000, AT_ONCE + 5] {
            let addresses: Vec<u32> = (0..rows).map(|_| (random.below(1 << 12) as u32) << 20).collect();
            let lengths: Vec<u8> = (0..rows).map(|_| random.below(33) as u8).collect();
            let ids: Vec<u32> = (0..rows).map(|_| 1 + random.below(50) as u32).collect();
            let mut expected = Rib::<u32>::default();
            let mut first = None;
            for row in 0..rows {
                let prefix = Prefix::masked(addresses[row], lengths[row]).unwrap();
                let route = Route::new(prefix, NextHop::new(ids[row]).unwrap());
                if expected.insert(route).unwrap().is_some() {
                    first = first.or(Some((row, prefix)));
                }
            }
            let mask = ColumnRules { host_bits: HostBits::Mask, ..ColumnRules::default() };
            let last = ColumnRules { duplicates: Duplicates::LastWins, ..mask };
            let rib = Rib::from_columns(&addresses, &lengths, &ids, last).unwrap();
            assert!(rib.iter().eq(expected.iter()));
            match (Rib::from_columns(&addresses, &lengths, &ids, mask), first) {
                (Ok(rib), None) => assert!(rib.iter().eq(expected.iter())),
                (Err(RibColumnsError::Duplicate { row, prefix }), Some((wrong, expected))) => {
                    assert_eq!((row, prefix), (wrong, expected.to_string()));
                }
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn rows_that_are_wrong_are_named() {
        let build = |addresses: &[u128], lengths: &[u8], ids: &[u32]| {
            Rib::from_columns(addresses, lengths, ids, ColumnRules::default()).unwrap_err()
        };
        let error = build(&[1, 2], &[128], &[1, 2]);
        assert_eq!(error.to_string(), "columns differ in length: 2 addresses, 1 lengths, 2 ids");
        for (addresses, lengths, ids, row, part) in [
            ([0, 1], [0, 127], [1, 1], 1, "host bits"),
            ([0, 0], [129, 200], [1, 1], 0, "129"),
            ([0, 0], [0, 1], [1, 0], 1, "0 is not"),
            ([5, 5], [128, 128], [1, 1], 1, "is there already"),
        ] {
            let error = build(&addresses, &lengths, &ids);
            let says = error.to_string();
            assert!(error.row() == Some(row) && says.contains(part), "{says}");
        }
        let rules = ColumnRules { limits: Limits::within(1000), ..ColumnRules::default() };
        let addresses: Vec<u32> = (0..200).collect();
        let refused = Rib::from_columns(&addresses, &[32; 200], &[1; 200], rules).unwrap_err();
        assert!(matches!(refused, RibColumnsError::Memory(_)) && refused.row().is_none(), "{refused}");
    }
}
