//! REP: every key of RND sixteen times in a row (DXR section 4.1).

use fibula::net::{Key, Routes};

use super::{Pattern, TrafficError, uniform};

/// How often each key is repeated.
const TIMES: usize = 16;

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "rep",
        summary: "each rnd key 16 times in a row: all but the first lookup find everything in the cache",
        dependent: false,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    let keys = uniform::of("rep", routes, count.div_ceil(TIMES), seed)?;
    Ok(keys.into_iter().flat_map(|key| [key; TIMES]).take(count).collect())
}
