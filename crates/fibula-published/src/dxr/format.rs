//! The live formats, as their writer changes them.

use core::fmt::Debug;
use core::sync::atomic::{AtomicU32, Ordering};

use fibula::unstable::memory::{Budget, Buffer, Cell, Memory, OutOfMemory, Word, Words};
use fibula::unstable::parts::units::Unit;

use super::entries::Entries;
use super::geometry::Geometry;
use super::layout::HALVES;
use super::sweep::Swept;
use super::view::Viewed;

/// Entries of the smallest unit of the wide format.
pub(super) const PAIR: usize = 2;

/// The words of a chunk that is about to be written.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    /// Halves of whole words.
    pub(super) halves: Buffer<u16>,
    /// Next hops, in the wide format.
    pub(super) next_hops: Vec<u32>,
}

impl Encoded {
    /// Writes down so many ranges of the wide format, padded to a whole place.
    pub(super) fn set(
        &mut self,
        count: usize,
        ranges: impl Iterator<Item = (u16, u32)>,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let padded = count.next_multiple_of(PAIR);
        self.halves.truncate(0);
        self.next_hops.clear();
        budget.reserve(&mut self.halves, padded)?;
        budget.reserve(&mut self.next_hops, padded)?;
        for (base, next_hop) in ranges {
            self.halves.push(base);
            self.next_hops.push(next_hop);
        }
        self.halves.resize(padded, 0);
        self.next_hops.resize(padded, 0);
        Ok(())
    }
}

/// A format whose arrays one writer changes while readers look. Places count the smallest units that chunks have.
pub(super) trait Changing:
    Entries<Direct: Into<u64> + PartialEq + Debug + Send + Sync> + Viewed + Debug + Send + Sync + Sized + 'static
{
    /// Elements of the array of direct entries.
    type Cell: Word;

    /// Whether next hops have codes, by which they are in an array of their own.
    const CODED: bool;

    /// Returns another handle to the arrays.
    fn another(&mut self) -> Self;

    /// Returns a copy of the direct entries.
    fn copied(&self, budget: &mut Budget) -> Result<Buffer<Self::Cell>, OutOfMemory>;

    /// Takes other direct entries.
    fn replace_direct(&mut self, direct: Buffer<Self::Cell>);

    /// Prefetches a direct entry.
    fn fetch(&self, at: usize);

    /// Stores a direct entry, which publishes its chunk.
    fn store(&self, at: usize, direct: Self::Direct);

    /// Returns the words of a place: of halves, and of next hops of ranges.
    fn place_words(&self) -> [usize; 2];

    /// Returns the direct entries.
    fn direct_words(&self) -> Words<'_>;

    /// Returns numbers other than widths of keys that tell how entries are read.
    fn shape(&self) -> [(&'static str, u32); 3];

    /// Returns the same format with these words: of direct entries, of halves, of next hops.
    #[cfg(test)]
    fn mirrored(&self, arrays: [&[u64]; 3]) -> Self;

    /// Returns the words that hold halves.
    fn half_words(&self) -> &[AtomicU32];

    /// Returns the words that hold next hops.
    fn next_hops(&self) -> &[AtomicU32];

    /// Returns the memory, if so many words of halves and of next hops were ever written.
    fn memory(&self, used: [usize; 2]) -> Memory;

    /// Returns the direct entry of a chunk with one next hop.
    fn whole(&self, code: u32) -> Result<Self::Direct, &'static str>;

    /// Writes down the words of a chunk, and returns its direct entry at place 0.
    fn encode(
        &self,
        code: u32,
        further: &[Swept],
        geometry: Geometry,
        to: &mut Encoded,
        budget: &mut Budget,
    ) -> Result<Result<Self::Direct, &'static str>, OutOfMemory>;

    /// Returns the direct entry of a chunk, which has that of place 0, at another place.
    fn at_place(&self, direct: Self::Direct, place: u32) -> Self::Direct;

    /// Returns the places of a chunk.
    fn unit(&self, direct: Self::Direct) -> Unit;

    /// Calls `each` for the codes of an entry, those of its chunk if it has one. Returns the places that the chunk takes
    /// although smaller codes would let it be short.
    fn codes(&self, direct: Self::Direct, geometry: Geometry, each: impl FnMut(u32)) -> u32;

    /// Returns whether the words of a chunk are these.
    fn is(&self, direct: Self::Direct, encoded: &Encoded) -> bool {
        let (place, words) = (self.unit(direct).place as usize, self.place_words());
        let halves = &self.half_words()[place * words[0]..];
        let next_hops = self.next_hops()[place * words[1]..].iter().take(encoded.next_hops.len());
        pairs(&encoded.halves).zip(halves).all(|(new, old)| new == old.read())
            && next_hops.zip(&encoded.next_hops).all(|(old, &new)| new == old.read())
    }

    /// Writes the words of a chunk to places that no entry leads to.
    fn write(&self, place: u32, encoded: &Encoded) {
        let words = self.place_words();
        for (to, word) in self.half_words()[place as usize * words[0]..].iter().zip(pairs(&encoded.halves)) {
            to.store(word, Ordering::Relaxed);
        }
        for (to, &word) in self.next_hops()[place as usize * words[1]..].iter().zip(&encoded.next_hops) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Copies the words of a chunk to places that no entry leads to.
    fn copy(&self, unit: Unit, place: u32) {
        for (array, words) in [self.half_words(), self.next_hops()].into_iter().zip(self.place_words()) {
            let [from, to] = [unit.place, place].map(|place| place as usize * words);
            for word in 0..unit.size as usize * words {
                array[to + word].store(array[from + word].read(), Ordering::Relaxed);
            }
        }
    }
}

/// Returns the words of halves.
fn pairs(halves: &[u16]) -> impl Iterator<Item = u32> {
    halves.as_chunks::<HALVES>().0.iter().map(|&[low, high]| u32::from(low) | u32::from(high) << 16)
}
