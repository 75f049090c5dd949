//! Allocates buckets to groups: blocks with a power of two of them, in an array that grows and never moves.

use core::sync::atomic::AtomicU32;

use crate::live::{SHIFT, Segments};
use crate::memory::{self, Budget, Memory, OutOfMemory};

use super::MOST_BUCKETS;

/// The buckets of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BucketBlock {
    /// The place of the first bucket.
    pub(super) place: u32,
    /// The number of buckets, as a power of two.
    pub(super) log2: u8,
}

impl BucketBlock {
    pub(super) fn len(self) -> u32 {
        1 << self.log2
    }
}

/// Sizes of blocks.
const SIZES: usize = MOST_BUCKETS.ilog2() as usize + 1;

/// The writer's lists of free blocks, by size. A block never changes its size, because the groups of a router have one size
/// or two.
#[derive(Debug, Default)]
pub(super) struct FreeBlocks {
    /// With room for all blocks of the size.
    free: [Vec<BucketBlock>; SIZES],
    /// Blocks of each size, free or not.
    made: [usize; SIZES],
    end: u32,
}

impl FreeBlocks {
    /// Takes a block, a free one of the size if there is one.
    ///
    /// # Errors
    /// When memory runs out, or all places of 32 bits are taken.
    pub(super) fn take(
        &mut self,
        log2: u8,
        buckets: &Segments<AtomicU32>,
        budget: &mut Budget,
    ) -> Result<BucketBlock, OutOfMemory> {
        let size = usize::from(log2);
        if let Some(block) = self.free[size].pop() {
            return Ok(block);
        }
        let full =
            OutOfMemory { wanted_bytes: 4 << log2, used_bytes: budget.used_bytes(), limit_bytes: None };
        // At a multiple of its length, so that it lies within a segment. The gap before it becomes smaller blocks.
        let from = u64::from(self.end) + SHIFT;
        let shifted = from.next_multiple_of(1 << log2);
        let end = u32::try_from(shifted - SHIFT + (1 << log2)).map_err(|_| full)?;
        buckets.reserve(end, budget, AtomicU32::default)?;
        let mut more = [0; SIZES];
        more[size] = 1;
        // Counted first, so that all lists have room before one of them changes.
        gaps(from, shifted, |gap| more[usize::from(gap.log2)] += 1);
        for ((free, made), more) in self.free.iter_mut().zip(self.made).zip(more) {
            budget.reserve(free, (made + more).saturating_sub(free.len()))?;
        }
        gaps(from, shifted, |gap| self.free[usize::from(gap.log2)].push(gap));
        self.made.iter_mut().zip(more).for_each(|(made, more)| *made += more);
        self.end = end;
        Ok(BucketBlock { place: (shifted - SHIFT) as u32, log2 })
    }

    /// Returns a block to the free list of its size.
    pub(super) fn give(&mut self, block: BucketBlock) {
        self.free[usize::from(block.log2)].push(block);
    }

    /// Returns all free blocks.
    pub(super) fn free(&self) -> impl Iterator<Item = BucketBlock> {
        self.free.iter().flatten().copied()
    }

    /// Returns the number of buckets of all blocks, free or not.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    pub(super) fn memory(&self) -> Memory {
        let allocated_bytes = self.free.iter().map(memory::allocated).sum();
        Memory { allocated_bytes, ..Memory::default() }
    }
}

/// Calls `each` with aligned blocks from one place up to another, both counted from [`SHIFT`].
fn gaps(mut from: u64, to: u64, mut each: impl FnMut(BucketBlock)) {
    while from < to {
        // The largest block that is aligned here and ends in time.
        let log2 = from.trailing_zeros().min((to - from).ilog2());
        each(BucketBlock { place: (from - SHIFT) as u32, log2: log2 as u8 });
        from += 1 << log2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_by_the_largest_aligned_blocks() {
        let blocks = |from, to| {
            let mut found = Vec::new();
            gaps(from, to, |block| found.push((u64::from(block.place) + SHIFT, block.log2)));
            found
        };
        assert_eq!(blocks(SHIFT, SHIFT), []);
        let far = SHIFT << 8;
        assert_eq!(blocks(far + 4, far + 12), [(far + 4, 2), (far + 8, 2)]);
        assert_eq!(blocks(far + 5, far + 16), [(far + 5, 0), (far + 6, 1), (far + 8, 3)]);
    }

    #[test]
    fn blocks_are_aligned_and_apart_and_come_back() {
        let (mut blocks, buckets, mut budget) = (FreeBlocks::default(), Segments::new(), Budget::default());
        let sizes = [0, 7, 3, 16, 1, 7, 10, 0, 16, 5];
        let taken: Vec<_> = sizes.map(|log2| blocks.take(log2, &buckets, &mut budget).unwrap()).into();
        let mut all: Vec<_> = taken.iter().copied().chain(blocks.free()).collect();
        all.sort_unstable();
        let mut end = 0;
        for block in all {
            assert_eq!(block.place, end, "blocks adjoin");
            assert_eq!((u64::from(block.place) + SHIFT) % u64::from(block.len()), 0);
            let last = block.place + block.len() - 1;
            assert!(buckets.get(block.place).is_some() && buckets.get(last).is_some());
            end += block.len();
        }
        assert_eq!(end, blocks.end());
        taken.iter().for_each(|&block| blocks.give(block));
        let again: Vec<_> = sizes.map(|log2| blocks.take(log2, &buckets, &mut budget).unwrap()).into();
        assert_eq!(blocks.end(), end);
        assert_eq!(again.len(), taken.len());
    }
}
