//! Sessions of BFD.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::nullable;

/// The answer to `bfd`: the sessions that bfdd has reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bfd {
    /// The socket of bfdd; null if the configuration has none.
    #[serde(deserialize_with = "nullable")]
    pub socket: Option<String>,
    /// Whether bfdd sends its notifications.
    pub connected: bool,
    /// Why it does not; null if it does, or was not asked yet.
    #[serde(deserialize_with = "nullable")]
    pub last_error: Option<String>,
    /// Failures since the router started.
    pub failures: u64,
    /// Ends of failures that were put off, because a session flapped.
    pub damped: u64,
    /// Messages of bfdd that could not be read.
    pub malformed: u64,
    /// Sessions that there was no room for.
    pub refused: u64,
    /// Sessions of one hop, by peer.
    pub sessions: Vec<BfdSession>,
}

/// A session of BFD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BfdSession {
    /// The neighbour.
    pub peer: IpAddr,
    /// The device that it is tied to; null if to none.
    #[serde(deserialize_with = "nullable")]
    pub device: Option<String>,
    /// Its state.
    pub state: BfdState,
    /// Why it is down; null if it is not, or that is not known.
    #[serde(deserialize_with = "nullable")]
    pub diagnostic: Option<String>,
    /// Whether the neighbour is dead: its flows go elsewhere, if there is another way.
    pub dead: bool,
    /// Failures since the router started.
    pub failures: u64,
    /// Milliseconds until the neighbour is used again, because its session flapped; null if it does not wait for that.
    #[serde(deserialize_with = "nullable")]
    pub held_ms: Option<u64>,
}

words! {
    /// The state of a session of BFD.
    BfdState {
        Up "up" "Both sides hear each other."
        Init "init" "The neighbour is heard, and has not said that it hears this side."
        Down "down" "They do not hear each other."
        AdminDown "admin-down" "An operator has ended the session."
    }
}
