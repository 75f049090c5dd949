//! The branch-free search of many keys at once, eight a vector, in stages over a block.

use crate::fib::parts::lanes::BLOCK;
use crate::simd::{Halves, LANES, Present, Words, kernel};

use super::layout::{SHORT, SHORT_CODE_BITS};

/// Keys of a block.
const KEYS: usize = BLOCK * LANES;

/// Vectors that are searched in step: their loads do not wait for each other.
const GROUP: usize = 4;

/// What the kernels read, and where the parts of keys and entries are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes<'a> {
    /// Direct entries; of the wide format the low half of each, then the high one.
    pub(super) direct: Words<'a>,
    pub(super) halves: Halves<'a>,
    /// Next hop of each code; of the wide format, of each range.
    pub(super) next_hops: Words<'a>,
    /// Bits of a lane behind the index of the direct entry.
    pub(super) behind_index: u32,
    /// Bits of a lane behind the key.
    pub(super) behind_key: u32,
    /// Bits of the key behind the index.
    pub(super) rest: u32,
    /// Trailing bits of them that short entries do not store.
    pub(super) dropped: u32,
    /// Bits of a direct entry for the position.
    pub(super) position_bits: u32,
    /// Entries that sizes count by, as a power of two.
    pub(super) shift: u32,
}

/// Keys that the direct table does not answer, from the first of each array on.
struct Queue {
    /// Direct entries; of the wide format the low halves.
    entries: [u32; KEYS],
    /// High halves of the direct entries of the wide format.
    sizes: [u32; KEYS],
    /// The bits of the key behind the index, and in the lowest 8 bits the key's number in the block.
    keys: [u32; KEYS],
    count: usize,
}

const _: () = assert!(KEYS == 1 << 8, "a key's number takes 8 bits, beside 16 bits of the key");

/// Answers a block.
pub(super) fn block<const WIDE: bool>(
    isa: Present,
    lanes: Lanes<'_>,
    keys: &[[u32; LANES]],
    results: &mut [[u32; LANES]],
) {
    let mut queue = Queue { entries: [0; KEYS], sizes: [0; KEYS], keys: [0; KEYS], count: 0 };
    decide::<WIDE>(isa, lanes, keys, results, &mut queue);
    let groups = queue.count / (GROUP * LANES) * GROUP;
    search::<WIDE, GROUP>(isa, lanes, &queue, 0, groups, results.as_flattened_mut());
    search::<WIDE, 1>(isa, lanes, &queue, groups, queue.count.div_ceil(LANES), results.as_flattened_mut());
    if !WIDE {
        name(isa, lanes, results);
    }
}

kernel! {
    /// Reads the direct entries, writes what they answer (next hops, or codes of them) and queues the other keys.
    fn decide[const WIDE: bool](
        lanes: Lanes<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
        queue: &mut Queue,
    )
    vector op {
        let Queue { entries, sizes, keys: queued, count } = queue;
        let behind_index = op::count(lanes.behind_index);
        // The loads of all keys first: none waits for another, so that the processor has many under way.
        for ((keys, words), sizes) in keys.iter().zip(&mut *results).zip(sizes.as_chunks_mut().0) {
            let at = op::shr_by(op::load(keys), behind_index);
            if WIDE {
                let low = op::shl::<1>(at);
                op::store(words, op::gather(lanes.direct, low));
                op::store(sizes, op::gather(lanes.direct, op::or(low, op::splat(1))));
            } else {
                op::store(words, op::gather(lanes.direct, at));
            }
        }
        let (behind_key, position_bits) = (op::count(lanes.behind_key), op::count(lanes.position_bits));
        let rest = op::splat((1 << lanes.rest) - 1);
        let mut numbers = op::load(&core::array::from_fn(|lane| lane as u32));
        for (vector, (keys, words)) in keys.iter().zip(results).enumerate() {
            let entry = op::load(words);
            let size = if WIDE {
                op::load(&sizes.as_chunks().0[vector])
            } else {
                op::shr_by(entry, position_bits)
            };
            let here = op::eq(size, op::splat(0));
            let waiting = op::but(here, op::eq(size, size));
            let low = op::and(op::shr_by(op::load(keys), behind_key), rest);
            let key = op::or(op::shl::<8>(low), numbers);
            numbers = op::add(numbers, op::splat(LANES as u32));
            // No vector before this one filled more than its lanes: there is room, and what is read next is behind it.
            if let Some(to) = entries[*count..].first_chunk_mut() {
                op::store(to, op::compress(waiting, entry));
            }
            if let Some(to) = queued[*count..].first_chunk_mut() {
                op::store(to, op::compress(waiting, key));
            }
            if let (true, Some(to)) = (WIDE, sizes[*count..].first_chunk_mut()) {
                op::store(to, op::compress(waiting, size));
            }
            *count += op::bits(waiting).count_ones() as usize;
        }
    }
}

