//! Words of an array, whatever their width, which its writer may change.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use super::Cell;

/// Words of an array of a structure: of 8, 16, 32 or 64 bits. Only the thread that changes the structure writes them, if it can
/// change.
#[derive(Clone, Copy)]
pub struct Words<'a>(WordsRepr<'a>);

#[derive(Clone, Copy)]
enum WordsRepr<'a> {
    Byte(&'a [AtomicU8]),
    Half(&'a [AtomicU16]),
    Narrow(&'a [AtomicU32]),
    Wide(&'a [AtomicU64]),
    FixedByte(&'a [u8]),
    FixedHalf(&'a [u16]),
    FixedNarrow(&'a [u32]),
    FixedWide(&'a [u64]),
}

/// Calls `$each` with the words, of whichever kind.
macro_rules! of_kind {
    ($kind:expr, $words:ident => $each:expr) => {
        match $kind {
            WordsRepr::Byte($words) => $each,
            WordsRepr::Half($words) => $each,
            WordsRepr::Narrow($words) => $each,
            WordsRepr::Wide($words) => $each,
            WordsRepr::FixedByte($words) => $each,
            WordsRepr::FixedHalf($words) => $each,
            WordsRepr::FixedNarrow($words) => $each,
            WordsRepr::FixedWide($words) => $each,
        }
    };
}

impl<'a> Words<'a> {
    /// Returns the number of words.
    #[must_use]
    pub fn len(self) -> usize {
        of_kind!(self.0, words => words.len())
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a word: 1, 2, 4 or 8.
    #[must_use]
    pub fn word_bytes(self) -> usize {
        match self.0 {
            WordsRepr::Byte(_) | WordsRepr::FixedByte(_) => size_of::<u8>(),
            WordsRepr::Half(_) | WordsRepr::FixedHalf(_) => size_of::<u16>(),
            WordsRepr::Narrow(_) | WordsRepr::FixedNarrow(_) => size_of::<u32>(),
            WordsRepr::Wide(_) | WordsRepr::FixedWide(_) => size_of::<u64>(),
        }
    }

    /// Returns the words in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        (0..self.len()).map(move |at| match self.0 {
            WordsRepr::Byte(words) => words[at].read().into(),
            WordsRepr::Half(words) => words[at].read().into(),
            WordsRepr::Narrow(words) => words[at].read().into(),
            WordsRepr::Wide(words) => words[at].read(),
            WordsRepr::FixedByte(words) => words[at].into(),
            WordsRepr::FixedHalf(words) => words[at].into(),
            WordsRepr::FixedNarrow(words) => words[at].into(),
            WordsRepr::FixedWide(words) => words[at],
        })
    }

    /// Writes the words to bytes, in the order of bytes of this machine.
    ///
    /// # Panics
    /// When `bytes` has another length than the words.
    pub fn copy_to(self, bytes: &mut [u8]) {
        self.copy(bytes, u16::to_ne_bytes, u32::to_ne_bytes, u64::to_ne_bytes);
    }

    /// Writes the words to bytes, the lowest byte of each first.
    ///
    /// # Panics
    /// When `bytes` has another length than the words.
    pub(crate) fn copy_to_little_endian(self, bytes: &mut [u8]) {
        self.copy(bytes, u16::to_le_bytes, u32::to_le_bytes, u64::to_le_bytes);
    }

    fn copy(
        self,
        bytes: &mut [u8],
        half: fn(u16) -> [u8; 2],
        narrow: fn(u32) -> [u8; 4],
        wide: fn(u64) -> [u8; 8],
    ) {
        assert_eq!(bytes.len(), self.len() * self.word_bytes(), "bytes for each word");
        fn copy<C: Cell, const BYTES: usize>(words: &[C], bytes: &mut [u8], of: fn(C::Value) -> [u8; BYTES]) {
            for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                *to = of(word.read());
            }
        }
        match self.0 {
            WordsRepr::Byte(words) => copy(words, bytes, |byte| [byte]),
            WordsRepr::FixedByte(words) => copy(words, bytes, |byte| [byte]),
            WordsRepr::Half(words) => copy(words, bytes, half),
            WordsRepr::Narrow(words) => copy(words, bytes, narrow),
            WordsRepr::Wide(words) => copy(words, bytes, wide),
            WordsRepr::FixedHalf(words) => copy(words, bytes, half),
            WordsRepr::FixedNarrow(words) => copy(words, bytes, narrow),
            WordsRepr::FixedWide(words) => copy(words, bytes, wide),
        }
    }

    /// Returns some of the words.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self(match self.0 {
            WordsRepr::Byte(words) => WordsRepr::Byte(&words[range]),
            WordsRepr::FixedByte(words) => WordsRepr::FixedByte(&words[range]),
            WordsRepr::Half(words) => WordsRepr::Half(&words[range]),
            WordsRepr::Narrow(words) => WordsRepr::Narrow(&words[range]),
            WordsRepr::Wide(words) => WordsRepr::Wide(&words[range]),
            WordsRepr::FixedHalf(words) => WordsRepr::FixedHalf(&words[range]),
            WordsRepr::FixedNarrow(words) => WordsRepr::FixedNarrow(&words[range]),
            WordsRepr::FixedWide(words) => WordsRepr::FixedWide(&words[range]),
        })
    }
}

macro_rules! from {
    ($($word:ty, $kind:ident;)*) => {$(
        impl<'a> From<&'a [$word]> for Words<'a> {
            fn from(words: &'a [$word]) -> Self {
                Self(WordsRepr::$kind(words))
            }
        }
    )*};
}

