//! The shape of a table, as data.
//!
//! The numbers of [`Profile::ipv4`] and [`Profile::ipv6`] describe full default-free tables of 2023 and 2024; they hold
//! no prefix of any real table. Lengths and partings come from the example `fit`, rounded, with a correction that
//! `partings.rs` describes. The shares of [`NextHops`] were measured by `fit` and then set by hand, until the rows on
//! next hops in `docs/tables.md` came close; after a change of these numbers, run the example `tables` and check those
//! rows. Zones and reserved space are those of the IANA registries.

use fibula::net::{Key, KeyKind};

use super::TableError;
use super::partings::{IPV4_PARTINGS, IPV6_PARTINGS};

/// The parameters of a generated table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The prefix lengths that occur, ascending.
    pub lengths: Vec<Length>,
    /// Where prefixes lie.
    pub zones: Vec<Zone>,
    /// Blocks that no prefix may touch, in ascending order.
    pub reserved: Vec<Block>,
    /// How the leaves below a node of the binary trie divide between its halves, ascending by depth. A line is for
    /// its depth and the deeper ones up to the next line's.
    pub partings: Vec<Parting>,
    /// What tables smaller than the one that the partings describe leave empty.
    pub thinning: Thinning,
    /// How often in a hundred a node divides its leaves by length, with the shortest in one half, instead of mixing
    /// them.
    pub sorted_percent: u8,
    /// How fast the number of nodes with leaves grows with the length, up to the number of leaves: it doubles with
    /// every 16 / this many bits. Covers are divided in proportion to it.
    pub cover_spread_sixteenths: u8,
    /// How next hops are assigned.
    pub next_hops: NextHops,
}

/// A prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// The length.
    pub len: u8,
    /// The share of the routes that have it, relative to the other lines.
    pub weight: u32,
    /// How many in a thousand of these contain no other prefix, as far as there is room.
    pub leaf_permille: u32,
}

/// A block of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First address, right-aligned in the family's width.
    pub addr: u128,
    /// Length in bits.
    pub len: u8,
}

/// A block with its share of the prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// The block. Zones do not overlap and are listed in ascending order.
    pub block: Block,
    /// Its share, relative to the other zones.
    pub weight: u32,
}

/// Smaller tables are as dense as large ones, but in fewer places: at some depths of the trie more nodes are
/// one-sided, so that the number of nodes below falls with that of the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thinning {
    /// Number of routes from which on there is no thinning.
    pub routes: usize,
    /// The first of the depths.
    pub from: u8,
    /// The end of the depths, at most eight after the first.
    pub to: u8,
}

/// Number of size classes of nodes: those with 2 or 3 leaves below them, 4 to 7, and so on. The last class has no
/// upper end.
pub const SIZES: usize = 10;

/// How the leaves below a node (prefixes that contain no other) divide between its halves. This makes clusters and
/// empty space at every scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// Depth of the node.
    pub depth: u8,
    /// How often in a hundred the lower half gets the larger part.
    pub low_percent: u8,
    /// How often in a hundred a single leaf is in the lower half.
    pub alone_low_percent: u8,
    /// How often in a hundred one half gets all, by size class.
    pub one_sided_percent: [u8; SIZES],
    /// Where both halves get some, the smaller one gets at least a quarter. That is halved again and again, each time
    /// with this probability in a hundred, by size class.
    pub skew_percent: [u8; SIZES],
}