kernel! {
    /// Searches the chunks of the queued keys of some vectors, and writes next hops, or codes of them.
    fn search[const WIDE: bool, const GROUP: usize](
        lanes: Lanes<'_>,
        queue: &Queue,
        first: usize,
        end: usize,
        results: &mut [u32],
    )
    vector op {
        let (zero, one) = (op::splat(0), op::splat(1));
        let dropped = op::count(lanes.dropped);
        for group in (first..end).step_by(GROUP) {
            let (mut found, mut sizes, mut probes) = ([zero; GROUP], [zero; GROUP], [zero; GROUP]);
            let (mut strides, mut longest) = ([zero; GROUP], zero);
            for at in 0..GROUP {
                let entry = op::load(&queue.entries.as_chunks().0[group + at]);
                let low = op::shr::<8>(op::load(&queue.keys.as_chunks().0[group + at]));
                // Halves are read with the one before them, so that the last one needs none behind it.
                let chunk;
                if WIDE {
                    chunk = entry;
                    sizes[at] = op::add(op::load(&queue.sizes.as_chunks().0[group + at]), one);
                    probes[at] = low;
                } else {
                    let position_bits = op::count(lanes.position_bits);
                    let short = op::sign(entry);
                    let size = op::shr_by(op::and(entry, op::splat(!SHORT)), position_bits);
                    let shift = op::splat(lanes.shift);
                    sizes[at] = op::shlv(op::add(size, op::splat(u32::from(lanes.shift == 0))), shift);
                    let position = op::and(entry, op::splat((1 << lanes.position_bits) - 1));
                    chunk = op::shlv(position, op::splat(lanes.shift + 1));
                    let short_base = op::shl::<{ SHORT_CODE_BITS as i32 }>(op::shr_by(low, dropped));
                    probes[at] = op::select(short, op::or(short_base, op::splat(0xff)), low);
                    strides[at] = op::select(short, zero, one);
                }
                found[at] = op::sub(chunk, one);
                // The upper half decides.
                probes[at] = op::or(op::shl::<16>(probes[at]), op::splat(0xffff));
                longest = op::or(longest, op::sub(sizes[at], one));
            }
            for _ in 0..32 - op::union(longest).leading_zeros() {
                for at in 0..GROUP {
                    let half = op::shr::<1>(sizes[at]);
                    let step = if WIDE { half } else { op::shlv(half, strides[at]) };
                    let middle = op::add(found[at], step);
                    let before = op::up_to(op::gather_pairs(lanes.halves, middle), probes[at]);
                    found[at] = op::select(before, middle, found[at]);
                    sizes[at] = op::sub(sizes[at], half);
                }
            }
            for at in 0..GROUP {
                let found = op::add(found[at], one);
                let word = if WIDE {
                    op::gather(lanes.next_hops, found)
                } else {
                    // Of a unit's two halves, the second is a long entry's code; short entries are codes both.
                    let odd = op::and(found, one);
                    let unit = op::gather_pairs(lanes.halves, op::sub(found, odd));
                    let upper = op::shrv(unit, op::shl::<4>(op::or(odd, strides[at])));
                    let long = op::test(strides[at], one);
                    op::and(upper, op::select(long, op::splat(0xffff), op::splat(0xff)))
                };
                let mut words = [0; LANES];
                op::store(&mut words, word);
                let numbers = queue.keys[(group + at) * LANES..queue.count].iter().map(|key| key & 0xff);
                for (word, number) in words.into_iter().zip(numbers) {
                    results[number as usize] = word;
                }
            }
        }
    }
}

kernel! {
    /// Turns codes into next hops.
    fn name(lanes: Lanes<'_>, results: &mut [[u32; LANES]])
    vector op {
        for codes in results {
            op::store(codes, op::gather(lanes.next_hops, op::load(codes)));
        }
    }
}
