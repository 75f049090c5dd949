//! The router's own addresses that are unknown to the kernel. Detects other stations with the same address (RFC 4862, section
//! 5.4; RFC 5227), and reports the groups of IPv6 addresses (RFC 3810).
//!
//! An address is *probed* for a second; then it is in use, and announced. If another station claims it meanwhile, it is *taken*:
//! neither ARP nor neighbour discovery answers for it, and operators are notified. An address in use is never given up, because
//! hosts use it as their gateway. An IPv4 address is *defended*, by an announcement at most every ten seconds (RFC 5227, section
//! 2.4 (c)). No clock is read here.
//!
//! The times of RFC 5227, four to seven seconds in total, are for hosts that choose addresses by themselves. Here they are
//! shorter, because hosts wait for their gateway meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::packet::ethernet::Mac;
use crate::packet::mld::{self, Reason};
use crate::packet::{ipv6, nd};

use super::Key;

const SECOND: u64 = 1_000_000_000;
/// Probes, the time between two, and how long the last waits for an objection: of IPv6 RetransTimer of RFC 4862.
const PROBES_V4: u8 = 3;
const PROBES_V6: u8 = 1;
const PROBE_NS: u64 = 300_000_000;
const LAST_PROBE_V4_NS: u64 = 400_000_000;
const LAST_PROBE_V6_NS: u64 = SECOND;
/// Announcements, and the time between two (RFC 5227: ANNOUNCE_NUM, ANNOUNCE_INTERVAL).
const ANNOUNCEMENTS_V4: u8 = 2;
const ANNOUNCEMENTS_V6: u8 = 1;
const ANNOUNCE_NS: u64 = 2 * SECOND;
/// Least time between two defences (RFC 5227: DEFEND_INTERVAL).
const DEFEND_NS: u64 = 10 * SECOND;
/// Number of reports of new groups, because one may be lost (RFC 3810, section 9.1), and the time between them.
const REPORTS: u8 = 2;
const REPORT_NS: u64 = SECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Number of probes sent. At this time the next one is due, or the address comes into use.
    Probing { sent: u8, due_ns: u64 },
    /// Number of announcements left to send, and the time of the next one. The address is not defended again before `defend_ns`.
    InUse { announcements: u8, due_ns: u64, defend_ns: u64 },
    /// Another station has the address.
    Taken(Mac),
}

/// State of an own address, as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnState {
    /// Probes for other stations with the address are being sent.
    Probing,
    /// The router answers for the address.
    InUse,
    /// This station has the address, so the router does not use it.
    Taken(Mac),
}

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty<'d> {
    /// A request or solicitation for an own address, from the unspecified address.
    Probe(Key),
    /// An announcement of an own address, to all stations.
    Announce(Key),
    /// A report of groups, with its source: a link-local address of the interface, or the unspecified one while none is in use
    /// (RFC 3590).
    Report(u16, &'d [u128], Reason, u128),
}

/// An address that another station has too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate {
    /// The address, and the interface.
    pub key: Key,
    /// The other station.
    pub mac: Mac,
    /// Whether the router keeps using the address.
    pub used: bool,
}

#[derive(Debug, Default)]
struct Inner {
    addresses: BTreeMap<Key, State>,
    /// By interface: when the next report is due, how many reports are left, and why.
    reports: BTreeMap<u16, (u64, u8, Reason)>,
    duplicates: Vec<Duplicate>,
    /// Addresses whose duplicates have been reported.
    told: BTreeSet<Key>,
}

/// The own addresses of all interfaces whose neighbours the router resolves. Addresses that were never [`set`](Self::set) count
/// as in use.
#[derive(Debug, Default)]
pub struct Own(Mutex<Inner>);

impl Own {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change leaves the lists consistent, so a panic of another thread can be ignored.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the own addresses. New addresses are probed first, and others keep their state.
    pub fn set(&self, addresses: impl Iterator<Item = Key>) {
        let mut inner = self.lock();
        let Inner { addresses: known, reports, told, .. } = &mut *inner;
        let before = std::mem::take(known);
        for key in addresses {
            let state = before.get(&key).copied().unwrap_or(State::Probing { sent: 0, due_ns: 0 });
            known.insert(key, state);
            if key.v6 && !before.contains_key(&key) {
                reports.insert(key.interface, (0, REPORTS, Reason::Change));
            }
        }
        told.retain(|key| known.contains_key(key));
    }

    /// Notes that an address is in use already: another router has used it, which this one takes over.
    pub fn take_over(&self, key: Key) {
        if let Some(state) = self.lock().addresses.get_mut(&key) {
            *state = State::InUse { announcements: 0, due_ns: 0, defend_ns: 0 };
        }
    }

    /// Returns whether the router answers for an address and sends from it.
    #[must_use]
    pub fn is_in_use(&self, key: Key) -> bool {
        matches!(self.lock().addresses.get(&key), None | Some(State::InUse { .. }))
    }