/// How next hops are assigned. A prefix has a holder, and a holder has a next hop; neighbours often have the same
/// holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHops {
    /// Weights of the most popular next hops.
    pub head: Vec<u32>,
    /// Weight that the most popular next hop would have if it followed the law of the others.
    pub tail: u32,
    /// After the head, popularity falls with the rank to the power of this many fifths (5 is Zipf's law with s = 1).
    pub exponent_fifths: u32,
    /// How many prefixes in a thousand have a next hop of their own, independent of their holder.
    pub own_permille: u32,
    /// How many prefixes without a cover in a thousand have the holder of the prefix before them, by the distance in
    /// units of the prefix: 1, 2-3, 4-7, and so on. The last is for all greater distances.
    pub top_permille: Vec<u32>,
    /// The same for prefixes inside a cover.
    pub nested_permille: Vec<u32>,
    /// The factor in a thousand for those shares where the prefix before has another holder than the cover.
    pub away_permille: u32,
    /// How many in a thousand of the first prefixes in a cover have the cover's holder.
    pub first_permille: u32,
    /// The same for the other prefixes, unless they have the holder of the one before them.
    pub inherit_permille: u32,
}

impl Profile {
    /// Returns the profile of the key's family.
    #[must_use]
    pub fn of<K: Key>() -> Self {
        match K::KIND {
            KeyKind::Ipv4 => Self::ipv4(),
            KeyKind::Ipv6 => Self::ipv6(),
            KeyKind::Toy => Self::toy(K::BITS),
        }
    }

    /// Returns a default-free IPv4 table.
    #[must_use]
    pub fn ipv4() -> Self {
        Self {
            lengths: lengths(&IPV4_LENGTHS),
            zones: zones(&[(0x0000_0000, 1, 50), (0x8000_0000, 2, 26), (0xc000_0000, 3, 24)]),
            reserved: IPV4_RESERVED.iter().map(|&(addr, len)| Block { addr, len }).collect(),
            partings: partings(&IPV4_PARTINGS),
            thinning: Thinning { routes: 900_000, from: 8, to: 16 },
            sorted_percent: 0,
            cover_spread_sixteenths: 1,
            next_hops: NextHops {
                head: vec![2_100, 1_250, 1_160, 440, 430, 370, 320, 210],
                tail: 4_000,
                exponent_fifths: 7,
                own_permille: 100,
                top_permille: vec![410, 249, 231, 240, 258, 258],
                nested_permille: vec![864, 691, 613, 537, 431, 374, 354, 335],
                first_permille: 870,
                away_permille: 850,
                inherit_permille: 550,
            },
        }
    }

    /// Returns a default-free IPv6 table.
    #[must_use]
    pub fn ipv6() -> Self {
        Self {
            lengths: lengths(&IPV6_LENGTHS),
            zones: zones(&[
                (0x2001 << 112, 16, 8),
                (0x2400 << 112, 12, 25),
                (0x2600 << 112, 12, 15),
                (0x2800 << 112, 12, 17),
                (0x2a00 << 112, 12, 34),
                (0x2c00 << 112, 12, 1),
            ]),
            // Protocol assignments (RFC 2928) and documentation (RFC 3849).
            reserved: vec![
                Block { addr: 0x2001 << 112, len: 23 },
                Block { addr: 0x2001_0db8 << 96, len: 32 },
            ],
            partings: partings(&IPV6_PARTINGS),
            thinning: Thinning { routes: 230_000, from: 20, to: 28 },
            sorted_percent: 100,
            cover_spread_sixteenths: 8,
            next_hops: NextHops {
                head: vec![2_170, 1_110, 1_000, 490, 380, 290, 270, 250],
                tail: 4_000,
                exponent_fifths: 7,
                own_permille: 100,
                top_permille: vec![553, 141, 149, 237, 126, 79, 102, 158],
                nested_permille: vec![672, 612, 627, 634, 596, 650, 612, 596, 574, 459],
                first_permille: 880,
                away_permille: 850,
                inherit_permille: 550,
            },
        }
    }

