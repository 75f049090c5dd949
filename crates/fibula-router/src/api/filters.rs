//! Rules for packets, and their hits.

use serde::{Deserialize, Serialize};

use super::nullable;

/// The rules in use: the answer to `filters`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Filters {
    /// Rules for packets that are forwarded; null if all pass uncounted.
    #[serde(deserialize_with = "nullable")]
    pub forward: Option<RuleTable>,
    /// Rules for packets to the router itself; null likewise.
    #[serde(deserialize_with = "nullable")]
    pub local: Option<RuleTable>,
    /// The prefix lists.
    pub lists: Vec<ListedPrefixes>,
    /// The policers for packets to the machine, one for each class.
    pub policers: Vec<ListedPolicer>,
}

/// A policer and its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedPolicer {
    /// The name of its class.
    pub class: String,
    /// Packets a second; null without a limit.
    #[serde(deserialize_with = "nullable")]
    pub rate: Option<u64>,
    /// Packets at once; null without a limit.
    #[serde(deserialize_with = "nullable")]
    pub burst: Option<u64>,
    /// Packets that passed.
    pub passed: u64,
    /// Packets that were dropped because their class was above its rate.
    pub dropped: u64,
}

/// Rules, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleTable {
    /// The rules.
    pub rules: Vec<ListedRule>,
    /// The action for packets that no rule decides: `permit`, `deny` or `reject`.
    pub default: String,
    /// The number of these packets.
    pub default_packets: u64,
    /// Their bytes, IP headers included.
    pub default_bytes: u64,
}

/// A rule and its hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedRule {
    /// Its number, from 1.
    pub number: u64,
    /// Its line in the configuration file.
    pub line: u64,
    /// Its text.
    pub rule: String,
    /// Packets that passed its tests, and that no earlier rule had decided.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

/// A prefix list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedPrefixes {
    /// Its name.
    pub name: String,
    /// Its file, as in the configuration; null without one.
    #[serde(deserialize_with = "nullable")]
    pub file: Option<String>,
    /// Its number of different prefixes.
    pub prefixes: u64,
    /// Why the present file is not in use; null if it is.
    #[serde(deserialize_with = "nullable")]
    pub error: Option<String>,
}
