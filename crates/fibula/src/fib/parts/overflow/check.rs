//! The check of the overflow area.

use crate::fib::CheckError;
use crate::fib::parts::bitmap;

use super::record::{Entry, Record, values_at, width_of};
use super::{PADDING, Windows};

/// A walk over the area. Chunks are in the order of their addresses, the wide records of a chunk before its records and
/// map, so that everything before `done` has been read.
pub(crate) struct Walk<'a> {
    windows: Windows,
    area: &'a [u32],
    done: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(windows: Windows, area: &'a [u32]) -> Self {
        Self { windows, area, done: 0 }
    }

    /// Checks the overflow of a chunk whose map is at word `map` and that has these deeper slots. Returns for each slot the
    /// place of its record, and the next hop if all addresses have the same.
    pub(crate) fn chunk(
        &mut self,
        map: usize,
        deeper: &[bool],
    ) -> Result<Vec<(usize, Option<u32>)>, CheckError> {
        let holds = CheckError::unless;
        let found = bitmap::read(self.area, map, self.windows.slots())?;
        holds(found == deeper, "the map has the slots that are deeper", map)?;
        let count = found.iter().filter(|&&bit| bit).count();
        holds(count > 0 && map >= 2 * count, "the records are before the map", map)?;
        let mut last = None;
        let mut answers = Vec::with_capacity(count);
        for rank in 1..=count {
            let at = map - 2 * rank;
            let record = Record([self.area[at], self.area[at + 1]]);
            // Neighbouring slots of one next hop that no record can hold share their wide chunk.
            if let Some(entry) = record.entry()
                && last != Some(record)
            {
                holds(record == Record::wide(entry), "a record has one form", at)?;
                self.wide(entry)?;
            }
            let mut answer = None;
            if record.entry().is_none() {
                let rests = self.windows.rests() as u32;
                let [first, end] = record.0.map(|word| word & 0xff);
                holds(first <= end && end < rests, "a stretch lies within its slot", at)?;
                let [most, other] = record.0.map(|word| word >> Record::NEXT_HOP_AT);
                answer = (most == other).then_some(most);
            }
            answers.push((at, answer));
            last = Some(record);
        }
        holds(self.done == map - 2 * count, "the records follow the last wide chunk", map)?;
        self.done = map + bitmap::words(self.windows.slots() as u32) as usize;
        Ok(answers)
    }

    fn wide(&mut self, entry: Entry) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let start = entry.offset();
        holds(self.done == start, "wide chunks follow one another", start)?;
        let (values, first) = if entry.shift() == Entry::SPARSE {
            let word = *self.area.get(start).ok_or(CheckError::new("a chunk is within the area", start))?;
            let changes = word.to_le_bytes();
            let count = changes.iter().filter(|&&change| change != u8::MAX).count();
            let ascending = changes[..count].windows(2).all(|pair| pair[0] < pair[1]);
            let ended = changes[count..].iter().all(|&byte| byte == u8::MAX);
            holds(ascending && ended, "changes ascend", start)?;
            (count + 1, start + 1)
        } else {
            let slots = self.windows.rests() >> entry.shift();
            let map = bitmap::read(self.area, start, slots)?;
            holds(map.first() == Some(&false), "a map begins with no change", start)?;
            (1 + map.iter().filter(|&&bit| bit).count(), start + bitmap::words(slots as u32) as usize)
        };
        let found = values_at(self.area, first, values, entry.width())?;
        holds(found.windows(2).all(|pair| pair[0] != pair[1]), "neighbouring values differ", start)?;
        let greatest = found.iter().max().copied().unwrap_or(0);
        let narrowest = entry.width() == width_of(greatest);
        holds(narrowest, "values are no wider than they must be", start)?;
        self.done = first + (values << entry.width()).div_ceil(4);
        Ok(())
    }

    /// After the last chunk.
    pub(crate) fn finish(self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds(self.done + PADDING == self.area.len(), "the chunks fill their area", self.done)?;
        holds(self.area[self.done..].iter().all(|&word| word == 0), "the padding is empty", self.done)
    }
}
