//! RND: independent keys, uniform over the address space.
//!
//! For IPv4 that is the routable space, announced or not. For IPv6 it is the announced space, because a full table
//! announces so little of 2000::/3 that nearly every key would miss. For toy widths it is the whole space.

use fibula::net::{Key, KeyKind, Routes};

use super::space::{RESERVED_IPV4, Stretches};
use super::{Pattern, TrafficError};
use crate::random::Random;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "rnd",
        summary: "uniform over the routable IPv4 or the announced IPv6 space: no locality",
        dependent: false,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    of("rnd", routes, count, seed)
}

/// Returns the keys of RND, also for other patterns that use them.
pub(super) fn of<K: Key>(
    pattern: &'static str,
    routes: &dyn Routes<K>,
    count: usize,
    seed: u64,
) -> Result<Vec<K>, TrafficError> {
    let mut random = Random::new(seed);
    match K::KIND {
        KeyKind::Ipv4 => Ok((0..count).map(|_| routable(&mut random)).collect()),
        KeyKind::Toy => Ok((0..count).map(|_| K::from_bits(random.wide())).collect()),
        KeyKind::Ipv6 => {
            let announced = Stretches::announced(routes);
            if announced.is_empty() && count > 0 {
                return Err(TrafficError::NoRoutes { pattern });
            }
            Ok((0..count).map(|_| announced.uniform(&mut random)).collect())
        }
    }
}

/// Returns an IPv4 address outside the reserved ranges.
fn routable<K: Key>(random: &mut Random) -> K {
    loop {
        let addr = (random.word() >> 32) as u32;
        let reserved = |&(first, len): &(u32, u8)| (addr ^ first) >> (32 - len) == 0;
        if !RESERVED_IPV4.iter().any(reserved) {
            return K::from_bits(addr.into());
        }
    }
}
