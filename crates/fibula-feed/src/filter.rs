//! Chooses the routes of a feed by their attributes and times.

use core::fmt;
use core::str::FromStr;

use regex::Regex;

use crate::event::{Action, Event};
use crate::next_hops::Label;
use crate::text::BgpdumpFields;
use crate::value::{Facts, Value, asn};

/// Takes the routes that pass every condition; an empty condition is passed by all.
///
/// An update that does not pass withdraws its peer's earlier announcement for the same path, because the peer no longer
/// has that route. Records outside the times are not read at all.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Filter {
    /// One of these ASes announced the prefix.
    pub origin_as: Vec<u32>,
    /// The AS path matches.
    pub as_path: Option<AsPathPattern>,
    /// The route has a community that matches one of these.
    pub communities: Vec<CommunityPattern>,
    /// Recorded at this time or later: seconds since 1970.
    pub from: Option<u32>,
    /// Recorded at this time or earlier: seconds since 1970.
    pub until: Option<u32>,
}

impl Filter {
    /// Returns whether routes are judged by their attributes.
    pub(crate) fn needs_attributes(&self) -> bool {
        !self.origin_as.is_empty() || self.as_path.is_some() || !self.communities.is_empty()
    }

    /// Returns whether a record of this time is read.
    pub(crate) fn is_in_time(&self, seconds: u32) -> bool {
        self.from.is_none_or(|from| from <= seconds) && self.until.is_none_or(|until| seconds <= until)
    }

    /// Returns the event as it counts: `None` if a table dump's route is left out, a withdrawal if an update is.
    pub(crate) fn judge(&self, event: Event, fields: Option<BgpdumpFields<'_>>) -> Option<Event> {
        if !self.needs_attributes() || Facts::of(&event, fields).is_none_or(|facts| self.passes(&facts)) {
            return Some(event);
        }
        match &event.action {
            Action::Announce(route) if !route.dumped => {
                let action = Action::Withdraw(route.path);
                Some(Event { action, ..event })
            }
            _ => None,
        }
    }

    /// Returns whether a route of a plain table passes, which has an origin at most.
    pub(crate) fn passes_plain(&self, label: &Label) -> bool {
        self.passes_origin(&crate::value::plain(label, &Value::OriginAs))
            && self.as_path.is_none()
            && self.communities.is_empty()
    }

    /// Returns whether a route with these fields passes.
    pub(crate) fn passes_fields(&self, origin: &Label, as_path: &str, communities: &str) -> bool {
        let has = |pattern: &CommunityPattern| {
            communities.split_ascii_whitespace().any(|one| pattern.is_match(one))
        };
        self.passes_origin(origin)
            && self.as_path.as_ref().is_none_or(|pattern| pattern.is_match(as_path))
            && (self.communities.is_empty() || self.communities.iter().any(has))
    }

    fn passes(&self, facts: &Facts<'_>) -> bool {
        // Values that the filter does not test are not decoded.
        let origin = if self.origin_as.is_empty() { Label::Absent } else { facts.value(&Value::OriginAs) };
        let as_path = self.as_path.as_ref().and_then(|_| facts.as_path()).unwrap_or_default();
        let communities = if self.communities.is_empty() { None } else { facts.communities() };
        self.passes_fields(&origin, &as_path, &communities.unwrap_or_default())
    }

    fn passes_origin(&self, origin: &Label) -> bool {
        self.origin_as.is_empty()
            || match origin {
                Label::Number(number) => self.origin_as.contains(number),
                Label::Origins(origins) | Label::Text(origins) => origins
                    .split(['_', ','])
                    .any(|one| asn(one).is_some_and(|number| self.origin_as.contains(&number))),
                _ => false,
            }
    }
}

/// A regular expression over an AS path as bgpdump prints it: `64500 64501 {64502,64503}`. As in router configurations, `_`
/// is any boundary of a number: the beginning, the end, a blank or a bracket.
#[derive(Debug, Clone)]
pub struct AsPathPattern(Regex);

impl AsPathPattern {
    /// Returns whether some part of the path matches.
    #[must_use]
    pub fn is_match(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

impl FromStr for AsPathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let regex = text.replace('_', r"(?:^|$|[ ,{}()\[\]])");
        Regex::new(&regex).map(Self).map_err(|error| PatternError(error.to_string().into()))
    }
}

/// A community, `64500:7`, or a large one, `64500:7:8`; `*` is any number. A well-known one may have its name: `no-export`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunityPattern(Box<[Option<u32>]>);

/// Names of well-known communities (IANA, BGP Well-known Communities), and those that tools print: 65535 and this number.
const WELL_KNOWN: &[(&str, u32)] = &[
    ("graceful-shutdown", 0),
    ("accept-own", 1),
    ("llgr-stale", 6),
    ("no-llgr", 7),
    ("accept-own-nexthop", 8),
    ("standby-pe", 9),
    ("blackhole", 666),
    ("no-export", 65_281),
    ("no-advertise", 65_282),
    ("no-export-subconfed", 65_283),
    ("no-export-sub-confed", 65_283),
    ("local-as", 65_283),
    ("nopeer", 65_284),
    ("no-peer", 65_284),
];

/// Returns the number of a well-known community by its name; `_` is as good as `-`.
fn well_known(name: &str) -> Option<u32> {
    let is = |own: &str| {
        let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
        own.len() == name.len() && own.bytes().zip(name.bytes()).all(|(own, byte)| own == plain(byte))
    };
    WELL_KNOWN.iter().find(|(own, _)| is(own)).map(|&(_, number)| number)
}

