//! The router's own IPv6 addresses, where no kernel has them: whether another station has one too (RFC 4862, section 5.4), and the
//! groups that they belong to (RFC 3810).
//!
//! An address is *tentative* for a second after a probe has left; then it is in use, and announced. If another station claims
//! it meanwhile, it is *taken*: neighbour discovery does not answer for it, and operators are told. No clock is read here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::packet::ethernet::Mac;
use crate::packet::mld::{self, Reason};
use crate::packet::{ipv6, nd};

/// How long a probe waits for an objection (RFC 4862: RetransTimer).
const TENTATIVE_NS: u64 = 1_000_000_000;
/// Reports of new groups, as one may be lost (RFC 3810, section 9.1), and the time between them.
const REPORTS: u8 = 2;
const REPORT_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its probe is still to be sent.
    New,
    /// Nothing may be known of it before this time.
    Tentative(u64),
    InUse,
    Taken,
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty<'d> {
    /// A solicitation for an address of the interface, from the unspecified address.
    Probe(u16, u128),
    /// An advertisement of an address of the interface, to all nodes.
    Announce(u16, u128),
    /// A report of groups, with its source: a link-local address of the interface, or the unspecified one while none is in use
    /// (RFC 3590).
    Report(u16, &'d [u128], Reason, u128),
}

/// An address that another station has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of the interface.
    pub interface: u16,
    /// The address.
    pub address: u128,
    /// The other station.
    pub mac: Mac,
}

#[derive(Debug, Default)]
struct Inner {
    addresses: BTreeMap<(u16, u128), State>,
    /// By interface: when the next report is due, how many are, and why.
    reports: BTreeMap<u16, (u64, u8, Reason)>,
    duplicates: Vec<Duplicate>,
    /// Addresses whose duplicates were among these.
    told: BTreeSet<(u16, u128)>,
}

/// The own addresses of all interfaces whose neighbours the router resolves. Those that it was not told of are in use.
#[derive(Debug, Default)]
pub struct Own(Mutex<Inner>);

impl Own {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change leaves the lists whole, so a panic elsewhere is no reason to stop.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes these the own addresses, with the numbers of their interfaces. New ones are probed first; others stay as they are.
    pub fn set(&self, addresses: impl Iterator<Item = (u16, u128)>) {
        let mut inner = self.lock();
        let Inner { addresses: known, reports, told, .. } = &mut *inner;
        let before = std::mem::take(known);
        for key in addresses {
            let state = before.get(&key).copied().unwrap_or(State::New);
            known.insert(key, state);
            if !before.contains_key(&key) {
                reports.insert(key.0, (0, REPORTS, Reason::Change));
            }
        }
        told.retain(|key| known.contains_key(key));
    }

    /// Returns whether the router answers for an address and sends from it.
    #[must_use]
    pub fn is_in_use(&self, interface: u16, address: u128) -> bool {
        matches!(self.lock().addresses.get(&(interface, address)), None | Some(State::InUse))
    }

    /// Notes that another station claims an address. One that is in use already stays so: RFC 4862 detects duplicates before.
    pub fn claim(&self, interface: u16, address: u128, mac: Mac) {
        let mut inner = self.lock();
        let Some(state) = inner.addresses.get_mut(&(interface, address)) else { return };
        if *state != State::InUse {
            *state = State::Taken;
        }
        // Once, however often the other station speaks.
        if inner.told.insert((interface, address)) {
            inner.duplicates.push(Duplicate { interface, address, mac });
        }
    }

    /// Notes a query of MLD on an interface.
    pub fn query(&self, interface: u16) {
        self.lock().reports.entry(interface).or_insert((0, 1, Reason::Query));
    }

    /// Returns the duplicates that were found since this was called last.
    pub fn take_duplicates(&self) -> Vec<Duplicate> {
        std::mem::take(&mut self.lock().duplicates)
    }

