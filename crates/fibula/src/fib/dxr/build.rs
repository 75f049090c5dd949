//! Routes to layout: a sweep that makes ranges, a pass that counts what they need, and one that writes them chunk by
//! chunk.

use core::marker::PhantomData;
use core::ops::ControlFlow;

use crate::fib::BuildError;
use crate::fib::parts::next_hop_dictionary::NextHopDictionary;
use crate::fib::parts::ranges::{self, Merge, Range};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Key, NextHop, Prefix, Routes};

use super::geometry::{Geometry, Needs, Split};
use super::layout::{Compact, Form, HALVES, SHORT, SHORT_CODE_BITS, Wide};
use super::options::{Format, Options};
use super::{Dxr, NAME};

impl<K: Ipv4Key> Dxr<K> {
    /// Builds the structure of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the table does not fit the format, which [`Format::Wide`] rules out.
    ///
    /// # Panics
    /// When `k` is not 16 to 24 for IPv4.
    pub fn build(routes: &dyn Routes<K>, options: Options, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let geometry = Geometry::new(K::BITS, options.k);
        let mut budget = Budget::new(limits);
        let form = match options.format {
            Format::Wide => Form::Wide(Wide::build(routes, geometry, &mut budget).map_err(memory)?),
            format => Form::Compact(Compact::build(routes, geometry, format, &mut budget)?),
        };
        Ok(Self { form, geometry, search: options.search, keys: PhantomData })
    }
}

fn memory(error: OutOfMemory) -> BuildError {
    BuildError::memory(NAME, error)
}

/// A range of the whole table.
#[derive(Debug, Clone, Copy)]
struct Swept {
    start: u32,
    /// The word that represents its next hop.
    code: u32,
}

/// Returns the merged ranges of a table; `code` returns the word that represents a next hop.
fn sweep<K: Key>(
    routes: &dyn Routes<K>,
    budget: &mut Budget,
    mut code: impl FnMut(Option<NextHop>, &mut Budget) -> Result<u32, OutOfMemory>,
) -> Result<Vec<Swept>, OutOfMemory> {
    let mut swept = Vec::new();
    let mut add = |range: Range<K>| {
        let code = code(range.next_hop, budget)?;
        budget.push(&mut swept, Swept { start: range.start.to_bits() as u32, code })
    };
    let mut refused = None;
    let _ = ranges::visit(routes, Prefix::ALL, Merge::EqualNeighbours, |range| match add(range) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            refused = Some(error);
            ControlFlow::Break(())
        }
    });
    refused.map_or(Ok(swept), Err)
}

/// A part of the ranges, which are cut at the borders of chunks.
enum Piece<'a> {
    /// A number of chunks that all have one next hop.
    Whole { chunks: usize, code: u32 },
    /// A chunk that begins with this code and has at least one further range.
    Cut { code: u32, further: &'a [Swept] },
}

