//! Answers of the control socket: the router writes these structs, and `fibula router` reads them.
//!
//! A question is a line of text, and its answer a line of JSON. A listing (`show`) has a line for each route and one with their number
//! at the end, and `trace` likewise. [`read`] reads a line.
//!
//! | question | answer |
//! |---|---|
//! | `stats` | [`Stats`] |
//! | `neigh` | a list of [`Neighbour`] |
//! | `feeds` | a list of [`Feed`] |
//! | `filters` | [`Filters`] |
//! | `bfd` | [`Bfd`] |
//! | `explain SOURCE DESTINATION INTERFACE PROTOCOL SOURCE-PORT DESTINATION-PORT DSCP` | [`Explanation`] |
//! | `trace COUNT SECONDS FILTER` | an [`Explanation`] a line, then [`TraceEnd`] |
//! | `top BY SECONDS COUNT` | [`Top`] |
//! | `verify` | [`Comparison`] |
//! | `get VRF ADDRESS [changes]` | [`FoundRoute`] |
//! | `show VRF [PREFIX] [covers] [inside] [changes] [feed=NAME]` | a [`ListedRoute`] a line, then [`ListingEnd`] |
//! | `takeover` | what another router needs to take over; not of this interface |
//! | any that the router refuses | [`Refusal`] |
//!
//! # Versions
//!
//! The router and the command may be of two versions. A field that a struct has and the answer lacks is an error with its name,
//! whereas fields that the struct lacks are skipped, because a newer router may add some. So a renamed field is an error too, unless its
//! documentation says that it can be absent. Words, such as the state of a feed, are enums, so an unknown word is an error. Maps by
//! name ([`Counts`]) may have any names.
//!
//! # Example
//!
//! ```
//! use fibula_router::api::{self, FoundRoute, NextHop};
//!
//! let line = r#"{"prefix":"192.0.2.0/24","next_hop":{"via":"10.0.0.1","interface":"lan"}}"#;
//! let found: FoundRoute = api::read(line)?;
//! let Some(NextHop::Way(way)) = found.next_hop else { panic!() };
//! assert_eq!(way.interface.as_deref(), Some("lan"));
//!
//! let error = api::read::<FoundRoute>(r#"{"prefix":null}"#).unwrap_err();
//! assert!(error.to_string().contains("missing field `next_hop`"));
//! let error = api::read::<FoundRoute>(r#"{"error":"no VRF 'red'"}"#).unwrap_err();
//! assert_eq!(error.to_string(), "no VRF 'red'");
//! # Ok::<(), api::AnswerError>(())
//! ```

/// Makes an enum of the words that an answer may have in one place, each with its name and its meaning.
macro_rules! words {
    ($(#[$doc:meta])* $enum:ident { $($variant:ident $name:literal $what:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $enum {
            $(#[doc = $what] #[serde(rename = $name)] $variant,)*
        }

        impl $enum {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the word, as answers have it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

mod bfd;
mod feeds;
mod filters;
mod neighbours;
mod routes;
mod stats;
mod top;
mod trace;
mod verify;

use core::fmt;

use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

pub use bfd::{Bfd, BfdSession, BfdState};
pub use feeds::{Acknowledgements, Feed, FeedKind, FeedPhase, FullVrf, MissingInterface};
pub use filters::{Filters, ListedPolicer, ListedPrefixes, ListedRule, RuleTable};
pub use neighbours::{Neighbour, NeighbourState};
pub use routes::{
    Change, ChangeKind, FoundRoute, ListedRoute, ListingEnd, Member, NextHop, NextHopWord, Way,
};
pub use stats::{Counters, DifferenceCounts, PortStats, Stats, VerifyStats, VrfStats};
pub use top::{ListedCollector, Top, TopBy, TopRow};
pub use trace::{Explanation, PacketOutcome, Step, StepKind, TraceEnd};
pub use verify::{Comparison, Difference, MetricRoute};

/// A question that the router does not answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Refusal {
    /// Why, in words for the user.
    pub error: String,
}

/// Why a line is not the answer that was expected.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerError {
    /// The router refused the question, for this reason.
    Refused(String),
    /// The line is something else: a field is missing, a word is unknown, or it is not JSON.
    Other(serde_json::Error),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => f.write_str(reason),
            Self::Other(error) => {
                // The user does not see the line, so the place in it says nothing.
                let place = format!(" at line {} column {}", error.line(), error.column());
                let text = error.to_string();
                let reason = text.strip_suffix(&place).unwrap_or(&text);
                write!(f, "the router answered something else: {reason}; is it of another version?")
            }
        }
    }
}

impl core::error::Error for AnswerError {}

/// Reads a line that the router sent.
///
/// # Errors
/// When the line is a [`Refusal`], or lacks a field of the answer.
pub fn read<A: DeserializeOwned>(line: &str) -> Result<A, AnswerError> {
    let answer = serde_json::from_str(line);
    answer.map_err(|error| match serde_json::from_str::<Refusal>(line) {
        Ok(refusal) => AnswerError::Refused(refusal.error),
        Err(_) => AnswerError::Other(error),
    })
}

/// Counts by name, in the router's order: a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts(Vec<(String, u64)>);

impl Counts {
    /// Returns the names and their counts, in the router's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// Returns the count of a name; `None` if the router does not have that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }
}

impl<N: Into<String>> FromIterator<(N, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(counts: I) -> Self {
        Self(counts.into_iter().map(|(name, count)| (name.into(), count)).collect())
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Counts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of counts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counts, A::Error> {
                let mut counts = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    counts.push(entry);
                }
                Ok(Counts(counts))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// Reads a field that may be null and not absent. Without this function, serde would take an absent field for null.
fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Reads a field that may be absent, null, or a value: `None`, `Some(None)` or `Some(Some(value))`.
fn nullable_if_present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Values that are text on the wire, or null.
mod text_or_null {
    use core::fmt::Display;
    use core::str::FromStr;

    use super::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let parse =
            |text: String| text.parse().map_err(|error| de::Error::custom(format_args!("'{text}': {error}")));
        text.map(parse).transpose()
    }
}

#[cfg(test)]
mod tests;
