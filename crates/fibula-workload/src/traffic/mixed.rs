//! Mixes of MATCH and MISS in random order: of `mix:70`, 70 % of the keys match (the matching ratio of the Bloomfwd
//! paper). The default route is no match, as in the paper: the rest ends up there, if there is one.

use core::ops::ControlFlow;

use fibula::net::{Key, Prefix, Route, Routes};

use super::{Pattern, TrafficError, matching, missing};
use crate::random::Random;

/// The patterns `mix:0` to `mix:100`.
macro_rules! mixes {
    ($($percent:literal)*) => {
        [$(Pattern {
            name: concat!("mix:", $percent),
            summary: concat!($percent, " % match keys, the rest miss keys"),
            dependent: false,
            generate: |routes, count, seed| keys(concat!("mix:", $percent), $percent, routes, count, seed),
        }),*]
    };
}

/// Finds the mix of this name. A pattern has a static name and a plain function, so there is one of each for every
/// percentage.
pub(super) fn find<K: Key>(name: &str) -> Option<Pattern<K>> {
    let all: [Pattern<K>; 101] = mixes!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38
        39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73
        74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100
    );
    all.into_iter().find(|pattern| pattern.name == name)
}

fn keys<K: Key>(
    pattern: &'static str,
    percent: u8,
    routes: &dyn Routes<K>,
    count: usize,
    seed: u64,
) -> Result<Vec<K>, TrafficError> {
    let routes = &WithoutDefault(routes);
    let matched = (count as u128 * u128::from(percent) + 50) / 100;
    let matched = matched as usize;
    let mut random = Random::new(seed);
    let mut keys = matching::of(pattern, routes, matched, random.word())?;
    keys.extend(missing::of(pattern, routes, count - matched, random.word())?);
    random.shuffle(&mut keys);
    Ok(keys)
}

/// The routes other than the default route.
struct WithoutDefault<'a, K>(&'a dyn Routes<K>);

impl<K: Key> Routes<K> for WithoutDefault<'_, K> {
    fn len(&self) -> usize {
        let mut len = 0;
        let _ = self.visit(Prefix::ALL, &mut |_| {
            len += 1;
            ControlFlow::Continue(())
        });
        len
    }

    fn visit(&self, within: Prefix<K>, each: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.0.visit(within, &mut |route| match route.prefix.len() {
            0 => ControlFlow::Continue(()),
            _ => each(route),
        })
    }

    fn parent(&self, prefix: Prefix<K>) -> Option<Route<K>> {
        self.0.parent(prefix).filter(|parent| parent.prefix.len() > 0)
    }
}
