//! A column of VRFs next to the column of addresses.

use fibula::Pinned;
use fibula::net::{Keys, NextHop};
use fibula::vrf::Vrfs;

use crate::block::BLOCK;
use crate::column::Column;
use crate::engines::{Engines, RowsOf};
use crate::error::ColumnError;
use crate::lookup::{checked, look_up_part, refused};
use crate::options::{LookupCounts, LookupOptions};
use crate::threads;

/// Looks up every row of a column in the VRF of the same row, and writes the id of row `i` to `ids[i]`. A VRF that does not exist has no
/// routes. Each thread has a reader and a pin of its own, so parts of the column may see the table at different moments.
///
/// The entries of a dictionary are converted row by row, because each row may have another VRF.
///
/// # Errors
/// As for [`TableView::lookup`](crate::TableView::lookup); when `vrfs` has another length; and when a reader cannot be made.
pub fn lookup_in_vrfs(
    table: &Vrfs,
    vrfs: &[u32],
    column: &Column<'_>,
    ids: &mut [u32],
    options: &LookupOptions,
) -> Result<LookupCounts, ColumnError> {
    if vrfs.len() != column.len() {
        return Err(ColumnError::Length { rows: column.len(), other: vrfs.len() });
    }
    let ids = checked(column, ids)?;
    let counts = threads::in_parts(ids, options.threads, |rows, ids| {
        let mut reader = table.reader().map_err(ColumnError::Vrfs)?;
        let engines = VrfView { pin: reader.pin(), vrfs };
        let mut counts = LookupCounts::default();
        look_up_part(&engines, column, rows, ids, options.v4_mapped, &mut |row| counts.count(row));
        Ok(counts)
    })?;
    refused(column, counts, options)
}

/// A pinned table of VRFs, and the VRF of each row.
struct VrfView<'v> {
    pin: Pinned<'v, Vrfs>,
    vrfs: &'v [u32],
}

impl VrfView<'_> {
    /// Calls `run` with the VRFs of the rows.
    fn with_vrfs(&self, rows: RowsOf<'_>, count: usize, run: impl FnOnce(&[u32])) {
        match rows {
            RowsOf::From(first) => run(&self.vrfs[first..first + count]),
            RowsOf::Listed(first, rows) => {
                let mut vrfs = [0; BLOCK];
                for (vrf, &row) in vrfs.iter_mut().zip(rows) {
                    *vrf = self.vrfs[first + usize::from(row)];
                }
                run(&vrfs[..count]);
            }
        }
    }
}

impl Engines for VrfView<'_> {
    fn v4(&self, rows: RowsOf<'_>, keys: Keys<'_, u32>, results: &mut [Option<NextHop>]) {
        self.with_vrfs(rows, results.len(), |vrfs| self.pin.batch(vrfs, keys).run(results));
    }

    fn v6(&self, rows: RowsOf<'_>, keys: Keys<'_, u128>, results: &mut [Option<NextHop>]) {
        self.with_vrfs(rows, results.len(), |vrfs| self.pin.batch(vrfs, keys).run(results));
    }
}
