//! What a table looks like, as data.
//!
//! The numbers of [`Profile::ipv4`] and [`Profile::ipv6`] were read off full default-free tables of 2023 and
//! 2024 and rounded; they hold no prefix of any real table. Zones and reserved space are those of the
//! IANA registries.

use fibula::net::{Family, Key};

use super::TableError;

/// The parameters of a generated table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The prefix lengths that occur, ascending.
    pub lengths: Vec<Length>,
    /// Where prefixes lie that no other covers.
    pub zones: Vec<Zone>,
    /// Blocks that no prefix may touch, in ascending order.
    pub reserved: Vec<Block>,
    /// How prefixes that no other covers follow each other. The first line whose `up_to` reaches a length
    /// serves it.
    pub top_gaps: Vec<Gaps>,
    /// How prefixes follow each other inside the one that covers them; read as `top_gaps` is.
    pub nested_gaps: Vec<Gaps>,
    /// Which prefixes cover others.
    pub nesting: Nesting,
    /// Who uses which next hop.
    pub next_hops: NextHops,
}

/// A prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// The length.
    pub len: u8,
    /// How many of the routes have it, in proportion to the other lines.
    pub weight: u32,
    /// How many in a thousand of these lie inside a shorter prefix.
    pub nested_permille: u32,
}

/// A block of the address space, `len` bits from `addr` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First address, right-aligned in the family's width.
    pub addr: u128,
    /// Length.
    pub len: u8,
}

/// A block with its share of the prefixes that no other covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// The block. Zones do not overlap and are listed in ascending order.
    pub block: Block,
    /// Its share, in proportion to the other zones.
    pub weight: u32,
}

/// Distances from one prefix to the next of the same length, which is what makes clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// The longest length that this is for.
    pub up_to: u8,
    /// Weight of each octave of distances in units of the prefix: 1, 2-3, 4-7, and so on.
    pub octaves: Vec<u32>,
    /// Weight, beside those of the octaves, of a jump to any other place.
    pub jump: u32,
}

/// Which prefixes cover others: a few cover very many, most cover none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nesting {
    /// How many prefixes in a thousand never cover another, if it can be helped.
    pub idle_permille: u32,
    /// The others' attraction grows with probability one half again and again: by two to the power of this.
    pub attraction_step: u32,
    /// It grows to two to the power of this at most.
    pub attraction_doublings: u32,
    /// For each bit that a cover is shorter than what is put into it, its attraction grows by two to the power
    /// of this many sixteenths.
    pub growth_sixteenths: u32,
    /// What is left of the attraction for each cover that the cover itself has.
    pub depth_permille: u32,
    /// How many in a thousand of those put into a cover are followed by one more for the same cover.
    pub run_permille: u32,
}

/// Who uses which next hop. A prefix has a holder, the holder a next hop; neighbours often have one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHops {
    /// Popularity falls with the rank to the power of this many fifths (5 is Zipf's law with s = 1).
    pub exponent_fifths: u32,
    /// How many prefixes in a thousand have a next hop of their own, whoever holds them.
    pub own_permille: u32,
    /// How many nested prefixes in a thousand have the holder of their cover, the neighbour's aside.
    pub inherit_permille: u32,
    /// How prefixes that no other covers follow their neighbour.
    pub top: Neighbours,
    /// How prefixes follow their neighbour inside the same cover.
    pub nested: Neighbours,
}

/// How often a prefix has the holder of the nearest one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    /// How many in a thousand do where the two touch.
    pub adjacent_permille: u32,
    /// What is left of that, in a thousand, for each octave of distance.
    pub fade_permille: u32,
}

impl Profile {
    /// The profile of the key's family.
    #[must_use]
    pub fn of<K: Key>() -> Self {
        match K::FAMILY {
            Family::Ipv4 => Self::ipv4(),
            Family::Ipv6 => Self::ipv6(),
            Family::Toy => Self::toy(K::BITS),
        }
    }

