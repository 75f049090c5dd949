//! From counts to prefixes: a walk down the binary trie that divides the counts between the halves of each node.

use crate::random::Random;

use super::profile::{Block, Parting, Profile, SIZES, Thinning};
use super::share::apportion;
use super::space::{Segment, room, segments};
use super::{TableError, TableSpec};

/// Nodes with more leaves are never sorted by length: tables would differ too much from seed to seed if a whole
/// region had one length.
const SORTED_BELOW: u64 = 1 << 10;

/// A prefix without its next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// First address, right-aligned in the family's width.
    pub(super) addr: u128,
    pub(super) len: u8,
}

/// How many prefixes of a length lie below a node.
#[derive(Debug, Clone, Copy)]
struct Count {
    len: u8,
    /// All of them.
    count: u64,
    /// Those that are to contain no other prefix.
    leaves: u64,
}

/// Generates the prefixes of the table, in order.
pub(super) fn places(
    spec: &TableSpec,
    profile: &Profile,
    bits: u8,
    random: &mut Random,
) -> Result<Vec<Place>, TableError> {
    let segments = segments(profile, bits);
    let all = Block { addr: 0, len: 0 };
    let lines: Vec<_> = profile
        .lengths
        .iter()
        .map(|line| (u64::from(line.weight), room(&segments, bits, all, line.len)))
        .collect();
    let counts = apportion(spec.routes, &lines).ok_or_else(|| TableError::Full {
        limit: lines.iter().filter(|line| line.0 > 0).fold(0, |sum, line| sum.saturating_add(line.1)),
        need: spec.routes,
    })?;
    let rows =
        (0..bits).map(|depth| thinned(*row(&profile.partings, depth), depth, spec.routes, profile)).collect();
    let counts = profile.lengths.iter().zip(counts).filter(|&(_, count)| count > 0);
    let mut counts: Vec<Count> = counts
        .map(|(line, count)| {
            let count = count as u64;
            Count { len: line.len, count, leaves: count * u64::from(line.leaf_permille) / 1000 }
        })
        .collect();
    let longest = counts.last().map_or(0, |count| count.len);
    spread_leaves(&mut counts, longest, room(&segments, bits, all, longest));
    let places = Vec::with_capacity(spec.routes);
    let mut cascade = Cascade { profile, bits, segments, rows, longest, random, counts, places };
    let end = cascade.counts.len();
    cascade.fill(all, false, 0, end);
    Ok(cascade.places)
}

/// Leaves do not overlap. Where they would take nearly all the `room` for prefixes of the `longest` length, the
/// shortest ones become covers.
fn spread_leaves(counts: &mut [Count], longest: u8, room: u128) {
    let mut left = room / 10 * 9;
    for line in counts.iter_mut().rev() {
        let size = 1u128 << (longest - line.len).min(127);
        line.leaves = line.leaves.min(u64::try_from(left / size).unwrap_or(u64::MAX));
        left -= u128::from(line.leaves) * size;
    }
}

/// Returns the line for a depth: the last one that begins at or above it, or else the first.
fn row(partings: &[Parting], depth: u8) -> &Parting {
    let at = partings.partition_point(|line| line.depth <= depth);
    &partings[at.saturating_sub(1)]
}

/// Returns the line with more one-sided nodes, where a table of this many routes has fewer nodes below.
fn thinned(mut line: Parting, depth: u8, routes: usize, profile: &Profile) -> Parting {
    /// Beyond this a small table would shrink to a point.
    const MOST_PERCENT: u64 = 60;
    let Thinning { routes: all, from, to } = profile.thinning;
    if routes >= all || !(from..to).contains(&depth) {
        return line;
    }
    // The share that is left at each depth, in a thousand, multiplied over all depths is the share of the routes.
    let levels = u32::from(to - from);
    let part = |left: u64| u128::from(left).pow(levels) * all as u128;
    let goal = routes as u128 * 1000u128.pow(levels);
    let left = (1..1000).rev().find(|&left| part(left) <= goal).unwrap_or(1);
    for share in &mut line.one_sided_percent {
        // A node has two children, less the share of one-sided nodes.
        let children = (200 - u64::from(*share)) * left / 1000;
        let thinned = 200u64.saturating_sub(children).min(MOST_PERCENT) as u8;
        *share = thinned.max(*share);
    }
    line
}

