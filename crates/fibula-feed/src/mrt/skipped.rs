//! Kinds of content that is recognised and left out, so that it can be counted.

use core::fmt;

/// A kind of MRT record, message or route that is left out. Prints as its name.
///
/// The kinds are a closed list: counting them takes bounded memory, whatever a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Skipped {
    name: &'static str,
    loses_routes: bool,
}

impl Skipped {
    /// A change of a session's state that leaves the routes as they are.
    pub(crate) const STATE_CHANGE: Self = Self::without_routes("session state changes");

    /// Returns a kind that may hold routes of a peer.
    pub(crate) const fn with_routes(name: &'static str) -> Self {
        Self { name, loses_routes: true }
    }

    /// Returns a kind that holds no route of a peer.
    pub(crate) const fn without_routes(name: &'static str) -> Self {
        Self { name, loses_routes: false }
    }

    /// Returns the MRT record type of this number; `None` for types that RFC 6396 does not name.
    pub(super) fn record(number: u16) -> Option<Self> {
        RECORDS.iter().find(|record| record.0 == number).map(|record| record.1)
    }

    /// Routes of an address family other than IPv4 and IPv6 unicast.
    pub(crate) fn family(afi: u16, safi: u8) -> Self {
        let family = FAMILIES.iter().find(|family| (family.0, family.1) == (afi, safi));
        Self::with_routes(family.map_or("other address families", |family| family.2))
    }

    /// Returns the BGP message of this type; `None` for UPDATE and for numbers that are not a type.
    pub(crate) fn message(number: u8) -> Option<Self> {
        let name = match number {
            1 => "BGP OPEN",
            3 => "BGP NOTIFICATION",
            4 => "BGP KEEPALIVE",
            5 => "BGP ROUTE-REFRESH",
            _ => return None,
        };
        Some(Self::without_routes(name))
    }

    /// Returns the name: an MRT record type of RFC 6396, an address family, or a BGP message.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether routes of a peer may be lost with it. Other kinds belong to sessions and never change a table.
    #[must_use]
    pub fn loses_routes(&self) -> bool {
        self.loses_routes
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The record types of RFC 6396 section 4 and its appendix that are not read.
const RECORDS: [(u16, Skipped); 15] = [
    (0, Skipped::without_routes("NULL")),
    (1, Skipped::without_routes("START")),
    (2, Skipped::without_routes("DIE")),
    (3, Skipped::without_routes("I_AM_DEAD")),
    (4, Skipped::without_routes("PEER_DOWN")),
    (6, Skipped::with_routes("RIP")),
    (7, Skipped::with_routes("IDRP")),
    (8, Skipped::with_routes("RIPNG")),
    (9, Skipped::with_routes("BGP4PLUS")),
    (10, Skipped::with_routes("BGP4PLUS_01")),
    (11, Skipped::with_routes("OSPFv2")),
    (32, Skipped::with_routes("ISIS")),
    (33, Skipped::with_routes("ISIS_ET")),
    (48, Skipped::with_routes("OSPFv3")),
    (49, Skipped::with_routes("OSPFv3_ET")),
];

/// Address families and subsequent address families, as IANA numbers them.
const FAMILIES: [(u16, u8, &str); 22] = [
    (1, 2, "IPv4 multicast"),
    (2, 2, "IPv6 multicast"),
    (1, 3, "IPv4 unicast and multicast"),
    (2, 3, "IPv6 unicast and multicast"),
    (1, 4, "IPv4 labelled unicast"),
    (2, 4, "IPv6 labelled unicast"),
    (1, 5, "IPv4 multicast VPN"),
    (2, 5, "IPv6 multicast VPN"),
    (1, 73, "IPv4 segment routing policy"),
    (2, 73, "IPv6 segment routing policy"),
    (1, 128, "IPv4 VPN"),
    (2, 128, "IPv6 VPN"),
    (1, 129, "IPv4 VPN multicast"),
    (2, 129, "IPv6 VPN multicast"),
    (1, 132, "route target constraints"),
    (1, 133, "IPv4 flow specification"),
    (2, 133, "IPv6 flow specification"),
    (1, 134, "IPv4 VPN flow specification"),
    (2, 134, "IPv6 VPN flow specification"),
    (25, 65, "VPLS"),
    (25, 70, "EVPN"),
    (16388, 71, "link state"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mrt::KINDS;

    #[test]
    fn every_record_type_is_read_or_has_a_name() {
        // RFC 6396 section 4 and appendix B.
        let types = (0..=13).chain([16, 17, 32, 33, 48, 49]);
        for number in types {
            let read = KINDS.iter().any(|kind| kind.number == number);
            assert_ne!(read, Skipped::record(number).is_some(), "{number}");
        }
        assert_eq!(Skipped::record(14), None);
        assert_eq!(Skipped::record(50), None);
    }

    #[test]
    fn messages_without_routes_have_names() {
        let names =
            [(1, "BGP OPEN"), (3, "BGP NOTIFICATION"), (4, "BGP KEEPALIVE"), (5, "BGP ROUTE-REFRESH")];
        for number in 0..=255 {
            let name = names.iter().find(|name| name.0 == number).map(|name| name.1);
            let message = Skipped::message(number);
            assert_eq!(message.map(|message| message.name()), name, "{number}");
            assert!(message.is_none_or(|message| !message.loses_routes()), "{number}");
        }
    }

    #[test]
    fn families_have_their_own_names() {
        for (index, family) in FAMILIES.iter().enumerate() {
            assert_eq!(Skipped::family(family.0, family.1).name(), family.2);
            assert!(FAMILIES[..index].iter().all(|other| other.2 != family.2), "{family:?}");
        }
        assert_eq!(Skipped::family(3, 1).to_string(), "other address families");
        assert!(Skipped::family(3, 1).loses_routes() && !Skipped::STATE_CHANGE.loses_routes());
    }
}