    /// Returns the IPv4 profile scaled to `bits` bits, with the whole space and a few host routes, for tests of every
    /// address.
    #[must_use]
    pub fn toy(bits: u8) -> Self {
        let mut scaled: Vec<Length> = Vec::new();
        for &(len, weight, _) in &IPV4_LENGTHS {
            let len = (u32::from(len) * u32::from(bits) / 32) as u8;
            match scaled.last_mut() {
                Some(last) if last.len == len => {
                    last.weight += weight;
                }
                _ => scaled.push(Length { len, weight, leaf_permille: 900 }),
            }
        }
        scaled.push(Length { len: bits, weight: 40_000, leaf_permille: 900 });
        Self {
            lengths: scaled,
            zones: zones(&[(0, 0, 1)]),
            reserved: Vec::new(),
            partings: partings(&[(0, 50, 50, [25, 15, 8, 4, 2, 1, 0, 0, 0, 0], [40; SIZES])]),
            thinning: Thinning { routes: 0, from: 0, to: 0 },
            ..Self::ipv4()
        }
    }

    /// Adds host routes and other prefixes longer than those of a default-free table, where the table is dense. Their
    /// `weight` is relative to the lines of [`lengths`](Self::lengths); 90 % of them are host routes.
    #[must_use]
    pub fn with_long_prefixes<K: Key>(mut self, weight: u32) -> Self {
        let Some(longest) = self.lengths.last().map(|line| line.len) else { return self };
        let between: Vec<u8> = (longest + 1..K::BITS).collect();
        let share = weight / 10 / (between.len() as u32).max(1);
        let line = |len, weight| Length { len, weight, leaf_permille: 900 };
        self.lengths.extend(between.iter().map(|&len| line(len, share)));
        if longest < K::BITS {
            self.lengths.push(line(K::BITS, weight - share * between.len() as u32));
        }
        self
    }
}

fn lengths(lines: &[(u8, u32, u32)]) -> Vec<Length> {
    let line = |&(len, weight, leaf_permille): &_| Length { len, weight, leaf_permille };
    lines.iter().map(line).collect()
}

/// Depth, `low_percent`, `alone_low_percent`, `one_sided_percent`, `skew_percent`.
pub(super) type PartingLine = (u8, u8, u8, [u8; SIZES], [u8; SIZES]);

fn partings(lines: &[PartingLine]) -> Vec<Parting> {
    let line = |&(depth, low_percent, alone_low_percent, one_sided_percent, skew_percent): &PartingLine| {
        Parting { depth, low_percent, alone_low_percent, one_sided_percent, skew_percent }
    };
    lines.iter().map(line).collect()
}

fn zones(lines: &[(u128, u8, u32)]) -> Vec<Zone> {
    lines.iter().map(|&(addr, len, weight)| Zone { block: Block { addr, len }, weight }).collect()
}

/// Length, weight (in a million), leaves in a thousand.
const IPV4_LENGTHS: [(u8, u32, u32); 17] = [
    (8, 20, 310),
    (9, 10, 150),
    (10, 40, 340),
    (11, 110, 360),
    (12, 330, 400),
    (13, 640, 340),
    (14, 1_300, 360),
    (15, 2_300, 450),
    (16, 15_000, 560),
    (17, 9_100, 590),
    (18, 15_000, 640),
    (19, 28_000, 610),
    (20, 47_000, 750),
    (21, 56_000, 790),
    (22, 120_000, 790),
    (23, 107_000, 810),
    (24, 596_000, 1000),
];

/// Special-purpose IPv4 blocks (RFC 6890) in the zones.
const IPV4_RESERVED: [(u128, u8); 13] = [
    (0x0000_0000, 8),
    (0x0a00_0000, 8),
    (0x6440_0000, 10),
    (0x7f00_0000, 8),
    (0xa9fe_0000, 16),
    (0xac10_0000, 12),
    (0xc000_0000, 24),
    (0xc000_0200, 24),
    (0xc058_6300, 24),
    (0xc0a8_0000, 16),
    (0xc612_0000, 15),
    (0xc633_6400, 24),
    (0xcb00_7100, 24),
];

