//! Objects, for values that do not fit 16 bits.
//!
//! ```text
//! record:  | count, RECORD | next hop outside the prefixes |          then for each prefix
//!          | its last 64 bits, two words | shifts, the 16 bits before | next hop |
//! block:   | count, BLOCK | first piece |                             pieces, elsewhere and sorted:
//!          | its last lower part, 80 bits in three words | next hop |
//! ```
//!
//! A next hop from 2^15 on is a record without prefixes. The shifts of a prefix remove the bits after it from the
//! difference between it and a key. There are two of 6 bits for the last 64 bits, because together they can be 64, and one of
//! 4 bits for the 16 bits before.

use core::sync::atomic::AtomicU32;

use crate::fib::parts::intervals::Blocks;
use crate::memory::{Budget, Buffer, Cell, OutOfMemory};

use super::layout::{OBJECT_WORDS, kind};

/// Most prefixes of a record.
pub(super) const PREFIXES: usize = 8;

/// Units of a prefix, and of a piece.
pub(super) const PART_UNITS: usize = 2;

/// Most bits of a lower part.
const LOWER_BITS: u32 = 80;

/// Returns the units of the object in a unit, without the pieces of a block.
///
/// # Panics
/// When there is no such unit.
pub(in crate::engines) fn units(objects: &[AtomicU32], unit: usize) -> usize {
    let head = objects[unit * OBJECT_WORDS].read();
    let is_record = head % (1 << kind::BITS) == kind::RECORD;
    1 + if is_record { PART_UNITS * (head >> kind::BITS) as usize } else { 0 }
}

/// Returns the next hop of a lower part by the object in a unit, 0 for no route.
pub(super) fn find(objects: &[AtomicU32], unit: usize, lower: u128) -> u32 {
    let words = &objects[unit * OBJECT_WORDS..];
    let (head, second) = (words[0].read(), words[1].read());
    let count = (head >> kind::BITS) as usize;
    if head % (1 << kind::BITS) == kind::RECORD {
        find_in_record(&words[OBJECT_WORDS..], count, second, lower)
    } else {
        find_in_block(objects, second as usize, count, lower)
    }
}

#[inline(always)]
fn find_in_record(words: &[AtomicU32], count: usize, around: u32, lower: u128) -> u32 {
    let (before, last) = ((lower >> 64) as u32, lower as u64);
    let mut found = around;
    for prefix in words.as_chunks::<4>().0.iter().take(count) {
        let its_last = u64::from(prefix[0].read()) | u64::from(prefix[1].read()) << 32;
        let rest = prefix[2].read();
        let shift = |at: u32, bits: u32| rest >> (16 + at) & ((1 << bits) - 1);
        let differs = (last ^ its_last) >> shift(0, 6) >> shift(6, 6)
            | u64::from((before ^ rest & 0xffff) >> shift(12, 4));
        // At most one prefix matches, because they do not overlap. A branch would be mispredicted.
        found = core::hint::select_unpredictable(differs == 0, prefix[3].read(), found);
    }
    found
}

fn find_in_block(objects: &[AtomicU32], first: usize, count: usize, lower: u128) -> u32 {
    let pieces = &objects[first * OBJECT_WORDS..].as_chunks::<4>().0[..count];
    let at = pieces.partition_point(|piece| end_of(piece) < lower);
    // The last piece ends at the last lower part, so there is always one.
    pieces[at][3].read()
}

/// Returns the last lower part of a piece.
pub(super) fn end_of(piece: &[AtomicU32; 4]) -> u128 {
    [2, 1, 0].iter().fold(0, |end, &word| end << 32 | u128::from(piece[word].read()))
}

/// Returns the shifts of a prefix with `open_bits` bits after it, in their places above the 16 bits before.
fn shifts(open_bits: u32) -> u32 {
    let last = open_bits.min(64);
    let (first_half, second_half) = (last / 2, last - last / 2);
    (first_half | second_half << 6 | (open_bits - last) << 12) << 16
}

/// A record under construction: a head and its prefixes.
pub(super) struct ObjectRecord {
    words: [u32; OBJECT_WORDS * (1 + PART_UNITS * PREFIXES)],
    count: usize,
}

impl ObjectRecord {
    /// Returns a record without prefixes.
    pub(super) fn whole(next_hop: u32) -> Self {
        let mut words = [0; OBJECT_WORDS * (1 + PART_UNITS * PREFIXES)];
        (words[0], words[1]) = (kind::RECORD, next_hop);
        Self { words, count: 0 }
    }

    /// Returns a record with the same answers as a block, if there is one.
    pub(super) fn of(blocks: &Blocks<u128>, block: usize) -> Option<Self> {
        let pieces = blocks.pieces(block);
        let (ends, next_hops) = (&blocks.ends[pieces.clone()], &blocks.next_hops[pieces]);
        // A record has one next hop outside its prefixes: the one before the first prefix, or the one after the last.
        [next_hops[0], next_hops[next_hops.len() - 1]].into_iter().find_map(|around| {
            let mut record = Self::whole(around);
            let mut first = 0u128;
            ends.iter()
                .zip(next_hops)
                .all(|(&end, &next_hop)| {
                    let start = core::mem::replace(&mut first, end + 1);
                    next_hop == around || record.push(start, end, next_hop)
                })
                .then_some(record)
        })
    }

