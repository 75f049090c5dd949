//! MATCH: a random prefix of the table, then a random address below it (PlanB section 4's traces).

use core::ops::ControlFlow;

use fibula::net::{Key, Prefix, Routes};

use super::{NoRoutes, Pattern};
use crate::random::Random;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "match",
        summary: "a random address below a random prefix of the table: every lookup has an answer",
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, NoRoutes> {
    let mut prefixes = Vec::with_capacity(routes.len());
    let _ = routes.visit(Prefix::ALL, &mut |route| {
        prefixes.push(route.prefix);
        ControlFlow::Continue(())
    });
    if prefixes.is_empty() && count > 0 {
        return Err(NoRoutes { pattern: "match" });
    }
    let mut random = Random::new(seed);
    let key = |_| {
        let prefix = prefixes[random.below(prefixes.len() as u64) as usize];
        // Bits behind the prefix only, so that the address stays below it.
        prefix.addr().or(K::from_bits(random.wide()).and(K::mask(prefix.len()).not()))
    };
    Ok((0..count).map(key).collect())
}
