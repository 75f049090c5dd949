//! Which next hops are dead, and which take their packets. Has no clock and no thread.
//!
//! A next hop is dead while its link is down, or while the BFD session of its gateway has failed. Routes and tables know nothing of
//! that: a fabric is made of the next hops, with others in the places of the dead ones. So the flows of hundreds of thousands of routes
//! move with one fabric.

use std::collections::HashSet;
use std::net::IpAddr;

use super::hops::Hops;
use super::plan::near;
use crate::config::Backup;
use crate::forward::fabric::{Gateway, Hop, Interface};

/// Most places of a group with a dead member, unless it has more without one. With more places the flows of a dead member are spread
/// more evenly.
const MOST_PLACES: usize = 1024;

/// The gateways that are dead though their links are up, and the backups.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Number of the interface, and the gateway.
    pub dead: HashSet<(u16, Gateway)>,
    /// Gateways that take the packets of others.
    pub backups: Vec<Backup>,
}

impl Outage {
    /// Returns all next hops as packets are to use them: see [`in_use`].
    #[must_use]
    pub fn in_use(&self, hops: &Hops, interfaces: &[Interface]) -> Vec<Option<Hop>> {
        in_use(hops.all(), interfaces, self)
    }
}

/// Returns the next hops as packets are to use them, each by its number. In a group, the members that are alive take the places of the
/// dead ones, and keep their own, so that no flow of theirs moves. A next hop alone, or a group without any member alive, leads to its
/// backup, if it has one that is alive. Otherwise it stays as it is, because a dead next hop is better than none.
#[must_use]
pub fn in_use(hops: &[Option<Hop>], interfaces: &[Interface], outage: &Outage) -> Vec<Option<Hop>> {
    let is_up = |interface: u16| interfaces.get(usize::from(interface)).is_some_and(|interface| interface.up);
    let is_alive = |hop: &Hop| match *hop {
        Hop::Via { interface, gateway } => is_up(interface) && !outage.dead.contains(&(interface, gateway)),
        Hop::Connected { interface } => is_up(interface),
        _ => true,
    };
    let has_life = |number: u32| hops.get(number as usize).and_then(Option::as_ref).is_some_and(is_alive);
    let instead = |hop: &Hop| match hop {
        Hop::Group(members) => others(members, has_life).map(Hop::Group),
        Hop::Via { .. } if !is_alive(hop) => backup(hop, interfaces, outage).filter(is_alive),
        _ => None,
    };
    hops.iter().map(|hop| hop.as_ref().map(|hop| instead(hop).unwrap_or_else(|| hop.clone()))).collect()
}

/// Returns the places of a group, with those of its dead members given to the others in turn; `None` if all of its members are alive,
/// or none is.
fn others(members: &[u32], is_alive: impl Fn(u32) -> bool) -> Option<Box<[u32]>> {
    let alive: Vec<u32> = members.iter().copied().filter(|&member| is_alive(member)).collect();
    if alive.is_empty() || alive.len() == members.len() {
        return None;
    }
    // A flow's place is its hash times the number of places, by the upper bits. So a place may be cut into parts, and each flow stays
    // within it.
    let parts = alive.len().min((MOST_PLACES / members.len()).max(1));
    let mut next = alive.iter().copied().cycle();
    let mut places = Vec::with_capacity(members.len() * parts);
    for &member in members {
        if is_alive(member) {
            places.extend(std::iter::repeat_n(member, parts));
        } else {
            places.extend(next.by_ref().take(parts));
        }
    }
    Some(places.into())
}