/// Calls `each` for the pieces in order.
fn cut(swept: &[Swept], geometry: Geometry, mut each: impl FnMut(Piece<'_>)) {
    let Geometry { k, rest, .. } = geometry;
    let start = |at: usize| swept.get(at).map_or(1 << (k + rest), |range| u64::from(range.start));
    let (mut chunk, mut covering) = (0, 0);
    while chunk < 1 << k {
        let code = swept[covering].code;
        let next_chunk = start(covering + 1) >> rest;
        if next_chunk > chunk {
            each(Piece::Whole { chunks: (next_chunk - chunk) as usize, code });
            chunk = next_chunk;
        } else {
            let inside = swept[covering + 1..].iter();
            let count = inside.take_while(|range| u64::from(range.start) >> rest == chunk).count();
            each(Piece::Cut { code, further: &swept[covering + 1..][..count] });
            covering += count;
            chunk += 1;
        }
        // A range that starts where the chunk does is the first range of the chunk.
        covering += usize::from(start(covering + 1) == chunk << rest && chunk < 1 << k);
    }
}

impl Compact {
    fn build<K: Key>(
        routes: &dyn Routes<K>,
        geometry: Geometry,
        format: Format,
        budget: &mut Budget,
    ) -> Result<Self, BuildError> {
        let (swept, dictionary) = Self::number(routes, budget).map_err(memory)?;
        let needs = needs(&swept, geometry);
        let split = needs.split(format, &geometry)?;
        // Everything is allocated at its final size, so that the second pass only writes.
        let mut compact = Self { direct: Buffer::new(), ranges: Buffer::new(), next_hops: Vec::new(), split };
        compact.next_hops = dictionary.into_next_hops(budget).map_err(memory)?;
        compact.direct = budget.buffer(1 << geometry.k).map_err(memory)?;
        let halves = needs.units[usize::from(split.shift)] as usize * HALVES;
        compact.ranges = budget.buffer(halves).map_err(memory)?;
        cut(&swept, geometry, |piece| match piece {
            Piece::Whole { chunks, code } => compact.direct.resize(compact.direct.len() + chunks, code),
            Piece::Cut { code, further } => compact.write(code, further, geometry),
        });
        budget.free(swept);
        Ok(compact)
    }

    /// Returns the ranges with the codes of their next hops: the more ranges a next hop has, the smaller its code.
    fn number<K: Key>(
        routes: &dyn Routes<K>,
        budget: &mut Budget,
    ) -> Result<(Vec<Swept>, NextHopDictionary), OutOfMemory> {
        let mut dictionary = NextHopDictionary::new(budget)?;
        let mut swept = sweep(routes, budget, |next_hop, budget| dictionary.code(next_hop, budget))?;
        let renumbered = dictionary.by_popularity(budget)?;
        for range in &mut swept {
            range.code = renumbered[range.code as usize];
        }
        budget.free(renumbered);
        Ok((swept, dictionary))
    }

    /// Appends a chunk and its direct entry.
    fn write(&mut self, code: u32, further: &[Swept], geometry: Geometry) {
        let short = is_short(code, further, geometry);
        let (entries, shift) = (further.len() as u64 + 1, self.split.shift);
        let first = self.ranges.len();
        let position = ((first / HALVES) >> shift) as u32;
        let size = Split::size_field(entries, shift) as u32;
        self.direct.push(if short { SHORT } else { 0 } | size << self.split.position_bits | position);
        let end = first + Split::units(entries, short, shift) as usize * HALVES;
        let low = |range: &Swept| range.start & ((1 << geometry.rest) - 1);
        let ranges = &mut self.ranges;
        // Padding repeats the last entry, so that a search may find either.
        if short {
            ranges.push(code as u16);
            let entry = |range| (low(range) >> geometry.dropped << SHORT_CODE_BITS | range.code) as u16;
            ranges.extend(further.iter().map(entry));
            let last = ranges[ranges.len() - 1];
            ranges.resize(end, last);
        } else {
            ranges.extend([0, code as u16]);
            ranges.extend(further.iter().flat_map(|range| [low(range) as u16, range.code as u16]));
            let last = ranges.len() - HALVES;
            while ranges.len() < end {
                ranges.extend_from_within(last..last + HALVES);
            }
        }
    }
}

/// Returns whether short entries can hold the chunk. Only the stored bases and codes matter, not the lengths of its
/// prefixes.
fn is_short(code: u32, further: &[Swept], geometry: Geometry) -> bool {
    let dropped = (1 << geometry.dropped) - 1;
    code < geometry.short_codes
        && further.iter().all(|range| range.start & dropped == 0 && range.code < geometry.short_codes)
}

/// Counts what the ranges need of the format.
fn needs(swept: &[Swept], geometry: Geometry) -> Needs {
    let mut needs = Needs::default();
    cut(swept, geometry, |piece| match piece {
        Piece::Whole { code, .. } => needs.direct_code_max = needs.direct_code_max.max(code.into()),
        Piece::Cut { code, further } => {
            let short = is_short(code, further, geometry);
            let entries = further.len() as u64 + 1;
            needs.entries_max = needs.entries_max.max(entries);
            if !short {
                let codes = further.iter().map(|range| range.code);
                let code_max = codes.fold(code, u32::max);
                needs.long_code_max = needs.long_code_max.max(code_max.into());
            }
            // The split is not known yet, so the units are counted for each.
            for shift in 0..=Split::SHIFT_MAX {
                let at = usize::from(shift);
                needs.last_position[at] = needs.units[at];
                needs.units[at] += Split::units(entries, short, shift);
            }
        }
    });
    needs
}

impl Wide {
    fn build<K: Key>(
        routes: &dyn Routes<K>,
        geometry: Geometry,
        budget: &mut Budget,
    ) -> Result<Self, OutOfMemory> {
        let swept = sweep(routes, budget, |next_hop, _| Ok(NextHop::word(next_hop)))?;
        // Chunks are counted first, so that the arrays are allocated at their final size.
        let mut entries = 0;
        cut(&swept, geometry, |piece| {
            if let Piece::Cut { further, .. } = piece {
                entries += further.len() + 1;
            }
        });
        let mut direct: Buffer<[u32; 2]> = budget.buffer(1 << geometry.k)?;
        let mut bases = budget.buffer(entries)?;
        let mut next_hops = budget.buffer(entries)?;
        cut(&swept, geometry, |piece| match piece {
            Piece::Whole { chunks, code } => direct.resize(direct.len() + chunks, [code, 0]),
            Piece::Cut { code, further } => {
                direct.push([bases.len() as u32, further.len() as u32]);
                bases.push(0);
                bases.extend(further.iter().map(|range| (range.start & ((1 << geometry.rest) - 1)) as u16));
                next_hops.push(code);
                next_hops.extend(further.iter().map(|range| range.code));
            }
        });
        budget.free(swept);
        Ok(Self { direct, bases, next_hops })
    }
}
