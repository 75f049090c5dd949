//! Stretches of the address space that a table announces or leaves out.

use core::ops::ControlFlow;

use fibula::net::{Key, KeyKind, Prefix, Routes};

use crate::random::Random;

/// The IPv4 blocks that RND and MISS leave out: "this network", private 10/8, loopback, and multicast with everything
/// above it. The DXR paper excludes "multicast and other reserved ranges" without listing them.
pub const RESERVED_IPV4: [(u32, u8); 4] =
    [(0x0000_0000, 8), (0x0a00_0000, 8), (0x7f00_0000, 8), (0xe000_0000, 3)];

/// Returns the prefixes that RND and MISS leave out. There are some for IPv4 only.
#[must_use]
pub fn reserved<K: Key>() -> Vec<Prefix<K>> {
    if K::KIND != KeyKind::Ipv4 {
        return Vec::new();
    }
    let prefix = |(addr, len): (u32, u8)| Prefix::new(K::from_bits(addr.into()), len);
    RESERVED_IPV4.into_iter().map(|block| prefix(block).expect("the list is aligned")).collect()
}

/// Stretches of addresses, ascending and without overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretches {
    /// First and last address of each.
    pub(super) ends: Vec<(u128, u128)>,
    /// Number of addresses before each.
    before: Vec<u128>,
    /// Number of all addresses minus one, which fits even if they are the whole space.
    last: u128,
}

impl Stretches {
    fn new(ends: Vec<(u128, u128)>) -> Self {
        let mut last = 0u128;
        let mut before = Vec::with_capacity(ends.len());
        for &(start, end) in &ends {
            let count = if before.is_empty() { 0 } else { last + 1 };
            before.push(count);
            last = count + (end - start);
        }
        Self { ends, before, last }
    }

    /// Returns the union of a table's prefixes.
    pub(super) fn announced<K: Key>(routes: &dyn Routes<K>) -> Self {
        let mut ends: Vec<(u128, u128)> = Vec::new();
        let _ = routes.visit(Prefix::ALL, &mut |route| {
            let (first, last) = (route.prefix.addr().to_bits(), route.prefix.last().to_bits());
            if ends.last().is_none_or(|&(_, end)| end < first) {
                ends.push((first, last));
            }
            ControlFlow::Continue(())
        });
        Self::new(ends)
    }

    /// Returns the addresses that no prefix of the table matches, without the reserved blocks.
    pub(super) fn missed<K: Key>(routes: &dyn Routes<K>) -> Self {
        let mut taken = Self::announced(routes).ends;
        taken.extend(reserved::<K>().iter().map(|prefix| (prefix.addr().to_bits(), prefix.last().to_bits())));
        taken.sort_unstable();
        let mut ends = Vec::new();
        // The next address that may be free; none after the end of the space.
        let mut next = Some(0u128);
        for (first, last) in taken {
            let Some(start) = next else { break };
            if first > start {
                ends.push((start, first - 1));
            }
            let next_free = if last == K::MAX.to_bits() { None } else { Some(last + 1) };
            next = next_free.map(|next| next.max(start));
        }
        if let Some(start) = next {
            ends.push((start, K::MAX.to_bits()));
        }
        Self::new(ends)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Draws an address, all equally likely.
    pub(super) fn uniform<K: Key>(&self, random: &mut Random) -> K {
        let at = random.up_to(self.last);
        let index = self.before.partition_point(|&before| before <= at) - 1;
        K::from_bits(self.ends[index].0 + (at - self.before[index]))
    }

    /// Draws an address of a stretch, all stretches equally likely.
    pub(super) fn of_any<K: Key>(&self, random: &mut Random) -> K {
        let (first, last) = self.ends[random.below(self.ends.len() as u64) as usize];
        K::from_bits(first + random.up_to(last - first))
    }
}

#[cfg(test)]
mod tests {
    use fibula::net::{NextHop, Route, RouteSlice, Toy};

    use super::*;

    fn routes<K: Key>(texts: &[&str]) -> Vec<Route<K>> {
        texts.iter().map(|text| Route::new(text.parse().unwrap(), NextHop::new(1).unwrap())).collect()
    }

    #[test]
    fn announced_addresses_are_counted_once_and_all_of_them_fit() {
        let announced = |texts: &[&str]| {
            let announced = Stretches::announced(&RouteSlice::new(&routes::<u128>(texts)).unwrap());
            (announced.ends.len(), announced.last)
        };
        assert_eq!(announced(&["::/0", "2001:db8::/32"]), (1, u128::MAX));
        assert_eq!(announced(&["::/1", "8000::/1", "8000::/2"]), (2, u128::MAX));
        assert_eq!(announced(&["::/120", "::/128", "1::/128"]), (2, 256));
    }

    #[test]
    fn what_is_missed_is_what_is_not_announced() {
        let missed =
            |texts: &[&str]| Stretches::missed(&RouteSlice::new(&routes::<Toy<8>>(texts)).unwrap()).ends;
        assert_eq!(missed(&[]), [(0, 255)]);
        assert_eq!(missed(&["0/0"]), []);
        assert_eq!(missed(&["0/1", "192/2"]), [(128, 191)]);
        assert_eq!(missed(&["64/2", "64/4", "128/8", "255/8"]), [(0, 63), (129, 254)]);
        let ipv4 = Stretches::missed(&RouteSlice::new(&routes::<u32>(&["8.0.0.0/7"])).unwrap());
        assert_eq!(ipv4.ends[..2], [(0x0100_0000, 0x07ff_ffff), (0x0b00_0000, 0x7eff_ffff)]);
        assert_eq!(ipv4.ends[2..], [(0x8000_0000, 0xdfff_ffff)]);
        let wide = Stretches::missed(&RouteSlice::new(&routes::<u128>(&["8000::/1"])).unwrap());
        assert_eq!(wide.ends, [(0, u128::MAX >> 1)]);
    }
}
