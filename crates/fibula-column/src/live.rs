//! Columns looked up in a live table.

use fibula::Pinned;
use fibula::net::{Keys, NextHop};

use crate::column::Column;
use crate::engines::{Engines, RowsOf};
use crate::error::ColumnError;
use crate::lookup::{checked, look_up_part, refused};
use crate::options::{LookupCounts, LookupOptions};

/// Looks up every row of a column in a live table, and writes the id of row `i` to `ids[i]`. All rows are looked up under the pin, and
/// in the thread to which the pin belongs; [`LookupOptions::threads`] is not used.
///
/// # Errors
/// As for [`TableView::lookup`](crate::TableView::lookup).
pub fn lookup_pinned(
    pin: &Pinned<'_>,
    column: &Column<'_>,
    ids: &mut [u32],
    options: &LookupOptions,
) -> Result<LookupCounts, ColumnError> {
    let ids = checked(column, ids)?;
    let mut counts = LookupCounts::default();
    let rows = 0..column.len();
    look_up_part(&PinView(pin), column, rows, ids, options.v4_mapped, &mut |row| counts.count(row));
    refused(column, counts, options)
}

/// The engines of a pinned table.
struct PinView<'p>(&'p Pinned<'p>);

impl Engines for PinView<'_> {
    fn v4(&self, _: RowsOf<'_>, keys: Keys<'_, u32>, results: &mut [Option<NextHop>]) {
        match keys {
            Keys::Host(keys) => self.0.lookup_batch(keys, results),
            keys => self.0.batch(keys).run(results),
        }
    }

    fn v6(&self, _: RowsOf<'_>, keys: Keys<'_, u128>, results: &mut [Option<NextHop>]) {
        match keys {
            Keys::Host(keys) => self.0.lookup_batch(keys, results),
            keys => self.0.batch(keys).run(results),
        }
    }
}
