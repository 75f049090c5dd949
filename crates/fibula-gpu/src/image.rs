//! The image of a table on a device: a header, then its arrays as they are in memory, found by offsets alone.
//!
//! `kernels/lookup.c` describes the header.

use core::ops::Range;

use fibula::memory::Words;
use fibula::net::Key;

use crate::error::GpuError;

/// Words of the header.
const HEADER: usize = 48;

/// Most arrays.
const ARRAYS: usize = 8;

/// The first number.
const NUMBERS: usize = 2 * ARRAYS;

/// Arrays and images begin at multiples of so many words: cache lines of 64 bytes.
const ALIGN: usize = 16;

/// A structure as devices know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engine {
    /// The name of the structure in the registry.
    pub name: &'static str,
    /// The function that looks up in it.
    pub(crate) kernel: &'static str,
    /// The words of a key: one, or four.
    pub(crate) key_words: usize,
    /// The numbers, in the order in which the function reads them.
    pub(crate) numbers: &'static [&'static str],
    /// The arrays, likewise. Listeners of live tables number them in this order.
    pub(crate) arrays: &'static [&'static str],
}

/// A table as a device has it. It can be uploaded to any place of the device's memory.
#[derive(Debug, Clone)]
pub struct Image {
    engine: &'static Engine,
    words: Vec<u32>,
    /// The room of each array.
    places: Vec<Range<usize>>,
}

impl Image {
    /// Returns an image without arrays.
    pub(crate) fn new(engine: &'static Engine, numbers: &[u32]) -> Self {
        let mut words = vec![0; HEADER];
        words[NUMBERS..][..numbers.len()].copy_from_slice(numbers);
        Self { engine, words, places: Vec::new() }
    }

    /// Returns the structure.
    #[must_use]
    pub fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// Returns the words, which are a multiple of a cache line.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Adds an array.
    pub(crate) fn push(&mut self, words: Words<'_>) -> Result<(), GpuError> {
        self.push_all(&[words])
    }

    /// Adds an array made of several.
    pub(crate) fn push_all(&mut self, parts: &[Words<'_>]) -> Result<(), GpuError> {
        let count = parts.iter().map(|&words| narrow_len(words)).sum();
        let first = self.open(count)?;
        let mut at = first;
        for &part in parts {
            narrow(part, &mut self.words[at..]);
            at += narrow_len(part);
        }
        Ok(())
    }

    /// Adds an array of zeros, and returns its place. An array has one word at least.
    pub(crate) fn open(&mut self, count: usize) -> Result<usize, GpuError> {
        let (first, count) = (self.words.len(), count.max(1));
        let end = (first + count).next_multiple_of(ALIGN);
        if u32::try_from(end).is_err() {
            return Err(GpuError::TooLarge { words: end as u64 });
        }
        let array = self.places.len();
        self.words.resize(end, 0);
        self.words[2 * array] = first as u32;
        self.words[2 * array + 1] = (count - 1) as u32;
        self.places.push(first..end);
        Ok(first)
    }

    /// Returns where an array is, with the room that it has.
    pub(crate) fn place(&self, array: usize) -> Option<Range<usize>> {
        self.places.get(array).cloned()
    }

    /// Makes the whole room of an array its length.
    pub(crate) fn widen(&mut self, array: usize) {
        self.words[2 * array + 1] = (self.places[array].len() - 1) as u32;
    }

    /// Returns the first numbers of the header.
    pub(crate) fn numbers(&self, count: usize) -> &[u32] {
        &self.words[NUMBERS..][..count]
    }

    /// Returns the words, to change them.
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }
}

/// Returns how many words of 32 bits these words take.
pub(crate) fn narrow_len(words: Words<'_>) -> usize {
    (words.len() * words.word_bytes()).div_ceil(size_of::<u32>())
}

/// Writes words as words of 32 bits, the lowest first.
pub(crate) fn narrow(words: Words<'_>, to: &mut [u32]) {
    match words.word_bytes() {
        2 => {
            for (at, half) in words.iter().enumerate() {
                let shift = 16 * (at % 2);
                to[at / 2] = to[at / 2] & !(0xffff << shift) | (half as u32) << shift;
            }
        }
        4 => to.iter_mut().zip(words.iter()).for_each(|(to, word)| *to = word as u32),
        _ => {
            for (to, word) in to.as_chunks_mut::<2>().0.iter_mut().zip(words.iter()) {
                *to = [word as u32, (word >> 32) as u32];
            }
        }
    }
}

/// Several images of one structure, one after the other, as one upload.
#[derive(Debug, Clone, Default)]
pub struct Images {
    pub(crate) engine: Option<&'static Engine>,
    pub(crate) words: Vec<u32>,
    /// Where each begins.
    pub(crate) bases: Vec<u32>,
}

impl From<Image> for Images {
    fn from(Image { engine, words, .. }: Image) -> Self {
        Self { engine: Some(engine), words, bases: vec![0] }
    }
}

impl Images {
    /// Adds an image.
    ///
    /// # Errors
    /// When all of them are too large together, or it is of another structure than those before.
    pub fn push(&mut self, image: &Image) -> Result<(), GpuError> {
        let words = self.words.len() + image.words.len();
        let base = u32::try_from(self.words.len()).map_err(|_| GpuError::TooLarge { words: words as u64 })?;
        if **self.engine.get_or_insert(image.engine) != *image.engine {
            let said = "they are of different structures".to_owned();
            return Err(GpuError::Failed { what: "join images", said });
        }
        self.words.extend_from_slice(&image.words);
        self.bases.push(base);
        Ok(())
    }
}

/// Writes keys in the words that an engine takes, one or four each: aligned to the left, the lowest word first.
pub fn put_keys<K: Key>(keys: &[K], key_words: usize, to: &mut [u32]) {
    let aligned = |key: &K| key.to_bits() << (128 - K::BITS);
    if key_words > 1 {
        for (key, to) in keys.iter().zip(to.as_chunks_mut::<4>().0) {
            let bits = aligned(key);
            *to = core::array::from_fn(|at| (bits >> (32 * at)) as u32);
        }
    } else if let Some(keys) = K::as_ipv4(keys) {
        to[..keys.len()].copy_from_slice(keys);
    } else {
        keys.iter().zip(to).for_each(|(key, to)| *to = (aligned(key) >> 96) as u32);
    }
}
