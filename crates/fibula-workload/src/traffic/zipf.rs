//! ZIPF: a few prefixes get most of the traffic. The prefix of rank r is drawn in proportion to 1 / r (Zipf's law
//! with s = 1.0), then a random address in it. Ranks are shuffled.

use fibula::net::{Key, Routes};

use super::{Pattern, TrafficError, matching};
use crate::random::{Random, Weighted};

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "zipf",
        summary: "a random address in a prefix drawn by Zipf's law, s = 1.0, ranks shuffled: caches help",
        dependent: false,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    let mut prefixes = matching::prefixes(routes);
    let Some(ranks) = Weighted::new((1..=prefixes.len() as u64).map(|rank| (1 << 40) / rank)) else {
        return if count == 0 { Ok(Vec::new()) } else { Err(TrafficError::NoRoutes { pattern: "zipf" }) };
    };
    let mut random = Random::new(seed);
    random.shuffle(&mut prefixes);
    let key = |_| {
        let prefix = prefixes[ranks.draw(&mut random)];
        matching::below(prefix, &mut random)
    };
    Ok((0..count).map(key).collect())
}
