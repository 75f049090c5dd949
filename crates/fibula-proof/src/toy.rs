//! The small address spaces, in which a test can try everything.

use fibula::net::{Key, NextHop, Prefix, Route};

/// Returns all prefixes of the space, in order: 15 of 3 bits, 511 of 8.
#[must_use]
pub fn prefixes<K: Key>() -> Vec<Prefix<K>> {
    let of_len = |len: u8| (0..1u128 << len).map(move |bits| (bits << (K::BITS - len), len));
    let mut all: Vec<_> = (0..=K::BITS)
        .flat_map(of_len)
        .map(|(bits, len)| Prefix::masked(K::from_bits(bits), len).expect("the length fits"))
        .collect();
    all.sort_unstable();
    all
}

/// Returns all addresses of the space.
#[must_use]
pub fn keys<K: Key>() -> Vec<K> {
    (0..=K::MAX.to_bits()).map(K::from_bits).collect()
}

/// The answer of every address: the definition, painted. Shorter prefixes first, longer ones over them.
pub fn paint<K: Key>(routes: &[Route<K>], canvas: &mut [Option<NextHop>]) {
    canvas.fill(None);
    for len in 0..=K::BITS {
        for route in routes.iter().filter(|route| route.prefix.len() == len) {
            let (first, last) = (route.prefix.addr().to_bits(), route.prefix.last().to_bits());
            canvas[first as usize..=last as usize].fill(Some(route.next_hop));
        }
    }
}

/// Returns the next hop of this id.
///
/// # Panics
/// For 0.
#[must_use]
pub fn hop(id: u32) -> NextHop {
    NextHop::new(id).expect("test ids are not zero")
}
