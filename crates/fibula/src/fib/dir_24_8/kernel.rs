//! One gather, or two: eight keys side by side.

use crate::simd::{Halves, LANES, Words, kernel};

use super::layout::SEGMENT;

/// What the kernel reads, and where the parts of a key are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes<'a> {
    pub(super) first: Halves<'a>,
    pub(super) segments: Halves<'a>,
    /// Next hop of each code; of no use where codes are ids.
    pub(super) next_hops: Words<'a>,
    /// Bits of a lane behind those that select the first entry.
    pub(super) behind_leading: u32,
    /// Bits of a lane behind the key.
    pub(super) behind_key: u32,
    /// Bits of the key that select an entry of a segment.
    pub(super) rest: u32,
}

kernel! {
    /// Answers a block; `DICTIONARY` says whether codes are turned into next hops.
    pub(super) fn block[const DICTIONARY: bool](
        lanes: Lanes<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
    )
    vector op {
        let behind_leading = op::count(lanes.behind_leading);
        // The loads of all keys first: none waits for another, so that the processor has many under way.
        for (keys, entries) in keys.iter().zip(&mut *results) {
            let at = op::shr_by(op::load(keys), behind_leading);
            op::store(entries, op::gather_halves(lanes.first, at));
        }
        let behind_key = op::count(lanes.behind_key);
        let (rest, within) = (op::splat(lanes.rest), op::splat((1 << lanes.rest) - 1));
        let (flag, number) = (op::splat(SEGMENT.into()), op::splat((!SEGMENT).into()));
        for (keys, results) in keys.iter().zip(&mut *results) {
            let mut code = op::load(results);
            let divided = op::test(code, flag);
            // Rare on tables of prefixes up to /24.
            if op::bits(divided) != 0 {
                let segment = op::shlv(op::and(code, number), rest);
                let at = op::or(segment, op::and(op::shr_by(op::load(keys), behind_key), within));
                code = op::select(divided, op::gather_halves_where(divided, lanes.segments, at), code);
                op::store(results, code);
            }
            if DICTIONARY {
                op::store(results, op::gather(lanes.next_hops, code));
            }
        }
    }
}
