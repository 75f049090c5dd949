//! The holders of prefixes, and the next hops that reach them.

use crate::random::{Random, Weighted};

use super::cascade::Place;
use super::profile::NextHops;

/// Assigns next hops to prefixes in order.
pub(super) struct Holders<'a> {
    line: &'a NextHops,
    popularity: Weighted,
    /// Next hop by rank, shuffled so that an id says nothing about its popularity.
    ids: Vec<u32>,
    bits: u8,
    /// The covers of the current prefix, the outermost first.
    open: Vec<OpenPrefix>,
    /// The last prefix that has no cover.
    before: Option<HeldPrefix>,
}

/// A cover, and the last prefix directly inside it.
struct OpenPrefix {
    this: HeldPrefix,
    before: Option<HeldPrefix>,
}

#[derive(Clone, Copy)]
struct HeldPrefix {
    last: u128,
    holder: u32,
}

impl<'a> Holders<'a> {
    /// Returns the holders of a table with `count` next hops, at least 1.
    pub(super) fn new(line: &'a NextHops, count: u32, bits: u8, random: &mut Random) -> Self {
        let weights = (1..=count).map(|rank| match line.head.get(rank as usize - 1) {
            Some(&weight) => u64::from(weight) << 24,
            None => {
                ((u128::from(line.tail) * u128::from(popularity(rank, line.exponent_fifths))) >> 16) as u64
            }
        });
        let mut ids: Vec<u32> = (1..=count).collect();
        random.shuffle(&mut ids);
        let popularity = Weighted::new(weights.map(|weight| weight.max(1))).expect("every rank has a weight");
        Self { line, popularity, ids, bits, open: Vec::new(), before: None }
    }

    /// Draws the next hop of the next prefix.
    pub(super) fn next_hop(&mut self, random: &mut Random, place: Place) -> u32 {
        while self.open.last().is_some_and(|cover| cover.this.last < place.addr) {
            self.open.pop();
        }
        let cover = self.open.last();
        let before = cover.map_or(self.before, |cover| cover.before);
        let holder = self.holder(random, place, before, cover.map(|cover| cover.this.holder));
        let last = place.addr | u128::MAX.checked_shr(128 - u32::from(self.bits - place.len)).unwrap_or(0);
        let this = HeldPrefix { last, holder };
        *self.open.last_mut().map_or(&mut self.before, |cover| &mut cover.before) = Some(this);
        self.open.push(OpenPrefix { this, before: None });
        if random.permille(self.line.own_permille) { self.any(random) } else { holder }
    }

    /// Draws the holder of a prefix. A holder is known by its next hop, so two holders may be the same.
    fn holder(
        &self,
        random: &mut Random,
        place: Place,
        before: Option<HeldPrefix>,
        cover: Option<u32>,
    ) -> u32 {
        let shares = if cover.is_some() { &self.line.nested_permille } else { &self.line.top_permille };
        if let Some(before) = before {
            let distance =
                (place.addr - before.last).checked_shr(u32::from(self.bits - place.len)).unwrap_or(0);
            let octave = distance.max(1).ilog2() as usize;
            // The last share is for all greater distances.
            let share = shares.get(octave).or(shares.last()).copied().unwrap_or(0);
            let away = cover.is_some_and(|holder| holder != before.holder);
            let share = if away { share * self.line.away_permille / 1000 } else { share };
            if random.permille(share) {
                return before.holder;
            }
        }
        let inherits = if before.is_none() { self.line.first_permille } else { self.line.inherit_permille };
        match cover {
            Some(holder) if random.permille(inherits) => holder,
            _ => self.any(random),
        }
    }

    fn any(&self, random: &mut Random) -> u32 {
        self.ids[self.popularity.draw(random)]
    }
}

/// 2^40 divided by `rank` to the power of `fifths` / 5, at least 1, in integers.
fn popularity(rank: u32, fifths: u32) -> u64 {
    /// Fractional bits of the root.
    const POINT: u32 = 12;
    let root = fifth_root(u128::from(rank) << (5 * POINT));
    let weight = (0..fifths).fold(1u128 << 40, |weight, _| (weight << POINT) / root);
    weight.max(1) as u64
}

/// Returns the largest number whose fifth power is at most `number`, which is below 2^100.
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
