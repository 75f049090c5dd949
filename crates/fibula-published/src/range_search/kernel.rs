//! The vector kernel: a block of IPv4 keys is compared with pivots that all lanes share, then searched by gathers.

use fibula::unstable::simd::{LANES, Words, kernel};

/// The largest number of ranges for which every start is compared with the keys. Comparing all lanes with one start
/// costs a third of a gather.
const FEW: usize = 64;

/// Parts into which pivots cut a larger table.
const PARTS: usize = 16;

/// Vectors that are compared with a pivot while it is in a register.
const TOGETHER: usize = 4;

kernel! {
    /// Looks up a block of keys. Both tables have one element a range.
    pub(super) fn block(
        starts: Words<'_>,
        next_hops: Words<'_>,
        keys: &[[u32; LANES]],
        found: &mut [[u32; LANES]],
    )
    vector op {
        let ranges = starts.slice();
        let part = if ranges.len() <= FEW { 1 } else { ranges.len().div_ceil(PARTS) };

        // Counts the pivots that each key has passed. With up to `FEW` ranges, that is the range already.
        let (groups, single) = keys.as_chunks::<TOGETHER>();
        let (found_groups, found_single) = found.as_chunks_mut::<TOGETHER>();
        for (keys, found) in groups.iter().zip(found_groups) {
            let keys = [op::load(&keys[0]), op::load(&keys[1]), op::load(&keys[2]), op::load(&keys[3])];
            let mut passed = [op::splat(0); TOGETHER];
            let mut at = part;
            while at < ranges.len() {
                let pivot = op::splat(ranges[at]);
                for (passed, key) in passed.iter_mut().zip(keys) {
                    *passed = op::increment(op::up_to(pivot, key), *passed);
                }
                at += part;
            }
            for (found, passed) in found.iter_mut().zip(passed) {
                op::store(found, passed);
            }
        }
        for (keys, found) in single.iter().zip(found_single) {
            let mut passed = op::splat(0);
            for &pivot in ranges.iter().step_by(part).skip(1) {
                passed = op::increment(op::up_to(op::splat(pivot), op::load(keys)), passed);
            }
            op::store(found, passed);
        }

        // A binary search within the part. The last part may be shorter than the others: an index past the end reads
        // the last range, and a key that has passed the start of that range belongs to it.
        if part > 1 {
            for found in &mut *found {
                // The product fits 32 bits, but a factor may not fit 16, so the lanes' 16-bit product will not do.
                *found = found.map(|passed| passed * part as u32);
            }
            let mut size = part;
            while size > 1 {
                let half = size / 2;
                for (keys, low) in keys.iter().zip(&mut *found) {
                    let middle = op::add(op::load(low), op::splat(half as u32));
                    let passed = op::up_to(op::gather(starts, middle), op::load(keys));
                    op::store(low, op::select(passed, middle, op::load(low)));
                }
                size -= half;
            }
        }
        for found in found {
            op::store(found, op::gather(next_hops, op::load(found)));
        }
    }
}
