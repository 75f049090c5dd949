//! Feeds of routes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{Counts, nullable};

/// A feed and how it is: an entry of the answer to `feeds`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Feed {
    /// Its name in the configuration.
    pub name: String,
    /// The kind of its origin.
    pub kind: FeedKind,
    /// Administrative distance: of two feeds with a route of the same prefix, the lower one is used.
    pub distance: u8,
    /// How it is.
    pub state: FeedPhase,
    /// Whole seconds since it became so.
    pub state_seconds: u64,
    /// Whether routes were refused at a limit since the last synchronisation.
    pub overrun: bool,
    /// Whether paths or next-hop objects were refused at the limit on their memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_memory: bool,
    /// Routes that it has, used or not.
    pub routes: u64,
    /// Routes that lead to no interface of the router, and are not used.
    pub unresolved: u64,
    /// Next-hop objects that it has.
    pub next_hop_objects: u64,
    /// Most routes that it may have.
    pub limit: u64,
    /// Changes a second, in the last second that is over.
    pub changes_per_second: u64,
    /// Events since the router started, by kind.
    pub counts: Counts,
    /// The last error, in words; null if there was none.
    #[serde(deserialize_with = "nullable")]
    pub last_error: Option<String>,
    /// Whole seconds since the last error; null if there was none.
    #[serde(deserialize_with = "nullable")]
    pub last_error_seconds_ago: Option<u64>,
    /// VRFs at whose limits routes were refused; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub full_vrfs: Vec<FullVrf>,
    /// The kernel's rules for tables that the router does not heed, as `ip rule` shows them; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules_not_heeded: Vec<String>,
    /// Where it listens; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Answers to a daemon that wants to know where its routes are; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgements: Option<Acknowledgements>,
    /// Interfaces of the router whose devices are missing; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_interfaces: Vec<MissingInterface>,
    /// Peers that are up; absent where the feed does not know peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<u64>,
    /// Routes of all peers, used or not; absent where the feed does not know peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_routes: Option<u64>,
}

words! {
    /// The kind of a feed's origin.
    FeedKind {
        Fpm "fpm" "A daemon that connects by the FPM protocol."
        Kernel "kernel" "The kernel's tables."
        Bmp "bmp" "Routers that are monitored by BMP."
        Mrt "mrt" "Recorded tables and updates."
    }
}

words! {
    /// How a feed is.
    FeedPhase {
        Waiting "waiting" "Nothing has connected yet."
        Synchronising "synchronising" "Routes are being sent from the beginning."
        Established "established" "All routes are known, and changes are followed."
        Kept "kept" "The other side has gone; its routes are kept for a while."
        Down "down" "The other side has gone, and so have its routes."
    }
}

/// An interface whose device is missing. Packets that are to leave by it are dropped as `interface-missing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MissingInterface {
    /// Its name in the configuration.
    pub name: String,
    /// The device that it names.
    pub device: String,
}

/// A VRF at the limit of its routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FullVrf {
    /// Its name; null if the configuration does not have it any more.
    #[serde(deserialize_with = "nullable")]
    pub name: Option<String>,
    /// Most routes that all feeds together may have in it; null if there is no limit any more.
    #[serde(deserialize_with = "nullable")]
    pub limit: Option<u64>,
}

/// Answers to a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Acknowledgements {
    /// Routes that wait for a verdict.
    pub waiting: u64,
    /// Answers that wait to be sent.
    pub ready: u64,
}
