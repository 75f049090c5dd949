//! RND: independent keys, uniform over the space a router is asked about.
//!
//! For IPv4 that is the routable space, announced or not. For IPv6 it is the announced space: of all of
//! 2000::/3 a full table announces so little that nearly every key would miss. For toy widths it is the whole
//! space.

use core::ops::ControlFlow;

use fibula::net::{Family, Key, Prefix, Routes};

use super::{NoRoutes, Pattern};
use crate::random::Random;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "rnd",
        summary: "uniform over routable IPv4 space, over announced IPv6 space: lookups share nothing",
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, NoRoutes> {
    let mut random = Random::new(seed);
    match K::FAMILY {
        Family::Ipv4 => Ok((0..count).map(|_| routable(&mut random)).collect()),
        Family::Toy => Ok((0..count).map(|_| K::from_bits(random.wide())).collect()),
        Family::Ipv6 => {
            let announced = Announced::new(routes);
            if announced.is_empty() && count > 0 {
                return Err(NoRoutes { pattern: "rnd" });
            }
            Ok((0..count).map(|_| announced.draw(&mut random)).collect())
        }
    }
}

/// An IPv4 address outside "this network", private 10/8, loopback, multicast and what lies above: the DXR paper's
/// reserved ranges.
fn routable<K: Key>(random: &mut Random) -> K {
    loop {
        let addr = random.word() >> 32;
        if !matches!(addr >> 24, 0 | 10 | 127 | 224..) {
            return K::from_bits(addr.into());
        }
    }
}

/// The union of a table's prefixes.
struct Announced<K> {
    /// The prefixes that no other covers, ascending, each with the number of announced addresses before it.
    blocks: Vec<(u128, Prefix<K>)>,
    /// Number of announced addresses less one, which fits even when all are.
    last: u128,
}

impl<K: Key> Announced<K> {
    fn new(routes: &dyn Routes<K>) -> Self {
        let mut blocks: Vec<(u128, Prefix<K>)> = Vec::new();
        let mut last = 0;
        let _ = routes.visit(Prefix::ALL, &mut |route| {
            let prefix = route.prefix;
            if blocks.last().is_none_or(|(_, block)| !block.covers(prefix)) {
                let before = if blocks.is_empty() { 0 } else { last + 1 };
                last = before + (prefix.last().to_bits() - prefix.addr().to_bits());
                blocks.push((before, prefix));
            }
            ControlFlow::Continue(())
        });
        Self { blocks, last }
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn draw(&self, random: &mut Random) -> K {
        let at = random.up_to(self.last);
        let (before, prefix) = self.blocks[self.blocks.partition_point(|&(before, _)| before <= at) - 1];
        K::from_bits(prefix.addr().to_bits() + (at - before))
    }
}

#[cfg(test)]
mod tests {
    use fibula::net::{NextHop, Route, RouteSlice};

    use super::*;

    #[test]
    fn announced_addresses_are_counted_once_and_all_of_them_fit() {
        let announced = |texts: &[&str]| {
            let routes: Vec<Route<u128>> = texts
                .iter()
                .map(|text| Route::new(text.parse().unwrap(), NextHop::new(1).unwrap()))
                .collect();
            let announced = Announced::new(&RouteSlice::new(&routes).unwrap());
            (announced.blocks.len(), announced.last)
        };
        assert_eq!(announced(&["::/0", "2001:db8::/32"]), (1, u128::MAX));
        assert_eq!(announced(&["::/1", "8000::/1", "8000::/2"]), (2, u128::MAX));
        assert_eq!(announced(&["::/120", "::/128", "1::/128"]), (2, 256));
    }
}
