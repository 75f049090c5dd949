//! From numbers to prefixes: one length after the other, the shortest first.

use crate::random::{Random, Weighted};

use super::gaps::Spacing;
use super::holders::{Holders, Surroundings};
use super::profile::{Gaps, Length, Profile};
use super::regions::{Region, Regions, Segment, room, segments};
use super::share::apportion;
use super::{TableError, TableSpec};

/// A prefix in the making.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// First address, right-aligned in the family's width.
    pub(super) addr: u128,
    pub(super) len: u8,
    /// How readily it takes longer prefixes in.
    pub(super) attraction: u32,
    pub(super) holder: u32,
    pub(super) next_hop: u32,
}

/// The table's prefixes, sorted.
pub(super) fn entries(spec: &TableSpec, profile: &Profile, bits: u8) -> Result<Vec<Entry>, TableError> {
    let segments = segments(profile, bits);
    let line = |length: &Length| (u64::from(length.weight), room(&segments, bits, length.len));
    let lines: Vec<_> = profile.lengths.iter().map(line).collect();
    let counts = apportion(spec.routes, &lines).ok_or_else(|| TableError::Full {
        limit: lines.iter().filter(|line| line.0 > 0).fold(0, |sum, line| sum.saturating_add(line.1)),
        need: spec.routes,
    })?;
    let mut random = Random::new(spec.seed);
    let holders = Holders::new(&profile.next_hops, spec.next_hops.max(1), &mut random);
    let entries = Vec::with_capacity(spec.routes);
    let regions = Regions::default();
    let mut generator = Generator { profile, bits, segments, random, holders, entries, regions };
    for (length, &count) in profile.lengths.iter().zip(&counts) {
        if count > 0 {
            generator.add(length, count);
        }
    }
    Ok(generator.entries)
}

struct Generator<'a> {
    profile: &'a Profile,
    bits: u8,
    segments: Vec<Segment>,
    random: Random,
    holders: Holders,
    /// Sorted by (address, length) between two lengths.
    entries: Vec<Entry>,
    /// Of no meaning between two lengths.
    regions: Regions,
}

