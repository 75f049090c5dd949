//! Smaller tables of the same shape: routes are removed at random (Bloomfwd, section 6.5).

use fibula::net::Route;

use crate::random::Random;

/// Returns a random 1 in N of the routes, rounded up, in their order. Every choice of this number is equally likely.
///
/// # Panics
/// When `one_in` is 0.
#[must_use]
pub fn remaining<K: Copy>(routes: &[Route<K>], one_in: usize, seed: u64) -> Vec<Route<K>> {
    let mut random = Random::new(seed);
    let mut wanted = routes.len().div_ceil(one_in);
    let mut kept = Vec::with_capacity(wanted);
    for (at, &route) in routes.iter().enumerate() {
        // Selection sampling: of those that are left, so many are still wanted.
        if random.below((routes.len() - at) as u64) < wanted as u64 {
            kept.push(route);
            wanted -= 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use fibula::net::{NextHop, Prefix};

    use super::*;

    #[test]
    fn so_many_are_left_from_everywhere() {
        let route = |at: u32| Route::new(Prefix::masked(at << 12, 20).unwrap(), NextHop::new(1).unwrap());
        let routes: Vec<_> = (0..10_000).map(route).collect();
        for one_in in [1, 2, 16, 10_000, 20_000] {
            let left = remaining(&routes, one_in, 1);
            assert_eq!(left.len(), 10_000_usize.div_ceil(one_in));
            assert!(left.windows(2).all(|pair| pair[0].prefix < pair[1].prefix));
        }
        let half = remaining(&routes, 2, 1);
        let early = half.iter().filter(|route| route.prefix < routes[5_000].prefix).count();
        assert!(early.abs_diff(2_500) < 150, "{early}");
        assert_ne!(half, remaining(&routes, 2, 2));
        assert!(remaining::<u32>(&[], 3, 1).is_empty());
    }
}
