//! What is known of the kernel: its links and addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::kernel::netlink::{Address, Event, Link};
use crate::packet::ethernet::Mac;

/// Links and addresses of the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    links: BTreeMap<u32, Link>,
    addresses: Vec<Address>,
    /// Ports that the kernel knows nothing of, by their names.
    ports: BTreeMap<String, Port>,
}

/// A port that the kernel knows nothing of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) mac: Mac,
    pub(super) up: bool,
}

impl Machine {
    /// Takes an event in. Returns whether something changed.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::Link(link) => self.links.insert(link.index, link.clone()).as_ref() != Some(link),
            Event::LinkGone(index) => {
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

    /// Notes the state of a port. Returns whether it changed.
    pub(super) fn set_port(&mut self, name: &str, port: Port) -> bool {
        self.ports.insert(name.to_owned(), port) != Some(port)
    }

    /// Returns a port that the kernel knows nothing of.
    pub(super) fn port(&self, name: &str) -> Option<Port> {
        self.ports.get(name).copied()
    }

    /// Takes over from an earlier description what the kernel does not tell.
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

    /// Returns all addresses, and broadcast addresses of networks, with the number of their link.
    pub(super) fn locals(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        let broadcast = |address: &Address| Some((address.index, IpAddr::V4(address.broadcast?)));
        let own = self.addresses.iter().map(|address| (address.index, address.ip));
        own.chain(self.addresses.iter().filter_map(broadcast))
    }
}
