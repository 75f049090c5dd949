//! The check of the overflow area.

use core::ops::Range;

use crate::fib::CheckError;
use crate::fib::parts::bitmap;
use crate::simd::Cell32;

use super::record::{OverflowEntry, SlotRecord, values_at, width_of};
use super::{PADDING, SlotWindows};

/// The overflow of a chunk that was checked.
pub(crate) struct Checked {
    /// Its words: wide ones, then records, then the map.
    pub(crate) words: Range<usize>,
    /// For each deeper slot the place of its record, and the next hop if all addresses have the same.
    pub(crate) answers: Vec<(usize, Option<u32>)>,
}

/// A walk over the area.
pub(crate) struct AreaWalk<'a, C> {
    windows: SlotWindows,
    area: &'a [C],
}

impl<'a, C: Cell32> AreaWalk<'a, C> {
    pub(crate) fn new(windows: SlotWindows, area: &'a [C]) -> Self {
        Self { windows, area }
    }

    /// Checks the overflow of a chunk whose map is at word `map` and that has these deeper slots.
    pub(crate) fn chunk(&self, map: usize, deeper: &[bool]) -> Result<Checked, CheckError> {
        let holds = CheckError::unless;
        let found = bitmap::read(self.area, map, self.windows.slots())?;
        holds(found == deeper, "the map has the slots that are deeper", map)?;
        let count = found.iter().filter(|&&bit| bit).count();
        holds(count > 0 && map >= 2 * count, "the records are before the map", map)?;
        let mut last = None;
        let mut answers = Vec::with_capacity(count);
        let mut wide = Vec::new();
        for rank in 1..=count {
            let at = map - 2 * rank;
            let record = SlotRecord([self.area[at].read(), self.area[at + 1].read()]);
            // Neighbouring slots of one next hop that no record can hold share their wide chunk.
            if let Some(entry) = record.entry()
                && last != Some(record)
            {
                holds(record == SlotRecord::wide(entry), "a record has one form", at)?;
                wide.push(self.wide(entry)?);
            }
            let mut answer = None;
            if record.entry().is_none() {
                let rests = self.windows.rests() as u32;
                let [first, end] = record.0.map(|word| word & 0xff);
                holds(first <= end && end < rests, "a stretch lies within its slot", at)?;
                let [most, other] = record.0.map(|word| word >> SlotRecord::NEXT_HOP_AT);
                answer = (most == other).then_some(most);
            }
            answers.push((at, answer));
            last = Some(record);
        }
        // What is taken over from an earlier form of the chunk comes first.
        in_order(&mut wide);
        let begin = wide.first().map_or(map - 2 * count, |words| words.start);
        let mut done = begin;
        for words in wide {
            holds(words.start == done, "wide chunks follow one another", words.start)?;
            done = words.end;
        }
        holds(done == map - 2 * count, "the records follow the last wide chunk", map)?;
        Ok(Checked { words: begin..map + bitmap::words(self.windows.slots() as u32) as usize, answers })
    }

    /// Checks a wide chunk, and returns its words.
    fn wide(&self, entry: OverflowEntry) -> Result<Range<usize>, CheckError> {
        let holds = CheckError::unless;
        let start = entry.offset();
        let (values, first) = if entry.shift() == OverflowEntry::SPARSE {
            let word =
                self.area.get(start).ok_or(CheckError::new("a chunk is within the area", start))?.read();
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
        Ok(start..first + (values << entry.width()).div_ceil(4))
    }

    /// Checks the padding, after the last word of the last chunk.
    pub(crate) fn finish(self, done: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds(done + PADDING == self.area.len(), "the chunks fill their area", done)?;
        holds(self.area[done..].iter().all(|word| word.read() == 0), "the padding is empty", done)
    }
}

/// Sorts runs of words. Not generic, as sorting is a lot of code.
fn in_order(runs: &mut [Range<usize>]) {
    runs.sort_unstable_by_key(|words| words.start);
}
