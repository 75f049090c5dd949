//! Records: upper parts with a few longer prefixes side by side over one next hop, mostly host routes.

use crate::fib::parts::intervals::Blocks;
use crate::memory::{Budget, Buffer, OutOfMemory};
use crate::simd;

/// Most prefixes of a record.
pub(super) const PREFIXES: usize = 8;

/// Most words of a record. As many words of padding follow the last record.
pub(super) const READ_WORDS: usize = 1 + 2 * PREFIXES;

/// Words that are fetched before a record is read: a record of four prefixes, in two cache lines.
const ASKED_WORDS: usize = 9;

/// Bits of a lower part: 16 and 64.
const LOWER_BITS: u32 = 80;

/// Records without gaps between them.
///
/// ```text
/// | next hop outside the prefixes, 32 bits | number of prefixes, 32 bits |      then for each prefix
/// | its last 64 bits | the 16 before | shifts: 6, 6, 4 bits | next hop, 32 bits |
/// ```
///
/// The shifts remove the bits after the prefix from the difference between it and a key: two for the last 64 bits,
/// which together are up to 64, and one for the 16 bits before.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    pub(super) words: Buffer<u64>,
}

/// Returns the shifts of a prefix with so many bits after it, in their places.
fn shifts(open_bits: u32) -> u64 {
    let last = open_bits.min(64);
    let (first_half, second_half) = (last / 2, last - last / 2);
    u64::from(first_half | second_half << 6 | (open_bits - last) << 12)
}

impl Records {
    /// Returns the next hop for a lower part in a record, 0 for no route. `place` is its first word.
    #[inline(always)]
    pub(super) fn find(&self, place: usize, lower: u128) -> u32 {
        let record: &[u64; READ_WORDS] =
            self.words[place..].first_chunk().expect("padding follows the records");
        let (before, last) = ((lower >> 64) as u64, lower as u64);
        let count = (record[0] >> 32) as usize;
        let mut found = record[0] as u32;
        // Most records have one prefix, and the words after it may be in a cache line that was not fetched.
        for prefix in record[1..].as_chunks::<2>().0.iter().take(count) {
            let [its_last, rest] = *prefix;
            let shift = |at: u32, bits: u32| rest >> (16 + at) & ((1 << bits) - 1);
            let differs =
                (last ^ its_last) >> shift(0, 6) >> shift(6, 6) | (before ^ (rest & 0xffff)) >> shift(12, 4);
            found = core::hint::select_unpredictable(differs == 0, (rest >> 32) as u32, found);
        }
        found
    }

    /// Fetches a record, or whatever is at that place, into the cache.
    #[inline(always)]
    pub(super) fn fetch(&self, place: usize) {
        simd::fetch(self.words.get(place..).and_then(|words| words.get(..ASKED_WORDS)).unwrap_or(&[]));
    }

    /// Appends a record without prefixes, and returns its place.
    pub(super) fn push_whole(&mut self, next_hop: u32, budget: &mut Budget) -> Result<usize, OutOfMemory> {
        let place = self.words.len();
        budget.push(&mut self.words, next_hop.into())?;
        Ok(place)
    }

    /// Appends a record for this block, if the block fits one, and returns its place.
    pub(super) fn push_block(
        &mut self,
        blocks: &Blocks<u128>,
        block: usize,
        budget: &mut Budget,
    ) -> Result<Option<usize>, OutOfMemory> {
        let pieces = blocks.pieces(block);
        let (ends, next_hops) = (&blocks.ends[pieces.clone()], &blocks.next_hops[pieces]);
        // A record has one next hop outside its prefixes: that before the first prefix, or that after the last.
        let around = [next_hops[0], next_hops[next_hops.len() - 1]];
        for around in around {
            let mut record = [0; READ_WORDS];
            let mut count = 0;
            let mut first = 0u128;
            let fits = ends.iter().zip(next_hops).all(|(&end, &next_hop)| {
                let start = core::mem::replace(&mut first, end + 1);
                if next_hop == around {
                    return true;
                }
                let open_bits = (end - start + 1).trailing_zeros();
                let is_prefix = end - start + 1 == 1 << open_bits && start.trailing_zeros() >= open_bits;
                if !is_prefix || open_bits >= LOWER_BITS || count == PREFIXES {
                    return false;
                }
                record[1 + 2 * count] = start as u64;
                record[2 + 2 * count] =
                    (start >> 64) as u64 | shifts(open_bits) << 16 | u64::from(next_hop) << 32;
                count += 1;
                true
            });
            if fits {
                record[0] = u64::from(around) | (count as u64) << 32;
                let place = self.words.len();
                budget.reserve(&mut self.words, 1 + 2 * count)?;
                self.words.extend_from_slice(&record[..1 + 2 * count]);
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Adds the padding.
    pub(super) fn finish(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        budget.reserve(&mut self.words, READ_WORDS)?;
        self.words.resize(self.words.len() + READ_WORDS, 0);
        budget.shrink(&mut self.words);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a record of ranges that begin at these lower parts, the first one at 0.
    fn record(starts: &[(u128, u32)]) -> (Records, Option<usize>) {
        let mut blocks = Blocks::default();
        blocks.first.push(0);
        let last = (1 << LOWER_BITS) - 1;
        for (at, &(_, next_hop)) in starts.iter().enumerate() {
            blocks.ends.push(starts.get(at + 1).map_or(last, |&(start, _)| start - 1));
            blocks.next_hops.push(next_hop);
        }
        let mut records = Records::default();
        let mut budget = Budget::default();
        let place = records.push_block(&blocks, 0, &mut budget).unwrap();
        records.finish(&mut budget).unwrap();
        (records, place)
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
                let (records, place) = record(&starts);
                let place = place.unwrap();
                for (key, expected) in [
                    (start, 2),
                    (start + size - 1, 2),
                    (start ^ (size / 2), 2),
                    (start.wrapping_sub(1) & ((1 << 80) - 1), 1),
                    ((start + size) & ((1 << 80) - 1), 1),
                ] {
                    assert_eq!(records.find(place, key), expected, "{open_bits} {start:x} {key:x}");
                }
            }
        }
    }

    #[test]
    fn prefixes_side_by_side_fit_and_what_does_not_is_refused() {
        let side_by_side = |count: u128| {
            let around = |at: u128| [(at << 8 | 1, 10 + at as u32), (at << 8 | 2, 0)];
            core::iter::once((0, 0)).chain((1..=count).flat_map(around)).collect::<Vec<_>>()
        };
        for count in 1..=PREFIXES as u128 {
            let (records, place) = record(&side_by_side(count));
            for at in 1..=count {
                assert_eq!(records.find(place.unwrap(), at << 8 | 1), 10 + at as u32);
                assert_eq!(records.find(place.unwrap(), at << 8 | 2), 0);
            }
        }
        assert_eq!(record(&side_by_side(PREFIXES as u128 + 1)).1, None);
        // Three addresses are not a prefix.
        assert_eq!(record(&[(0, 1), (4, 2), (7, 1)]).1, None);
        assert_eq!(record(&[(0, 1), (4, 2), (5, 3), (6, 2), (9, 1)]).1, None);
    }
}
