//! The consistency check.

use core::ops::Range;
use core::sync::atomic::Ordering;

use crate::fib::CheckError;
use crate::fib::parts::overflow::{AreaWalk, PADDING, SlotWindows, WIDTHS, values_at, width_mask};
use crate::memory::Cell;
use crate::net::Key;
use crate::simd::{Cell32, LINE_WORDS};

use super::Dir18Lines;
use super::layout::{Live, line_words};
use super::scalar::Arrays;

impl<K: Key> Dir18Lines<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        holds((self.width as usize) < WIDTHS, "values are of 8, 16 or 32 bits", 0)?;
        let entries = 1 << self.windows().direct_bits;
        holds(self.direct.len() == entries, "an entry for all leading bits", self.direct.len())?;
        let line_bytes = self.line_bytes();
        let bytes = 4 * (self.lines.len() - PADDING);
        holds(bytes.is_multiple_of(line_bytes), "the lines are whole", bytes)?;
        holds(self.lines[bytes / 4..].iter().all(|&word| word == 0), "the padding is empty", bytes)?;
        let lines = bytes / line_bytes;
        holds([0, lines].contains(&self.maps.len()), "a map's place a line, or none", self.maps.len())?;

        let shared_from = self.shared_from as usize;
        // Entries lead to lines of their own in order, and to shared lines in any order.
        let mut done = 0;
        let mut shared = vec![false; lines.saturating_sub(shared_from / line_bytes)];
        for &entry in &self.direct {
            let entry = entry as usize;
            if entry < shared_from {
                holds(entry == done, "lines of their own are in the order of the addresses", entry)?;
                done += line_bytes;
            } else {
                let number = (entry - shared_from) / line_bytes;
                let at = entry.is_multiple_of(line_bytes).then(|| shared.get_mut(number)).flatten();
                *at.ok_or(CheckError::new("an entry names a line", entry))? = true;
            }
        }
        holds(done == shared_from, "shared lines follow the others", done)?;
        holds(!shared.contains(&false), "a shared line has an entry", shared_from)?;

        // A line must be shared if it has a single next hop, and only then.
        let arrays = self.arrays();
        let below = AreaWalk::new(self.windows(), &self.below);
        let mut last = None;
        let mut done = 0;
        for number in 0..lines {
            let CheckedLine { alone, first, below } = arrays.line(self.windows(), number, &below)?;
            if let Some(words) = below {
                holds(words.start == done, "what is below lines is in their order", words.start)?;
                done = words.end;
            }
            let begin = number * line_bytes;
            if begin >= shared_from {
                holds(alone && last < Some(first), "shared lines are of one next hop, in order", begin)?;
                last = Some(first);
            } else {
                holds(!alone, "a line of one next hop is shared", begin)?;
            }
        }
        below.finish(done)
    }
}

/// A line that entries lead to, in a table with a writer.
pub(super) struct Reached {
    pub(super) number: u32,
    /// The number of entries that lead to it.
    pub(super) entries: u32,
    pub(super) alone: bool,
    /// Its words of the overflow.
    pub(super) below: Option<Range<usize>>,
}

impl<K: Key> Live<K> {
    /// Checks all lines that entries lead to, and returns them in order.
    pub(super) fn reached(&self) -> Result<Vec<Reached>, CheckError> {
        let holds = CheckError::unless;
        holds((self.width as usize) < WIDTHS, "values are of 8, 16 or 32 bits", 0)?;
        let entries = 1 << self.windows().direct_bits;
        holds(self.direct.len() == entries, "an entry for all leading bits", self.direct.len())?;
        let [lines, below] = [0, 1].map(|array| self.used[array].load(Ordering::Relaxed) as usize);
        let line_bytes = 4 * line_words(self.windows(), self.width);
        let mut counts = vec![0; lines];
        for entry in self.direct.iter().map(|entry| entry.read() as usize) {
            let at = entry.is_multiple_of(line_bytes).then(|| counts.get_mut(entry / line_bytes)).flatten();
            *at.ok_or(CheckError::new("an entry names a line", entry))? += 1;
        }
        let arrays = self.arrays();
        let walk = AreaWalk::new(self.windows(), &self.below[..below]);
        let mut reached = Vec::new();
        for (number, &entries) in counts.iter().enumerate().filter(|&(_, &entries)| entries > 0) {
            let CheckedLine { alone, below, .. } = arrays.line(self.windows(), number, &walk)?;
            reached.push(Reached { number: number as u32, entries, alone, below });
        }
        Ok(reached)
    }
}