/// Length, weight (in a million), leaves in a thousand.
const IPV6_LENGTHS: [(u8, u32, u32); 32] = [
    (20, 60, 380),
    (24, 160, 590),
    (25, 50, 670),
    (26, 90, 650),
    (27, 90, 350),
    (28, 670, 580),
    (29, 24_000, 860),
    (30, 3_100, 790),
    (31, 1_500, 730),
    (32, 112_000, 770),
    (33, 22_000, 660),
    (34, 22_000, 860),
    (35, 7_200, 740),
    (36, 37_000, 890),
    (37, 5_800, 920),
    (38, 9_700, 880),
    (39, 7_300, 900),
    (40, 92_000, 920),
    (41, 5_900, 930),
    (42, 11_000, 870),
    (43, 5_600, 760),
    (44, 95_000, 950),
    (45, 12_000, 970),
    (46, 24_000, 930),
    (47, 34_000, 830),
    (48, 463_000, 1000),
    (49, 630, 1000),
    (50, 70, 880),
    (52, 80, 1000),
    (56, 710, 1000),
    (58, 120, 1000),
    (64, 3_500, 1000),
];

impl Block {
    /// Returns the first and the last address in a space of `bits` bits.
    pub(super) fn range(self, bits: u8) -> (u128, u128) {
        (self.addr, self.addr | self.host_mask(bits))
    }

    /// Returns the bits after the prefix.
    fn host_mask(self, bits: u8) -> u128 {
        u128::MAX.checked_shr(128 - u32::from(bits - self.len)).unwrap_or(0)
    }

    fn fits(self, bits: u8) -> bool {
        let space = u128::MAX >> (128 - u32::from(bits));
        self.len <= bits && self.addr <= space && self.addr & self.host_mask(bits) == 0
    }
}

impl Profile {
    /// Checks everything that the generator relies on.
    pub(super) fn check<K: Key>(&self) -> Result<(), TableError> {
        let demand = |holds: bool, fault| if holds { Ok(()) } else { Err(TableError::Profile(fault)) };
        let ascending = self.lengths.windows(2).all(|pair| pair[0].len < pair[1].len);
        demand(ascending, "its lengths are not in ascending order")?;
        let longest = self.lengths.last().map_or(0, |line| line.len);
        demand(longest <= K::BITS, "it has lengths beyond the width of the family")?;
        let zones: Vec<Block> = self.zones.iter().map(|zone| zone.block).collect();
        for (blocks, fault) in [
            (&zones, "its zones are not apart and in ascending order within the family's width"),
            (
                &self.reserved,
                "its reserved blocks are not apart and in ascending order within the family's width",
            ),
        ] {
            let fit = blocks.iter().all(|block| block.fits(K::BITS));
            let apart = || blocks.windows(2).all(|pair| pair[0].range(K::BITS).1 < pair[1].addr);
            demand(fit && apart(), fault)?;
        }
        let ascending = self.partings.windows(2).all(|pair| pair[0].depth < pair[1].depth);
        demand(!self.partings.is_empty() && ascending, "its partings are missing or not in ascending order")?;
        let Thinning { from, to, .. } = self.thinning;
        demand(from <= to && to - from <= 8, "its thinning is for more than eight depths")?;
        let percents = self.partings.iter().flat_map(|line| {
            let sizes = line.one_sided_percent.into_iter().chain(line.skew_percent);
            sizes.chain([line.low_percent, line.alone_low_percent])
        });
        let percents = percents.chain([self.sorted_percent]);
        demand(percents.max().unwrap_or(0) <= 100, "one of its shares is above 100 in a hundred")?;
        let NextHops { own_permille, away_permille, first_permille, inherit_permille, .. } = self.next_hops;
        let shares = self.next_hops.top_permille.iter().chain(&self.next_hops.nested_permille).copied();
        let shares = shares.chain(self.lengths.iter().map(|line| line.leaf_permille));
        let shares = shares.chain([own_permille, away_permille, first_permille, inherit_permille]);
        demand(shares.max().unwrap_or(0) <= 1000, "one of its shares is above 1,000 in a thousand")?;
        demand(self.next_hops.exponent_fifths <= 20, "its popularity falls faster than the fourth power")
    }
}
