//! Links and addresses of the machine, as the kernel reports them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::kernel::netlink::{Address, Connected, Event, Link};
use crate::packet::ethernet::Mac;

/// Links and addresses of the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    links: BTreeMap<u32, Link>,
    /// For each link, how many links had come before it. A link that goes and comes again with its number has another count.
    births: BTreeMap<u32, u64>,
    born: u64,
    /// The names of the configuration, and the links that they led to last.
    held: BTreeMap<String, Option<Known>>,
    addresses: Vec<Address>,
    /// Networks of devices, in the order in which the kernel made its routes to them.
    connected: Vec<Connected>,
    /// Ports unknown to the kernel, by name.
    ports: BTreeMap<String, Port>,
}

/// A link that a name led to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    index: u32,
    kind: Option<String>,
}

/// The identity of a link: its number, and its count among all links that have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) index: u32,
    birth: u64,
}

/// A port unknown to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) mac: Mac,
    pub(super) up: bool,
}

impl Machine {
    /// Applies an event. Returns whether something changed.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::Link(link) => {
                if !link.is_enabled {
                    // The kernel takes the routes of a device that is set down away without a word.
                    self.connected.retain(|route| route.index != link.index);
                }
                let before = self.links.insert(link.index, link.clone());
                if before.is_none() {
                    self.born += 1;
                    self.births.insert(link.index, self.born);
                }
                before.as_ref() != Some(link)
            }
            Event::LinkGone(index) => {
                // A link that is gone has no addresses, even if the kernel does not report each of them.
                self.addresses.retain(|address| address.index != *index);
                self.connected.retain(|route| route.index != *index);
                self.births.remove(index);
                self.links.remove(index).is_some()
            }
            Event::Address(address) if !self.addresses.contains(address) => {
                self.addresses.retain(|known| (known.index, known.ip) != (address.index, address.ip));
                self.addresses.push(*address);
                true
            }
            Event::AddressGone(address) => {
                let before = self.addresses.len();
                self.addresses.retain(|known| (known.index, known.ip) != (address.index, address.ip));
                self.addresses.len() != before
            }
            Event::Connected(route) if !self.connected.contains(route) => {
                self.connected.push(*route);
                true
            }
            Event::ConnectedGone(route) => {
                let before = self.connected.len();
                self.connected.retain(|known| known != route);
                self.connected.len() != before
            }
            _ => false,
        }
    }

    /// Returns the networks that the kernel reaches by devices. Of one network, the route that the kernel uses comes first.
    pub(super) fn connected(&self) -> Vec<Connected> {
        let mut connected = self.connected.clone();
        // Keeps the order of routes with the same metric.
        connected.sort_by_key(|route| route.metric);
        connected
    }

    /// Sets the state of a port. Returns whether it changed.
    pub(super) fn set_port(&mut self, name: &str, port: Port) -> bool {
        self.ports.insert(name.to_owned(), port) != Some(port)
    }

    /// Returns the state of a port unknown to the kernel.
    pub(super) fn port(&self, name: &str) -> Option<Port> {
        self.ports.get(name).copied()
    }

    /// Takes over what the kernel does not report from an earlier description: ports, and which links names led to. All links
    /// count as new, because one may have gone and come again meanwhile.
    pub(super) fn keep(&mut self, earlier: &Self) {
        self.ports.clone_from(&earlier.ports);
        self.held.clone_from(&earlier.held);
        self.born += earlier.born;
        self.births.values_mut().for_each(|birth| *birth += earlier.born);
    }

    /// Returns the link of this name. If no link has the name, returns the link that had it when [`hold`](Self::hold) was called,
    /// if it still exists, is of the same kind, and has none of the other names: it was renamed.
    pub(super) fn link(&self, name: &str) -> Option<&Link> {
        let named = self.links.values().find(|link| link.name == name);
        named.or_else(|| {
            let held = self.held.get(name)?.as_ref()?;
            let same = |link: &&Link| link.kind == held.kind && !self.held.contains_key(&link.name);
            self.links.get(&held.index).filter(same)
        })
    }

    /// Returns the identity of the link that a name leads to.
    pub(super) fn identity(&self, name: &str) -> Option<Identity> {
        let index = self.link(name)?.index;
        Some(Identity { index, birth: self.births.get(&index).copied().unwrap_or(0) })
    }

    /// Notes which links these names lead to. A name whose link is gone leads nowhere from here on.
    pub(super) fn hold<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let held = names.into_iter().map(|name| {
            let link = self.link(name).map(|link| Known { index: link.index, kind: link.kind.clone() });
            (name.to_owned(), link)
        });
        self.held = held.collect();
    }

    /// Returns the link that a link lies on, as a macvlan does.
    pub(super) fn below(&self, index: u32) -> Option<u32> {
        self.links.get(&index).filter(|link| link.kind.as_deref() == Some("macvlan"))?.below
    }

    /// Returns the MAC addresses of VRRP that a link has beside its own: those of the macvlans on it that are up and have an address of
    /// their family. The shared address is there while this machine is the one to forward (RFC 5798, sections 6.4.2 and 6.4.3).
    pub(super) fn virtual_macs(&self, index: u32) -> impl Iterator<Item = Mac> {
        let above = self.links.values().filter(move |link| link.up && self.below(link.index) == Some(index));
        above.filter_map(|link| {
            let mac = link.mac.filter(|mac| mac.is_virtual_router())?;
            let is_v6 = mac.0[4] == 2;
            self.addresses(link.index).any(|address| address.ip.is_ipv6() == is_v6).then_some(mac)
        })
    }

    /// Returns the addresses of a link.
    pub(super) fn addresses(&self, index: u32) -> impl Iterator<Item = &Address> {
        self.addresses.iter().filter(move |address| address.index == index)
    }

    /// Returns all addresses, all broadcast addresses of networks, and the addresses by which any router of a network is reached,
    /// with the number of their link.
    pub(super) fn locals(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        let broadcast = |address: &Address| Some((address.index, IpAddr::V4(address.broadcast?)));
        let last = self.addresses.iter().filter_map(|address| Some((address.index, last(address)?)));
        let own = self.addresses.iter().map(|address| (address.index, address.ip));
        let anycast = self.addresses.iter().filter_map(|address| Some((address.index, anycast(address)?)));
        own.chain(self.addresses.iter().filter_map(broadcast)).chain(last).chain(anycast)
    }
}

