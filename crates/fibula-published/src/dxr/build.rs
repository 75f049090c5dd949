//! Routes to layout: a sweep that makes ranges, a pass that counts what they need, and one that writes them chunk by
//! chunk.

use core::marker::PhantomData;

use fibula::fib::BuildError;
use fibula::net::{Ipv4Key, Key, NextHop, Prefix, Routes};
use fibula::unstable::memory::{Budget, Buffer, Limits, OutOfMemory};
use fibula::unstable::parts::next_hop_dictionary::NextHopDictionary;

use super::chunk::{self, base, is_short};
use super::geometry::{Geometry, Needs, Split};
use super::layout::{Compact, Form, HALVES, Shape, Wide};
use super::options::{Format, Options};
use super::sweep::{Piece, Swept, pieces, sweep};
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
            format => {
                let split = |needs: &Needs| needs.split(format, &geometry);
                Form::Compact(Compact::build(routes, geometry, split, &mut budget)?)
            }
        };
        let shape = Shape { geometry, search: options.search };
        Ok(Self { form, shape, keys: PhantomData })
    }
}

fn memory(error: OutOfMemory) -> BuildError {
    BuildError::memory(NAME, error)
}

impl Compact {
    /// Builds the paper's format; `split` chooses how the bits of direct entries are split.
    pub(super) fn build<K: Key>(
        routes: &dyn Routes<K>,
        geometry: Geometry,
        split: impl FnOnce(&Needs) -> Result<Split, BuildError>,
        budget: &mut Budget,
    ) -> Result<Self, BuildError> {
        let (swept, dictionary) = Self::number(routes, budget).map_err(memory)?;
        let needs = needs(&swept, geometry);
        let split = split(&needs)?;
        // Everything is allocated at its final size, so that the second pass only writes.
        let mut compact = Self { direct: Buffer::new(), ranges: Buffer::new(), next_hops: Vec::new(), split };
        compact.next_hops = dictionary.into_next_hops(budget).map_err(memory)?;
        compact.direct = budget.buffer(1 << geometry.k).map_err(memory)?;
        let halves = needs.units[usize::from(split.shift)] as usize * HALVES;
        compact.ranges = budget.buffer(halves).map_err(memory)?;
        let Self { direct, ranges, .. } = &mut compact;
        for piece in pieces(&swept, geometry, 0..1 << geometry.k) {
            match piece {
                Piece::Whole { chunks, code } => direct.resize(chunks.end, code),
                Piece::Cut { code, further, .. } => {
                    let position = ((ranges.len() / HALVES) >> split.shift) as u32;
                    direct.push(position | chunk::append(ranges, code, further, geometry, split));
                }
            }
        }
        budget.free(swept);
        Ok(compact)
    }

    /// Returns the ranges with the codes of their next hops: the more ranges a next hop has, the smaller its code.
    fn number<K: Key>(
        routes: &dyn Routes<K>,
        budget: &mut Budget,
    ) -> Result<(Vec<Swept>, NextHopDictionary), OutOfMemory> {
        let mut dictionary = NextHopDictionary::new(budget)?;
        let mut swept = Vec::new();
        sweep(routes, Prefix::ALL, &mut swept, budget, |next_hop, budget| dictionary.code(next_hop, budget))?;
        let renumbered = dictionary.by_popularity(budget)?;
        for range in &mut swept {
            range.code = renumbered[range.code as usize];
        }
        budget.free(renumbered);
        Ok((swept, dictionary))
    }
}

/// Counts what the ranges need of the format.
fn needs(swept: &[Swept], geometry: Geometry) -> Needs {
    let mut needs = Needs::default();
    pieces(swept, geometry, 0..1 << geometry.k).for_each(|piece| match piece {
        Piece::Whole { code, .. } => needs.direct_code_max = needs.direct_code_max.max(code.into()),
        Piece::Cut { code, further, .. } => {
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
    /// Builds the wide format.
    pub(super) fn build<K: Key>(
        routes: &dyn Routes<K>,
        geometry: Geometry,
        budget: &mut Budget,
    ) -> Result<Self, OutOfMemory> {
        let mut swept = Vec::new();
        sweep(routes, Prefix::ALL, &mut swept, budget, |next_hop, _| Ok(NextHop::word(next_hop)))?;
        // Chunks are counted first, so that the arrays are allocated at their final size.
        let sizes = pieces(&swept, geometry, 0..1 << geometry.k).map(|piece| match piece {
            Piece::Whole { .. } => 0,
            Piece::Cut { further, .. } => further.len() + 1,
        });
        let entries = sizes.sum();
        let mut direct: Buffer<[u32; 2]> = budget.buffer(1 << geometry.k)?;
        let mut bases = budget.buffer(entries)?;
        let mut next_hops = budget.buffer(entries)?;
        for piece in pieces(&swept, geometry, 0..1 << geometry.k) {
            match piece {
                Piece::Whole { chunks, code } => direct.resize(chunks.end, [code, 0]),
                Piece::Cut { code, further, .. } => {
                    direct.push([bases.len() as u32, further.len() as u32]);
                    bases.push(0);
                    bases.extend(further.iter().map(|range| base(range, geometry) as u16));
                    next_hops.push(code);
                    next_hops.extend(further.iter().map(|range| range.code));
                }
            }
        }
        budget.free(swept);
        Ok(Self { direct, bases, next_hops })
    }
}
