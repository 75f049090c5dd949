//! MATCH: a random prefix of the table, then a random address below it (PlanB section 4's traces).

use core::ops::ControlFlow;

use fibula::net::{Key, Prefix, Routes};

use super::{Pattern, TrafficError};
use crate::random::Random;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "match",
        summary: "a random address below a random prefix of the table: every lookup has an answer",
        dependent: false,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    of("match", routes, count, seed)
}

/// The same for a pattern that is made of them.
pub(super) fn of<K: Key>(
    pattern: &'static str,
    routes: &dyn Routes<K>,
    count: usize,
    seed: u64,
) -> Result<Vec<K>, TrafficError> {
    let prefixes = prefixes(routes);
    if prefixes.is_empty() && count > 0 {
        return Err(TrafficError::NoRoutes { pattern });
    }
    let mut random = Random::new(seed);
    let key = |_| {
        let prefix = prefixes[random.below(prefixes.len() as u64) as usize];
        below(prefix, &mut random)
    };
    Ok((0..count).map(key).collect())
}

/// The prefixes of a table, in order.
pub(super) fn prefixes<K: Key>(routes: &dyn Routes<K>) -> Vec<Prefix<K>> {
    let mut prefixes = Vec::with_capacity(routes.len());
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        prefixes.push(route.prefix);
        ControlFlow::Continue(())
    });
    prefixes
}

/// A random address of the prefix.
pub(super) fn below<K: Key>(prefix: Prefix<K>, random: &mut Random) -> K {
    // Bits behind the prefix only, so that the address stays below it.
    prefix.addr().or(K::from_bits(random.wide()).and(K::mask(prefix.len()).not()))
}
