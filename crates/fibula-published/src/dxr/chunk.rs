//! Ranges of a chunk to entries of the range table.

use fibula::unstable::memory::Buffer;

use super::geometry::{Geometry, Split};
use super::layout::{HALVES, SHORT, SHORT_CODE_BITS};
use super::sweep::Swept;

/// Returns whether short entries can hold the chunk. Only the stored bases and codes matter, not the lengths of its
/// prefixes.
pub(super) fn is_short(code: u32, further: &[Swept], geometry: Geometry) -> bool {
    let dropped = (1 << geometry.dropped) - 1;
    code < geometry.short_codes
        && further.iter().all(|range| range.start & dropped == 0 && range.code < geometry.short_codes)
}

/// Returns the address bits after the index at which a range starts.
pub(super) fn base(range: &Swept, geometry: Geometry) -> u32 {
    range.start & ((1 << geometry.rest) - 1)
}

/// Appends a chunk in the paper's format, for which there must be room. Returns its direct entry at position 0.
pub(super) fn append(
    ranges: &mut Buffer<u16>,
    code: u32,
    further: &[Swept],
    geometry: Geometry,
    split: Split,
) -> u32 {
    let short = is_short(code, further, geometry);
    let (entries, shift) = (further.len() as u64 + 1, split.shift);
    let end = ranges.len() + Split::units(entries, short, shift) as usize * HALVES;
    // Padding repeats the last entry, so that a search may find either.
    if short {
        ranges.push(code as u16);
        let entry = |range: &Swept| {
            (base(range, geometry) >> geometry.dropped << SHORT_CODE_BITS | range.code) as u16
        };
        ranges.extend(further.iter().map(entry));
        let last = ranges[ranges.len() - 1];
        ranges.resize(end, last);
    } else {
        ranges.extend([0, code as u16]);
        ranges.extend(further.iter().flat_map(|range| [base(range, geometry) as u16, range.code as u16]));
        let last = ranges.len() - HALVES;
        while ranges.len() < end {
            ranges.extend_from_within(last..last + HALVES);
        }
    }
    let size = Split::size_field(entries, shift) as u32;
    if short { SHORT | size << split.position_bits } else { size << split.position_bits }
}
