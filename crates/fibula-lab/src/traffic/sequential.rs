//! SEQ: the keys of RND, each asked only once the answer before it is known (DXR section 4.1).
//!
//! The keys alone do not make it so: the benchmark asks dependent traffic so that each key waits for an answer.

use fibula::net::{Key, Routes};

use super::{Pattern, TrafficError, uniform};

pub(super) fn pattern<K: Key>() -> Pattern<K> {
    Pattern {
        name: "seq",
        summary: "the keys of rnd, each waiting for the answer before it: latency rather than throughput",
        dependent: true,
        generate: keys,
    }
}

fn keys<K: Key>(routes: &dyn Routes<K>, count: usize, seed: u64) -> Result<Vec<K>, TrafficError> {
    uniform::of("seq", routes, count, seed)
}
