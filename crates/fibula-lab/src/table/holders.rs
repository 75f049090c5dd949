//! Who holds a prefix, and by which next hop it is reached.

use crate::random::{Random, Weighted};

use super::profile::{Neighbours, NextHops};

/// Octaves of distance behind which neighbours are strangers.
const OCTAVES: usize = 24;

/// The next hops of a table.
pub(super) struct Holders {
    popularity: Weighted,
    /// Next hop by rank. Shuffled, so that an id says nothing about its popularity.
    ids: Vec<u32>,
    own_permille: u32,
    inherit_permille: u32,
    top: [u32; OCTAVES],
    nested: [u32; OCTAVES],
}

/// What the surroundings of a prefix suggest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Surroundings {
    /// Holder of the nearest prefix before this one in the same cover, and its distance in slots, from 1 on.
    pub(super) left: Option<(u32, u128)>,
    /// The same of the nearest shorter prefix behind this one.
    pub(super) right: Option<(u32, u128)>,
    /// Holder of the cover.
    pub(super) cover: Option<u32>,
}

impl Holders {
    /// `count` next hops, at least one.
    pub(super) fn new(line: &NextHops, count: u32, random: &mut Random) -> Self {
        let weights = (1..=count).map(|rank| popularity(rank, line.exponent_fifths));
        let mut ids: Vec<u32> = (1..=count).collect();
        for at in (1..ids.len()).rev() {
            ids.swap(at, random.below(at as u64 + 1) as usize);
        }
        Self {
            popularity: Weighted::new(weights).expect("every rank has a weight"),
            ids,
            own_permille: line.own_permille,
            inherit_permille: line.inherit_permille,
            top: by_octave(line.top),
            nested: by_octave(line.nested),
        }
    }

    /// A holder for a prefix. A holder is known by its next hop; two holders may have the same.
    pub(super) fn draw(&self, random: &mut Random, around: Surroundings) -> u32 {
        for (holder, distance) in [around.left, around.right].into_iter().flatten() {
            let shares = if around.cover.is_some() { &self.nested } else { &self.top };
            let share = shares.get(distance.ilog2() as usize).copied().unwrap_or(0);
            if random.permille(share) {
                return holder;
            }
        }
        match around.cover {
            Some(holder) if random.permille(self.inherit_permille) => holder,
            _ => self.any(random),
        }
    }

    /// The next hop of a prefix of this holder.
    pub(super) fn next_hop(&self, random: &mut Random, holder: u32) -> u32 {
        if random.permille(self.own_permille) { self.any(random) } else { holder }
    }

    fn any(&self, random: &mut Random) -> u32 {
        self.ids[self.popularity.draw(random)]
    }
}

fn by_octave(line: Neighbours) -> [u32; OCTAVES] {
    let mut share = line.adjacent_permille;
    core::array::from_fn(|_| {
        let now = share;
        share = share * line.fade_permille / 1000;
        now
    })
}

/// 2^40 over `rank` to the power of `fifths` fifths, at least 1, in integers.
fn popularity(rank: u32, fifths: u32) -> u64 {
    /// Bits behind the point of the root.
    const POINT: u32 = 12;
    let root = fifth_root(u128::from(rank) << (5 * POINT));
    let weight = (0..fifths).fold(1u128 << 40, |weight, _| (weight << POINT) / root);
    weight.max(1) as u64
}

/// The largest number whose fifth power is at most `number`, which is below 2^100.
fn fifth_root(number: u128) -> u128 {
    (0..20).rev().fold(0u128, |root, bit| {
        let more = root | 1 << bit;
        if more.pow(5) <= number { more } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_follows_the_power_law() {
        assert_eq!(fifth_root(32 << 60), 2 << 12);
        assert_eq!(popularity(1, 6), 1 << 40);
        assert_eq!(popularity(32, 5), 1 << 35);
        assert_eq!(popularity(32, 6), 1 << 34);
        assert_eq!(popularity(7, 0), 1 << 40);
        assert!(popularity(u32::MAX, 6) >= 1);
        assert!((1..5000).all(|rank| popularity(rank, 6) >= popularity(rank + 1, 6)));
    }
}
