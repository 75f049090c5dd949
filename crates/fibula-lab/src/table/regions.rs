//! The space cut into what is free and what each prefix covers.
//!
//! All addresses are counted in slots here: the places a prefix of the length at work can take.

use super::generate::Entry;
use super::profile::Profile;

/// A stretch of a zone that holds no reserved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Index of the zone.
    pub(super) zone: usize,
    first: u128,
    last: u128,
}

/// A stretch of slots in one hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    /// The first slot.
    pub(super) first: u128,
    /// Number of slots, at least one.
    pub(super) slots: u128,
    /// Index of the longest entry that covers it, none where it is free.
    pub(super) cover: Option<u32>,
    /// Number of entries that cover it.
    pub(super) depth: u8,
    /// Index of the entry that ends right before it, none where its cover or its segment begins.
    pub(super) left: Option<u32>,
    /// Index of the entry that begins right behind it, none where its cover or its segment ends.
    pub(super) right: Option<u32>,
    /// Index of the zone.
    pub(super) zone: usize,
}

/// The regions of a table, kept between lengths for their memory.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// Those that an entry covers.
    pub(super) covered: Vec<Region>,
    /// The others.
    pub(super) free: Vec<Region>,
}

/// The zones without the reserved blocks, in order.
pub(super) fn segments(profile: &Profile, bits: u8) -> Vec<Segment> {
    let mut segments = Vec::new();
    for (zone, line) in profile.zones.iter().enumerate() {
        let (mut first, last) = line.block.range(bits);
        let mut ended = false;
        for (start, end) in profile.reserved.iter().map(|block| block.range(bits)) {
            if end < first || start > last {
                continue;
            }
            if start > first {
                segments.push(Segment { zone, first, last: start - 1 });
            }
            // The reserved block may reach to the end of the zone, or of the space.
            ended = end >= last;
            if ended {
                break;
            }
            first = end + 1;
        }
        if !ended {
            segments.push(Segment { zone, first, last });
        }
    }
    segments
}

impl Segment {
    /// The slots of `len` bits that lie in it wholly, from the first to before the second. The very last slot of
    /// a space of 128-bit slots is lost to the width of the numbers.
    fn slots(self, bits: u8, len: u8) -> (u128, u128) {
        let shift = bits - len;
        let low = !(u128::MAX.checked_shl(shift.into()).unwrap_or(0));
        let first = slot(self.first, shift).saturating_add(u128::from(self.first & low != 0));
        let end = slot(self.last, shift).saturating_add(u128::from(self.last & low == low));
        (first, end.max(first))
    }
}

/// The slot of `addr`, where a slot is `shift` bits wide.
fn slot(addr: u128, shift: u8) -> u128 {
    addr.checked_shr(shift.into()).unwrap_or(0)
}

/// Number of slots of `len` bits in all segments: what a length can hold at most.
pub(super) fn room(segments: &[Segment], bits: u8, len: u8) -> u128 {
    let slots = segments.iter().map(|segment| segment.slots(bits, len));
    slots.fold(0, |sum: u128, (first, end)| sum.saturating_add(end - first))
}

impl Regions {
    /// Cuts the segments into regions of slots of `len` bits, in order. `entries` are sorted, lie within the
    /// segments and are all shorter than `len`, so that every region consists of whole slots.
    pub(super) fn cut(&mut self, entries: &[Entry], segments: &[Segment], bits: u8, len: u8) {
        self.covered.clear();
        self.free.clear();
        let mut sweep = Sweep { regions: self, open: Vec::new(), at: 0, left: None, zone: 0 };
        let mut next = 0;
        for segment in segments {
            let (first, end) = segment.slots(bits, len);
            (sweep.at, sweep.left, sweep.zone) = (first, None, segment.zone);
            while let Some(entry) = entries.get(next)
                && entry.addr <= segment.last
            {
                let start = slot(entry.addr, bits - len);
                sweep.end_before(start);
                sweep.emit(start, Some(next as u32));
                sweep.left = None;
                sweep.open.push((start.saturating_add(1 << (len - entry.len)), next as u32));
                next += 1;
            }
            sweep.end_before(u128::MAX);
            sweep.emit(end, None);
        }
    }
}

