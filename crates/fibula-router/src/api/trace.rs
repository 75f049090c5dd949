//! Traces of real packets, and explanations of imagined ones.

use serde::{Deserialize, Serialize};

use super::nullable;

/// The steps of a packet and its end: the answer to `explain`, and a line of the answer to `trace`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The packet: protocol, addresses, ports, interfaces and bytes.
    pub packet: String,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// Its end.
    pub outcome: PacketOutcome,
    /// The reason for which it was dropped, by its name in `drops`; null if it was not.
    #[serde(deserialize_with = "nullable")]
    pub reason: Option<String>,
    /// The meaning of the reason; null likewise.
    #[serde(deserialize_with = "nullable")]
    pub meaning: Option<String>,
    /// The advice to operators; null likewise.
    #[serde(deserialize_with = "nullable")]
    pub advice: Option<String>,
}

/// A step of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// Its kind.
    pub step: StepKind,
    /// The finding.
    pub found: String,
}

words! {
    /// Kind of a step.
    StepKind {
        In "in" "The interface on which the packet came."
        Vrf "vrf" "The VRF of this interface."
        Route "route" "The route of the destination."
        Rule "rule" "The rule that decided, or the default."
        Policer "policer" "The class whose policer a packet to the machine meets, and its rate."
        NextHop "next hop" "Where the route leads; of a group, the member that the flow has."
        Neighbour "neighbour" "The station that the packet is sent to."
        Out "out" "The interface by which the packet leaves."
    }
}

words! {
    /// The end of a packet.
    PacketOutcome {
        Forwarded "forwarded" "It was sent on."
        Waiting "waiting" "It waits for the MAC address of its neighbour."
        Delivered "delivered" "It was given to the kernel of the machine."
        Consumed "consumed" "The router consumed it: neighbour discovery, or a ping that it answered."
        Dropped "dropped" "It was dropped."
    }
}

/// The end of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceEnd {
    /// Packets that were reported.
    pub traced: u64,
    /// Packets that matched and were not reported, because there were too many at once.
    pub left_out: u64,
    /// Packets that were not compared with the filter, for the same reason.
    pub skipped: u64,
    /// Frames without a readable IP header, which no filter can match: `fibula router drops` has their reasons.
    pub unreadable: u64,
}