    /// Notes that another station claims an address. An address in use stays in use, and is defended if it is IPv4.
    pub fn claim(&self, key: Key, mac: Mac, now_ns: u64) {
        let mut inner = self.lock();
        let Some(state) = inner.addresses.get_mut(&key) else { return };
        let used = match state {
            State::InUse { announcements, due_ns, defend_ns } => {
                if !key.v6 && *defend_ns <= now_ns {
                    (*announcements, *due_ns) = ((*announcements).max(1), now_ns);
                    *defend_ns = now_ns + DEFEND_NS;
                }
                true
            }
            State::Probing { .. } | State::Taken(_) => {
                *state = State::Taken(mac);
                false
            }
        };
        // Report a duplicate once, however often the other station sends.
        if inner.told.insert(key) {
            inner.duplicates.push(Duplicate { key, mac, used });
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

    /// Calls `each` with every own address and its state. For operators.
    pub fn for_each(&self, mut each: impl FnMut(Key, OwnState)) {
        for (&key, state) in &self.lock().addresses {
            each(
                key,
                match *state {
                    State::Probing { .. } => OwnState::Probing,
                    State::InUse { .. } => OwnState::InUse,
                    State::Taken(mac) => OwnState::Taken(mac),
                },
            );
        }
    }

    /// Runs the timers: calls `send` for each packet that is due. `send` returns whether the packet was sent. One thread must
    /// call this a few times a second.
    pub fn tick(&self, now_ns: u64, send: &mut dyn FnMut(Duty<'_>) -> bool) {
        let mut inner = self.lock();
        let Inner { addresses, reports, .. } = &mut *inner;
        for (&key, state) in addresses.iter_mut() {
            let (probes, count) =
                if key.v6 { (PROBES_V6, ANNOUNCEMENTS_V6) } else { (PROBES_V4, ANNOUNCEMENTS_V4) };
            if matches!(*state, State::Probing { sent, due_ns } if sent == probes && due_ns <= now_ns) {
                *state = State::InUse { announcements: count, due_ns: now_ns, defend_ns: now_ns };
            }
            if let State::InUse { announcements: announcements @ 1.., due_ns, .. } = state
                && *due_ns <= now_ns
            {
                send(Duty::Announce(key));
                *announcements -= 1;
                *due_ns = now_ns + ANNOUNCE_NS;
            }
        }
        // Send reports before probes. Otherwise, a switch may not forward the answers to the probes.
        reports.retain(|&interface, (due_ns, left, reason)| {
            if *due_ns > now_ns {
                return true;
            }
            let own = || addresses.range(Key::v6(interface, 0)..=Key::v6(interface, u128::MAX));
            let used = |entry: &(&Key, &State)| {
                matches!(entry.1, State::InUse { .. }) && ipv6::is_link_local(entry.0.address)
            };
            let source = own().find(used).map_or(0, |(key, _)| key.address);
            let mut groups: Vec<u128> = own().map(|(key, _)| nd::solicited_node(key.address)).collect();
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
        for (&key, state) in addresses.iter_mut() {
            let (probes, last_ns) =
                if key.v6 { (PROBES_V6, LAST_PROBE_V6_NS) } else { (PROBES_V4, LAST_PROBE_V4_NS) };
            if let State::Probing { sent, due_ns } = state
                && *sent < probes
                && *due_ns <= now_ns
                && send(Duty::Probe(key))
            {
                *sent += 1;
                *due_ns = now_ns + if *sent == probes { last_ns } else { PROBE_NS };
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
                Duty::Probe(key) => format!("probe {}", key.interface),
                Duty::Announce(key) => format!("announce {}", key.interface),
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
        assert!(own.is_in_use(Key::v6(1, ADDRESS)), "not told of");
        own.set([Key::v6(1, ADDRESS), Key::v6(1, LINK_LOCAL), Key::v6(2, ADDRESS)].into_iter());
        assert!(!own.is_in_use(Key::v6(1, ADDRESS)));
        // Two addresses with the same end have one group, in addition to the group of all routers.
        assert_eq!(
            due(&own, 5),
            ["report 1 2 Change ::", "report 2 2 Change ::", "probe 1", "probe 1", "probe 2"]
        );
        assert!(due(&own, 900_000_000).is_empty() && !own.is_in_use(Key::v6(1, ADDRESS)));
        let last = due(&own, 1_100_000_000);
        assert_eq!(last[..3], ["announce 1", "announce 1", "announce 2"]);
        assert_eq!(last[3..], ["report 1 2 Change link-local", "report 2 2 Change ::"]);
        assert!(own.is_in_use(Key::v6(1, ADDRESS)) && due(&own, 9_000_000_000).is_empty());
        own.query(2);
        own.query(7);
        assert_eq!(due(&own, 9_000_000_001), ["report 2 2 Query ::"]);
        // The same addresses again are not probed again; one that comes back is.
        own.set([Key::v6(1, ADDRESS)].into_iter());
        assert!(due(&own, 10_000_000_000).is_empty());
        own.set([Key::v6(1, ADDRESS), Key::v6(2, ADDRESS)].into_iter());
        assert_eq!(due(&own, 11_000_000_000), ["report 2 2 Change ::", "probe 2"]);
    }

    #[test]
    fn what_another_station_claims_is_not_used_and_told_once() {
        let own = Own::default();
        own.set([Key::v6(1, ADDRESS)].into_iter());
        due(&own, 5);
        own.claim(Key::v6(1, ADDRESS), MAC, 5);
        own.claim(Key::v6(1, ADDRESS), MAC, 5);
        own.claim(Key::v6(1, ADDRESS + 1), MAC, 5);
        assert_eq!(own.take_duplicates(), [Duplicate { key: Key::v6(1, ADDRESS), mac: MAC, used: false }]);
        assert!(due(&own, 2_000_000_000).iter().all(|duty| duty.starts_with("report")));
        assert!(!own.is_in_use(Key::v6(1, ADDRESS)) && own.take_duplicates().is_empty());
        // An address in use stays in use, and its duplicate is reported once too.
        own.set([Key::v6(2, ADDRESS)].into_iter());
        due(&own, 3_000_000_000);
        due(&own, 5_000_000_000);
        own.claim(Key::v6(2, ADDRESS), MAC, 5);
        own.claim(Key::v6(2, ADDRESS), MAC, 5);
        assert!(own.is_in_use(Key::v6(2, ADDRESS)) && own.take_duplicates().len() == 1);
    }

    #[test]
    fn what_cannot_be_sent_is_tried_again() {
        let own = Own::default();
        own.set([Key::v6(1, ADDRESS)].into_iter());
        own.tick(5, &mut |_| false);
        assert!(!own.is_in_use(Key::v6(1, ADDRESS)));
        own.tick(5_000_000_000, &mut |_| false);
        assert_eq!(due(&own, 6_000_000_000), ["report 1 2 Change ::", "probe 1"]);
    }
    const KEY: Key = Key { interface: 1, v6: false, address: 0x0a00_0001 };

    fn at(own: &Own, milliseconds: u64) -> Vec<String> {
        due(own, milliseconds * 1_000_000)
    }

    fn state(own: &Own) -> OwnState {
        let mut found = None;
        own.for_each(|key, state| found = Some(state).filter(|_| key == KEY));
        found.unwrap()
    }

    #[test]
    fn an_ipv4_address_is_probed_three_times_and_announced_twice() {
        let own = Own::default();
        own.set([KEY].into_iter());
        for (milliseconds, duties) in [
            (0, vec!["probe 1"]),
            (200, vec![]),
            (300, vec!["probe 1"]),
            (600, vec!["probe 1"]),
            (900, vec![]),
            (1000, vec!["announce 1"]),
            (2900, vec![]),
            (3000, vec!["announce 1"]),
            (60_000, vec![]),
        ] {
            assert_eq!(own.is_in_use(KEY), milliseconds > 1000, "{milliseconds}");
            assert_eq!(at(&own, milliseconds), duties, "{milliseconds}");
        }
        assert_eq!(state(&own), OwnState::InUse);
    }

    #[test]
    fn an_ipv4_address_that_is_claimed_while_it_is_probed_is_not_used() {
        let own = Own::default();
        own.set([KEY].into_iter());
        at(&own, 0);
        assert_eq!(state(&own), OwnState::Probing);
        own.claim(KEY, MAC, 500_000_000);
        own.claim(KEY, MAC, 600_000_000);
        assert!((0..100).all(|n| at(&own, 600 + n * 100).is_empty()) && !own.is_in_use(KEY));
        assert_eq!(state(&own), OwnState::Taken(MAC));
        assert_eq!(own.take_duplicates(), [Duplicate { key: KEY, mac: MAC, used: false }]);
        // An address that is removed and added again is probed again.
        own.set(core::iter::empty());
        own.set([KEY].into_iter());
        assert_eq!(at(&own, 20_000), ["probe 1"]);
    }

    #[test]
    fn an_ipv4_address_in_use_is_defended_every_ten_seconds() {
        let own = Own::default();
        own.set([KEY].into_iter());
        (0..50).for_each(|n| drop(at(&own, n * 100)));
        let mut announcements = Vec::new();
        // Claimed ten times a second for 25 seconds.
        for n in 50..300 {
            own.claim(KEY, MAC, n * 100_000_000);
            announcements.extend(at(&own, n * 100).iter().map(|_| n * 100));
        }
        assert_eq!(announcements, [5000, 15_000, 25_000]);
        assert!(own.is_in_use(KEY));
        assert_eq!(own.take_duplicates(), [Duplicate { key: KEY, mac: MAC, used: true }]);
    }
}
