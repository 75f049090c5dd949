//! A counting Bloom filter: bits for lookups, and beside them a counter for each bit so that entries can be removed.

use fibula::unstable::memory::{self, Budget, Buffer, Memory, OutOfMemory};

use super::divisor::Divisor;
use super::hash::Sequence;
use super::sizes::Ratio;

/// A counter's highest value. A counter that has reached it is never decremented, because it may have missed increments:
/// its bit stays set, which costs false positives but no entry.
pub(crate) const SATURATED: u8 = 15;

/// Bits of a word.
pub(super) const WORD: u32 = u32::BITS;

/// A filter, sized for a number of entries.
#[derive(Debug)]
pub(crate) struct Filter {
    /// A bit is set while its counter is not 0.
    pub(crate) bits: Buffer<u32>,
    /// Two counters of four bits in each byte.
    counters: Buffer<u8>,
    /// The number of bits.
    pub(crate) size: Divisor,
    /// The number of hashes of an entry.
    pub(crate) hashes: u32,
}

impl Filter {
    /// Returns a filter that takes no memory and has nothing.
    pub(crate) fn none() -> Self {
        Self { bits: Buffer::new(), counters: Buffer::new(), size: Divisor::new(1), hashes: 0 }
    }

    /// Returns an empty filter for so many entries.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn new(entries: usize, ratio: Ratio, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        // A remainder is of 32 bits. Only a ratio of a few percent comes near, with more entries than a table may have.
        let size = ratio.bits(entries as u64).min(u32::MAX.into()) as u32;
        let (words, bytes) = (size.div_ceil(WORD) as usize, size.div_ceil(2) as usize);
        let mut bits = budget.buffer(words)?;
        let mut counters = match budget.buffer(bytes) {
            Ok(counters) => counters,
            Err(error) => {
                budget.free(bits);
                return Err(error);
            }
        };
        bits.resize(words, 0);
        counters.resize(bytes, 0);
        Ok(Self { bits, counters, size: Divisor::new(size), hashes: ratio.hashes() })
    }

    /// Returns whether a hash leads to a set bit.
    #[inline]
    pub(crate) fn has(&self, hash: u32) -> bool {
        let at = self.size.remainder(hash);
        self.bits[(at / WORD) as usize] >> (at % WORD) & 1 != 0
    }

    /// Counts an entry.
    pub(crate) fn insert(&mut self, sequence: &mut impl Sequence) {
        for _ in 0..self.hashes {
            let at = self.size.remainder(sequence.next());
            let (counter, shift) = self.counter(at);
            if *counter >> shift & SATURATED != SATURATED {
                *counter += 1 << shift;
            }
            self.bits[(at / WORD) as usize] |= 1 << (at % WORD);
        }
    }

    /// Counts an entry no more, which was counted.
    pub(crate) fn remove(&mut self, sequence: &mut impl Sequence) {
        for _ in 0..self.hashes {
            let at = self.size.remainder(sequence.next());
            let (counter, shift) = self.counter(at);
            let count = *counter >> shift & SATURATED;
            // An entry that leads to a bit twice was counted twice there.
            if count != SATURATED && count > 0 {
                *counter -= 1 << shift;
                if count == 1 {
                    self.bits[(at / WORD) as usize] &= !(1 << (at % WORD));
                }
            }
        }
    }

    /// Returns the byte of a counter, and how far the counter is shifted in it.
    fn counter(&mut self, at: u32) -> (&mut u8, u32) {
        (&mut self.counters[(at / 2) as usize], at % 2 * 4)
    }

    /// Returns the count of a bit.
    pub(crate) fn count(&self, at: u32) -> u8 {
        self.counters[(at / 2) as usize] >> (at % 2 * 4) & SATURATED
    }

    /// Returns the memory. Lookups do not read the counters.
    pub(crate) fn memory(&self) -> Memory {
        memory::of(&self.bits) + Memory { lookup_bytes: 0, ..memory::of(&self.counters) }
    }

    /// Frees the memory.
    pub(crate) fn free(self, budget: &mut Budget) {
        budget.free(self.bits);
        budget.free(self.counters);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::Combined;
    use super::*;

    fn sequence(next: u32, step: u32) -> Combined {
        Combined { next, step }
    }

    fn has(filter: &Filter, mut hashes: Combined) -> bool {
        (0..filter.hashes).all(|_| filter.has(hashes.next()))
    }

    #[test]
    fn entries_are_removed_without_losing_others() {
        let mut filter = Filter::new(100, Ratio::percent(10), &mut Budget::default()).unwrap();
        assert_eq!((filter.size.size, filter.hashes), (480, 4));
        // Both lead to bit 7; the first leads there four times.
        let (four, one) = (sequence(7, 480), sequence(7, 1));
        filter.insert(&mut four.clone());
        filter.insert(&mut one.clone());
        assert_eq!([7, 8, 10, 11].map(|at| filter.count(at)), [5, 1, 1, 0]);
        filter.remove(&mut four.clone());
        assert!(has(&filter, one) && has(&filter, four));
        filter.remove(&mut one.clone());
        assert!(!has(&filter, one) && filter.bits.iter().all(|&word| word == 0));
    }

    #[test]
    fn a_counter_that_may_have_missed_increments_stays() {
        let mut filter = Filter::new(100, Ratio::percent(60), &mut Budget::default()).unwrap();
        assert_eq!(filter.hashes, 1);
        let (saturated, beside) = (sequence(20, 0), sequence(21, 0));
        for _ in 0..20 {
            filter.insert(&mut saturated.clone());
        }
        filter.insert(&mut beside.clone());
        assert_eq!((filter.count(20), filter.count(21)), (SATURATED, 1));
        for _ in 0..20 {
            filter.remove(&mut saturated.clone());
        }
        filter.remove(&mut beside.clone());
        assert!(has(&filter, saturated) && !has(&filter, beside));
        assert_eq!((filter.count(20), filter.count(21)), (SATURATED, 0));
    }
}
