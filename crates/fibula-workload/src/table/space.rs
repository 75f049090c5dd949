//! Where prefixes may be: the zones without the reserved blocks.

use super::profile::{Block, Profile};

/// A stretch of a zone without reserved addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Index of the zone.
    pub(super) zone: usize,
    pub(super) first: u128,
    pub(super) last: u128,
}

/// Returns the zones without the reserved blocks, in order.
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

/// Returns the number of prefixes of `len` bits in `block` that lie in one segment each: the most that a length can
/// hold. Of a space of 2^128 addresses the last one is not counted, because the number would not fit.
pub(super) fn room(segments: &[Segment], bits: u8, block: Block, len: u8) -> u128 {
    let (from, to) = block.range(bits);
    let shift = u32::from(bits - len);
    let low = !(u128::MAX.checked_shl(shift).unwrap_or(0));
    let slot = |addr: u128| addr.checked_shr(shift).unwrap_or(0);
    let inside = |segment: &&Segment| segment.first <= to && segment.last >= from;
    segments.iter().filter(inside).fold(0, |sum: u128, segment| {
        let (first, last) = (segment.first.max(from), segment.last.min(to));
        let start = slot(first).saturating_add(u128::from(first & low != 0));
        let end = slot(last).saturating_add(u128::from(last & low == low));
        sum.saturating_add(end.saturating_sub(start))
    })
}

#[cfg(test)]
mod tests {
    use super::super::profile::Zone;
    use super::*;

    const ALL: Block = Block { addr: 0, len: 0 };

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
    }

    #[test]
    fn room_counts_whole_prefixes_only() {
        let segments = segments(&profile(&[(0, 0)], &[(64, 8)]), 8);
        assert_eq!(room(&segments, 8, ALL, 8), 255);
        assert_eq!(room(&segments, 8, ALL, 2), 3);
        assert_eq!(room(&segments, 8, ALL, 0), 0);
        assert_eq!(room(&segments, 8, Block { addr: 64, len: 2 }, 3), 1);
        assert_eq!(room(&segments, 8, Block { addr: 64, len: 8 }, 8), 0);
        let wide = [Segment { zone: 0, first: 0, last: u128::MAX }];
        assert_eq!(room(&wide, 128, ALL, 0), 1);
        assert_eq!(room(&wide, 128, ALL, 128), u128::MAX);
    }
}