from! {
    AtomicU8, Byte;
    AtomicU16, Half;
    AtomicU32, Narrow;
    AtomicU64, Wide;
    u8, FixedByte;
    u16, FixedHalf;
    u32, FixedNarrow;
    u64, FixedWide;
}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_widths_are_read_alike() {
        let bytes = [3, u8::MAX].map(AtomicU8::new);
        let (bytes, mut copied) = (Words::from(&bytes[..]), [0; 2]);
        bytes.copy_to(&mut copied);
        assert!(bytes.word_bytes() == 1 && bytes.part(1..2).iter().eq([0xff]) && copied == [3, 0xff]);
        assert!(Words::from(&[7_u8, 9][..]).part(1..2).iter().eq([9]));
        let half = [3, u16::MAX].map(AtomicU16::new);
        let half = Words::from(&half[..]);
        assert!(half.word_bytes() == 2 && half.part(0..2).iter().eq([3, 0xffff]));
        let mut bytes = [0; 4];
        half.copy_to(&mut bytes);
        assert_eq!(bytes, [3u16.to_ne_bytes(), [0xff; 2]].as_flattened());
        let (narrow, wide) = ([7, 1 << 31].map(AtomicU32::new), [5, 6, u64::MAX].map(AtomicU64::new));
        let (narrow, wide) = (Words::from(&narrow[..]), Words::from(&wide[..]));
        assert_eq!((narrow.len(), narrow.word_bytes(), wide.word_bytes()), (2, 4, 8));
        assert!(narrow.part(1..2).iter().eq([1 << 31]) && wide.part(1..3).iter().eq([6, u64::MAX]));
        assert!(wide.part(1..1).is_empty());
        let mut bytes = [0; 8];
        narrow.copy_to(&mut bytes);
        assert_eq!(bytes, [7u32.to_ne_bytes(), (1u32 << 31).to_ne_bytes()].as_flattened());
        wide.part(2..3).copy_to(&mut bytes);
        assert_eq!((bytes, format!("{narrow:?}")), ([0xff; 8], "[7, 2147483648]".to_owned()));
    }

    #[test]
    fn words_that_do_not_change_are_read_like_those_that_do() {
        let (half, narrow, wide) = ([3_u16, 4], [5_u32, 6], [7_u64, 1 << 60]);
        let all = [Words::from(&half[..]), Words::from(&narrow[..]), Words::from(&wide[..])];
        assert_eq!(all.map(Words::word_bytes), [2, 4, 8]);
        assert!(all.iter().all(|words| words.len() == 2 && words.part(1..2).len() == 1));
        let [of_half, of_narrow, of_wide] = all;
        assert!(of_half.iter().eq([3, 4]) && of_narrow.iter().eq([5, 6]) && of_wide.iter().eq([7, 1 << 60]));
        let mut bytes = [0; 8];
        of_wide.part(1..2).copy_to_little_endian(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0x10]);
        of_narrow.copy_to_little_endian(&mut bytes);
        assert_eq!(bytes, [5, 0, 0, 0, 6, 0, 0, 0]);
        let mut bytes = [0; 4];
        of_half.copy_to_little_endian(&mut bytes);
        assert_eq!(bytes, [3, 0, 4, 0]);
    }
}
