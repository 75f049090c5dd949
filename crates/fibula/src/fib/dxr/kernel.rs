//! The branch-free search of many keys at once, eight a vector, in stages over a block.

use crate::fib::parts::lanes::BLOCK;
use crate::simd::{LANES, Present, kernel};

use super::layout::{SHORT, SHORT_CODE_BITS};
use super::scalar::View;

/// Keys of a block.
const KEYS: usize = BLOCK * LANES;

/// Vectors that are searched in step: their loads do not wait for each other.
const GROUP: usize = 4;

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
    view: View<'_>,
    keys: &[[u32; LANES]],
    results: &mut [[u32; LANES]],
) {
    let mut queue = Queue { entries: [0; KEYS], sizes: [0; KEYS], keys: [0; KEYS], count: 0 };
    decide::<WIDE>(isa, view, keys, results, &mut queue);
    let groups = queue.count / (GROUP * LANES) * GROUP;
    search::<WIDE, GROUP>(isa, view, &queue, 0, groups, results.as_flattened_mut());
    search::<WIDE, 1>(isa, view, &queue, groups, queue.count.div_ceil(LANES), results.as_flattened_mut());
    if !WIDE {
        translate(isa, view, results);
    }
}

kernel! {
    /// Reads the direct entries, writes what they answer (next hops, or codes of them) and queues the other keys.
    fn decide[const WIDE: bool](
        view: View<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
        queue: &mut Queue,
    )
    vector op {
        let Queue { entries, sizes, keys: queued, count } = queue;
        let index_shift = op::count(view.index_shift);
        // The loads of all keys first: none waits for another, so that the processor has many under way.
        for ((keys, words), sizes) in keys.iter().zip(&mut *results).zip(sizes.as_chunks_mut().0) {
            let at = op::shr_by(op::load(keys), index_shift);
            if WIDE {
                let low = op::shl::<1>(at);
                op::store(words, op::gather(view.direct, low));
                op::store(sizes, op::gather(view.direct, op::or(low, op::splat(1))));
            } else {
                op::store(words, op::gather(view.direct, at));
            }
        }
        let (key_shift, position_bits) = (op::count(view.key_shift), op::count(view.position_bits));
        let rest = op::splat((1 << view.rest) - 1);
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
            let low = op::and(op::shr_by(op::load(keys), key_shift), rest);
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
        view: View<'_>,
        queue: &Queue,
        first: usize,
        end: usize,
        results: &mut [u32],
    )
    vector op {
        let (zero, one) = (op::splat(0), op::splat(1));
        let dropped = op::count(view.dropped);
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
                    let position_bits = op::count(view.position_bits);
                    let short = op::sign(entry);
                    let size = op::shr_by(op::and(entry, op::splat(!SHORT)), position_bits);
                    let shift = op::splat(view.shift);
                    sizes[at] = op::shlv(op::add(size, op::splat(u32::from(view.shift == 0))), shift);
                    let position = op::and(entry, op::splat((1 << view.position_bits) - 1));
                    chunk = op::shlv(position, op::splat(view.shift + 1));
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
                    let before = op::up_to(op::gather_pairs(view.halves, middle), probes[at]);
                    found[at] = op::select(before, middle, found[at]);
                    sizes[at] = op::sub(sizes[at], half);
                }
            }
            for at in 0..GROUP {
                let found = op::add(found[at], one);
                let word = if WIDE {
                    op::gather(view.next_hops, found)
                } else {
                    // Of a unit's two halves, the second is a long entry's code; short entries are codes both.
                    let odd = op::and(found, one);
                    let unit = op::gather_pairs(view.halves, op::sub(found, odd));
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
    fn translate(view: View<'_>, results: &mut [[u32; LANES]])
    vector op {
        for codes in results {
            op::store(codes, op::gather(view.next_hops, op::load(codes)));
        }
    }
}
