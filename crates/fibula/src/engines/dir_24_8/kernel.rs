//! The vector kernels: one gather a key, or two.

use core::sync::atomic::{Ordering, fence};

use crate::simd::{LANES, kernel};

use super::layout::SEGMENT;
use super::scalar::{LiveView, View};

kernel! {
    /// Looks up a block of keys. `DICTIONARY` says whether codes are translated into next hops.
    pub(super) fn block[const DICTIONARY: bool](
        view: &View<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
    )
    no icelake;
    vector op {
        let index_shift = op::count(view.index_shift);
        // The loads of all keys come first: they are independent, so the processor overlaps as many as it can.
        for (keys, entries) in keys.iter().zip(&mut *results) {
            let at = op::shr_by(op::load(keys), index_shift);
            op::store(entries, op::gather_halves(view.first, at));
        }
        let key_shift = op::count(view.key_shift);
        let (segment_bits, within) = (op::splat(view.segment_bits), op::splat((1 << view.segment_bits) - 1));
        let (flag, number) = (op::splat(SEGMENT.into()), op::splat((!SEGMENT).into()));
        for (keys, results) in keys.iter().zip(&mut *results) {
            let mut code = op::load(results);
            let divided = op::test(code, flag);
            // Rare on tables of prefixes up to /24.
            if op::bits(divided) != 0 {
                let segment = op::shlv(op::and(code, number), segment_bits);
                let at = op::or(segment, op::and(op::shr_by(op::load(keys), key_shift), within));
                code = op::select(divided, op::gather_halves_where(divided, view.segments, at), code);
                op::store(results, code);
            }
            if DICTIONARY {
                op::store(results, op::gather(view.next_hops, code));
            }
        }
    }
}

kernel! {
    /// Looks up a block of keys in tables that a writer may change. An entry is half of a word, and words are read whole.
    pub(super) fn live_block[const DICTIONARY: bool](
        view: &LiveView<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
    )
    no icelake;
    vector op {
        let index_shift = op::count(view.index_shift);
        let (one, half) = (op::splat(1), op::splat(0xffff));
        for (keys, entries) in keys.iter().zip(&mut *results) {
            let at = op::shr_by(op::load(keys), index_shift);
            let word = op::gather_cells(view.first, op::shr::<1>(at));
            op::store(entries, op::and(op::shrv(word, op::shl::<4>(op::and(at, one))), half));
        }
        // A writer publishes segments and codes by entries, so the entries are loaded before both.
        fence(Ordering::Acquire);
        let key_shift = op::count(view.key_shift);
        let span = 1 << view.segment_bits;
        let (segment_bits, within) = (op::splat(view.segment_bits), op::splat(span - 1));
        let (flag, number) = (op::splat(SEGMENT.into()), op::splat((!SEGMENT).into()));
        for (keys, results) in keys.iter().zip(&mut *results) {
            let mut code = op::load(results);
            let divided = op::test(code, flag);
            if op::bits(divided) != 0 {
                let segment = op::shlv(op::and(code, number), segment_bits);
                let at = op::or(segment, op::and(op::shr_by(op::load(keys), key_shift), within));
                // Lanes that are not divided load the first word, so that they do not miss the cache.
                let word = op::gather_cells(view.segments, op::keep(divided, op::shr::<1>(at)));
                let found = op::and(op::shrv(word, op::shl::<4>(op::and(at, one))), half);
                code = op::select(divided, found, code);
                op::store(results, code);
            }
            if DICTIONARY {
                op::store(results, op::gather_cells(view.next_hops, code));
            }
        }
    }
}