    /// Adds a range, if it is a prefix and there is room.
    fn push(&mut self, start: u128, end: u128, next_hop: u32) -> bool {
        let open_bits = (end - start + 1).trailing_zeros();
        let is_prefix = end - start + 1 == 1 << open_bits && start.trailing_zeros() >= open_bits;
        // The shifts remove 79 bits at most.
        if !is_prefix || open_bits >= LOWER_BITS || self.count == PREFIXES {
            return false;
        }
        let at = OBJECT_WORDS * (1 + PART_UNITS * self.count);
        let words = [start as u32, (start >> 32) as u32, (start >> 64) as u32 | shifts(open_bits), next_hop];
        self.words[at..at + words.len()].copy_from_slice(&words);
        self.count += 1;
        self.words[0] = kind::RECORD | (self.count as u32) << kind::BITS;
        true
    }

    /// Returns its words.
    pub(super) fn words(&self) -> &[u32] {
        &self.words[..OBJECT_WORDS * (1 + PART_UNITS * self.count)]
    }
}

/// Returns the words of a block with `count` pieces from a unit on.
pub(super) fn block_head(count: u32, pieces: u32) -> [u32; OBJECT_WORDS] {
    [kind::BLOCK | count << kind::BITS, pieces]
}

/// Appends the pieces of a block.
pub(super) fn push_pieces(
    blocks: &Blocks<u128>,
    block: usize,
    words: &mut Buffer<u32>,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    let pieces = blocks.pieces(block);
    budget.reserve(words, pieces.len() * PART_UNITS * OBJECT_WORDS)?;
    for piece in pieces {
        let end = blocks.ends[piece];
        words.extend_from_slice(&[
            end as u32,
            (end >> 32) as u32,
            (end >> 64) as u32,
            blocks.next_hops[piece],
        ]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a record of ranges that begin at these lower parts, the first one at 0.
    fn record(starts: &[(u128, u32)]) -> Option<Vec<AtomicU32>> {
        let blocks = blocks(starts);
        ObjectRecord::of(&blocks, 0)
            .map(|record| record.words().iter().copied().map(AtomicU32::new).collect())
    }

    fn blocks(starts: &[(u128, u32)]) -> Blocks<u128> {
        let mut blocks = Blocks::default();
        blocks.first.push(0);
        let last = (1 << LOWER_BITS) - 1;
        for (at, &(_, next_hop)) in starts.iter().enumerate() {
            blocks.ends.push(starts.get(at + 1).map_or(last, |&(start, _)| start - 1));
            blocks.next_hops.push(next_hop);
        }
        blocks
    }

    #[test]
    fn prefixes_of_every_length_are_told_from_what_is_around_them() {
        for open_bits in 0..LOWER_BITS {
            let size = 1u128 << open_bits;
            for start in [0, size, 0x5555_5555_5555_5555_5555 >> open_bits << open_bits, (1 << 80) - size] {
                let mut starts = vec![(0, 1), (start, 2), (start + size, 1)];
                starts.dedup_by(|later, earlier| {
                    later.0 == earlier.0 && {
                        earlier.1 = later.1;
                        true
                    }
                });
                starts.retain(|&(start, _)| start < 1 << 80);
                let record = record(&starts).unwrap();
                for (key, expected) in [
                    (start, 2),
                    (start + size - 1, 2),
                    (start ^ (size / 2), 2),
                    (start.wrapping_sub(1) & ((1 << 80) - 1), 1),
                    ((start + size) & ((1 << 80) - 1), 1),
                ] {
                    assert_eq!(find(&record, 0, key), expected, "{open_bits} {start:x} {key:x}");
                }
            }
        }
    }

    #[test]
    fn prefixes_side_by_side_fit_and_what_does_not_is_a_block() {
        let side_by_side = |count: u128| {
            let around = |at: u128| [(at << 8 | 1, 10 + at as u32), (at << 8 | 2, 0)];
            core::iter::once((0, 0)).chain((1..=count).flat_map(around)).collect::<Vec<_>>()
        };
        for count in 1..=PREFIXES as u128 {
            let record = record(&side_by_side(count)).unwrap();
            for at in 1..=count {
                assert_eq!(find(&record, 0, at << 8 | 1), 10 + at as u32);
                assert_eq!(find(&record, 0, at << 8 | 2), 0);
            }
        }
        let many = side_by_side(PREFIXES as u128 + 1);
        assert!(record(&many).is_none());
        // An interval of three addresses is not a prefix, so a record cannot hold it.
        assert!(record(&[(0, 1), (4, 2), (7, 1)]).is_none());
        assert!(record(&[(0, 1), (4, 2), (5, 3), (6, 2), (9, 1)]).is_none());

        let mut budget = Budget::default();
        let mut words = budget.buffer(2).unwrap();
        words.extend_from_slice(&[kind::BLOCK | (many.len() as u32) << kind::BITS, 1]);
        push_pieces(&blocks(&many), 0, &mut words, &mut budget).unwrap();
        let words: Vec<_> = words.iter().copied().map(AtomicU32::new).collect();
        for (at, &(start, next_hop)) in many.iter().enumerate() {
            let last = many.get(at + 1).map_or((1 << LOWER_BITS) - 1, |&(next, _)| next - 1);
            for key in [start, last] {
                assert_eq!(find(&words, 0, key), next_hop, "{key:x}");
            }
        }
    }
}