/// A line that was checked.
pub(super) struct CheckedLine {
    /// Whether all of its slots have the same content.
    pub(super) alone: bool,
    /// The content of the first slot.
    pub(super) first: CheckedSlot,
    /// Its words of the overflow.
    pub(super) below: Option<Range<usize>>,
}

impl<C: Cell32> Arrays<'_, C> {
    /// Checks a line.
    pub(super) fn line(
        &self,
        windows: SlotWindows,
        number: usize,
        walk: &AreaWalk<'_, C>,
    ) -> Result<CheckedLine, CheckError> {
        let line_words = line_words(windows, self.width);
        let begin = number * line_words;
        let map = self.maps.get(number).map_or(0, Cell::read);
        // Most lines have several next hops and no deeper slot, so a look at their words is enough.
        let mut words = [0; LINE_WORDS];
        let words = &mut words[..line_words];
        words.iter_mut().zip(&self.lines[begin..]).for_each(|(to, word)| *to = word.read());
        if windows.slots() << self.width == 4 * line_words
            && words.iter().any(|&word| word != words[0])
            && !words.iter().any(|&word| has_deeper(word, self.width))
        {
            CheckError::unless(map == 0, NO_MAP, number)?;
            let first = CheckedSlot::Value(words[0] & width_mask(self.width));
            return Ok(CheckedLine { alone: false, first, below: None });
        }
        let values = values_at(words, 0, windows.slots(), self.width)?;
        let is_deeper = |value: &u32| *value == width_mask(self.width);
        if !values.iter().any(is_deeper) {
            CheckError::unless(map == 0, NO_MAP, number)?;
            let alone = values.iter().all(|&value| value == values[0]);
            return Ok(CheckedLine { alone, first: CheckedSlot::Value(values[0]), below: None });
        }
        let deeper: Vec<bool> = values.iter().map(is_deeper).collect();
        let checked = walk.chunk(map as usize, &deeper)?;
        let mut records = checked.answers.into_iter();
        let slots = values.into_iter().zip(deeper);
        let slots: Vec<CheckedSlot> = slots
            .map(
                |(value, deeper)| {
                    if deeper { CheckedSlot::of(records.next()) } else { CheckedSlot::Value(value) }
                },
            )
            .collect();
        let alone = slots.iter().all(|slot| *slot == slots[0]);
        Ok(CheckedLine { alone, first: slots[0], below: Some(checked.words) })
    }
}

const NO_MAP: &str = "a line without deeper slots has no map";

/// Returns whether a word of a line has a value of all ones.
fn has_deeper(word: u32, width: u32) -> bool {
    match width {
        // The lowest byte of zeros is the one that borrows when 1 is subtracted from each byte.
        0 => (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 != 0,
        1 => word & 0xffff == 0xffff || word >> 16 == 0xffff,
        _ => word == u32::MAX,
    }
}

/// The content of a slot, ordered by next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckedSlot {
    Value(u32),
    /// The overflow has one next hop for the whole slot.
    Below(u32),
    /// The overflow has several next hops. This is their place, which differs for any two slots.
    Several(usize),
}

impl CheckedSlot {
    fn of(record: Option<(usize, Option<u32>)>) -> Self {
        match record {
            Some((_, Some(next_hop))) => Self::Below(next_hop),
            Some((at, None)) => Self::Several(at),
            None => Self::Several(usize::MAX),
        }
    }
}
