//! The consistency check: what the table holds is read and encoded again, which must give the same words.

use crate::fib::CheckError;
use crate::fib::parts::overflow::{Area, AreaWalk, DEEP, Level, WIDTHS, holds, width_mask};
use crate::memory::{Budget, Cell, Limits};
use crate::net::Key;

use super::build::Tables;
use super::layout::{Dir17Sparse, Entry, GROUP_BITS, PADDING, groups};
use super::unit::UnitBytes;

impl<K: Key> Dir17Sparse<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let (windows, width) = (Self::WINDOWS, self.width);
        let unless = CheckError::unless;
        unless((width as usize) < WIDTHS, "values are of 8, 16 or 32 bits", width as usize)?;
        let least = groups(windows) + PADDING;
        unless(self.words.len() >= least, "the groups and their padding fit their array", self.words.len())?;
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.read().to_le_bytes()).collect();
        let memory = |_| CheckError::new("there is memory for a second copy", 0);
        let mut budget = Budget::new(Limits::default());
        let mut again = Tables::new(windows, width, &mut budget).map_err(memory)?;
        let area = AreaWalk::new(windows, &self.below[..]);
        let mut below = Area::default();
        let mut done = 0;
        for direct in 0..1usize << windows.direct_bits {
            let group = self.words[direct >> GROUP_BITS].read();
            let number = direct & ((1 << GROUP_BITS) - 1);
            let rank = (group << (63 - number)).count_ones() as usize;
            let base = (group >> 32) as usize;
            let entry = bytes.get(base + Entry::BYTES * rank..).and_then(|bytes| bytes.first_chunk());
            let entry =
                Entry(u32::from_le_bytes(*entry.ok_or(CheckError::new("entries are in the array", direct))?));
            if entry.mask() == 0 {
                let word = entry.place();
                unless(holds(width, word), "an entry without a unit is a next hop", direct)?;
                again.uniform(1, word, &mut budget).map_err(memory)?;
                continue;
            }
            let place = base + entry.place() as usize;
            let read = UnitBytes::read(&bytes, place, entry.mask(), windows.slots(), width);
            let (values, map) = read.ok_or(CheckError::new("units are in the array", direct))?;
            let alone = values.iter().all(|&value| value == values[0]) && again.holds_whole(values[0]);
            unless(!alone, "a unit has several values, or one that no entry can hold", direct)?;
            let deeper: Vec<bool> = values.iter().map(|&value| value == width_mask(width)).collect();
            if let Some(map) = map {
                let words = area.chunk(map as usize, &deeper)?.words;
                unless(words.start == done, "what is below units is in their order", words.start)?;
                done = words.end;
            }
            let slot = |(value, deeper): (u32, bool)| if deeper { DEEP } else { value.into() };
            let slots: Vec<u64> = values.into_iter().zip(deeper).map(slot).collect();
            again.chunk(&slots, map, &mut below, &mut budget).map_err(memory)?;
        }
        area.finish(done)?;
        let again = again.finish(&mut budget).map_err(memory)?;
        unless(again.len() == self.words.len(), "there is nothing but groups and padding", again.len())?;
        let differs = self.words.iter().zip(&again).position(|(word, again)| word.read() != *again);
        differs.map_or(Ok(()), |at| Err(CheckError::new("each word is as it would be built", at)))
    }
}
