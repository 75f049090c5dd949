//! Links and addresses of the machine, as the kernel reports them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::kernel::netlink::{Address, Event, Link};
use crate::packet::ethernet::Mac;

/// Links and addresses of the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    links: BTreeMap<u32, Link>,
    addresses: Vec<Address>,
    /// Ports unknown to the kernel, by name.
    ports: BTreeMap<String, Port>,
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
            Event::Link(link) => self.links.insert(link.index, link.clone()).as_ref() != Some(link),
            Event::LinkGone(index) => {
                // A link that is gone has no addresses, even if the kernel does not report each of them.
                self.addresses.retain(|address| address.index != *index);
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
            _ => false,
        }
    }

    /// Sets the state of a port. Returns whether it changed.
    pub(super) fn set_port(&mut self, name: &str, port: Port) -> bool {
        self.ports.insert(name.to_owned(), port) != Some(port)
    }

    /// Returns the state of a port unknown to the kernel.
    pub(super) fn port(&self, name: &str) -> Option<Port> {
        self.ports.get(name).copied()
    }

    /// Copies the ports of an earlier description, because the kernel does not report them.
    pub(super) fn keep_ports(&mut self, earlier: &Self) {
        self.ports.clone_from(&earlier.ports);
    }

    /// Returns the link of this name.
    pub(super) fn link(&self, name: &str) -> Option<&Link> {
        self.links.values().find(|link| link.name == name)
    }

    /// Returns the addresses of a link.
    pub(super) fn addresses(&self, index: u32) -> impl Iterator<Item = &Address> {
        self.addresses.iter().filter(move |address| address.index == index)
    }

    /// Returns all addresses, all broadcast addresses of networks, and the addresses by which any router of a network is reached,
    /// with the number of their link.
    pub(super) fn locals(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        let broadcast = |address: &Address| Some((address.index, IpAddr::V4(address.broadcast?)));
        let own = self.addresses.iter().map(|address| (address.index, address.ip));
        let anycast = self.addresses.iter().filter_map(|address| Some((address.index, anycast(address)?)));
        own.chain(self.addresses.iter().filter_map(broadcast)).chain(anycast)
    }
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
