//! The engines that the keys of a column are looked up in.

use fibula::net::{Keys, NextHop};

/// Looks up keys of both families. `rows` are the rows of the column that the keys are of.
pub(crate) trait Engines {
    fn v4(&self, rows: RowsOf<'_>, keys: Keys<'_, u32>, results: &mut [Option<NextHop>]);

    fn v6(&self, rows: RowsOf<'_>, keys: Keys<'_, u128>, results: &mut [Option<NextHop>]);
}

/// The rows of a column that a batch of keys is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowsOf<'r> {
    /// Rows that follow each other, from this one on.
    From(usize),
    /// These rows of a block, whose first row is the number.
    Listed(usize, &'r [u8]),
}
