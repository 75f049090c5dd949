//! Random tables, changes and probes, small enough to be dense: prefixes that nest, touch and repeat.

use std::collections::BTreeMap;

use fibula::net::{Change, Key, NextHop, Prefix, Route};

use crate::toy::hop;

/// Splitmix64 (Steele, Lea, Flood 2014): for tests that need numbers, not quality.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// Returns an address of the whole space.
    pub fn key<K: Key>(&mut self) -> K {
        K::from_bits(u128::from(self.bits()) << 64 | u128::from(self.bits()))
    }

    /// Returns an address inside `prefix`.
    pub fn inside<K: Key>(&mut self, prefix: Prefix<K>) -> K {
        prefix.addr().or(self.key::<K>().and(K::mask(prefix.len()).not()))
    }

    /// Returns a prefix that is likely to nest: its bits come in runs and its start is often one of `anchors`.
    pub fn prefix<K: Key>(&mut self, anchors: &[Prefix<K>]) -> Prefix<K> {
        let len = self.below(usize::from(K::BITS) + 1) as u8;
        let addr = match self.below(4) {
            0 => self.key(),
            1 => K::MAX,
            _ if anchors.is_empty() => K::ZERO,
            2 => {
                let anchor = anchors[self.below(anchors.len())];
                let beside = [anchor.last().next(), anchor.addr().previous()][self.below(2)];
                beside.unwrap_or(anchor.addr())
            }
            _ => {
                let anchor = anchors[self.below(anchors.len())];
                self.inside(anchor)
            }
        };
        Prefix::masked(addr, len).expect("the length fits")
    }
}

/// A table that a test changes: the model, independent of the library's own.
#[derive(Debug, Clone, Default)]
pub struct Model<K: Key>(pub BTreeMap<Prefix<K>, NextHop>);

impl<K: Key> Model<K> {
    /// Returns a random table of about `count` routes and at most `hops` next hops.
    pub fn random(random: &mut Random, count: usize, hops: u32) -> Self {
        let mut model = Self(BTreeMap::new());
        let mut anchors: Vec<Prefix<K>> = Vec::new();
        for _ in 0..count {
            let prefix = random.prefix(&anchors);
            anchors.push(prefix);
            model.0.insert(prefix, hop(1 + random.below(hops as usize) as u32));
        }
        model
    }

    /// Returns the routes in order.
    #[must_use]
    pub fn routes(&self) -> Vec<Route<K>> {
        self.0.iter().map(|(&prefix, &next_hop)| Route::new(prefix, next_hop)).collect()
    }

    /// Applies a change to the model.
    pub fn apply(&mut self, change: Change<K>) {
        match change {
            Change::Insert(route) => self.0.insert(route.prefix, route.next_hop),
            Change::Remove(prefix) => self.0.remove(&prefix),
        };
    }

    /// Returns a change, often of a prefix that is present.
    pub fn change(&self, random: &mut Random, hops: u32) -> Change<K> {
        let present: Option<Prefix<K>> = (!self.0.is_empty() && random.below(3) > 0)
            .then(|| self.0.keys().nth(random.below(self.0.len())).copied())
            .flatten();
        let next_hop = hop(1 + random.below(hops as usize) as u32);
        match (present, random.below(3)) {
            (Some(prefix), 0 | 1) => Change::Remove(prefix),
            (Some(prefix), _) => Change::Insert(Route::new(prefix, next_hop)),
            (None, 0) => Change::Remove(random.prefix(&[])),
            (None, _) => {
                let anchors: Vec<_> = self.0.keys().take(64).copied().collect();
                Change::Insert(Route::new(random.prefix(&anchors), next_hop))
            }
        }
    }

    /// Returns the longest match, by trying every length: nothing but exact look-ups in the model.
    #[must_use]
    pub fn lookup(&self, key: K) -> Option<Route<K>> {
        (0..=K::BITS).rev().find_map(|len| {
            let prefix = Prefix::masked(key, len).ok()?;
            self.0.get(&prefix).map(|&next_hop| Route::new(prefix, next_hop))
        })
    }
}
