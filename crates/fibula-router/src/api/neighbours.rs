//! Neighbours and own addresses.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::text_or_null;
use crate::packet::ethernet::Mac;

/// A neighbour, or an address of the router itself: an entry of the answer to `neigh`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Neighbour {
    /// Name of the interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// The station that has the address; null while none is known.
    #[serde(with = "text_or_null")]
    pub mac: Option<Mac>,
    /// How it is.
    pub state: NeighbourState,
}

words! {
    /// State of a neighbour or of an own address.
    NeighbourState {
        Waiting "waiting" "Requests are unanswered so far."
        Reachable "reachable" "Confirmed not long ago."
        Stale "stale" "Confirmed long ago."
        Verifying "verifying" "Confirmed long ago and in use: being verified."
        Failed "failed" "It does not answer."
        OwnProbing "own, probing" "An own address: the router asks the other stations whether they use it."
        Own "own" "An own address that is in use."
        OwnTaken "own, taken" "An own address that another station has: the router does not use it."
    }
}
