//! Parts of a column on several threads.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread;

use fibula::net::NextHop;

use crate::block::BLOCK;
use crate::error::ColumnError;
use crate::options::LookupCounts;

/// Fewest rows that are divided: fewer are looked up in less time than threads take to start.
const FEWEST: usize = 65_536;

/// Calls `part` for contiguous parts of the rows, each with its ids, on up to this many threads, and adds up the counts.
///
/// # Errors
/// The first error of a part.
pub(crate) fn in_parts(
    ids: &mut [Option<NextHop>],
    threads: usize,
    part: impl Fn(Range<usize>, &mut [Option<NextHop>]) -> Result<LookupCounts, ColumnError> + Sync,
) -> Result<LookupCounts, ColumnError> {
    let rows = ids.len();
    if threads <= 1 || rows < FEWEST {
        return part(0..rows, ids);
    }
    // Whole blocks, and no part that would be done before its thread has started.
    let threads = threads.min(rows.div_ceil(FEWEST / 4));
    let each = rows.div_ceil(threads).next_multiple_of(BLOCK);
    let parts = Mutex::new(ids.chunks_mut(each).enumerate());
    let work = || {
        let mut counts = LookupCounts::default();
        loop {
            // Taken in a statement of its own, which ends the lock.
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, ids)) = next else { return Ok(counts) };
            counts = counts.with(part(at * each..at * each + ids.len(), ids)?);
        }
    };
    thread::scope(|scope| {
        // A thread that cannot be started leaves its part to the others.
        let others: Vec<_> =
            (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let own = work();
        others.into_iter().fold(own, |counts, thread| {
            let more = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(counts?.with(more?))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_rows_once() {
        for (rows, threads, most) in
            [(0, 4, 1), (FEWEST - 1, 4, 1), (FEWEST, 4, 4), (FEWEST + 1, 3, 3), (200_000, 64, 13)]
        {
            let mut ids = vec![None; rows];
            let parts = Mutex::new(Vec::new());
            let counts = in_parts(&mut ids, threads, |rows, ids| {
                assert_eq!(rows.len(), ids.len());
                ids.fill(NextHop::new(1));
                let mut counts = LookupCounts::default();
                rows.clone().for_each(|row| counts.count(row));
                parts.lock().unwrap().push(rows);
                Ok(counts)
            });
            assert_eq!(counts, Ok(LookupCounts { invalid: rows, first_invalid: (rows > 0).then_some(0) }));
            assert!(ids.iter().all(Option::is_some));
            let mut parts = parts.into_inner().unwrap();
            parts.sort_by_key(|part| part.start);
            assert_eq!(parts.len(), most);
            let end = parts.iter().fold(0, |end, part| {
                assert_eq!(part.start, end);
                part.end
            });
            assert_eq!(end, rows);
        }
    }

    #[test]
    fn an_error_of_any_part_is_returned() {
        let mut ids = vec![None; FEWEST];
        let error = ColumnError::Memory { entries: 1 };
        let failed = in_parts(&mut ids, 2, |rows, _| {
            if rows.start == 0 { Ok(LookupCounts::default()) } else { Err(error.clone()) }
        });
        assert_eq!(failed, Err(error));
    }
}
