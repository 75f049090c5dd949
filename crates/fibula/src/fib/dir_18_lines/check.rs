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
            let slots = self.line(number, &mut below)?;
            let alone = slots.iter().all(|slot| *slot == slots[0]);
            let begin = number * line_bytes;
            if begin >= shared_from {
                holds(alone && last < Some(slots[0]), "shared lines are of one next hop, in order", begin)?;
                last = Some(slots[0]);
            } else {
                holds(!alone, "a line of one next hop is shared", begin)?;
            }
        }
        below.finish()
    }

    /// Returns what the slots of a line lead to.
    fn line(&self, number: usize, below: &mut Walk<'_>) -> Result<Vec<Slot>, CheckError> {
        let begin = number * self.line_bytes();
        let values = values_at(&self.lines, begin / 4, self.windows().slots(), self.width)?;
        let deeper: Vec<bool> = values.iter().map(|&value| value == width_mask(self.width)).collect();
        let map = self.maps.get(number).copied().unwrap_or(0);
        if !deeper.contains(&true) {
            CheckError::unless(map == 0, "a line without deeper slots has no map", number)?;
            return Ok(values.into_iter().map(Slot::Value).collect());
        }
        let records = below.chunk(map as usize, &deeper)?;
        let mut records = records.into_iter();
        Ok(values
            .into_iter()
            .zip(deeper)
            .map(|(value, deeper)| if deeper { Slot::of(records.next()) } else { Slot::Value(value) })
            .collect())
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
