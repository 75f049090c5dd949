//! Tables with room to grow: what was built, in arrays of as many words as changes may come to use.

use core::sync::atomic::Ordering;

use fibula::fib::BuildError;
use fibula::net::{Key, Routes};
use fibula::unstable::memory::{Budget, Limits, OutOfMemory, Shared};
use fibula::unstable::parts::units::Units;

use super::NAME;
use super::codes::Codes;
use super::format::{Changing, Encoded, PAIR};
use super::geometry::{Geometry, Needs};
use super::layout::{Compact, HALVES, LiveCompact, LiveWide, Shape, Wide};
use super::options::Options;
use super::written::Written;

/// Words of an array of which only what is written takes memory: so many times what is used now, and at least this many.
const ROOM: u64 = 8;
const ROOM_WORDS: u64 = 1 << 20;

/// Most words of an array, whose byte offsets lanes can hold.
const MOST_WORDS: u64 = 1 << 29;

/// Least number of codes that there is room for.
const CODES: usize = 1 << 16;

/// A format that can be built with room to grow.
pub(super) trait Room: Changing + Sized {
    fn build<K: Key>(
        routes: &dyn Routes<K>,
        options: Options,
        limits: Limits,
        budget: &mut Budget,
    ) -> Result<(Shape, Written<Self>), BuildError>;
}

fn memory(error: OutOfMemory) -> BuildError {
    BuildError::memory(NAME, error)
}

/// Returns the number of places of arrays that have so many now, `words` in all arrays together each. `most` is the number
/// that could ever be used.
fn places(end: u32, most: u64, words: usize) -> u32 {
    let words = words as u64;
    let wanted = (ROOM * u64::from(end)).max(ROOM_WORDS / words).min(MOST_WORDS / words);
    wanted.min(most).max(end.into()) as u32
}

/// Returns the most places of chunks whose addresses are all ranges of their own, if a place has so many.
fn most_places(geometry: Geometry, entries: u64) -> u64 {
    (1u64 << geometry.rest).div_ceil(entries) << geometry.k
}

/// Returns the list of places of which the first are in use.
fn in_use(end: u32) -> Units {
    let mut units = Units::default();
    let _ = units.append(end);
    units
}

impl Room for LiveCompact {
    fn build<K: Key>(
        routes: &dyn Routes<K>,
        options: Options,
        limits: Limits,
        budget: &mut Budget,
    ) -> Result<(Shape, Written<Self>), BuildError> {
        let geometry = Geometry::new(K::BITS, options.k);
        // Twice of all that has a limit fits, if that is possible.
        let split = |needs: &Needs| {
            let doubled = needs.doubled(geometry).split(options.format, &geometry);
            doubled.or_else(|_| needs.split(options.format, &geometry))
        };
        let Compact { direct, ranges: built, next_hops: hops, split } =
            Compact::build(routes, geometry, split, budget)?;
        let end = ((built.len() / HALVES) >> split.shift) as u32;
        let most = most_places(geometry, 1 << split.shift).min(1 << split.position_bits);
        let places = places(end, most, 1 << split.shift);
        let ranges: Shared<u32> =
            Shared::zeros(((places as usize) << split.shift).max(1), limits.huge_pages).map_err(memory)?;
        budget.charge(built.len() * size_of::<u16>()).map_err(memory)?;
        let next_hops: Shared<u32> =
            Shared::zeros(CODES.max(4 * hops.len()), limits.huge_pages).map_err(memory)?;
        budget.charge(hops.len() * size_of::<u32>()).map_err(memory)?;
        for (to, &next_hop) in next_hops.iter().zip(&hops) {
            to.store(next_hop, Ordering::Relaxed);
        }
        let codes = Codes::new(&hops, budget).map_err(memory)?;
        let form = Self { direct: direct.into(), ranges, next_hops, split };
        let encoded = Encoded { halves: built, next_hops: Vec::new() };
        form.write(0, &encoded);
        budget.free(encoded.halves);
        budget.free(hops);
        let shape = Shape { geometry, search: options.search };
        Ok((shape, Written::new(form, geometry, in_use(end), places, codes)))
    }
}

impl Room for LiveWide {
    fn build<K: Key>(
        routes: &dyn Routes<K>,
        options: Options,
        limits: Limits,
        budget: &mut Budget,
    ) -> Result<(Shape, Written<Self>), BuildError> {
        let geometry = Geometry::new(K::BITS, options.k);
        let built = Wide::build(routes, geometry, budget).map_err(memory)?;
        let chunks = built.direct.iter().filter(|entry| entry[1] > 0);
        let end = chunks.map(|&[_, further]| further / PAIR as u32 + 1).sum();
        let places = places(end, most_places(geometry, PAIR as u64), PAIR);
        let [bases, next_hops] = [PAIR / HALVES, PAIR].map(|words| {
            Shared::<u32>::zeros((places as usize * words).max(1), limits.huge_pages).map_err(memory)
        });
        let mut direct = budget.buffer(built.direct.len()).map_err(memory)?;
        direct.resize(built.direct.len(), 0u64);
        let form = Self { direct: direct.into(), bases: bases?, next_hops: next_hops? };
        budget.charge(4 * end as usize * form.place_words().iter().sum::<usize>()).map_err(memory)?;
        let (mut encoded, mut place) = (Encoded::default(), 0);
        for (at, &[first, further]) in built.direct.iter().enumerate() {
            if further == 0 {
                form.store(at, first.into());
                continue;
            }
            let chunk = first as usize..first as usize + further as usize + 1;
            let ranges = built.bases[chunk.clone()].iter().zip(&built.next_hops[chunk.clone()]);
            let ranges = ranges.map(|(&base, &next_hop)| (base, next_hop));
            encoded.set(chunk.len(), ranges, budget).map_err(memory)?;
            form.write(place, &encoded);
            form.store(at, form.at_place(u64::from(further) << 32, place));
            place += further / PAIR as u32 + 1;
        }
        let Wide { direct, bases, next_hops } = built;
        budget.free(direct);
        budget.free(bases);
        budget.free(next_hops);
        budget.free(encoded.halves);
        budget.free(encoded.next_hops);
        let shape = Shape { geometry, search: options.search };
        Ok((shape, Written::new(form, geometry, in_use(end), places, Codes::default())))
    }
}