/// Returns the next hop that takes the packets of a dead one.
fn backup(hop: &Hop, interfaces: &[Interface], outage: &Outage) -> Option<Hop> {
    let Hop::Via { interface, gateway } = *hop else { return None };
    let vrf = interfaces.get(usize::from(interface))?.vrf;
    let is_its = |backup: &&Backup| backup.vrf == vrf && Gateway::from(backup.of) == gateway;
    let via: IpAddr = outage.backups.iter().find(is_its)?.via;
    let interface = near(interfaces, via, vrf)? as u16;
    Some(Hop::Via { interface, gateway: via.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::fabric::Urpf;
    use crate::packet::flow;

    /// Interfaces with the networks 10.0.0.0/24, 10.0.1.0/24, and so on.
    fn interfaces() -> Vec<Interface> {
        let interface = |number: u8| Interface {
            name: format!("eth{number}"),
            port: usize::from(number),
            tags: Default::default(),
            mac: Default::default(),
            virtual_macs: vec![],
            mtu: 1500,
            v4: vec![(u32::from_be_bytes([10, 0, number, 1]), 24)],
            v6: vec![],
            vrf: usize::from(number == 4),
            urpf: Urpf::Off,
            kernel: true,
            machine: None,
            up: true,
            missing: false,
        };
        (0..5).map(interface).collect()
    }

    fn gateway(number: u16) -> Gateway {
        Gateway::V4(u32::from_be_bytes([10, 0, number as u8, 9]))
    }

    fn via(interface: u16) -> Hop {
        Hop::Via { interface, gateway: gateway(interface) }
    }

    fn backup_of(of: u16, via: u16, vrf: usize) -> Backup {
        let address = |number: u16| IpAddr::from([10, 0, number as u8, 9]);
        Backup { of: address(of), via: address(via), vrf, line: 1 }
    }

    /// Next hops 1 to 4 by the interfaces 0 to 3, and groups of them.
    fn hops(groups: &[&[u32]]) -> Vec<Option<Hop>> {
        let mut hops = vec![None];
        hops.extend((0..4).map(|interface| Some(via(interface))));
        hops.extend(groups.iter().map(|members| Some(Hop::Group((*members).into()))));
        hops
    }

    fn members(hops: &[Option<Hop>], number: usize) -> &[u32] {
        let Some(Hop::Group(members)) = &hops[number] else { panic!("{:?}", hops[number]) };
        members
    }

    #[test]
    fn flows_of_a_dead_member_are_spread_and_the_others_stay() {
        let (interfaces, hops) = (interfaces(), hops(&[&[1, 2, 2, 3, 4], &[1, 2], &[2, 2]]));
        let dead = Outage { dead: HashSet::from([(1, gateway(1))]), ..Outage::default() };
        assert_eq!(in_use(&hops, &interfaces, &Outage::default()), hops);
        let after = in_use(&hops, &interfaces, &dead);
        let (before, places) = (members(&hops, 5), members(&after, 5));
        let (mut moved, mut flows) = ([0_u32; 5], [0_u32; 5]);
        for hash in (0..=u32::MAX).step_by(65_521) {
            let was = before[flow::member(hash, before.len())];
            let is = places[flow::member(hash, places.len())];
            assert!(was == 2 || was == is, "a flow of {was} went to {is}");
            assert_ne!(is, 2);
            flows[was as usize] += 1;
            moved[is as usize] += u32::from(was == 2);
        }
        let share = flows[2] / 3;
        for to in [1, 3, 4] {
            assert!(moved[to].abs_diff(share) <= share / 100, "{moved:?}, not {share} each");
        }
        assert_eq!(members(&after, 6), [1, 1]);
        assert_eq!(members(&after, 7), [2, 2], "nothing else is there");
        assert_eq!(after[2], Some(via(1)), "alone, and without a backup");
    }

    #[test]
    fn a_link_that_is_down_kills_its_next_hops() {
        let (mut interfaces, mut hops) = (interfaces(), hops(&[&[1, 2]]));
        hops.push(Some(Hop::Connected { interface: 2 }));
        hops.push(Some(Hop::Group([6, 1].into())));
        interfaces[2].up = false;
        let after = in_use(&hops, &interfaces, &Outage::default());
        assert_eq!((members(&after, 5), members(&after, 7)), (&[1, 2][..], &[1, 1][..]));
        assert_eq!(after[6], Some(Hop::Connected { interface: 2 }));
    }

    #[test]
    fn many_places_are_cut_as_far_as_there_is_room() {
        let group: Vec<u32> = (0..2000).map(|place| 1 + place % 4).collect();
        let (mut interfaces, hops) = (interfaces(), hops(&[&group, &group[..64]]));
        interfaces[0].up = false;
        let after = in_use(&hops, &interfaces, &Outage::default());
        assert_eq!((members(&after, 5).len(), members(&after, 6).len()), (2000, 64 * 16));
        assert!(!members(&after, 5).contains(&1));
    }

    #[test]
    fn a_backup_takes_over_while_it_is_alive() {
        let (mut interfaces, hops) = (interfaces(), hops(&[&[1, 2], &[2, 2]]));
        let dead = |numbers: &[u16]| Outage {
            dead: numbers.iter().map(|&number| (number, gateway(number))).collect(),
            // The second is in another VRF.
            backups: vec![backup_of(1, 4, 1), backup_of(1, 2, 0), backup_of(2, 3, 0)],
        };
        assert_eq!(in_use(&hops, &interfaces, &dead(&[])), hops);
        let after = in_use(&hops, &interfaces, &dead(&[1]));
        assert_eq!((&after[2], &after[3]), (&Some(via(2)), &Some(via(2))));
        assert_eq!(members(&after, 5), [1, 1], "a member that is alive comes first");
        assert_eq!(members(&after, 6), [2, 2], "whose meaning is the backup");
        // No chain of backups, which might be a circle.
        let after = in_use(&hops, &interfaces, &dead(&[1, 2]));
        assert_eq!((&after[2], &after[3]), (&Some(via(1)), &Some(via(3))));
        interfaces[2].up = false;
        assert_eq!(in_use(&hops, &interfaces, &dead(&[1]))[2], Some(via(1)));
        interfaces[1].up = false;
        interfaces[2].up = true;
        assert_eq!(in_use(&hops, &interfaces, &dead(&[]))[2], Some(via(2)), "by the link alone");
    }
}
