//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::layout::{CHUNK, LEVELS, PAD, Sail};

impl<K: Key> Sail<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let codes = self.next_hops.as_ref().map_or(usize::from(CHUNK), Vec::len);
        // Each level numbers the chunks of the next one, which must have exactly those.
        let mut chunks = 1;
        for (level, entries) in self.levels.iter().enumerate() {
            let len = entries.len().checked_sub(PAD).filter(|&len| entries[len..] == [0; PAD]);
            let len = len.ok_or(CheckError::new("(1) each level ends with the padding", level))?;
            let in_chunk = 1 << Self::BITS[level];
            holds(len == chunks * in_chunk, "(2) a level has the chunks that are named", level)?;
            let mut below = 0;
            for (at, &entry) in entries[..len].iter().enumerate() {
                let number = usize::from(entry & !CHUNK);
                if entry & CHUNK == 0 {
                    holds(number < codes, "(4) a code has a next hop", at)?;
                } else {
                    holds(level + 1 < LEVELS, "(2) nothing is below the last level", at)?;
                    holds(number == below, "(2) chunks are numbered in order", at)?;
                    below += 1;
                }
            }
            if level > 0 {
                for (number, chunk) in entries[..len].chunks(in_chunk).enumerate() {
                    let varied = chunk.iter().any(|&entry| entry != chunk[0]);
                    holds(varied, "(3) a chunk holds at least two entries that differ", number)?;
                }
            }
            chunks = below;
        }
        let Some(next_hops) = &self.next_hops else { return Ok(()) };
        for (code, &next_hop) in next_hops.iter().enumerate() {
            holds((code == 0) == (next_hop == 0), "(5) code 0 alone is no route", code)?;
        }
        holds(!next_hops.is_empty(), "(5) no route has a code", 0)
    }
}
