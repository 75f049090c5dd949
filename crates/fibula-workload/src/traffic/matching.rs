//! MATCH: a random address in a random prefix of the table, as in the traces of PlanB, section 4.

use core::ops::ControlFlow;

use fibula::net::{Key, Prefix, Routes};

use super::{Pattern, TrafficError};
use crate::random::Random;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "match",
        summary: "a random address in a random prefix of the table: every lookup has an answer",
        dependent: false,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    of("match", routes, count, seed)
}

/// Returns the keys of MATCH, also for other patterns that use them.
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

/// Returns the prefixes of a table, in order.
pub(super) fn prefixes<K: Key>(routes: &dyn Routes<K>) -> Vec<Prefix<K>> {
    let mut prefixes = Vec::with_capacity(routes.len());
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        prefixes.push(route.prefix);
        ControlFlow::Continue(())
    });
    prefixes
}

/// Returns a random address of the prefix.
pub(super) fn below<K: Key>(prefix: Prefix<K>, random: &mut Random) -> K {
    // Only bits after the prefix are random, so that the address stays in it.
    prefix.addr().or(K::from_bits(random.wide()).and(K::mask(prefix.len()).not()))
}
