//! Which of two routes for a prefix is better.

use core::cmp::Ordering;
use core::fmt;

use crate::event::Peer;

/// The properties that decide between routes for one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// The length of the AS path; `None` if the feed does not have it.
    pub path_len: Option<u32>,
    /// The peer that announces the route; `None` if the feed names no peers.
    pub peer: Option<Peer>,
    /// The number of the feed, in the order in which feeds were given.
    pub feed: u32,
    /// The path identifier (RFC 7911).
    pub path_id: Option<u32>,
}

/// The rule that decides between two routes. Prints as the property of the better route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The table that names no peers: own prefixes override what peers announce.
    OwnTable,
    /// The later feed, where the user asked for that.
    LaterFeed,
    /// The shorter AS path; a path of unknown length comes after all others.
    PathLength,
    /// The lower peer address, then the lower AS; a route without a peer comes after all others.
    Peer,
    /// The earlier feed.
    Feed,
    /// The lower path identifier; a route without one comes first.
    PathId,
    /// Nothing differs: the route that was there first stays.
    First,
}

impl Rule {
    /// The rules of the best path, in the order in which they are applied.
    pub const ALL: [Self; 5] = [Self::PathLength, Self::Peer, Self::Feed, Self::PathId, Self::First];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnTable => "the table without peers",
            Self::LaterFeed => "the later table",
            Self::PathLength => "the shorter AS path",
            Self::Peer => "the lower peer address",
            Self::Feed => "the earlier table",
            Self::PathId => "the lower path identifier",
            Self::First => "the earlier route",
        })
    }
}

impl Rank {
    /// Compares with the rank of a route that came later. Returns whether this one stays, and the rule that decides.
    #[must_use]
    pub fn stays(&self, later: &Self) -> (bool, Rule) {
        let orders = [
            (none_last(self.path_len, later.path_len), Rule::PathLength),
            (none_last(self.peer, later.peer), Rule::Peer),
            (self.feed.cmp(&later.feed), Rule::Feed),
            (self.path_id.cmp(&later.path_id), Rule::PathId),
        ];
        let decided = orders.into_iter().find(|(order, _)| order.is_ne());
        decided.map_or((true, Rule::First), |(order, rule)| (order.is_lt(), rule))
    }
}

/// Compares two values. A missing one comes last.
fn none_last<T: Ord>(one: Option<T>, other: Option<T>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => one.cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANK: Rank = Rank { path_len: Some(3), peer: None, feed: 1, path_id: Some(5) };

    fn peer(address: &str, asn: u32) -> Option<Peer> {
        Some(Peer { address: address.parse().unwrap(), asn })
    }

    /// The first is better than each of the others, by this rule.
    fn check(better: Rank, worse: &[Rank], rule: Rule) {
        for worse in worse {
            assert_eq!(better.stays(worse), (true, rule), "{better:?} {worse:?}");
            assert_eq!(worse.stays(&better), (false, rule), "{better:?} {worse:?}");
        }
    }

    #[test]
    fn the_rules_apply_in_their_order() {
        let len = |path_len| Rank { path_len, ..RANK };
        check(len(Some(0)), &[len(Some(1)), len(Some(u32::MAX)), len(None)], Rule::PathLength);
        check(len(Some(u32::MAX)), &[len(None)], Rule::PathLength);
        let from = |peer| Rank { peer, ..RANK };
        let lowest = from(peer("192.0.2.1", 9));
        let others = [peer("192.0.2.1", 10), peer("192.0.2.2", 1), peer("2001:db8::1", 1), None];
        check(lowest, &others.map(from), Rule::Peer);
        check(Rank { feed: 0, ..RANK }, &[RANK, Rank { feed: 2, ..RANK }], Rule::Feed);
        let path = |path_id| Rank { path_id, ..RANK };
        check(path(None), &[path(Some(0)), RANK], Rule::PathId);
        check(path(Some(4)), &[RANK, path(Some(u32::MAX))], Rule::PathId);
    }

    #[test]
    fn an_earlier_rule_outweighs_the_later_ones() {
        let worst = Rank { path_len: Some(3), peer: None, feed: 9, path_id: Some(9) };
        let shorter = Rank { path_len: Some(2), ..worst };
        let best_but_for_length =
            Rank { path_len: Some(3), peer: peer("192.0.2.1", 1), feed: 0, path_id: None };
        check(shorter, &[best_but_for_length], Rule::PathLength);
        let low = Rank { peer: peer("192.0.2.1", 1), ..worst };
        check(low, &[Rank { peer: peer("192.0.2.2", 1), feed: 0, path_id: None, ..worst }], Rule::Peer);
        check(Rank { feed: 8, ..worst }, &[Rank { path_id: None, ..worst }], Rule::Feed);
    }

    #[test]
    fn of_equal_routes_the_first_stays() {
        assert_eq!(RANK.stays(&RANK), (true, Rule::First));
    }

    #[test]
    fn rules_have_names() {
        let names: Vec<String> = Rule::ALL.iter().map(Rule::to_string).collect();
        assert_eq!(names[0], "the shorter AS path");
        assert!((1..names.len()).all(|at| !names[..at].contains(&names[at])));
    }
}
