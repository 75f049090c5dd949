//! The vector kernels: the branch-free search of a block of keys in stages, eight keys a vector.

use core::sync::atomic::{Ordering, fence};

use fibula::unstable::memory::Cell;
use fibula::unstable::parts::lanes::BLOCK;
use fibula::unstable::simd::{LANES, Present, kernel};

use super::layout::{SHORT, SHORT_CODE_BITS};
use super::view::View;

/// Keys of a block.
const KEYS: usize = BLOCK * LANES;

/// Vectors that are searched in step, because their loads do not wait for each other.
const GROUP: usize = 4;

/// The keys that the direct table does not answer. The first `count` elements of each array are used.
struct Queue {
    /// Direct entries; in the wide format their low halves.
    entries: [u32; KEYS],
    /// High halves of the direct entries in the wide format.
    sizes: [u32; KEYS],
    /// The bits of the key after the index, and in the lowest 8 bits the number of the key in the block.
    keys: [u32; KEYS],
    count: usize,
}

const _: () = assert!(KEYS == 1 << 8, "the number of a key takes 8 bits, next to 16 bits of the key");

/// Looks up a block of keys.
pub(super) fn block<const WIDE: bool, const LIVE: bool>(
    isa: Present,
    view: &View<'_>,
    keys: &[[u32; LANES]],
    results: &mut [[u32; LANES]],
) {
    let mut queue = Queue { entries: [0; KEYS], sizes: [0; KEYS], keys: [0; KEYS], count: 0 };
    decide::<WIDE, LIVE>(isa, view, keys, results, &mut queue);
    let groups = queue.count / (GROUP * LANES) * GROUP;
    search::<WIDE, LIVE, GROUP>(isa, view, &queue, 0, groups, results.as_flattened_mut());
    search::<WIDE, LIVE, 1>(
        isa,
        view,
        &queue,
        groups,
        queue.count.div_ceil(LANES),
        results.as_flattened_mut(),
    );
    if !WIDE {
        translate::<LIVE>(isa, view, results);
    }
}

kernel! {
    /// Reads the direct entries, writes their answers (next hops, or codes of them) and queues the other keys.
    fn decide[const WIDE: bool, const LIVE: bool](
        view: &View<'_>,
        keys: &[[u32; LANES]],
        results: &mut [[u32; LANES]],
        queue: &mut Queue,
    )
    vector op {
        let Queue { entries, sizes, keys: queued, count } = queue;
        let index_shift = op::count(view.index_shift);
        // The loads of all keys come first: they are independent, so the processor overlaps as many as it can.
        for ((keys, words), sizes) in keys.iter().zip(&mut *results).zip(sizes.as_chunks_mut().0) {
            let at = op::shr_by(op::load(keys), index_shift);
            if WIDE && LIVE {
                // Both halves of an entry are of one load.
                let mut places = [0; LANES];
                op::store(&mut places, at);
                for ((place, word), size) in places.into_iter().zip(words).zip(sizes) {
                    let entry = view.live.wide[place as usize].read();
                    (*word, *size) = (entry as u32, (entry >> 32) as u32);
                }
            } else if WIDE {
                let low = op::shl::<1>(at);
                op::store(words, op::gather(view.built.direct, low));
                op::store(sizes, op::gather(view.built.direct, op::or(low, op::splat(1))));
            } else if LIVE {
                op::store(words, op::gather_cells(view.live.direct, at));
            } else {
                op::store(words, op::gather(view.built.direct, at));
            }
        }
        if LIVE {
            // A writer publishes a chunk by its direct entry.
            fence(Ordering::Acquire);
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
            // All lanes are stored, but only the waiting ones are counted. No earlier vector took more than its lanes,
            // so there is room, and `sizes` is overwritten only where it has been read already.
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
    /// Searches the chunks of the queued keys in vectors `first` to `end`, and writes next hops, or codes of them.
    fn search[const WIDE: bool, const LIVE: bool, const GROUP: usize](
        view: &View<'_>,
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
                // A half is read together with the one before it, so that nothing needs to follow the last one.
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
                // The half of interest is the upper one of the pair; the lower one must not decide.
                probes[at] = op::or(op::shl::<16>(probes[at]), op::splat(0xffff));
                longest = op::or(longest, op::sub(sizes[at], one));
            }
            // As many steps as the largest chunk needs; a chunk with one entry left stays where it is.
            for _ in 0..32 - op::union(longest).leading_zeros() {
                for at in 0..GROUP {
                    let half = op::shr::<1>(sizes[at]);
                    let step = if WIDE { half } else { op::shlv(half, strides[at]) };
                    let middle = op::add(found[at], step);
                    let pair = if LIVE {
                        // The half of interest is the one after the middle: the upper one of its word, or moved there.
                        let half = op::add(middle, one);
                        let word = op::gather_cells(view.live.halves, op::shr::<1>(half));
                        op::shlv(word, op::shl::<4>(op::only(half, one)))
                    } else {
                        op::gather_pairs(view.built.halves, middle)
                    };
                    let before = op::up_to(pair, probes[at]);
                    found[at] = op::select(before, middle, found[at]);
                    sizes[at] = op::sub(sizes[at], half);
                }
            }
            for at in 0..GROUP {
                let found = op::add(found[at], one);
                let word = if WIDE && LIVE {
                    op::gather_cells(view.live.next_hops, found)
                } else if WIDE {
                    op::gather(view.built.next_hops, found)
                } else {
                    // In a unit of two halves, the second one is the code of a long entry; both halves of short entries
                    // contain a code.
                    let odd = op::and(found, one);
                    let unit = if LIVE {
                        op::gather_cells(view.live.halves, op::shr::<1>(found))
                    } else {
                        op::gather_pairs(view.built.halves, op::sub(found, odd))
                    };
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
    /// Translates codes into next hops.
    fn translate[const LIVE: bool](view: &View<'_>, results: &mut [[u32; LANES]])
    vector op {
        for codes in results {
            let at = op::load(codes);
            let words =
                if LIVE { op::gather_cells(view.live.next_hops, at) } else { op::gather(view.built.next_hops, at) };
            op::store(codes, words);
        }
    }
}