    /// A default-free IPv4 table.
    #[must_use]
    pub fn ipv4() -> Self {
        Self {
            lengths: lengths(&IPV4_LENGTHS),
            zones: zones(&[(0x0000_0000, 1, 50), (0x8000_0000, 2, 26), (0xc000_0000, 3, 24)]),
            reserved: IPV4_RESERVED.iter().map(|&(addr, len)| Block { addr, len }).collect(),
            top_gaps: vec![
                gaps(16, &[55, 22, 11, 6, 3, 2, 1], 1),
                gaps(20, &[45, 16, 10, 8, 6, 5, 4, 2, 1], 3),
                gaps(21, &[43, 17, 10, 8, 6, 5, 4, 3, 2, 1], 1),
                gaps(22, &[50, 22, 10, 5, 3, 3, 2, 1, 1, 1], 2),
                gaps(23, &[37, 14, 12, 10, 8, 6, 4, 3, 2, 1], 3),
                gaps(32, &[73, 9, 6, 4, 3, 2, 1], 2),
            ],
            nested_gaps: vec![gaps(32, &[72, 11, 6, 4, 3, 2, 1], 1)],
            nesting: Nesting {
                idle_permille: 530,
                attraction_step: 2,
                attraction_doublings: 16,
                growth_sixteenths: 8,
                depth_permille: 720,
                run_permille: 880,
            },
            next_hops: NextHops {
                exponent_fifths: 6,
                own_permille: 100,
                inherit_permille: 840,
                top: Neighbours { adjacent_permille: 690, fade_permille: 740 },
                nested: Neighbours { adjacent_permille: 820, fade_permille: 880 },
            },
        }
    }

    /// A default-free IPv6 table.
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
            top_gaps: vec![
                gaps(31, &[1, 2, 2, 28, 33, 23, 9, 1], 1),
                gaps(32, &[28, 2, 18, 13, 5, 6, 9, 9, 6, 3, 1], 1),
                gaps(39, &[50, 8, 3, 2, 3, 4, 3, 2, 2, 2, 2, 2, 2, 2], 12),
                gaps(40, &[66, 7, 4, 3, 2, 1, 1, 2, 1], 12),
                gaps(46, &[60, 7, 5, 4, 3, 2, 1, 2, 2, 1], 12),
                gaps(128, &[52, 6, 6, 5, 3, 2, 2, 3, 3, 1, 1, 1, 1], 13),
            ],
            nested_gaps: vec![
                gaps(34, &[98, 1], 1),
                gaps(40, &[81, 8, 3, 3, 2, 1], 1),
                gaps(47, &[70, 10, 5, 4, 6, 2, 1, 1], 1),
                gaps(128, &[70, 12, 5, 3, 2, 2, 1, 1, 1, 1], 2),
            ],
            nesting: Nesting {
                idle_permille: 600,
                attraction_step: 2,
                attraction_doublings: 16,
                growth_sixteenths: 4,
                depth_permille: 850,
                run_permille: 850,
            },
            next_hops: NextHops {
                exponent_fifths: 6,
                own_permille: 100,
                inherit_permille: 780,
                top: Neighbours { adjacent_permille: 760, fade_permille: 700 },
                nested: Neighbours { adjacent_permille: 800, fade_permille: 970 },
            },
        }
    }

    /// The IPv4 profile squeezed into `bits` bits, over the whole space, with a few host routes, for tests that
    /// ask every address.
    #[must_use]
    pub fn toy(bits: u8) -> Self {
        let mut scaled: Vec<Length> = Vec::new();
        for &(len, weight, nested_permille) in &IPV4_LENGTHS {
            let len = (u32::from(len) * u32::from(bits) / 32) as u8;
            match scaled.last_mut() {
                Some(last) if last.len == len => {
                    last.weight += weight;
                    last.nested_permille = last.nested_permille.max(nested_permille);
                }
                _ => scaled.push(Length { len, weight, nested_permille }),
            }
        }
        scaled.push(Length { len: bits, weight: 40_000, nested_permille: 800 });
        Self {
            lengths: scaled,
            zones: zones(&[(0, 0, 1)]),
            reserved: Vec::new(),
            top_gaps: vec![gaps(bits, &[60, 20, 10], 10)],
            ..Self::ipv4()
        }
    }

    /// Adds host routes and other prefixes longer than those a default-free table has: `weight` of them,
    /// in proportion to the lines of [`lengths`](Self::lengths), 90 % of them of full width and all nested.
    #[must_use]
    pub fn with_long_prefixes<K: Key>(mut self, weight: u32) -> Self {
        let Some(longest) = self.lengths.last().map(|line| line.len) else { return self };
        let between: Vec<u8> = (longest + 1..K::BITS).collect();
        let share = weight / 10 / (between.len() as u32).max(1);
        let line = |len, weight| Length { len, weight, nested_permille: 1000 };
        self.lengths.extend(between.iter().map(|&len| line(len, share)));
        if longest < K::BITS {
            self.lengths.push(line(K::BITS, weight - share * between.len() as u32));
        }
        self
    }
}

