//! The figures of the paper's Table 1.

use super::entries::Entries;
use super::geometry::Split;
use super::layout::{Compact, Dxr, Form, HALVES, SHORT, Wide};
use super::options::Search;

/// What a built structure consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Leading bits that index the direct table.
    pub k: u8,
    /// How the bits of direct entries are split; `None` in the wide format.
    pub split: Option<Split>,
    /// Chunks in the range table: the "full chunks" of Table 1.
    pub chunks: usize,
    /// Entries of the largest chunk, searched padding included; 0 where there is no chunk.
    pub chunk_entries_max: usize,
    /// Short entries, padding included, as in Table 1.
    pub short_ranges: usize,
    /// Long entries, padding included.
    pub long_ranges: usize,
    /// Entries of the wide format.
    pub wide_ranges: usize,
    /// Next hops that lookups can reach, "no route" not counted.
    pub next_hops: usize,
}

impl Statistics {
    /// Returns the bytes as Table 1 counts them, `4 * 2^k + 2 * short + 4 * long + 24 * (next hops + 1)`, which
    /// includes the paper's next-hop descriptors of 24 bytes each. `None` in the wide format.
    #[must_use]
    pub fn paper_bytes(&self) -> Option<u64> {
        self.split?;
        let entries = (4u64 << self.k) + 2 * self.short_ranges as u64 + 4 * self.long_ranges as u64;
        Some(entries + 24 * (self.next_hops as u64 + 1))
    }
}

impl<K> Dxr<K> {
    /// Counts what the structure consists of, in one pass over the direct table.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let statistics = Statistics {
            k: self.shape.geometry.k,
            split: None,
            chunks: 0,
            chunk_entries_max: 0,
            short_ranges: 0,
            long_ranges: 0,
            wide_ranges: 0,
            next_hops: 0,
        };
        match &self.form {
            Form::Compact(form) => form.count(statistics),
            Form::Wide(form) => form.count(statistics),
        }
    }

    /// Returns how chunks are searched.
    #[must_use]
    pub fn search(&self) -> Search {
        self.shape.search
    }
}

impl Compact {
    fn count(&self, mut statistics: Statistics) -> Statistics {
        for &direct in &self.direct {
            if self.in_place(direct).0 {
                continue;
            }
            let (chunk, short) = (self.chunk(direct), direct & SHORT != 0);
            statistics.chunks += 1;
            statistics.chunk_entries_max = statistics.chunk_entries_max.max(chunk.entries);
            let units = Split::units(chunk.entries as u64, short, self.split.shift) as usize;
            if short {
                statistics.short_ranges += units * HALVES;
            } else {
                statistics.long_ranges += units;
            }
        }
        Statistics { split: Some(self.split), next_hops: self.next_hops.len() - 1, ..statistics }
    }
}

impl Wide {
    fn count(&self, mut statistics: Statistics) -> Statistics {
        let mut next_hops: Vec<u32> = self.next_hops.to_vec();
        for &direct in &self.direct {
            let (here, word) = self.in_place(direct);
            if here {
                next_hops.push(word);
            } else {
                let entries = self.chunk(direct).entries;
                statistics.chunks += 1;
                statistics.chunk_entries_max = statistics.chunk_entries_max.max(entries);
            }
        }
        next_hops.sort_unstable();
        next_hops.dedup();
        let routed = next_hops.iter().filter(|&&word| word != 0).count();
        Statistics { wide_ranges: self.bases.len(), next_hops: routed, ..statistics }
    }
}