impl Generator<'_> {
    /// Adds `count` prefixes of one length. All present are shorter.
    fn add(&mut self, length: &Length, count: usize) {
        let len = length.len;
        // Taken out for as long as entries are added.
        let mut regions = core::mem::take(&mut self.regions);
        regions.cut(&self.entries, &self.segments, self.bits, len);
        let (covered, free) = (&regions.covered, &regions.free);
        let slots =
            |regions: &[Region]| regions.iter().fold(0, |sum: u128, region| sum.saturating_add(region.slots));
        // What one kind of region cannot hold goes to the other; together they hold the count.
        let nested = (count as u128 * u128::from(length.nested_permille) + 500) / 1000;
        let top = (count as u128 - nested.min(slots(covered))).min(slots(free)) as usize;
        self.add_nested(covered, count - top, len);
        self.add_top(free, top, len);
        self.regions = regions;
        self.entries.sort_by_key(|entry| (entry.addr, entry.len));
    }

    fn add_nested(&mut self, regions: &[Region], count: usize, len: u8) {
        let spacing = spacing(&self.profile.nested_gaps, len);
        let counts = self.nested_counts(regions, count, len);
        let mut places = Vec::new();
        for (region, &count) in regions.iter().zip(&counts) {
            spacing.place(&mut self.random, count, region.slots, &mut places);
            let mut before = None;
            for &place in &places {
                before = Some(self.push(region, place, before, len));
            }
        }
    }

    /// How many prefixes go into each covered region.
    fn nested_counts(&mut self, regions: &[Region], count: usize, len: u8) -> Vec<usize> {
        let mut counts = vec![0; regions.len()];
        let mut left = count;
        let has_room = |counts: &[usize], at: usize| (counts[at] as u128) < regions[at].slots;
        if let Some(weighted) = Weighted::new(regions.iter().map(|region| self.attraction(region, len))) {
            // Enough draws that only a space without room in attractive covers uses them up.
            for _ in 0..4 * count + 64 {
                if left == 0 {
                    break;
                }
                let at = weighted.draw(&mut self.random);
                while left > 0 && has_room(&counts, at) {
                    counts[at] += 1;
                    left -= 1;
                    if !self.random.permille(self.profile.nesting.run_permille) {
                        break;
                    }
                }
            }
        }
        for (count, region) in counts.iter_mut().zip(regions) {
            let more = (region.slots - *count as u128).min(left as u128) as usize;
            *count += more;
            left -= more;
        }
        counts
    }

    /// The region's part of the attraction of its cover.
    fn attraction(&self, region: &Region, len: u8) -> u64 {
        let Some(cover) = region.cover else { return 0 };
        let cover = self.entries[cover as usize];
        if cover.attraction == 0 {
            return 0;
        }
        let bits = len - cover.len;
        let nesting = &self.profile.nesting;
        // 2^(growth / 16), straight between the powers of two; the shift stays far below the width because
        // what lies 2^32 apart is attraction enough.
        let growth = (u32::from(bits) * nesting.growth_sixteenths).min(16 * 32);
        let mut weight = u128::from(cover.attraction) * (u128::from(16 + growth % 16) << (growth / 16));
        for _ in 1..region.depth {
            weight = weight * u128::from(nesting.depth_permille) / 1000;
        }
        // The part of the cover that the region is, in 2^16 so that small parts of small covers count.
        let part = region
            .slots
            .checked_mul(1 << 16)
            .map_or_else(|| (region.slots >> bits.min(127)) << 16, |slots| slots >> bits.min(127));
        u64::try_from((weight * part).max(1) >> 8).unwrap_or(u64::MAX).clamp(1, 1 << 42)
    }

    /// The free regions of a zone count as one stretch, so that clusters run on behind the prefixes in between.
    fn add_top(&mut self, regions: &[Region], count: usize, len: u8) {
        let spacing = spacing(&self.profile.top_gaps, len);
        let zones: Vec<&[Region]> = regions.chunk_by(|a, b| a.zone == b.zone).collect();
        let parts: Vec<(u64, u128)> = zones
            .iter()
            .map(|regions| {
                let slots = regions.iter().fold(0, |sum: u128, region| sum.saturating_add(region.slots));
                // A zone of weight 0 is for what the others cannot hold: as good as never, not never.
                (u64::from(self.profile.zones[regions[0].zone].weight).max(1), slots)
            })
            .collect();
        let counts = apportion(count, &parts).expect("the regions were found to hold the count");
        let mut places = Vec::new();
        for ((regions, &count), &(_, slots)) in zones.iter().zip(&counts).zip(&parts) {
            spacing.place(&mut self.random, count, slots, &mut places);
            let mut regions = regions.iter();
            let (mut region, mut start, mut end) = (None, 0u128, 0u128);
            let mut before = None;
            for &place in &places {
                while place >= end {
                    region = regions.next();
                    start = end;
                    end = end.saturating_add(region.map_or(u128::MAX, |region| region.slots));
                    before = None;
                }
                let region = region.expect("places lie within the regions they were counted from");
                before = Some(self.push(region, place - start, before, len));
            }
        }
    }

    /// Adds the prefix at `place` of the region. `before` is the place and holder of the one added before it to the
    /// same region; its own come back.
    fn push(&mut self, region: &Region, place: u128, before: Option<(u128, u32)>, len: u8) -> (u128, u32) {
        let holder_of = |index: u32| self.entries[index as usize].holder;
        let left = match before {
            Some((at, holder)) => Some((holder, place - at)),
            None => region.left.map(|left| (holder_of(left), place.saturating_add(1))),
        };
        let right = region.right.map(|right| (holder_of(right), region.slots - place));
        let around = Surroundings { left, right, cover: region.cover.map(holder_of) };
        let holder = self.holders.draw(&mut self.random, around);
        let next_hop = self.holders.next_hop(&mut self.random, holder);
        let nesting = &self.profile.nesting;
        let attraction = if self.random.permille(nesting.idle_permille) {
            0
        } else {
            let steps = self.random.word().trailing_ones();
            1 << (steps * nesting.attraction_step).min(nesting.attraction_doublings)
        };
        let addr = (region.first + place) << (self.bits - len).min(127);
        self.entries.push(Entry { addr, len, attraction, holder, next_hop });
        (place, holder)
    }
}

/// The line for `len`; the profile was checked to have one that can be drawn from.
fn spacing(lines: &[Gaps], len: u8) -> Spacing {
    let line = lines.iter().find(|line| line.up_to >= len).expect("the profile was checked");
    Spacing::new(line).expect("the profile was checked")
}
