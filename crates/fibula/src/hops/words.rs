//! The words that readers and the writer share, and how a number and a flow hash become a member.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::live::Segments;
use crate::net::NextHop;

use super::blocks::BucketBlock;
use super::word::{HopWord, Meaning};

/// Words and buckets. The writer stores to them while readers load from them.
#[derive(Debug)]
pub(super) struct HopWords {
    pub(super) words: Segments<AtomicU64>,
    pub(super) buckets: Segments<AtomicU32>,
}

/// The target of a number and a flow hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A next hop and the slot of its value.
    Hop(NextHop, u32),
    Withdrawn,
    Unknown,
}

impl HopWords {
    pub(super) fn new() -> Self {
        Self { words: Segments::new(), buckets: Segments::new() }
    }

    /// Returns the meaning of a number.
    #[inline]
    pub(super) fn meaning(&self, id: NextHop) -> Meaning {
        let word = self.words.get(id.id() - 1);
        HopWord(word.map_or(0, |word| word.load(Ordering::Acquire))).meaning()
    }

    /// Stores the meaning of a number, for which there must be room.
    pub(super) fn store(&self, id: NextHop, word: HopWord) {
        if let Some(to) = self.words.get(id.id() - 1) {
            // Release, because readers follow the word to a value or to buckets.
            to.store(word.0, Ordering::Release);
        }
    }

    /// Returns the member in a bucket of a block.
    #[inline]
    pub(super) fn bucket(&self, block: BucketBlock, at: u32) -> Option<NextHop> {
        NextHop::new(self.buckets.get(block.place + at)?.load(Ordering::Acquire))
    }

    pub(super) fn store_bucket(&self, block: BucketBlock, at: u32, member: NextHop) {
        if let Some(to) = self.buckets.get(block.place + at) {
            to.store(member.id(), Ordering::Release);
        }
    }

    /// Returns the target of a flow whose route has this number.
    #[inline]
    pub(super) fn resolve(&self, id: NextHop, flow_hash: u32) -> Target {
        match self.meaning(id) {
            Meaning::Hop(slot) => Target::Hop(id, slot),
            Meaning::Group(block) => self.member(block, flow_hash),
            Meaning::Withdrawn => Target::Withdrawn,
            Meaning::Unknown => Target::Unknown,
        }
    }

    #[inline]
    fn member(&self, block: BucketBlock, flow_hash: u32) -> Target {
        let at = bucket_of(flow_hash, block.log2);
        if let Some(member) = self.bucket(block, at)
            && let Meaning::Hop(slot) = self.meaning(member)
        {
            return Target::Hop(member, slot);
        }
        self.another(block, at)
    }

    /// Returns the member of the next bucket whose member is not withdrawn. It is needed only between the store that
    /// withdraws a member and the stores to its buckets.
    #[cold]
    fn another(&self, block: BucketBlock, at: u32) -> Target {
        for step in 1..block.len() {
            let at = (at + step) & (block.len() - 1);
            if let Some(member) = self.bucket(block, at)
                && let Meaning::Hop(slot) = self.meaning(member)
            {
                return Target::Hop(member, slot);
            }
        }
        Target::Withdrawn
    }
}

/// Returns the bucket of a flow. Hashes of few bits spread too, because the multiplier is 2^32 over the golden ratio (Knuth,
/// The Art of Computer Programming, volume 3, section 6.4), whose highest bits depend on all bits of the hash.
#[inline]
pub(super) fn bucket_of(flow_hash: u32, log2: u8) -> u32 {
    let spread = flow_hash.wrapping_mul(0x9e37_79b1);
    ((u64::from(spread) << log2) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_hashes_of_few_bits_spread_over_the_buckets() {
        for log2 in [0, 1, 6, 16] {
            assert!(bucket_of(u32::MAX, log2) < 1 << log2 && bucket_of(1, log2) < 1 << log2);
        }
        for shift in [0, 8, 16] {
            let mut buckets = [0; 64];
            (0..65_536_u32).for_each(|hash| buckets[bucket_of((hash & 0xffff) << shift, 6) as usize] += 1);
            assert!(buckets.iter().all(|&flows| (900..1150).contains(&flows)), "{shift}: {buckets:?}");
        }
    }
}
