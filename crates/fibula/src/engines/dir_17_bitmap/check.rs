//! The fsck.

use core::sync::atomic::Ordering;

use crate::fib::CheckError;
use crate::fib::parts::units;
use crate::memory::Cell;
use crate::net::Key;

use super::Dir17Bitmap;
use super::layout::{Entry, PADDING, STEP_MAX, deeper, value_words};
use super::record::Record;

impl<K: Key> Dir17Bitmap<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let end = self.end.load(Ordering::Relaxed);
        if let Some(allotted) = &self.allotted {
            allotted.check(self.used()?)?;
            CheckError::unless(
                (allotted.end() as usize) << self.step == end,
                "units end where they do",
                end,
            )?;
        } else {
            self.each_unit(|_, _| ())?;
        }
        let padded = end + PADDING <= self.units.len();
        CheckError::unless(padded, "the units and their padding fit their array", end)?;
        let empty = self.units[end..end + PADDING].iter().all(|word| word.read() == 0);
        CheckError::unless(empty || self.allotted.is_none(), "the padding is empty", end)
    }

    /// Checks all units that entries lead to, and calls `each` for the places of each and whether it is shared.
    fn each_unit(&self, mut each: impl FnMut(units::Unit, bool)) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let entries = 1 << Self::WINDOWS.direct_bits;
        holds(self.direct.len() == entries, "an entry for all leading bits", self.direct.len())?;
        holds(self.step <= STEP_MAX, "a place is at most 16 words", self.step as usize)?;
        for entry in self.direct.iter().map(|entry| Entry(entry.read())) {
            each(self.unit_of(entry)?, entry.is_shared());
        }
        Ok(())
    }

    /// Checks all units that entries lead to, and returns their places.
    pub(super) fn used(&self) -> Result<Vec<units::Unit>, CheckError> {
        let mut used = Vec::with_capacity(self.direct.len());
        self.each_unit(|unit, is_shared| used.push((unit, is_shared)))?;
        // Units of one value may have many entries. Every other unit must have one, so only shared duplicates are dropped.
        used.sort_unstable();
        used.dedup_by(|next, last| next == last && next.1);
        Ok(used.into_iter().map(|(unit, _)| unit).collect())
    }

    /// Checks the unit that an entry leads to, and returns its places.
    pub(super) fn unit_of(&self, entry: Entry) -> Result<units::Unit, CheckError> {
        let holds = CheckError::unless;
        let words = if entry.is_shared() {
            let place = entry.word(self.step);
            holds(entry.offset() == 0, "a unit of one value has no second half", place)?;
            let value = self.word(place + 1)?;
            holds(value < u64::from(u32::MAX), "a unit of one value has a next hop", place)?;
            place..place + 2
        } else {
            self.unit(entry)?
        };
        let places = words.start >> self.step..words.end.div_ceil(1 << self.step);
        Ok(units::Unit::of(places.start as u32..places.end as u32))
    }

    /// Returns a word of the units. The padding is not theirs: vectors read other words there than single lookups do.
    fn word(&self, at: usize) -> Result<u64, CheckError> {
        let end = self.end.load(Ordering::Relaxed);
        let word = self.units.get(at).filter(|_| at < end);
        Ok(word.ok_or(CheckError::new("a unit is within its array", at))?.read())
    }

    /// Returns the value with this number among values of 2^`width` bytes that begin at the word `from`.
    fn value(&self, from: usize, number: usize, width: u32) -> Result<u32, CheckError> {
        let byte = number << width;
        Ok((self.word(from + byte / 8)? >> (8 * (byte % 8))) as u32 & deeper(width))
    }

    /// Checks a unit with bitmaps, and returns its words.
    pub(super) fn unit(&self, entry: Entry) -> Result<core::ops::Range<usize>, CheckError> {
        let holds = CheckError::unless;
        let half = Self::WINDOWS.half();
        let (place, width) = (entry.word(self.step), entry.width());
        holds(width <= 2, "values are of 8, 16 or 32 bits", place)?;
        let uniform = [0, 1].map(|half| entry.is_uniform(half));
        let joined = uniform != [false; 2];
        holds(!joined || entry.offset() == 0, "halves with one bitmap begin at one place", place)?;
        // One bit for each deeper slot.
        let mut deep = [0; 2];
        let (mut count, mut end) = (0, place);
        for (number, uniform) in uniform.into_iter().enumerate() {
            let from = place + if number == 1 { entry.offset() } else { 0 };
            holds(joined || from == end, "the second half follows the first", from)?;
            let map = self.word(from)?;
            holds(u128::from(map) >> half == 0, "a bitmap has no bits after the last slot", from)?;
            holds(
                map & 1 == u64::from(joined),
                "a change at the first slot leads past a value for all",
                from,
            )?;
            // Value by value, because few slots differ from the one before.
            let mut changes = if uniform { 0 } else { map };
            let (mut rank, mut slot) = (0, 0);
            loop {
                let next = if changes == 0 { half } else { changes.trailing_zeros() as usize };
                if next > slot && self.value(from + 1, rank, width)? == deeper(width) {
                    deep[number] |= (u64::MAX >> (64 - (next - slot))) << slot;
                }
                if changes == 0 {
                    break;
                }
                changes &= changes - 1;
                (rank, slot) = (rank + 1, next);
            }
            // Two halves with one bitmap share one row of values: the unit ends after the longer count.
            count = count.max(rank + 1);
            if !joined || number == 1 {
                end = from + 1 + value_words(count, width);
                count = 0;
            }
        }
        let records = deep.iter().map(|slots| slots.count_ones() as usize).sum::<usize>();
        if records == 0 {
            return Ok(place..end);
        }
        holds(place >= records + 2, "the records are before the bitmaps", place)?;
        for (number, deep) in deep.into_iter().enumerate() {
            let map = self.word(place - 1 - number)?;
            let inside = u64::MAX >> (64 - half);
            holds(map & inside == deep, "the map has the slots that are deeper", place - 1 - number)?;
            holds(map & !inside == 0, "a map has no bits after the last slot", place - 1 - number)?;
        }
        let mut begin = place - 2 - records;
        for record in (1..=records).map(|rank| place - 2 - rank) {
            begin = begin.min(self.record(place, record)?);
        }
        Ok(begin..end)
    }

    /// Checks the record at a word of the unit at a place, and returns the first word that belongs to it.
    fn record(&self, place: usize, at: usize) -> Result<usize, CheckError> {
        let holds = CheckError::unless;
        let record = Record(self.word(at)?);
        let rests = Self::WINDOWS.rests();
        let Some(list) = record.as_list() else {
            let [first, end] = [record.0 & 0xff, record.0 >> 32 & 0xff];
            holds(first <= end && end < rests as u64, "a stretch lies within its slot", at)?;
            return Ok(at);
        };
        // Encoded again, because bits that no field has would go unnoticed.
        holds(Record::list(list) == record && list.width <= 2, "a list has one form", at)?;
        holds(list.distance <= place && place - list.distance < at, "a list is before its record", at)?;
        let begin = place - list.distance;
        let (count, words) = if list.sparse {
            // The changes are the bytes of one word, the first in the lowest byte.
            let last = self.word(begin)?.to_le_bytes();
            let count = last.iter().filter(|&&last| usize::from(last) < rests - 1).count();
            let ascending = last[..count].windows(2).all(|pair| pair[0] < pair[1]);
            let ended = last[count..].iter().all(|&byte| byte == u8::MAX);
            holds(ascending && ended, "changes ascend", begin)?;
            (count, 1)
        } else {
            let words = Self::WINDOWS.map_words();
            let mut count = 0;
            for word in begin..begin + words {
                count += self.word(word)?.count_ones() as usize;
            }
            holds(self.word(begin)? & 1 == 0, "nothing changes at the first address", begin)?;
            (count, words)
        };
        let mut last = None;
        // One value more than changes.
        for number in 0..=count {
            let value = self.value(begin + words, number, list.width)?;
            holds(last != Some(value), "neighbouring values differ", begin)?;
            last = Some(value);
        }
        holds(
            begin + words + value_words(count + 1, list.width) <= at,
            "a list ends before its record",
            begin,
        )?;
        Ok(begin)
    }
}
