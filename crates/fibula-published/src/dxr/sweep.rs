//! Routes to ranges, and ranges to pieces: they are cut at the borders of chunks.

use core::ops::Range;

use fibula::net::{Key, NextHop, Prefix, Routes};
use fibula::unstable::memory::{Budget, OutOfMemory};
use fibula::unstable::parts::ranges::{self, Merge};

use super::geometry::Geometry;

/// A range of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Swept {
    pub(super) start: u32,
    /// The word that represents its next hop.
    pub(super) code: u32,
}

/// Appends the merged ranges of a prefix; `code` returns the word that represents a next hop.
pub(super) fn sweep<K: Key>(
    routes: &dyn Routes<K>,
    within: Prefix<K>,
    swept: &mut Vec<Swept>,
    budget: &mut Budget,
    mut code: impl FnMut(Option<NextHop>, &mut Budget) -> Result<u32, OutOfMemory>,
) -> Result<(), OutOfMemory> {
    ranges::try_for_each(routes, within, Merge::EqualNeighbours, |range| {
        let code = code(range.next_hop, budget)?;
        budget.push(swept, Swept { start: range.start.to_bits() as u32, code })
    })
}

/// A part of the ranges.
pub(super) enum Piece<'a> {
    /// Chunks that all have one next hop.
    Whole { chunks: Range<usize>, code: u32 },
    /// A chunk that begins with this code and has at least one further range.
    Cut { chunk: usize, code: u32, further: &'a [Swept] },
}

/// Returns the pieces of these chunks, in order. The first range begins where they do.
pub(super) fn pieces(
    swept: &[Swept],
    geometry: Geometry,
    chunks: Range<u64>,
) -> impl Iterator<Item = Piece<'_>> {
    let rest = geometry.rest;
    let start = move |at: usize| swept.get(at).map_or(chunks.end << rest, |range| u64::from(range.start));
    let (mut chunk, mut covering) = (chunks.start, 0);
    core::iter::from_fn(move || {
        if chunk == chunks.end {
            return None;
        }
        let code = swept[covering].code;
        let first = chunk as usize;
        let next_chunk = start(covering + 1) >> rest;
        let piece = if next_chunk > chunk {
            chunk = next_chunk;
            Piece::Whole { chunks: first..chunk as usize, code }
        } else {
            let inside = swept[covering + 1..].iter();
            let count = inside.take_while(|range| u64::from(range.start) >> rest == chunk).count();
            let further = &swept[covering + 1..][..count];
            covering += count;
            chunk += 1;
            Piece::Cut { chunk: first, code, further }
        };
        // A range that starts where the chunk does is the first range of the chunk.
        covering += usize::from(start(covering + 1) == chunk << rest && chunk < chunks.end);
        Some(piece)
    })
}
