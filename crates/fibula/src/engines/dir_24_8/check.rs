//! The consistency check.

use core::sync::atomic::Ordering;

use crate::fib::CheckError;
use crate::fib::parts::units::Unit;
use crate::memory::Cell;
use crate::net::Key;

use super::Dir248;
use super::layout::{HALVES, Live, PAD, SEGMENT, SPAN_MAX, half, half_of};

impl<K: Key> Dir248<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let codes = self.next_hops.as_ref().map_or(usize::from(SEGMENT), Vec::len);
        let pad = |table: &[u16]| table.len().checked_sub(PAD).is_some_and(|len| table[len..] == [0; PAD]);
        holds(
            pad(&self.first) && pad(&self.segments),
            "(1) each table ends with the padding that gathers read",
            0,
        )?;
        let first = &self.first[..self.first.len() - PAD];
        let entries = &self.segments[..self.segments.len() - PAD];
        holds(first.len() == Self::ENTRIES, "(1) an entry for all leading bits", first.len())?;
        // The first table numbers the segments, and the second one must have exactly those segments.
        let mut segments = 0;
        for (at, &entry) in first.iter().enumerate() {
            if entry & SEGMENT == 0 {
                holds(usize::from(entry) < codes, "(4) a code of the first table has a next hop", at)?;
            } else {
                let number = usize::from(entry & !SEGMENT);
                holds(number == segments, "(2) segments are numbered in order", at)?;
                segments += 1;
            }
        }
        let span = 1 << Self::REST;
        holds(entries.len() == segments * span, "(2) every segment is named", segments)?;
        for (at, segment) in entries.chunks(span).enumerate() {
            let known = segment.iter().all(|&code| usize::from(code) < codes);
            holds(known, "(4) a code of a segment has a next hop", at)?;
            let varied = segment.iter().any(|&code| code != segment[0]);
            holds(varied, "(3) a segment holds at least two codes", at)?;
        }
        let Some(next_hops) = &self.next_hops else { return Ok(()) };
        for (code, &next_hop) in next_hops.iter().enumerate() {
            holds((code == 0) == (next_hop == 0), "(5) code 0 alone is no route", code)?;
        }
        holds(!next_hops.is_empty(), "(5) no route has a code", 0)
    }
}

impl<K: Key> Live<K> {
    /// Checks the targets of all entries, and returns the segments.
    pub(super) fn reached(&self) -> Result<Vec<Unit>, CheckError> {
        let holds = CheckError::unless;
        let words = Dir248::<K>::ENTRIES.div_ceil(HALVES);
        holds(self.first.len() == words, "(1) an entry for all leading bits", self.first.len())?;
        let [end, codes] = [0, 1].map(|array| self.used[array].load(Ordering::Relaxed));
        let has_next_hop = |code: u16| u32::from(code) < codes;
        let mut segments = Vec::new();
        for (at, word) in self.first.iter().map(Cell::read).enumerate() {
            for entry in (0..HALVES).map(|at| half_of(word, at)) {
                let number = u32::from(entry & !SEGMENT);
                if entry & SEGMENT == 0 {
                    holds(has_next_hop(entry), "(4) a code of the first table has a next hop", at)?;
                    continue;
                }
                holds(number < end, "(2) a segment is within the array", at)?;
                segments.push(Unit { place: number, size: 1 });
                let first = number as usize * Dir248::<K>::SPAN;
                let mut all = [0; SPAN_MAX];
                let all = &mut all[..Dir248::<K>::SPAN];
                all.iter_mut().zip(first..).for_each(|(code, at)| *code = half(&self.segments, at));
                let known = all.iter().all(|&code| has_next_hop(code));
                holds(known, "(4) a code of a segment has a next hop", number as usize)?;
                let varied = all.iter().any(|&code| code != all[0]);
                holds(varied, "(3) a segment holds at least two codes", number as usize)?;
            }
        }
        let Some(next_hops) = &self.next_hops else { return Ok(segments) };
        for (code, next_hop) in next_hops.iter().take(codes as usize).map(Cell::read).enumerate() {
            holds((code == 0) == (next_hop == 0), "(5) code 0 alone is no route", code)?;
        }
        Ok(segments)
    }
}