struct Cascade<'a> {
    profile: &'a Profile,
    bits: u8,
    segments: Vec<Segment>,
    /// By depth.
    rows: Vec<Parting>,
    /// The longest length.
    longest: u8,
    random: &'a mut Random,
    /// Counts of the nodes on the path from the root to the current one; each node's are ascending by length.
    counts: Vec<Count>,
    places: Vec<Place>,
}

impl Cascade<'_> {
    /// Generates the prefixes of a node, whose counts are `counts[start..end]`. `whole` means that the node is known
    /// to lie in one segment. Every count is at most the node's room for it.
    fn fill(&mut self, node: Block, whole: bool, mut start: usize, end: usize) {
        if start < end && self.counts[start].len == node.len {
            self.places.push(Place { addr: node.addr, len: node.len });
            start += 1;
        }
        if start == end {
            return;
        }
        let whole = whole || {
            let (first, last) = node.range(self.bits);
            self.segments.iter().any(|segment| segment.first <= first && segment.last >= last)
        };
        if whole && start + 1 == end && self.counts[start].count == 1 {
            self.alone(node, self.counts[start].len);
            return;
        }
        let len = node.len + 1;
        let addr = node.addr | 1u128 << (self.bits - len);
        let halves = [Block { addr: node.addr, len }, Block { addr, len }];
        self.part(node, halves, whole, start, end);
        // The high half's counts are packed at `end` and the low half's after them, so that each can be truncated
        // once it is used up.
        let lines = end - start;
        let highs = self.pack(end, end + lines);
        self.counts.copy_within(end + lines..end + 2 * lines, highs);
        let lows = self.pack(highs, highs + lines);
        self.counts.truncate(lows);
        self.fill(halves[0], whole, highs, lows);
        self.counts.truncate(highs);
        self.fill(halves[1], whole, end, highs);
        self.counts.truncate(end);
    }

    /// Moves the counts above zero to the front, and returns their end.
    fn pack(&mut self, start: usize, end: usize) -> usize {
        let mut to = start;
        for from in start..end {
            if self.counts[from].count > 0 {
                self.counts[to] = self.counts[from];
                to += 1;
            }
        }
        to
    }

    /// Places a single prefix of `len` bits anywhere in a node that lies in one segment.
    fn alone(&mut self, node: Block, len: u8) {
        let mut addr = node.addr;
        for depth in node.len..len {
            let low = self.rows[usize::from(depth)].alone_low_percent;
            if !self.random.percent(low) {
                addr |= 1u128 << (self.bits - 1 - depth);
            }
        }
        self.places.push(Place { addr, len });
    }

    /// Draws how many of a node's `total` leaves the low half is to get.
    fn wanted(&mut self, node: Block, whole: bool, total: u64) -> u64 {
        if !whole && let Some((low, both)) = self.zone_weights(node) {
            let exact = u128::from(total) * u128::from(low);
            let up = u128::from(self.random.below(both)) < exact % u128::from(both);
            return (exact / u128::from(both)) as u64 + u64::from(up);
        }
        if total < 2 {
            let low = self.rows[usize::from(node.len)].alone_low_percent;
            return total * u64::from(self.random.percent(low));
        }
        let row = self.rows[usize::from(node.len)];
        let size = (total.ilog2() as usize - 1).min(SIZES - 1);
        let small = if self.random.percent(row.one_sided_percent[size]) {
            0
        } else {
            // The smaller half has a quarter or more, or an eighth to a quarter, and so on.
            let most = (total / 2).ilog2();
            let mut octaves = 0;
            while octaves < most && self.random.percent(row.skew_percent[size]) {
                octaves += 1;
            }
            let (from, to) = ((total >> (octaves + 2)) + 1, (total >> (octaves + 1)).max(1));
            from.min(to) + self.random.below(to - from.min(to) + 1)
        };
        if self.random.percent(row.low_percent) { total - small } else { small }
    }

    /// Weight of the zones in the low half and in both; none if the node lies in one zone.
    fn zone_weights(&self, node: Block) -> Option<(u64, u64)> {
        let (first, last) = node.range(self.bits);
        let middle = node.addr | 1u128 << (self.bits - node.len - 1);
        let zones = || {
            self.profile.zones.iter().filter(|zone| {
                let (start, end) = zone.block.range(self.bits);
                start <= last && end >= first
            })
        };
        zones().nth(1)?;
        let weight = |low: bool| -> u64 {
            let side = zones().filter(|zone| (zone.block.addr < middle) == low);
            // A zone of weight 0 is for what the others cannot hold: it is used almost never, but not never.
            side.map(|zone| u64::from(zone.weight).max(1)).sum()
        };
        Some((weight(true), weight(true) + weight(false)))
    }

    /// Appends the counts of the high half, then those of the low half.
    fn part(&mut self, node: Block, halves: [Block; 2], whole: bool, start: usize, end: usize) {
        let lines = end - start;
        self.counts.extend_from_within(start..end);
        self.counts.extend_from_within(start..end);
        self.part_leaves(node, halves, whole, start, end);
        // Leaves longer than the current line, which it may cover.
        let mut longer = [0u64; 2];
        for index in (0..lines).rev() {
            let line = self.counts[start + index];
            let leaves = self.counts[end + lines + index].leaves;
            let covers = line.count - line.leaves;
            let low = if covers == 0 { 0 } else { self.covers_low(covers, line.len - halves[0].len, longer) };
            let [room_low, room_high] = self.rooms(halves, whole, line.len);
            let least = line.count.saturating_sub(room_high).saturating_sub(leaves);
            let low = low.max(least).min(room_low - leaves).min(covers);
            self.counts[end + lines + index].count = leaves + low;
            let high = &mut self.counts[end + index];
            (high.count, high.leaves) = (line.count - leaves - low, line.leaves - leaves);
            longer = [longer[0] + leaves, longer[1] + line.leaves - leaves];
        }
    }

    /// Sets the leaves of the low half.
    fn part_leaves(&mut self, node: Block, blocks: [Block; 2], whole: bool, start: usize, end: usize) {
        let lines = end - start;
        let total: u64 = self.counts[start..end].iter().map(|count| count.leaves).sum();
        let wanted = self.wanted(node, whole, total);
        let mut halves =
            Halves { wanted, given: 0, free: blocks.map(|half| self.room(half, whole, self.longest)) };
        // A leaf as large as a half has that half to itself.
        let first = self.counts[start];
        let filled = first.len == blocks[0].len && first.leaves == 1 && total > 1;
        let in_low = if wanted * 2 == total { self.random.percent(50) } else { wanted * 2 < total };
        if filled {
            halves.wanted = if in_low { 1 } else { total - 1 };
        }
        // Either every length divides in the same ratio, or one half gets the shortest prefixes and the other the
        // longest.
        let sorted = (total < SORTED_BELOW && self.random.percent(self.profile.sorted_percent))
            .then(|| self.random.percent(50));
        let mut shortest = if sorted == Some(true) { halves.wanted } else { total - halves.wanted };
        for index in 0..lines {
            let line = self.counts[start + index];
            let goal = if filled && index == 0 {
                u64::from(in_low)
            } else if index + 1 == lines {
                halves.wanted.saturating_sub(halves.given)
            } else if let Some(low_first) = sorted {
                let first = line.leaves.min(shortest);
                shortest -= first;
                if low_first { first } else { line.leaves - first }
            } else {
                self.share(line.leaves, halves.wanted, total)
            };
            let bounds = self.bounds(&halves, blocks, whole, line);
            let low = goal.clamp(bounds[0], bounds[1]);
            halves.take(self.size(line.len), [low, line.leaves - low]);
            halves.given += low;
            self.counts[end + lines + index].leaves = low;
        }
        // What the longest length could not make up for goes to the others.
        for index in (0..lines).rev() {
            if halves.given == halves.wanted {
                break;
            }
            let line = self.counts[start + index];
            let size = self.size(line.len);
            let before = self.counts[end + lines + index].leaves;
            halves.give_back(size, [before, line.leaves - before]);
            let bounds = self.bounds(&halves, blocks, whole, line);
            let goal = (before + halves.wanted).saturating_sub(halves.given);
            let low = goal.clamp(bounds[0], bounds[1]);
            halves.take(size, [low, line.leaves - low]);
            halves.given = halves.given - before + low;
            self.counts[end + lines + index].leaves = low;
        }
    }

    /// How many covers of a length, `bits` longer than the halves, go to the low half, given the leaves that they may
    /// cover: in proportion to the estimated number of nodes of that length that have leaves.
    fn covers_low(&mut self, covers: u64, bits: u8, [low, high]: [u64; 2]) -> u64 {
        if low == 0 && high == 0 {
            return self.share(covers, 1, 2);
        }
        let octaves = u32::from(bits) * u32::from(self.profile.cover_spread_sixteenths);
        // 2^(octaves / 16) in sixteenths, linear between the powers of two.
        let most = u128::from(16 + octaves % 16) << (octaves / 16).min(40);
        let nodes = |leaves: u64| ((u128::from(leaves) * most) << 8) / (u128::from(leaves) * 16 + most);
        let (part, whole) = (nodes(low), nodes(low) + nodes(high));
        let low_covers = self.share(covers, part as u64, whole as u64);
        low_covers.max(covers.saturating_sub(high)).min(low)
    }

    /// `count * part / whole`, rounded at random.
    fn share(&mut self, count: u64, part: u64, whole: u64) -> u64 {
        if count == 0 || part == 0 {
            return 0;
        }
        if part >= whole {
            return count;
        }
        let exact = u128::from(count) * u128::from(part);
        let up = u128::from(self.random.below(whole)) < exact % u128::from(whole);
        (exact / u128::from(whole)) as u64 + u64::from(up)
    }

    /// Returns the size of a leaf, in prefixes of the longest length.
    fn size(&self, len: u8) -> u128 {
        1u128 << (self.longest - len).min(127)
    }

    fn room(&self, half: Block, whole: bool, len: u8) -> u128 {
        if whole { 1u128 << (len - half.len).min(127) } else { room(&self.segments, self.bits, half, len) }
    }

    fn rooms(&self, halves: [Block; 2], whole: bool, len: u8) -> [u64; 2] {
        halves.map(|half| u64::try_from(self.room(half, whole, len)).unwrap_or(u64::MAX))
    }

    /// The fewest and the most of a line's leaves that the low half can take, without overlap as far as possible, and
    /// without equal prefixes in any case.
    fn bounds(&self, halves: &Halves, blocks: [Block; 2], whole: bool, line: Count) -> [u64; 2] {
        let [room_low, room_high] = self.rooms(blocks, whole, line.len);
        let [fit_low, fit_high] = halves.fit(self.size(line.len));
        let [least, most] = [line.leaves.saturating_sub(room_high), line.leaves.min(room_low)];
        let wish = line.leaves.saturating_sub(fit_high);
        [
            wish.min(fit_low).clamp(least, most),
            line.leaves.min(fit_low).max(wish.min(fit_low)).clamp(least, most),
        ]
    }
}

/// The halves of a node while its leaves are divided.
struct Halves {
    /// How many leaves the low half is to get.
    wanted: u64,
    /// How many it has so far.
    given: u64,
    /// Free room in each half, in prefixes of the longest length.
    free: [u128; 2],
}

impl Halves {
    /// How many leaves of a size each half can take.
    fn fit(&self, size: u128) -> [u64; 2] {
        self.free.map(|free| u64::try_from(free / size).unwrap_or(u64::MAX))
    }

    fn take(&mut self, size: u128, leaves: [u64; 2]) {
        for (free, leaves) in self.free.iter_mut().zip(leaves) {
            *free = free.saturating_sub(u128::from(leaves) * size);
        }
    }

    fn give_back(&mut self, size: u128, leaves: [u64; 2]) {
        for (free, leaves) in self.free.iter_mut().zip(leaves) {
            *free = free.saturating_add(u128::from(leaves) * size);
        }
    }
}
