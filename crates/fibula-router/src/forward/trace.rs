//! Traces: the steps of some packets, and their ends.
//!
//! A [`Sighting`] has the facts of a packet: its fields, its route, the rule, the next hop, the neighbour and its fate.
//! [`predict`](super::predict::predict) finds them for a packet that nobody sent, and workers find them for packets under way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use fibula::net::NextHop;

use crate::acl::{Action, HeaderFields, Ready, RulePlace};
use crate::drops::DropReason;
use crate::neighbour::{Answer, Key};
use crate::police::PolicerClass;

use super::fabric::Hop;

/// The end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was sent on.
    Forwarded,
    /// It waits for the MAC address of its neighbour.
    Waiting,
    /// It was given to the kernel of the machine.
    Delivered,
    /// The router consumed it: neighbour discovery, or a ping that it answered.
    Consumed,
    /// It was dropped.
    Dropped(DropReason),
}

/// A decision of rules about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The rules.
    pub place: RulePlace,
    /// The decision.
    pub action: Action,
    /// Number of the rule; `None` for the default.
    pub rule: Option<usize>,
}

/// The facts of a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// The packet. It has an `output` if it is about to leave.
    pub packet: HeaderFields,
    /// TTL or hop limit as received.
    pub ttl: u8,
    /// The number that the route of the destination leads to: `None` if it was not looked up, `Some(None)` without a route.
    pub route: Option<Option<NextHop>>,
    /// The next hop, of a group the member that the flow has.
    pub hop: Option<Hop>,
    /// The decision of rules, if they judged it.
    pub decision: Option<Decision>,
    /// The class whose policer it meets, if it is for the machine and has got that far.
    pub class: Option<PolicerClass>,
    /// The neighbour that it is sent to, and its state before the packet.
    pub neighbour: Option<(Key, Answer)>,
    /// Its end.
    pub fate: Fate,
}

/// A trace that runs: workers send sightings of the packets that it is about.
#[derive(Debug)]
pub struct Trace {
    condition: Ready,
    sightings: SyncSender<Sighting>,
    left: AtomicU64,
    is_over: AtomicBool,
    /// Packets that matched and were not reported, because there were too many at once.
    pub left_out: AtomicU64,
    /// Packets that were not compared with the filter, for the same reason.
    pub skipped: AtomicU64,
    /// Frames without a readable IP header.
    pub unreadable: AtomicU64,
}

/// Sightings a second and at once, of each worker. A packet that is traced costs some microseconds.
pub(super) const RATE: (u32, u32) = (200, 64);

impl Trace {
    /// Makes a trace of the first `count` packets that a condition matches.
    #[must_use]
    pub fn new(condition: Ready, count: u64, sightings: SyncSender<Sighting>) -> Self {
        Self {
            condition,
            sightings,
            left: AtomicU64::new(count),
            is_over: AtomicBool::new(count == 0),
            left_out: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
        }
    }

    /// Ends the trace.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns whether the trace has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn matches(&self, packet: &HeaderFields) -> bool {
        self.condition.matches(packet)
    }

    /// Reports a sighting, if it is one of the first.
    pub(super) fn report(&self, sighting: Sighting) {
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match before {
            Ok(before) => {
                if self.sightings.try_send(sighting).is_err() {
                    self.left_out.fetch_add(1, Ordering::Relaxed);
                }
                // The last one: workers stop here, because the reader may need long to notice.
                if before == 1 {
                    self.end();
                }
            }
            Err(_) => _ = self.left_out.fetch_add(1, Ordering::Relaxed),
        }
    }
}