    /// Lets time pass: calls `send` for what is due, which returns whether it was sent. To be called a few times a second, by
    /// one thread.
    pub fn tick(&self, now_ns: u64, send: &mut dyn FnMut(Duty<'_>) -> bool) {
        let mut inner = self.lock();
        let Inner { addresses, reports, .. } = &mut *inner;
        for (&(interface, address), state) in addresses.iter_mut() {
            if matches!(*state, State::Tentative(until_ns) if until_ns <= now_ns) {
                *state = State::InUse;
                send(Duty::Announce(interface, address));
            }
        }
        // Reports before probes: a switch is to pass on what answers the probes.
        reports.retain(|&interface, (due_ns, left, reason)| {
            if *due_ns > now_ns {
                return true;
            }
            let own = || addresses.range((interface, 0)..=(interface, u128::MAX));
            let used =
                |entry: &(&(u16, u128), &State)| *entry.1 == State::InUse && ipv6::is_link_local(entry.0.1);
            let source = own().find(used).map_or(0, |(key, _)| key.1);
            let mut groups: Vec<u128> = own().map(|(key, _)| nd::solicited_node(key.1)).collect();
            if groups.is_empty() {
                return false;
            }
            groups.push(mld::ALL_ROUTERS);
            groups.sort_unstable();
            groups.dedup();
            let mut parts = groups.chunks(mld::GROUPS);
            let sent = parts.all(|groups| send(Duty::Report(interface, groups, *reason, source)));
            *left -= u8::from(sent);
            *due_ns = now_ns + if sent { REPORT_NS } else { 0 };
            *left > 0
        });
        for (&(interface, address), state) in addresses.iter_mut() {
            if *state == State::New && send(Duty::Probe(interface, address)) {
                *state = State::Tentative(now_ns + TENTATIVE_NS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u128 = 0x2001_0db8 << 96 | 0x12_3456;
    const LINK_LOCAL: u128 = 0xfe80 << 112 | 0x12_3456;
    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn due(own: &Own, now_ns: u64) -> Vec<String> {
        let mut duties = Vec::new();
        own.tick(now_ns, &mut |duty| {
            duties.push(match duty {
                Duty::Probe(interface, _) => format!("probe {interface}"),
                Duty::Announce(interface, _) => format!("announce {interface}"),
                Duty::Report(interface, groups, reason, source) => {
                    assert!(source == 0 || source == LINK_LOCAL);
                    let from = if source == 0 { "::" } else { "link-local" };
                    format!("report {interface} {} {reason:?} {from}", groups.len())
                }
            });
            true
        });
        duties
    }

    #[test]
    fn an_address_is_probed_then_announced_and_its_groups_are_reported_twice() {
        let own = Own::default();
        assert!(own.is_in_use(1, ADDRESS), "not told of");
        own.set([(1, ADDRESS), (1, LINK_LOCAL), (2, ADDRESS)].into_iter());
        assert!(!own.is_in_use(1, ADDRESS));
        // Two addresses that end alike have one group, besides that of all routers.
        assert_eq!(
            due(&own, 5),
            ["report 1 2 Change ::", "report 2 2 Change ::", "probe 1", "probe 1", "probe 2"]
        );
        assert!(due(&own, 900_000_000).is_empty() && !own.is_in_use(1, ADDRESS));
        let last = due(&own, 1_100_000_000);
        assert_eq!(last[..3], ["announce 1", "announce 1", "announce 2"]);
        assert_eq!(last[3..], ["report 1 2 Change link-local", "report 2 2 Change ::"]);
        assert!(own.is_in_use(1, ADDRESS) && due(&own, 9_000_000_000).is_empty());
        own.query(2);
        own.query(7);
        assert_eq!(due(&own, 9_000_000_001), ["report 2 2 Query ::"]);
        // The same addresses again are not probed again; one that comes back is.
        own.set([(1, ADDRESS)].into_iter());
        assert!(due(&own, 10_000_000_000).is_empty());
        own.set([(1, ADDRESS), (2, ADDRESS)].into_iter());
        assert_eq!(due(&own, 11_000_000_000), ["report 2 2 Change ::", "probe 2"]);
    }

    #[test]
    fn what_another_station_claims_is_not_used_and_told_once() {
        let own = Own::default();
        own.set([(1, ADDRESS)].into_iter());
        due(&own, 5);
        own.claim(1, ADDRESS, MAC);
        own.claim(1, ADDRESS, MAC);
        own.claim(1, ADDRESS + 1, MAC);
        assert_eq!(own.take_duplicates(), [Duplicate { interface: 1, address: ADDRESS, mac: MAC }]);
        assert!(due(&own, 2_000_000_000).iter().all(|duty| duty.starts_with("report")));
        assert!(!own.is_in_use(1, ADDRESS) && own.take_duplicates().is_empty());
        // One that is in use stays so, and is told of once too.
        own.set([(2, ADDRESS)].into_iter());
        due(&own, 3_000_000_000);
        due(&own, 5_000_000_000);
        own.claim(2, ADDRESS, MAC);
        own.claim(2, ADDRESS, MAC);
        assert!(own.is_in_use(2, ADDRESS) && own.take_duplicates().len() == 1);
    }

    #[test]
    fn what_cannot_be_sent_is_tried_again() {
        let own = Own::default();
        own.set([(1, ADDRESS)].into_iter());
        own.tick(5, &mut |_| false);
        assert!(!own.is_in_use(1, ADDRESS));
        own.tick(5_000_000_000, &mut |_| false);
        assert_eq!(due(&own, 6_000_000_000), ["report 1 2 Change ::", "probe 1"]);
    }
}
