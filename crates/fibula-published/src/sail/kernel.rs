//! The vector kernel: one gather a key and level.

use fibula::unstable::simd::{LANES, kernel};

use super::layout::{CHUNK, LEVELS};
use super::scalar::View;

kernel! {
    /// Looks up a block of keys. `DICTIONARY` says whether codes are translated into next hops.
    pub(super) fn block[const DICTIONARY: bool](
        view: &View<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
    )
    vector op {
        // The loads of all keys come first: they are independent, so the processor overlaps as many as it can.
        let shift = op::count(view.shifts[0]);
        for (keys, entries) in keys.iter().zip(&mut *results) {
            op::store(entries, op::gather_halves(view.levels[0], op::shr_by(op::load(keys), shift)));
        }
        let (flag, number) = (op::splat(CHUNK.into()), op::splat((!CHUNK).into()));
        for level in 1..LEVELS {
            let shift = op::count(view.shifts[level]);
            let (bits, within) = (op::splat(view.bits[level]), op::splat((1 << view.bits[level]) - 1));
            for (keys, results) in keys.iter().zip(&mut *results) {
                let entry = op::load(results);
                let goes_on = op::test(entry, flag);
                // Few keys of a full table reach the last level.
                if op::bits(goes_on) != 0 {
                    let chunk = op::shlv(op::and(entry, number), bits);
                    let at = op::or(chunk, op::and(op::shr_by(op::load(keys), shift), within));
                    let found = op::gather_halves_where(goes_on, view.levels[level], at);
                    op::store(results, op::select(goes_on, found, entry));
                }
            }
        }
        if DICTIONARY {
            for results in &mut *results {
                op::store(results, op::gather(view.next_hops, op::load(results)));
            }
        }
    }
}