struct Sweep<'a> {
    regions: &'a mut Regions,
    /// End and index of the entries that are open, from the outermost in.
    open: Vec<(u128, u32)>,
    /// Up to here all slots are in a region.
    at: u128,
    left: Option<u32>,
    zone: usize,
}

impl Sweep<'_> {
    /// Ends the open entries that do not reach `start`.
    fn end_before(&mut self, start: u128) {
        while let Some(&(end, index)) = self.open.last()
            && end <= start
        {
            self.emit(end, None);
            self.open.pop();
            self.left = Some(index);
        }
    }

    fn emit(&mut self, end: u128, right: Option<u32>) {
        if end > self.at {
            let cover = self.open.last().map(|&(_, index)| index);
            let regions = if cover.is_some() { &mut self.regions.covered } else { &mut self.regions.free };
            regions.push(Region {
                first: self.at,
                slots: end - self.at,
                cover,
                depth: self.open.len() as u8,
                left: self.left,
                right,
                zone: self.zone,
            });
            self.at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::{Block, Zone};
    use super::*;

    fn profile(zones: &[(u128, u8)], reserved: &[(u128, u8)]) -> Profile {
        let block = |&(addr, len): &(u128, u8)| Block { addr, len };
        Profile {
            zones: zones.iter().map(|zone| Zone { block: block(zone), weight: 1 }).collect(),
            reserved: reserved.iter().map(block).collect(),
            ..Profile::toy(8)
        }
    }

    #[test]
    fn reserved_blocks_are_cut_out_of_the_zones() {
        let cut = |zones: &[(u128, u8)], reserved: &[(u128, u8)]| -> Vec<(usize, u128, u128)> {
            let segments = segments(&profile(zones, reserved), 8);
            segments.iter().map(|segment| (segment.zone, segment.first, segment.last)).collect()
        };
        assert_eq!(cut(&[(0, 0)], &[]), [(0, 0, 255)]);
        assert_eq!(cut(&[(0, 0)], &[(0, 4), (64, 8), (240, 4)]), [(0, 16, 63), (0, 65, 239)]);
        assert_eq!(cut(&[(0, 1), (128, 1)], &[(128, 1)]), [(0, 0, 127)]);
        assert_eq!(cut(&[(0, 1), (128, 1)], &[(0, 0)]), []);
        let segments = segments(&profile(&[(0, 0)], &[(64, 8)]), 8);
        assert_eq!(room(&segments, 8, 8), 255);
        assert_eq!(room(&segments, 8, 2), 3);
        assert_eq!(room(&segments, 8, 0), 0);
    }

    #[test]
    fn regions_are_free_or_belong_to_the_longest_cover() {
        let entry = |addr, len| Entry { addr, len, ..Entry::default() };
        let entries = [entry(64, 2), entry(64, 4), entry(96, 4), entry(112, 4), entry(192, 2)];
        let segments = segments(&profile(&[(0, 0)], &[]), 8);
        let mut regions = Regions::default();
        regions.cut(&entries, &segments, 8, 5);
        let lines = |regions: &[Region]| -> Vec<_> {
            let line = |region: &Region| {
                (region.first, region.slots, region.cover, region.depth, region.left, region.right)
            };
            regions.iter().map(line).collect()
        };
        assert_eq!(
            lines(&regions.free),
            [(0, 8, None, 0, None, Some(0)), (16, 8, None, 0, Some(0), Some(4))]
        );
        assert_eq!(
            lines(&regions.covered),
            [
                (8, 2, Some(1), 2, None, None),
                (10, 2, Some(0), 1, Some(1), Some(2)),
                (12, 2, Some(2), 2, None, None),
                (14, 2, Some(3), 2, None, None),
                (24, 8, Some(4), 1, None, None),
            ]
        );
    }
}
