//! The fsck.

use crate::fib::CheckError;
use crate::fib::parts::overflow::{PADDING, Walk, values_at, width_mask};
use crate::net::Key;

use super::Dir18Lines;
use super::layout::WIDTHS;

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

        // A line is shared if, and only if, it has a single next hop.
        let mut below = Walk::new(self.windows(), &self.below);
        let mut last = None;
        for number in 0..lines {
            let (alone, first) = self.line(number, &mut below)?;
            let begin = number * line_bytes;
            if begin >= shared_from {
                holds(alone && last < Some(first), "shared lines are of one next hop, in order", begin)?;
                last = Some(first);
            } else {
                holds(!alone, "a line of one next hop is shared", begin)?;
            }
        }
        below.finish()
    }

    /// Checks a line. Returns whether all of its slots lead to the same, and to what the first one does.
    fn line(&self, number: usize, below: &mut Walk<'_>) -> Result<(bool, Slot), CheckError> {
        let begin = number * self.line_bytes();
        let map = self.maps.get(number).copied().unwrap_or(0);
        // Most lines have several next hops and nothing deeper, which their words tell at once.
        let words = &self.lines[begin / 4..][..self.line_bytes() / 4];
        if self.windows().slots() << self.width == self.line_bytes()
            && words.iter().any(|&word| word != words[0])
            && !words.iter().fold(false, |any, &word| any | has_deeper(word, self.width))
        {
            CheckError::unless(map == 0, NO_MAP, number)?;
            return Ok((false, Slot::Value(words[0] & width_mask(self.width))));
        }
        let values = values_at(&self.lines, begin / 4, self.windows().slots(), self.width)?;
        let is_deeper = |value: &u32| *value == width_mask(self.width);
        if !values.iter().any(is_deeper) {
            CheckError::unless(map == 0, NO_MAP, number)?;
            let alone = values.iter().all(|&value| value == values[0]);
            return Ok((alone, Slot::Value(values[0])));
        }
        let deeper: Vec<bool> = values.iter().map(is_deeper).collect();
        let mut records = below.chunk(map as usize, &deeper)?.into_iter();
        let slots = values.into_iter().zip(deeper);
        let slots: Vec<Slot> = slots
            .map(|(value, deeper)| if deeper { Slot::of(records.next()) } else { Slot::Value(value) })
            .collect();
        Ok((slots.iter().all(|slot| *slot == slots[0]), slots[0]))
    }
}

const NO_MAP: &str = "a line without deeper slots has no map";

/// Returns whether a word of a line has a value of all ones.
fn has_deeper(word: u32, width: u32) -> bool {
    match width {
        // A byte of zeros is the lowest one that subtracting borrows for.
        0 => (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 != 0,
        1 => word & 0xffff == 0xffff || word >> 16 == 0xffff,
        _ => word == u32::MAX,
    }
}

/// What a slot leads to, ordered by next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Value(u32),
    /// The overflow has one next hop for the whole slot.
    Below(u32),
    /// The overflow has several next hops; its place, which differs for any two slots.
    Several(usize),
}

impl Slot {
    fn of(record: Option<(usize, Option<u32>)>) -> Self {
        match record {
            Some((_, Some(next_hop))) => Self::Below(next_hop),
            Some((at, None)) => Self::Several(at),
            None => Self::Several(usize::MAX),
        }
    }
}