fn lengths(lines: &[(u8, u32, u32)]) -> Vec<Length> {
    lines.iter().map(|&(len, weight, nested_permille)| Length { len, weight, nested_permille }).collect()
}

fn zones(lines: &[(u128, u8, u32)]) -> Vec<Zone> {
    lines.iter().map(|&(addr, len, weight)| Zone { block: Block { addr, len }, weight }).collect()
}

fn gaps(up_to: u8, octaves: &[u32], jump: u32) -> Gaps {
    Gaps { up_to, octaves: octaves.to_vec(), jump }
}

/// Length, weight (in a million), nested in a thousand.
const IPV4_LENGTHS: [(u8, u32, u32); 17] = [
    (8, 20, 0),
    (9, 15, 100),
    (10, 40, 50),
    (11, 110, 50),
    (12, 330, 100),
    (13, 650, 150),
    (14, 1_300, 150),
    (15, 2_300, 200),
    (16, 15_000, 240),
    (17, 9_000, 450),
    (18, 15_000, 500),
    (19, 28_000, 400),
    (20, 47_000, 540),
    (21, 56_000, 540),
    (22, 120_000, 450),
    (23, 107_000, 570),
    (24, 597_000, 510),
];

/// Special-purpose IPv4 blocks (RFC 6890) inside the zones.
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

/// Length, weight (in a million), nested in a thousand.
const IPV6_LENGTHS: [(u8, u32, u32); 29] = [
    (20, 60, 0),
    (24, 200, 80),
    (26, 150, 200),
    (28, 700, 230),
    (29, 24_000, 10),
    (30, 3_000, 550),
    (31, 1_500, 350),
    (32, 112_000, 80),
    (33, 22_000, 860),
    (34, 22_000, 800),
    (35, 7_000, 700),
    (36, 37_000, 600),
    (37, 6_000, 800),
    (38, 10_000, 500),
    (39, 7_000, 880),
    (40, 92_000, 660),
    (41, 6_000, 650),
    (42, 11_000, 720),
    (43, 6_000, 520),
    (44, 95_000, 750),
    (45, 12_000, 800),
    (46, 24_000, 730),
    (47, 34_000, 800),
    (48, 463_000, 630),
    (49, 600, 950),
    (50, 200, 800),
    (52, 100, 850),
    (56, 700, 970),
    (64, 3_500, 970),
];

impl Block {
    /// First and last address in a space of `bits` bits.
    pub(super) fn range(self, bits: u8) -> (u128, u128) {
        (self.addr, self.addr | self.host_mask(bits))
    }

    /// The bits behind the prefix.
    fn host_mask(self, bits: u8) -> u128 {
        u128::MAX.checked_shr(128 - u32::from(bits - self.len)).unwrap_or(0)
    }

    fn fits(self, bits: u8) -> bool {
        let space = u128::MAX >> (128 - u32::from(bits));
        self.len <= bits && self.addr <= space && self.addr & self.host_mask(bits) == 0
    }
}

impl Profile {
    /// What the generator relies on.
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
        for lines in [&self.top_gaps, &self.nested_gaps] {
            let reach = lines.iter().any(|line| line.up_to >= longest);
            demand(reach, "its distances between prefixes do not reach the longest length")?;
            let drawable = |line: &Gaps| {
                line.octaves.len() < 127 && line.octaves.iter().any(|&weight| weight > 0) | (line.jump > 0)
            };
            demand(lines.iter().all(drawable), "its distances between prefixes have no weight")?;
        }
        let permilles = [
            self.nesting.idle_permille,
            self.nesting.depth_permille,
            self.nesting.run_permille,
            self.next_hops.own_permille,
            self.next_hops.inherit_permille,
            self.next_hops.top.adjacent_permille,
            self.next_hops.top.fade_permille,
            self.next_hops.nested.adjacent_permille,
            self.next_hops.nested.fade_permille,
        ];
        let shares = self.lengths.iter().map(|line| line.nested_permille).chain(permilles);
        demand(shares.max().unwrap_or(0) <= 1000, "one of its shares is above 1,000 in a thousand")?;
        // So that weights stay within their words.
        let Nesting { attraction_step, attraction_doublings, .. } = self.nesting;
        demand(attraction_step.max(attraction_doublings) <= 30, "its attraction doubles more than 30 times")?;
        demand(self.next_hops.exponent_fifths <= 20, "its popularity falls faster than the fourth power")
    }
}
