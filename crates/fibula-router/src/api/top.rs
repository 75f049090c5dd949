//! The largest of the packets that were sampled.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::nullable;

words! {
    /// The property by which samples are added up.
    TopBy {
        As "as" "The AS of the destination."
        SourceAs "source-as" "The AS of the source."
        Prefix "prefix" "The prefix of the destination's route."
        SourcePrefix "source-prefix" "The prefix of the source's route."
        Interface "interface" "The interface on which the packet came, and the one by which it left."
        Source "source" "The source address."
        Destination "destination" "The destination address."
        Protocol "protocol" "The protocol above IP."
        Outcome "outcome" "What became of the packet: forwarded, or dropped and why."
        Rule "rule" "The rule of a filter. From the counters of rules, so it is exact, and nothing needs to be sampled."
    }
}

/// The largest of the samples of the last seconds: the answer to `top`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Top {
    /// The property.
    pub by: TopBy,
    /// Seconds that the samples are of.
    pub seconds: f64,
    /// One of so many frames is drawn now.
    pub interval: u64,
    /// The sum of all samples.
    pub all: TopRow,
    /// The rows of the most packets.
    pub rows: Vec<TopRow>,
    /// Frames that were drawn since sampling began.
    pub drawn: u64,
    /// Samples of these that were lost, because they came faster than they were taken.
    pub lost: u64,
    /// Frames of these without a readable IP header, such as ARP.
    pub unreadable: u64,
    /// The collectors, in the order of the configuration.
    pub collectors: Vec<ListedCollector>,
}

/// A row: an estimate of the packets with one value of the property.
///
/// In 95 of 100 cases the truth is within the error, where there are some ten samples or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TopRow {
    /// The value: a prefix, an AS, an interface.
    pub name: String,
    /// Samples.
    pub samples: u64,
    /// Packets, as estimated from the samples.
    pub packets: u64,
    /// The error of `packets`, in packets.
    pub packets_error: u64,
    /// Bytes, IP headers included, as estimated.
    pub bytes: u64,
    /// The error of `bytes`, in bytes.
    pub bytes_error: u64,
}

/// A collector of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedCollector {
    /// Its address and port.
    pub address: SocketAddr,
    /// Whether no message to it was refused for some seconds. Of one that stays silent nothing is known.
    pub well: bool,
    /// Messages sent.
    pub messages: u64,
    /// Records sent.
    pub records: u64,
    /// Records left out while it was left alone.
    pub left_out: u64,
    /// Messages that the network or the machine refused.
    pub faults: u64,
    /// The last of these faults; null if there was none.
    #[serde(deserialize_with = "nullable")]
    pub last_fault: Option<String>,
}
