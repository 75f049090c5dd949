//! The events of a feed: which peer announces or withdraws which route, and when.

use core::fmt;
use core::net::IpAddr;
use std::io;
use std::sync::Arc;

use fibula::Table;
use fibula::live::Outcome;
use fibula::net::IpPrefix;

use crate::bgp::Attributes;
use crate::next_hops::{Label, NextHops};

/// A router that sends its routes to a collector. Prints as `193.203.0.1 (AS 1853)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Its AS.
    pub asn: u32,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (AS {})", self.address, self.asn)
    }
}

/// A point in time: seconds since 1970 and, where the feed has them, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since the beginning of 1970 in UTC.
    pub seconds: u32,
    /// Microseconds beyond them.
    pub micros: Option<u32>,
}

/// An event that a record or a line of a feed reports.
#[derive(Debug, Clone)]
pub struct Event {
    /// When it was recorded.
    pub time: Time,
    /// The peer that reports it; `None` in tables that name no peers.
    pub peer: Option<Peer>,
    /// What happened.
    pub action: Action,
}

impl Event {
    /// Applies one peer's event to a live table. `next_hops` numbers the labels of its next hops.
    ///
    /// The error fits [`Loader::events`](crate::Loader::events).
    ///
    /// The end of a session changes nothing here, because the table does not record which peer announced a route.
    /// [`AdjRibsIn`](crate::select::AdjRibsIn) does, and it keeps the routes of several peers.
    ///
    /// # Errors
    /// When the numbers of next hops run out, and the errors of [`Table::insert`]. The table is then unchanged.
    pub fn apply(self, table: &Table, next_hops: &mut NextHops) -> io::Result<Outcome> {
        match self.action {
            Action::Announce(route) => {
                let next_hop = next_hops.intern(route.next_hop).map_err(io::Error::other)?;
                table.insert(route.path.prefix, next_hop).map_err(io::Error::other)
            }
            Action::Withdraw(path) => table.remove(path.prefix).map_err(io::Error::other),
            Action::SessionEnd | Action::Nothing => Ok(Outcome::default()),
        }
    }

    /// Returns the path attributes of an announcement, if the feed has them.
    pub(crate) fn attributes(&self) -> Option<&Arc<Attributes>> {
        match &self.action {
            Action::Announce(route) => route.attributes.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the session of the peer ended.
    pub(crate) fn ends_session(&self) -> bool {
        matches!(self.action, Action::SessionEnd)
    }
}

/// A change that a peer reports.
#[derive(Debug, Clone)]
pub enum Action {
    /// The peer has this route: listed in a table dump, or announced.
    Announce(Announcement),
    /// The peer no longer has this route.
    Withdraw(Path),
    /// The peer's session ended, which withdraws all its announcements (RFC 4271 section 8.2.2).
    SessionEnd,
    /// A session comes up, or fails to: the table stays as it is.
    Nothing,
}

/// A prefix, with a path identifier where a peer may have several paths (RFC 7911).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The prefix.
    pub prefix: IpPrefix,
    /// The path identifier.
    pub id: Option<u32>,
}

impl From<IpPrefix> for Path {
    fn from(prefix: IpPrefix) -> Self {
        Self { prefix, id: None }
    }
}

/// A route as a feed reports it.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// The prefix.
    pub path: Path,
    /// The next hop.
    pub next_hop: Label,
    /// The length of the AS path as route selection counts it (RFC 4271 section 9.1.2.2, RFC 5065 section 5.3); `None`
    /// if the feed does not have it.
    pub path_len: Option<u32>,
    /// Whether this comes from a table dump, rather than an update.
    pub dumped: bool,
    /// All attributes, if the feed has them.
    pub attributes: Option<Arc<Attributes>>,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::bgp::AsWidth;

    #[test]
    fn only_announcements_have_attributes_and_only_ends_end() {
        let decoded = Attributes::decode(&Bytes::new(), 0, AsWidth::Four, None, &mut Vec::new()).unwrap();
        let attributes = Arc::new(decoded.attributes);
        let path = Path::from("10.0.0.0/8".parse::<IpPrefix>().unwrap());
        let announce = |attributes: Option<&Arc<Attributes>>| {
            let (next_hop, attributes) = (Label::Number(1), attributes.cloned());
            Action::Announce(Announcement { path, next_hop, path_len: None, dumped: false, attributes })
        };
        for (action, with, ends) in [
            (announce(Some(&attributes)), true, false),
            (announce(None), false, false),
            (Action::Withdraw(path), false, false),
            (Action::SessionEnd, false, true),
            (Action::Nothing, false, false),
        ] {
            let event = Event { time: Time::default(), peer: None, action };
            let found = event.attributes().is_some_and(|found| Arc::ptr_eq(found, &attributes));
            assert_eq!((found, event.ends_session()), (with, ends), "{:?}", event.action);
        }
    }

    #[test]
    fn events_change_a_live_table() {
        let (table, mut next_hops) = (Table::new().unwrap(), NextHops::default());
        let path = Path::from("10.0.0.0/8".parse::<IpPrefix>().unwrap());
        let announce = |number| {
            let next_hop = Label::Number(number);
            Action::Announce(Announcement { path, next_hop, path_len: None, dumped: false, attributes: None })
        };
        let events = [
            (announce(7), (1, 0)),
            (announce(7), (0, 0)),
            (announce(8), (1, 0)),
            (Action::SessionEnd, (0, 0)),
            (Action::Nothing, (0, 0)),
            (Action::Withdraw(path), (1, 0)),
            (Action::Withdraw(path), (0, 1)),
        ];
        for (action, expected) in events {
            let event = Event { time: Time::default(), peer: None, action };
            let outcome = event.clone().apply(&table, &mut next_hops).unwrap();
            assert_eq!((outcome.changed, outcome.absent), expected, "{event:?}");
        }
        assert!(table.routes().unwrap().v4.is_empty());
    }
}
