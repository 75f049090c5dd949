//! Finds the needs of a table in one walk over its routes.

use core::convert::Infallible;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

use fibula::net::{Key, Prefix, Routes};

/// Bits that the first level decides, and each level below it.
const FIRST_BITS: u8 = 24;
const LEVEL_BITS: u8 = 8;

/// The resources that a table will need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Survey {
    pub(super) routes: usize,
    /// The highest next hop.
    pub(super) next_hop_max: u32,
    /// Groups of 256 entries (tbl8): one for each stretch of 24, 32, 40 .. bits that a longer prefix begins with.
    pub(super) groups: u64,
    /// Groups that `rte_fib6` reserves while routes are added in order: see [`Reserved`].
    pub(super) groups_reserved: u64,
    /// Tells tables apart.
    pub(super) hash: u64,
}

impl Survey {
    pub(super) fn new<K: Key>(routes: &dyn Routes<K>) -> Self {
        let mut survey =
            Self { routes: routes.len(), next_hop_max: 0, groups: 0, groups_reserved: 0, hash: 0 };
        let mut hasher = DefaultHasher::new();
        let mut reserved = Reserved { covers: Vec::new() };
        let mut before: Option<Prefix<K>> = None;
        let Ok(()) = routes.try_for_each::<Infallible>(Prefix::ALL, |route| {
            let prefix = route.prefix;
            (prefix.addr().to_bits(), prefix.len(), route.next_hop.id()).hash(&mut hasher);
            survey.next_hop_max = survey.next_hop_max.max(route.next_hop.id());
            survey.groups += levels(prefix.len()) - before.map_or(0, |before| shared(before, prefix));
            survey.groups_reserved += reserved.next(before, prefix);
            before = Some(prefix);
            Ok(())
        });
        survey.hash = hasher.finish();
        survey
    }
}

/// Levels below the first that a prefix of this length goes through.
fn levels(len: u8) -> u64 {
    u64::from(len.saturating_sub(FIRST_BITS).div_ceil(LEVEL_BITS))
}

/// Levels below the first that two prefixes have in common. In a sorted table no earlier prefix shares more levels
/// with a prefix than the one just before it.
fn shared<K: Key>(before: Prefix<K>, prefix: Prefix<K>) -> u64 {
    let common = before.addr().common_len(prefix.addr());
    if common < FIRST_BITS {
        return 0;
    }
    let both = u64::from((common - FIRST_BITS) / LEVEL_BITS) + 1;
    both.min(levels(before.len())).min(levels(prefix.len()))
}

/// How `rte_fib6` (`trie_modify`) counts groups before it adds a route: those between the route and its longest
/// cover, unless another route ends in the same group. This is more than it needs in the end.
struct Reserved<K> {
    covers: Vec<Prefix<K>>,
}

impl<K: Key> Reserved<K> {
    fn next(&mut self, before: Option<Prefix<K>>, prefix: Prefix<K>) -> u64 {
        while self.covers.pop_if(|cover| !cover.covers(prefix)).is_some() {}
        let parent = self.covers.last().map_or(0, |cover| cover.len());
        self.covers.push(prefix);
        let begin = prefix.len() / LEVEL_BITS * LEVEL_BITS;
        let beside =
            |before: Prefix<K>| before.len() > begin && before.addr().common_len(prefix.addr()) >= begin;
        if prefix.len() <= FIRST_BITS || before.is_some_and(beside) {
            return 0;
        }
        levels(prefix.len()).saturating_sub(levels(parent))
    }
}

#[cfg(test)]
mod tests {
    use fibula::net::{NextHop, Route, RouteSlice};

    use super::*;

    fn survey<K: Key>(prefixes: &[&str]) -> Survey
    where
        Prefix<K>: core::str::FromStr<Err: core::fmt::Debug>,
    {
        let hop = |at: usize| NextHop::new(at as u32 + 1).unwrap();
        let mut routes: Vec<_> = prefixes
            .iter()
            .enumerate()
            .map(|(at, text)| Route::new(text.parse().unwrap(), hop(at)))
            .collect();
        routes.sort_unstable();
        Survey::new(&RouteSlice::new(&routes).unwrap())
    }

    #[test]
    fn groups_are_counted_once() {
        let of = |prefixes: &[&str]| survey::<u32>(prefixes).groups;
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&["0.0.0.0/0", "10.0.0.0/24"]), 0);
        assert_eq!(of(&["10.0.0.0/25", "10.0.0.128/32", "10.0.1.0/32"]), 2);
        assert_eq!(of(&["10.0.0.0/25", "10.0.0.0/32", "10.0.0.255/32"]), 1);
    }

    #[test]
    fn groups_of_long_prefixes_are_one_a_level() {
        let of = |prefixes: &[&str]| survey::<u128>(prefixes).groups;
        assert_eq!(of(&["2001:db8::/32"]), 1);
        assert_eq!(of(&["2001:db8::/128"]), 13);
        // The second shares the group after 24 bits, and has its own after 32 and 40.
        assert_eq!(of(&["2001:db8::/48", "2001:db9::/48"]), 5);
        assert_eq!(of(&["2001:db8::/48", "2001:db8:0:1::/64", "2001:db8:1::/48"]), 5);
        // A short prefix between two long ones does not hide the groups that they share.
        assert_eq!(of(&["2001:db8::/128", "2001:db8::1/128", "2001:db8:8000::/33"]), 13);
    }

    #[test]
    fn groups_set_aside_are_never_fewer() {
        let prefixes =
            ["2001:d00::/24", "2001:db8::/48", "2001:db8:1::/48", "2001:db8:100::/40", "2001:db9::/64"];
        let survey = survey::<u128>(&prefixes);
        assert_eq!((survey.groups, survey.next_hop_max), (7, 5));
        assert!(survey.groups_reserved >= survey.groups, "{survey:?}");
    }
}
