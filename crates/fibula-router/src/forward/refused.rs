//! Packets that are dropped.

use crate::drops::DropReason;
use crate::packet::icmp::Problem;

/// A dropped packet: the reason, and the ICMP error for its sender, if any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    pub(super) reason: DropReason,
    pub(super) problem: Option<Problem>,
}

impl From<DropReason> for Refused {
    fn from(reason: DropReason) -> Self {
        Self { reason, problem: None }
    }
}

impl Refused {
    pub(super) const fn telling(reason: DropReason, problem: Problem) -> Self {
        Self { reason, problem: Some(problem) }
    }
}
