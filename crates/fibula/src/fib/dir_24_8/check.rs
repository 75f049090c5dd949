//! The fsck.

use crate::fib::CheckError;
use crate::net::Key;

use super::Dir248;
use super::layout::SEGMENT;

impl<K: Key> Dir248<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let (first, next_hops) = (&self.first, &self.next_hops);
        holds(first.len() == 1 << Self::LEADING, "an entry for all leading bits", first.len())?;
        let mut segments = 0;
        for (at, &entry) in first.iter().enumerate() {
            if entry & SEGMENT == 0 {
                holds(usize::from(entry) < next_hops.len(), "a code of the first table has a next hop", at)?;
            } else {
                let number = usize::from(entry & !SEGMENT);
                holds(number == segments, "segments are numbered in order", at)?;
                segments += 1;
            }
        }
        let span = 1 << Self::REST;
        holds(self.segments.len() == segments * span, "every segment is named", segments)?;
        for (at, segment) in self.segments.chunks(span).enumerate() {
            let known = segment.iter().all(|&code| usize::from(code) < next_hops.len());
            holds(known, "a code of a segment has a next hop", at)?;
            let varied = segment.iter().any(|&code| code != segment[0]);
            holds(varied, "a segment holds two codes at least", at)?;
        }
        for (code, &next_hop) in next_hops.iter().enumerate() {
            holds((code == 0) == (next_hop == 0), "code 0 alone is no route", code)?;
        }
        holds(!next_hops.is_empty(), "no route has a code", 0)
    }
}