impl CommunityPattern {
    /// Returns whether the community matches.
    #[must_use]
    pub fn is_match(&self, community: &str) -> bool {
        let is = |own: Option<u32>, part: u32| own.is_none_or(|own| own == part);
        if let Some(number) = well_known(community) {
            return matches!(*self.0, [high, low] if is(high, 65_535) && is(low, number));
        }
        let mut parts = community.split(':').map(|part| part.parse::<u32>().ok());
        let all = self.0.iter().all(|&own| parts.next().flatten().is_some_and(|part| is(own, part)));
        all && parts.next().is_none()
    }
}

impl FromStr for CommunityPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if let Some(number) = well_known(text) {
            return Ok(Self(Box::new([Some(65_535), Some(number)])));
        }
        let part = |part: &str| if part == "*" { Some(None) } else { part.parse::<u32>().ok().map(Some) };
        let parts: Option<Box<[Option<u32>]>> = text.split(':').map(part).collect();
        parts.filter(|parts| matches!(parts.len(), 2 | 3)).map(Self).ok_or_else(|| {
            PatternError("not a community, such as 64500:7, 64500:*, 64500:7:8 or no-export".into())
        })
    }
}

/// The error for a pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError(Box<str>);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use fibula::net::HostBits;

    use super::*;
    use crate::text::{self, Line};

    fn judged(filter: &Filter, kind: &str, path: &str, communities: &str) -> &'static str {
        let line = format!("{kind}|192.0.2.1|7|10.0.0.0/8|{path}|IGP|192.0.2.9|0|0|{communities}|NAG||");
        let Some(Line::Event(event)) = text::decode(line.as_bytes(), HostBits::Refuse).unwrap() else {
            panic!("{line}");
        };
        match filter.judge(event, BgpdumpFields::of(line.as_bytes())).map(|event| event.action) {
            None => "left out",
            Some(Action::Announce(_)) => "taken",
            Some(Action::Withdraw(_)) => "withdrawn",
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn routes_pass_every_condition() {
        let dump = "TABLE_DUMP2|5|B";
        let all = Filter::default();
        assert_eq!(judged(&all, dump, "1 2 3", ""), "taken");
        let origin = Filter { origin_as: vec![3, 9], ..Filter::default() };
        assert_eq!(judged(&origin, dump, "1 2 3", ""), "taken");
        assert_eq!(judged(&origin, dump, "1 {8,9}", ""), "taken");
        assert_eq!(judged(&origin, dump, "3 4", ""), "left out");
        // A route that a peer replaces by one that does not pass is gone.
        assert_eq!(judged(&origin, "BGP4MP|5|A", "3 4", ""), "withdrawn");
        assert_eq!(judged(&origin, "BGP4MP|5|W", "", ""), "withdrawn");
        let path = Filter { as_path: Some("_2_".parse().unwrap()), ..Filter::default() };
        for (path_text, expected) in [
            ("1 2 3", "taken"),
            ("2", "taken"),
            ("1 {2,4}", "taken"),
            ("22 12", "left out"),
            ("", "left out"),
        ] {
            assert_eq!(judged(&path, dump, path_text, ""), expected, "{path_text}");
        }
        let community = Filter { communities: vec!["7:*".parse().unwrap()], ..Filter::default() };
        assert_eq!(judged(&community, dump, "1", "6:1 7:2"), "taken");
        assert_eq!(judged(&community, dump, "1", "6:7 7:2:3"), "left out");
        let both = Filter { origin_as: vec![1], ..community };
        assert_eq!(judged(&both, dump, "1", "7:2"), "taken");
        assert_eq!(judged(&both, dump, "2", "7:2"), "left out");
    }

    #[test]
    fn patterns_are_checked() {
        assert!("(".parse::<AsPathPattern>().is_err());
        for good in ["1:2", "*:2", "1:2:3", "1:*:*", "no-export", "NO_EXPORT", "local-AS"] {
            good.parse::<CommunityPattern>().unwrap();
        }
        for bad in ["", "1", "1:", "a:b", "1:2:3:4", "4294967296:1", "no-such"] {
            assert!(bad.parse::<CommunityPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn communities_are_numbers() {
        for (pattern, community, expected) in [
            ("no-export", "65535:65281", true),
            ("65535:65281", "no-export", true),
            ("65535:*", "no-advertise", true),
            ("*:666", "blackhole", true),
            ("65535:65283", "local-AS", true),
            ("no-export", "no-advertise", false),
            ("no-export", "65535:65281:0", false),
            ("64500:7", "64500:007", true),
            ("64500:7", "64500:70", false),
            ("*:*", "64500:7", true),
            ("*:*", "rt:64500:7", false),
            ("*:*:*", "64500:7:8", true),
        ] {
            let parsed: CommunityPattern = pattern.parse().unwrap();
            assert_eq!(parsed.is_match(community), expected, "{pattern} {community}");
        }
    }

    #[test]
    fn times_have_both_ends() {
        let filter = Filter { from: Some(5), until: Some(7), ..Filter::default() };
        let taken: Vec<u32> = (3..10).filter(|&seconds| filter.is_in_time(seconds)).collect();
        assert_eq!(taken, [5, 6, 7]);
    }
}
