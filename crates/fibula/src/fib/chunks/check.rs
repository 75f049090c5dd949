//! The fsck.

use crate::fib::CheckError;
use crate::fib::parts::bitmap;
use crate::fib::parts::overflow::{Entry, PADDING, Walk, values_at, width_mask, width_of};
use crate::net::Key;

use super::Chunks;

impl<K: Key> Chunks<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let entries = 1 << Self::WINDOWS.direct_bits;
        holds(self.direct.len() == entries, "an entry for all leading bits", self.direct.len())?;
        let mut below = Walk::new(Self::WINDOWS, &self.below);
        let mut done = 0;
        for &entry in &self.direct {
            if Entry(entry).is_chunk() {
                done = self.chunk(Entry(entry), done, &mut below)?;
            }
        }
        holds(done + PADDING == self.area.len(), "the chunks fill their area", done)?;
        holds(self.area[done..].iter().all(|&word| word == 0), "the padding is empty", done)?;
        below.finish()
    }

    /// Checks a chunk, which follows the words before `done`, and returns its end.
    fn chunk(&self, entry: Entry, done: usize, below: &mut Walk<'_>) -> Result<usize, CheckError> {
        let holds = CheckError::unless;
        let (area, start) = (&*self.area, entry.offset());
        holds(entry.shift() < Entry::SPARSE, "a first-level chunk is not sparse", start)?;
        let slots = Self::WINDOWS.slots() >> entry.shift();
        let map = bitmap::read(area, start, slots)?;
        holds(map.first() == Some(&false), "a map begins with no change", start)?;
        let count = 1 + map.iter().filter(|&&bit| bit).count();
        let first = start + bitmap::words(slots as u32) as usize;
        let values = values_at(area, first, count, entry.width())?;
        holds(values.windows(2).all(|pair| pair[0] != pair[1]), "neighbouring values differ", start)?;
        let deeper = width_mask(entry.width());
        let greatest = values.iter().filter(|&&value| value != deeper).max().copied().unwrap_or(0);
        let narrowest = entry.width() == width_of(greatest.into(), true);
        holds(narrowest, "values are no wider than they must be", start)?;
        let is_deep = values.contains(&deeper);
        holds(done + usize::from(is_deep) == start, "chunks follow one another", start)?;
        if is_deep {
            // The overflow counts single slots, also where the chunk has merged them.
            let mut value = 0;
            let mut slots = Vec::with_capacity(Self::WINDOWS.slots());
            for bit in map {
                value += usize::from(bit);
                slots.extend(core::iter::repeat_n(values[value] == deeper, 1 << entry.shift()));
            }
            below.chunk(area[done] as usize, &slots)?;
        }
        Ok(first + (count << entry.width()).div_ceil(4))
    }
}
