//! Routes, where they lead, and their last changes.

use core::fmt;
use std::net::IpAddr;

use fibula::net::IpPrefix;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::{nullable, nullable_if_present};

/// The route of an address: the answer to `get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FoundRoute {
    /// The longest prefix that contains the address; null if no route does.
    #[serde(deserialize_with = "nullable")]
    pub prefix: Option<IpPrefix>,
    /// Where the route leads; null if there is none.
    #[serde(deserialize_with = "nullable")]
    pub next_hop: Option<NextHop>,
    /// The last changes of all prefixes that contain the address, the last one first; absent unless they are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
}

/// A route of a listing: a line of the answer to `show`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedRoute {
    /// Its prefix.
    pub prefix: IpPrefix,
    /// Where it leads; null if the prefix has only changes to show, and no route any more.
    #[serde(deserialize_with = "nullable")]
    pub next_hop: Option<NextHop>,
    /// Name of its feed, or null if the configuration or an interface is its source. Absent if the router has no feeds, or if
    /// there is no longer a route.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "nullable_if_present")]
    pub feed: Option<Option<String>>,
    /// Its last changes, the last one first; absent if there are none, or unless they are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
}

/// The last line of a listing. Without it, the listing is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListingEnd {
    /// Number of routes that were listed.
    pub routes: u64,
}

/// A change of a route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// Seconds since the change.
    pub seconds_ago: f64,
    /// The kind of the change.
    pub change: ChangeKind,
    /// Name of the feed that changed the route; null if the configuration or an interface did.
    #[serde(deserialize_with = "nullable")]
    pub feed: Option<String>,
    /// Metric of the route.
    pub metric: u32,
    /// Where the route leads, or led; null where that is not recorded.
    #[serde(deserialize_with = "nullable")]
    pub next_hop: Option<NextHop>,
    /// The prefix; absent in a listing, whose lines have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<IpPrefix>,
}

words! {
    /// The kind of a change of a route.
    ChangeKind {
        Inserted "inserted" "It is new."
        Replaced "replaced" "It leads elsewhere."
        Removed "removed" "Its feed removed it."
        Swept "swept" "Its feed did not send it again."
        Expired "expired" "Its feed did not come back in time."
        Refused "refused" "It was refused at a limit."
    }
}

/// Where a route leads: a word, an object or a list on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NextHop {
    /// Nowhere, or to the router itself: a word.
    Word(NextHopWord),
    /// Wherever a next-hop object of the feed leads: `{"next_hop_object": 7}`.
    Object {
        /// Number of the object, by the feed's own count.
        next_hop_object: u32,
    },
    /// One way: an object.
    Way(Way),
    /// Several ways that share the flows: a list.
    Group(Vec<Member>),
}

words! {
    /// A next hop that is not another router.
    NextHopWord {
        Local "local" "The router itself."
        Blackhole "blackhole" "Nowhere, silently."
        Unreachable "unreachable" "Nowhere; senders are told that the destination is unreachable."
        Prohibit "prohibit" "Nowhere; senders are told that the destination is prohibited."
    }
}

/// A way out. It has a gateway, an interface, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
#[non_exhaustive]
pub struct Way {
    /// The gateway; absent if the destination itself is the neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<IpAddr>,
    /// Name of the interface. Absent if a feed gives the gateway alone. A device that the router does not use as an interface is
    /// `device` and its number in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

impl Way {
    /// Makes a way; `None` with neither a gateway nor an interface.
    #[must_use]
    pub fn new(via: Option<IpAddr>, interface: Option<String>) -> Option<Self> {
        (via.is_some() || interface.is_some()).then_some(Self { via, interface })
    }
}

/// A way of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Member {
    /// The way.
    #[serde(flatten)]
    pub way: Way,
    /// Its share of the flows, in relation to the weights of the others.
    pub weight: u64,
}

/// The fields of a way, before one of them is found to be there.
#[derive(Deserialize)]
struct Fields {
    via: Option<IpAddr>,
    interface: Option<String>,
}

impl TryFrom<Fields> for Way {
    type Error = &'static str;

    fn try_from(Fields { via, interface }: Fields) -> Result<Self, Self::Error> {
        Self::new(via, interface).ok_or("missing field `via` or `interface`")
    }
}

/// By hand, because serde's own reading of an untagged enum would not name the field that is missing.
impl<'de> Deserialize<'de> for NextHop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        /// An object: that of a feed, or a way.
        #[derive(Deserialize)]
        struct Object {
            next_hop_object: Option<u32>,
            via: Option<IpAddr>,
            interface: Option<String>,
        }

        impl<'de> Visitor<'de> for Form {
            type Value = NextHop;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a next hop: a word, an object or a list")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<NextHop, E> {
                NextHopWord::deserialize(StrDeserializer::new(word)).map(NextHop::Word)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, members: A) -> Result<NextHop, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(members)).map(NextHop::Group)
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<NextHop, A::Error> {
                let Object { next_hop_object, via, interface } =
                    Object::deserialize(MapAccessDeserializer::new(fields))?;
                if let Some(next_hop_object) = next_hop_object {
                    return Ok(NextHop::Object { next_hop_object });
                }
                Way::new(via, interface)
                    .map(NextHop::Way)
                    .ok_or_else(|| de::Error::custom("missing field `via`, `interface` or `next_hop_object`"))
            }
        }

        deserializer.deserialize_any(Form)
    }
}
