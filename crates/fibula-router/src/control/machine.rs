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

    /// Returns all addresses and all broadcast addresses of networks, with the number of their link.
    pub(super) fn locals(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        let broadcast = |address: &Address| Some((address.index, IpAddr::V4(address.broadcast?)));
        let own = self.addresses.iter().map(|address| (address.index, address.ip));
        own.chain(self.addresses.iter().filter_map(broadcast))
    }
}
