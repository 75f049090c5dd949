//! The meaning of a number, packed into a word.

use super::blocks::BucketBlock;

/// The word of a number, as readers load it: a kind in the two highest bits, and 0 for numbers without a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HopWord(pub(super) u64);

/// The meaning of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Unknown,
    Withdrawn,
    /// The slot of the value.
    Hop(u32),
    Group(BucketBlock),
}

const KIND: u32 = 62;
const WITHDRAWN: u64 = 1;
const HOP: u64 = 2;
const GROUP: u64 = 3;
const SIZE: u32 = 32;

impl HopWord {
    pub(super) const UNKNOWN: Self = Self(0);
    pub(super) const WITHDRAWN: Self = Self(WITHDRAWN << KIND);

    pub(super) fn hop(slot: u32) -> Self {
        Self(HOP << KIND | u64::from(slot))
    }

    pub(super) fn group(block: BucketBlock) -> Self {
        Self(GROUP << KIND | u64::from(block.log2) << SIZE | u64::from(block.place))
    }

    #[inline]
    pub(super) fn meaning(self) -> Meaning {
        match self.0 >> KIND {
            HOP => Meaning::Hop(self.0 as u32),
            GROUP => Meaning::Group(BucketBlock { place: self.0 as u32, log2: (self.0 >> SIZE) as u8 }),
            WITHDRAWN => Meaning::Withdrawn,
            _ => Meaning::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_they_were_made_of() {
        let block = BucketBlock { place: u32::MAX - 7, log2: 16 };
        assert_eq!(HopWord::group(block).meaning(), Meaning::Group(block));
        assert_eq!(HopWord::hop(u32::MAX).meaning(), Meaning::Hop(u32::MAX));
        assert_eq!(HopWord::hop(0).meaning(), Meaning::Hop(0));
        assert_eq!(HopWord::WITHDRAWN.meaning(), Meaning::Withdrawn);
        assert_eq!(HopWord::UNKNOWN.meaning(), Meaning::Unknown);
    }
}
