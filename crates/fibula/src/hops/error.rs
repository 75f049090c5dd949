//! Why a change of next hops was refused.

use core::fmt;

use crate::live::TableError;
use crate::memory::OutOfMemory;
use crate::net::NextHop;

use super::MOST_BUCKETS;

/// Why next hops could not be made or changed. A call that fails changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HopsError {
    /// The table refuses, because a thread panicked in a change, or because a reader could not be registered.
    Table(TableError),
    /// Memory ran out.
    Memory(OutOfMemory),
    /// The table has next hops already.
    Numbered,
    /// The number was not given out, or every hold on it was released.
    Unknown(NextHop),
    /// The number is of a group, where a next hop is needed.
    IsGroup(NextHop),
    /// The number is of a next hop, where a group is needed.
    IsHop(NextHop),
    /// The group has no members.
    Empty,
    /// The member has a weight of 0.
    Weight(NextHop),
    /// The member is listed twice.
    Twice(NextHop),
    /// The number of buckets is not a power of two, or more than [`MOST_BUCKETS`], or less than the number of members.
    Buckets {
        /// Buckets that were requested.
        buckets: usize,
        /// Members of the group.
        members: usize,
    },
    /// The group is shared: it was added several times, and the others expect its members.
    Shared {
        /// The group.
        group: NextHop,
        /// The number of its holds: how often it was added and not released.
        holds: u32,
    },
}

impl fmt::Display for HopsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Numbered => f.write_str("the table has next hops already: use a clone of them"),
            Self::Unknown(id) => write!(f, "next hop {id} was not added, or was released"),
            Self::IsGroup(id) => {
                write!(f, "next hop {id} is a group; members and values need a single next hop")
            }
            Self::IsHop(id) => write!(f, "next hop {id} is not a group"),
            Self::Empty => f.write_str("a group needs at least one member"),
            Self::Weight(id) => write!(f, "member {id} has weight 0; leave it out instead"),
            Self::Twice(id) => write!(f, "member {id} is listed twice; add its weights up instead"),
            Self::Buckets { buckets, members } => write!(
                f,
                "{buckets} buckets for {members} members: the number must be a power of two, at most {MOST_BUCKETS}, and not \
                 less than the members"
            ),
            Self::Shared { group, holds } => write!(
                f,
                "group {group} was added {holds} times: add a group of the new members and change the routes instead"
            ),
        }
    }
}

impl core::error::Error for HopsError {}

impl From<TableError> for HopsError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<OutOfMemory> for HopsError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}
