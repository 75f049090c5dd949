//! The fsck.

use crate::fib::CheckError;
use crate::net::Key;

use super::Chunks;
use super::layout::{Entry, Form, Geometry, MAP_BITS, PADDING, map_words, width_mask};

impl<K: Key> Chunks<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds(self.geometry == Geometry::new(self.form(), K::BITS), "the windows fit the keys", 0)?;
        let entries = 1 << self.geometry.direct_bits;
        holds(self.direct.len() == entries, "an entry for all leading bits", self.direct.len())?;
        let mut walk =
            Walk { geometry: self.geometry, area: &self.area, deep: &self.deep, done: 0, deep_done: 0 };
        for &entry in &self.direct {
            if Entry(entry).is_chunk() {
                walk.chunk(Entry(entry))?;
            }
        }
        for (area, done) in [(&self.area, walk.done), (&self.deep, walk.deep_done)] {
            holds(done + PADDING == area.len(), "the chunks fill their area", done)?;
            holds(area[done..].iter().all(|&word| word == 0), "the padding is empty", done)?;
        }
        Ok(())
    }
}

/// Chunks stand in the order of the addresses, those of one chunk before their list and map: what was read is what is
/// before `done` and `deep_done`.
struct Walk<'a> {
    geometry: Geometry,
    area: &'a [u32],
    deep: &'a [u32],
    done: usize,
    deep_done: usize,
}

impl Walk<'_> {
    fn chunk(&mut self, entry: Entry) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let (geometry, start) = (self.geometry, entry.offset());
        holds(entry.shift() < Entry::SPARSE, "a first-level chunk is not sparse", start)?;
        let slots = (1usize << geometry.chunk_bits) >> entry.shift();
        let map = match geometry.form {
            Form::Rank => Some(map(self.area, start, slots)?),
            Form::Dense => None,
        };
        let values = map.as_ref().map_or(slots, |map| 1 + map.iter().filter(|&&bit| bit).count());
        let first = start + map.map_or(0, |_| map_words(slots as u32) as usize);
        let found = values_at(self.area, first, values, entry.width())?;
        if geometry.form == Form::Rank {
            let differ = found.windows(2).all(|pair| pair[0] != pair[1]);
            holds(differ, "neighbouring values differ", start)?;
        }
        let deeper = width_mask(entry.width());
        holds(entry.width() == width(&found, Some(deeper)), "values are no wider than they must be", start)?;
        if found.contains(&deeper) {
            self.deeper(start)?;
        }
        holds(self.done == start, "chunks stand one behind the other", start)?;
        self.done = first + (values << entry.width()).div_ceil(4);
        Ok(())
    }

    /// The deeper chunks of the chunk that starts at `start`, and their list and map.
    fn deeper(&mut self, start: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds(self.done + 1 == start, "the place of the map stands before the chunk", start)?;
        let place = self.area[self.done] as usize;
        self.done = start;
        let slots = 1 << self.geometry.chunk_bits;
        let count = map_at(self.deep, place, slots)?.iter().filter(|&&bit| bit).count();
        holds(count > 0 && place >= count, "the list stands before the map", place)?;
        for at in (place - count..place).rev() {
            let entry = Entry(self.deep[at]);
            holds(entry.is_chunk(), "a deeper slot has a chunk", at)?;
            // Neighbouring slots of one next hop that no value can hold share their chunk.
            if at + 1 == place || self.deep[at + 1] != entry.0 {
                self.rest(entry)?;
            }
        }
        holds(self.deep_done == place - count, "the list follows the last deeper chunk", place)?;
        self.deep_done = place + map_words(slots as u32) as usize;
        Ok(())
    }

    fn rest(&mut self, entry: Entry) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let start = entry.offset();
        holds(self.deep_done == start, "chunks stand one behind the other", start)?;
        let (values, first) = if entry.shift() == Entry::SPARSE {
            let word = *self.deep.get(start).ok_or(CheckError::new("a chunk is within the area", start))?;
            let changes = word.to_le_bytes();
            let count = changes.iter().filter(|&&change| change != u8::MAX).count();
            let ascending = changes[..count].windows(2).all(|pair| pair[0] < pair[1]);
            holds(
                ascending && changes[count..].iter().all(|&byte| byte == u8::MAX),
                "changes ascend",
                start,
            )?;
            (count + 1, start + 1)
        } else {
            let slots = (1usize << self.geometry.rest_bits) >> entry.shift();
            let map = map(self.deep, start, slots)?;
            (1 + map.iter().filter(|&&bit| bit).count(), start + map_words(slots as u32) as usize)
        };
        let found = values_at(self.deep, first, values, entry.width())?;
        holds(found.windows(2).all(|pair| pair[0] != pair[1]), "neighbouring values differ", start)?;
        holds(entry.width() == width(&found, None), "values are no wider than they must be", start)?;
        self.deep_done = first + (values << entry.width()).div_ceil(4);
        Ok(())
    }
}

/// A map of changes: nothing changes at the first slot.
fn map(area: &[u32], at: usize, slots: usize) -> Result<Vec<bool>, CheckError> {
    let map = map_at(area, at, slots)?;
    CheckError::unless(map.first() == Some(&false), "a map begins with no change", at)?;
    Ok(map)
}

fn map_at(area: &[u32], at: usize, slots: usize) -> Result<Vec<bool>, CheckError> {
    let words = area.get(at..at + map_words(slots as u32) as usize);
    let words = words.ok_or(CheckError::new("a map is within the area", at))?;
    let mut bits = Vec::with_capacity(slots);
    let mut count = 0;
    for (index, word) in words.iter().enumerate() {
        CheckError::unless(word >> MAP_BITS == count, "a word of a map counts those before it", at + index)?;
        bits.extend((0..MAP_BITS).map(|bit| word >> bit & 1 == 1));
        count += (word & 0x00ff_ffff).count_ones();
    }
    let rest = bits.split_off(slots.min(bits.len()));
    CheckError::unless(!rest.contains(&true), "a map has no bits behind the last slot", at)?;
    Ok(bits)
}

fn values_at(area: &[u32], first: usize, count: usize, width: u32) -> Result<Vec<u32>, CheckError> {
    CheckError::unless(width <= 2, "values are of 8, 16 or 32 bits", first)?;
    let words = area.get(first..first + (count << width).div_ceil(4));
    let words = words.ok_or(CheckError::new("values are within the area", first))?;
    let value = |at: usize| {
        let byte = at << width;
        words[byte / 4] >> (8 * (byte % 4)) & width_mask(width)
    };
    Ok((0..count).map(value).collect())
}

/// The width that the values need, where `deeper` is not a value.
fn width(values: &[u32], deeper: Option<u32>) -> u32 {
    let greatest = values.iter().filter(|&&value| Some(value) != deeper).max().copied().unwrap_or(0);
    let taken = u32::from(deeper.is_some());
    (0..2).find(|&width| u64::from(greatest) + u64::from(taken) <= u64::from(width_mask(width))).unwrap_or(2)
}
