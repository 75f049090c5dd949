//! Access control lists: ordered rules that permit, deny or count packets by their headers.
//!
//! - [`Rule`], [`Condition`]: a rule, and the packets that it is about. `text` reads and writes them.
//! - [`HeaderFields`]: the fields of a packet that conditions test.
//! - [`PrefixLists`]: named sets of prefixes, read from files.
//! - [`RuleSet`]: rules compiled for bursts of packets, with their counters.
//!
//! The fields are those of BGP flowspec (RFC 8955, section 4.2.2), and the interfaces and the VRF. Rules are read in order, and the
//! first that permits or denies a packet ends the search. Rules keep no state: they know nothing of connections.
//!
//! # Example
//!
//! ```
//! use fibula_router::acl::{Condition, HeaderFields, PrefixLists};
//!
//! let condition: Condition = "source 10.0.0.0/8 protocol tcp destination-port 80,443".parse()?;
//! let packet = HeaderFields {
//!     source: u128::from(0x0a01_0203_u32), protocol: 6, ports: Some((40_000, 443)), ..HeaderFields::default()
//! };
//! let ready = condition.resolve(&PrefixLists::default(), &|_, _| None)?;
//! assert!(ready.matches(&packet));
//! assert!(!ready.matches(&HeaderFields { ports: Some((40_000, 22)), ..packet }));
//! # Ok::<(), fibula_router::acl::RuleError>(())
//! ```

mod burst;
mod compile;
mod condition;
mod count;
mod dimension;
mod fields;
mod list;
mod log;
mod protocol;
mod room;
mod row;
mod text;

pub(crate) use burst::{AddressColumns, BurstPacket, BurstPackets};
pub use compile::{RulePlace, RuleSet, Ruling};
pub use condition::{Addresses, Condition, Find, Ready, ValueTest};
pub use count::{RuleCounts, WorkerCounts};
pub use fields::{Field, HeaderFields};
pub(crate) use fields::{dscp, fragment, upper};
pub use list::{ListError, PrefixLists};
pub use log::{LogRate, Logged};
pub(crate) use room::BurstRows;
pub(crate) use text::protocol_name;
pub use text::{code_point, protocol_number};

use core::fmt;

/// The most rules of a set.
pub const MOST_RULES: usize = 4096;

/// The effect of a rule on the packets that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Lets the packet go on, and ends the search.
    Permit,
    /// Drops the packet silently, and ends the search.
    Deny,
    /// Drops the packet, and reports to its sender that it is administratively prohibited (ICMP type 3 code 13, ICMPv6 type 1
    /// code 1). Ends the search.
    Reject,
    /// Counts the packet. The search goes on with the next rule.
    Count,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 4] = [Self::Permit, Self::Deny, Self::Reject, Self::Count];

    /// Returns the word of the action.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
            Self::Reject => "reject",
            Self::Count => "count",
        }
    }

    /// Returns whether packets go on.
    #[must_use]
    pub const fn permits(self) -> bool {
        matches!(self, Self::Permit | Self::Count)
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Its action.
    pub action: Action,
    /// Whether packets are logged, within a rate.
    pub log: bool,
    /// The packets that it is about.
    pub condition: Condition,
}

/// Why a rule or a condition is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError(pub(crate) String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for RuleError {}
