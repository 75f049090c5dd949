//! SEQ: the keys of RND, each looked up only once the answer before it is known (DXR section 4.1).
//!
//! The keys alone do not do that: the benchmark makes each key of dependent traffic wait.

use fibula::net::{Key, Routes};

use super::{Pattern, TrafficError, uniform};

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "seq",
        summary: "the rnd keys, each waiting for the answer before it: latency instead of throughput",
        dependent: true,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    uniform::of("seq", routes, count, seed)
}
