//! The consistency check.

use crate::fib::CheckError;
use crate::net::Key;

use super::Dir248;
use super::layout::{PAD, SEGMENT};

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
        // The first table numbers the segments; the second one must have exactly those.
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
