//! MISS: addresses that no route matches.
//!
//! For IPv4 and toy widths, uniform over the routable space that the table leaves out. For IPv6, a random address in
//! a random gap between routes: nearly the whole space is far from every route, where the first bits decide.

use fibula::net::{Key, KeyKind, Routes};

use super::space::Stretches;
use super::{Pattern, TrafficError};
use crate::random::Random;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "miss",
        summary: "a random address that no route matches; for IPv6, in a gap between routes",
        dependent: false,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    of("miss", routes, count, seed)
}

/// Returns the keys of MISS, also for other patterns that use them.
pub(super) fn of<K: Key>(
    pattern: &'static str,
    routes: &dyn Routes<K>,
    count: usize,
    seed: u64,
) -> Result<Vec<K>, TrafficError> {
    let missed = Stretches::missed(routes);
    if missed.is_empty() && count > 0 {
        return Err(TrafficError::NothingMissed { pattern });
    }
    let mut random = Random::new(seed);
    let key = |_| match K::KIND {
        KeyKind::Ipv6 => missed.of_any(&mut random),
        KeyKind::Ipv4 | KeyKind::Toy => missed.uniform(&mut random),
    };
    Ok((0..count).map(key).collect())
}
