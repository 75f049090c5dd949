//! Words of an array that its writer may change, whatever their width.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use super::Cell;

/// Words of an array of a structure: of 16, 32 or 64 bits. Only the thread that changes the structure writes them.
#[derive(Clone, Copy)]
pub struct Words<'a>(Kind<'a>);

#[derive(Clone, Copy)]
enum Kind<'a> {
    Half(&'a [AtomicU16]),
    Narrow(&'a [AtomicU32]),
    Wide(&'a [AtomicU64]),
}

impl<'a> Words<'a> {
    /// Returns the number of words.
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            Kind::Half(words) => words.len(),
            Kind::Narrow(words) => words.len(),
            Kind::Wide(words) => words.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of a word: 2, 4 or 8.
    #[must_use]
    pub fn word_bytes(self) -> usize {
        match self.0 {
            Kind::Half(_) => size_of::<u16>(),
            Kind::Narrow(_) => size_of::<u32>(),
            Kind::Wide(_) => size_of::<u64>(),
        }
    }

    /// Returns the words in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        (0..self.len()).map(move |at| match self.0 {
            Kind::Half(words) => words[at].read().into(),
            Kind::Narrow(words) => words[at].read().into(),
            Kind::Wide(words) => words[at].read(),
        })
    }

    /// Writes the words to bytes, in the order of bytes of this machine.
    ///
    /// # Panics
    /// When `bytes` has another length than the words.
    pub fn copy_to(self, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.len() * self.word_bytes(), "bytes for each word");
        fn copy<C: Cell, const BYTES: usize>(words: &[C], bytes: &mut [u8], of: fn(C::Value) -> [u8; BYTES]) {
            for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                *to = of(word.read());
            }
        }
        match self.0 {
            Kind::Half(words) => copy(words, bytes, u16::to_ne_bytes),
            Kind::Narrow(words) => copy(words, bytes, u32::to_ne_bytes),
            Kind::Wide(words) => copy(words, bytes, u64::to_ne_bytes),
        }
    }

    /// Returns some of the words.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self(match self.0 {
            Kind::Half(words) => Kind::Half(&words[range]),
            Kind::Narrow(words) => Kind::Narrow(&words[range]),
            Kind::Wide(words) => Kind::Wide(&words[range]),
        })
    }
}

impl<'a> From<&'a [AtomicU16]> for Words<'a> {
    fn from(words: &'a [AtomicU16]) -> Self {
        Self(Kind::Half(words))
    }
}

impl<'a> From<&'a [AtomicU32]> for Words<'a> {
    fn from(words: &'a [AtomicU32]) -> Self {
        Self(Kind::Narrow(words))
    }
}

impl<'a> From<&'a [AtomicU64]> for Words<'a> {
    fn from(words: &'a [AtomicU64]) -> Self {
        Self(Kind::Wide(words))
    }
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
}