/// Returns the last address of the network of an address. It is a broadcast address whether one is set or not, because the kernel makes
/// a route for it. Networks of /31 and /32 have none (RFC 3021).
fn last(address: &Address) -> Option<IpAddr> {
    let IpAddr::V4(ip) = address.ip else { return None };
    let rest = u32::MAX.checked_shr(address.len.into()).filter(|_| address.len <= 30)?;
    Some(IpAddr::V4((u32::from(ip) | rest).into()))
}

/// Returns the subnet-router anycast address of the network of an address: its prefix, with zeros after it (RFC 4291, section
/// 2.6.1). Networks of /127 have none (RFC 6164, section 6).
fn anycast(address: &Address) -> Option<IpAddr> {
    let IpAddr::V6(ip) = address.ip else { return None };
    let rest = 128 - u32::from(address.len.min(128));
    let is_one = rest > 1 && !ip.is_unicast_link_local() && !ip.is_loopback();
    is_one.then(|| IpAddr::V6(u128::checked_shl(u128::from(ip) >> rest.min(127), rest).unwrap_or(0).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: Option<&str>) -> Event {
        Event::Link(Link {
            index,
            below: None,
            name: name.into(),
            mac: None,
            mtu: 1500,
            up: true,
            is_enabled: true,
            kind: kind.map(str::to_owned),
            master: None,
        })
    }

    #[test]
    fn a_name_leads_to_its_link_else_to_the_one_that_had_it() {
        let mut machine = Machine::default();
        assert!(machine.take(&link(7, "left", Some("veth"))));
        machine.hold(["left", "right"]);
        let first = machine.identity("left").unwrap();
        assert_eq!((first.index, machine.identity("right")), (7, None));
        // Renamed: the same link. Renamed back, nothing has changed.
        assert!(machine.take(&link(7, "wan", Some("veth"))));
        machine.hold(["left", "right"]);
        assert_eq!(
            (machine.identity("left"), machine.link("left").unwrap().name.as_str()),
            (Some(first), "wan")
        );
        // Another link takes the name, and has it.
        machine.take(&link(9, "left", Some("veth")));
        assert_eq!(machine.identity("left").unwrap().index, 9);
        machine.hold(["left"]);
        assert!(machine.take(&Event::LinkGone(9)));
        assert_eq!(machine.identity("left"), None, "not the link that had the name before");
        machine.hold(["left"]);
        // A link of another kind that gets the number is a stranger.
        machine.take(&link(9, "left", Some("veth")));
        machine.hold(["left"]);
        machine.take(&Event::LinkGone(9));
        machine.take(&link(9, "other", None));
        assert_eq!(machine.identity("left"), None);
        // Gone and come again with its number: another identity.
        machine.take(&Event::LinkGone(7));
        machine.take(&link(7, "wan", Some("veth")));
        assert_ne!(machine.identity("wan"), Some(first));
        // Everything is read again: all links count as new.
        let mut again = Machine::default();
        again.take(&link(7, "wan", Some("veth")));
        again.keep(&machine);
        assert_ne!(again.identity("wan"), machine.identity("wan"));
    }

    #[test]
    fn macvlans_of_vrrp_give_their_device_their_mac_addresses() {
        let mut machine = Machine::default();
        let above = |index: u32, below: u32, kind: &str, last: u8, up: bool| {
            let Event::Link(link) = link(index, "vrrp", Some(kind)) else { panic!() };
            let mac = Some(Mac([0, 0, 0x5e, 0, last, 51]));
            Event::Link(Link { below: Some(below), mac, up, ..link })
        };
        for event in [
            link(2, "eth0", None),
            above(5, 2, "macvlan", 1, true),
            above(6, 2, "macvlan", 2, true),
            // Not of VRRP, down, on another device, and not a macvlan.
            above(7, 2, "macvlan", 3, true),
            above(8, 2, "macvlan", 1, false),
            above(9, 3, "macvlan", 1, true),
            above(10, 2, "veth", 1, true),
        ] {
            machine.take(&event);
        }
        let macs = |machine: &Machine| -> Vec<u8> { machine.virtual_macs(2).map(|mac| mac.0[4]).collect() };
        assert_eq!((macs(&machine), machine.below(5), machine.below(10)), (vec![], Some(2), None));
        // Another machine has the shared addresses until this one gets them.
        for (index, ip) in
            [(5, "2001:db8::1"), (6, "2001:db8::1"), (7, "192.0.2.1"), (8, "192.0.2.1"), (5, "192.0.2.1")]
        {
            assert_eq!(
                macs(&machine),
                if index == 7 || index == 8 || ip == "192.0.2.1" { vec![2] } else { vec![] }
            );
            machine.take(&Event::Address(Address {
                index,
                ip: ip.parse().unwrap(),
                len: 32,
                broadcast: None,
            }));
        }
        assert_eq!(macs(&machine), [1, 2]);
    }

    #[test]
    fn networks_have_a_broadcast_address_whether_it_is_set_or_not() {
        let of = |ip: &str, len: u8| {
            let mut machine = Machine::default();
            machine.take(&Event::Address(Address {
                index: 1,
                ip: ip.parse().unwrap(),
                len,
                broadcast: None,
            }));
            machine.locals().map(|(_, ip)| ip.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("192.0.2.1", 24), ["192.0.2.1", "192.0.2.255"]);
        assert_eq!(of("192.0.2.1", 30), ["192.0.2.1", "192.0.2.3"]);
        assert_eq!(of("192.0.2.1", 0), ["192.0.2.1", "255.255.255.255"]);
        assert_eq!(of("192.0.2.1", 31), ["192.0.2.1"]);
        assert_eq!(of("192.0.2.1", 32), ["192.0.2.1"]);
    }

    #[test]
    fn networks_of_several_routers_have_an_anycast_address() {
        let of = |ip: &str, len: u8| {
            anycast(&Address { index: 1, ip: ip.parse().unwrap(), len, broadcast: None })
                .map(|ip| ip.to_string())
        };
        assert_eq!(of("2001:db8:0:7::9", 64).as_deref(), Some("2001:db8:0:7::"));
        assert_eq!(of("2001:db8::2", 126).as_deref(), Some("2001:db8::"));
        assert_eq!(of("2001:db8::2", 0).as_deref(), Some("::"));
        for (ip, len) in [("2001:db8::2", 127), ("2001:db8::2", 128), ("fe80::1", 64), ("192.0.2.1", 24)] {
            assert_eq!(of(ip, len), None, "{ip}/{len}");
        }
    }
}
