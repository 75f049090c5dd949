//! The configuration of forwarding: ports, interfaces, VRFs and next hops. A fabric is built whole and never changed. A new
//! configuration makes a new fabric, which workers take up between two bursts.

use std::net::IpAddr;
use std::sync::Arc;

use fibula::Table;

use crate::acl::RuleSet;
use crate::neighbour::Key;
use crate::packet::ethernet::{Mac, Tags};
use crate::packet::flow::{self, FlowHash};
use crate::packet::ipv6;
use crate::packet::martian::Martians;
use crate::police::Policers;

/// Marks a VLAN without an interface.
const NONE: u16 = u16::MAX;

/// A port: a source and sink of frames. Interfaces of several VLANs, and of pairs of VLANs, may share it.
#[derive(Debug, Clone)]
pub struct Port {
    /// Name of the device or file.
    pub name: String,
    /// Whether frames can be given to the kernel of the machine.
    pub host: bool,
    /// Whether frames of VLANs can be given to it too.
    pub host_vlans: bool,
    /// Whether the kernel takes the frames of its own interface in any case. Policers leave these alone, because they cannot hold them back.
    pub past: bool,
    /// The interface whose machine's side the port is: a tap, which frames of the interface to and from the machine go through.
    pub machine_of: Option<u16>,
    untagged: u16,
    tagged: Option<Box<[u16]>>,
    /// Interfaces of pairs of VLANs, in order.
    nested: Vec<(Tags, u16)>,
}

impl Port {
    /// Makes a port without interfaces.
    #[must_use]
    pub fn new(name: impl Into<String>, host: bool) -> Self {
        Self {
            name: name.into(),
            host,
            host_vlans: host,
            past: false,
            machine_of: None,
            untagged: NONE,
            tagged: None,
            nested: Vec::new(),
        }
    }

    /// Assigns the frames with these tags to an interface.
    pub fn attach(&mut self, tags: Tags, interface: u16) {
        match tags.single() {
            Some(0) => self.untagged = interface,
            Some(vlan) => {
                // A table of all 4096 VLANs makes the lookup of a frame one read, whatever its tag.
                let tagged = self.tagged.get_or_insert_with(|| vec![NONE; 4096].into_boxed_slice());
                tagged[vlan] = interface;
            }
            None => {
                self.nested.push((tags, interface));
                self.nested.sort_unstable();
            }
        }
    }

    /// Returns whether no interface has the port.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.untagged == NONE && self.tagged.is_none() && self.nested.is_empty() && self.machine_of.is_none()
    }

    /// Returns the interface of frames with these tags, if there is one.
    #[inline]
    #[must_use]
    pub fn interface(&self, tags: Tags) -> Option<u16> {
        let interface = match (&self.tagged, tags.single()) {
            _ if tags.is_none() => self.untagged,
            (Some(tagged), Some(vlan)) => tagged[vlan],
            (None, Some(_)) => NONE,
            (_, None) => return self.nested_interface(tags),
        };
        (interface != NONE).then_some(interface)
    }

    #[cold]
    fn nested_interface(&self, tags: Tags) -> Option<u16> {
        let at = self.nested.binary_search_by_key(&tags, |line| line.0).ok()?;
        Some(self.nested[at].1)
    }
}

/// The source addresses that an interface accepts (RFC 3704).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Urpf {
    /// All sources.
    #[default]
    Off,
    /// Sources with a route back that leaves through the interface.
    Strict,
    /// Sources with a route back.
    Loose,
}

/// An interface: a port, or one VLAN of it, with addresses.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name for operators.
    pub name: String,
    /// Number of the port.
    pub port: usize,
    /// VLAN, or pair of VLANs, of its frames.
    pub tags: Tags,
    /// Its MAC address.
    pub mac: Mac,
    /// MAC addresses of VRRP that it has beside its own.
    pub virtual_macs: Vec<Mac>,
    /// Largest packet that it sends, in bytes, counted from the IP header.
    pub mtu: usize,
    /// Its IPv4 addresses and the lengths of their networks.
    pub v4: Vec<(u32, u8)>,
    /// Its IPv6 addresses, link-local ones included.
    pub v6: Vec<(u128, u8)>,
    /// Number of its VRF.
    pub vrf: usize,
    /// The sources that it accepts.
    pub urpf: Urpf,
    /// Whether the kernel resolves its neighbours. Otherwise the router does.
    pub kernel: bool,
    /// Number of the port that is the machine's side, if it has VLANs and the kernel has a part of it.
    pub machine: Option<usize>,
    /// Whether its link is up.
    pub up: bool,
    /// Whether its device does not exist. Its link is not up then.
    pub missing: bool,
}

impl Interface {
    /// Returns the IPv4 address to use as the source towards `to`: an address of the same network, otherwise the first.
    #[must_use]
    pub fn v4_towards(&self, to: u32) -> Option<u32> {
        let near = self.v4.iter().find(|&&(address, len)| same_v4(address, to, len));
        near.or(self.v4.first()).map(|&(address, _)| address)
    }

    /// Returns the IPv6 address to use as the source towards `to`: link-local for link-local or multicast, otherwise an address
    /// of the same network, otherwise the first that is not link-local.
    #[must_use]
    pub fn v6_towards(&self, to: u128) -> Option<u128> {
        if ipv6::is_link_local(to) || ipv6::is_multicast(to) {
            return self.link_local();
        }
        let near = self.v6.iter().find(|&&(address, len)| same_v6(address, to, len));
        let global = || self.v6.iter().find(|&&(address, _)| !ipv6::is_link_local(address));
        near.or_else(global).map(|&(address, _)| address)
    }

    /// Returns the link-local IPv6 address.
    #[must_use]
    pub fn link_local(&self) -> Option<u128> {
        self.v6.iter().map(|&(address, _)| address).find(|&address| ipv6::is_link_local(address))
    }

    /// Returns whether the address is in one of the interface's networks.
    #[must_use]
    pub fn is_near_v4(&self, address: u32) -> bool {
        self.v4.iter().any(|&(own, len)| same_v4(own, address, len))
    }

    /// Returns whether the interface has this address.
    #[must_use]
    pub fn has_v4(&self, address: u32) -> bool {
        self.v4.iter().any(|&(own, _)| own == address)
    }

    /// Returns whether the interface has this address.
    #[must_use]
    pub fn has_v6(&self, address: u128) -> bool {
        self.v6.iter().any(|&(own, _)| own == address)
    }
}

fn same_v4(a: u32, b: u32, len: u8) -> bool {
    // In 64 bits, because a length of 0 shifts by 32, which would overflow a `u32`.
    u64::from(a ^ b) >> (32 - u32::from(len.min(32))) == 0
}

fn same_v6(a: u128, b: u128, len: u8) -> bool {
    len == 0 || (a ^ b) >> (128 - u32::from(len.min(128))) == 0
}

/// A VRF: a separate routing table for some of the interfaces.
#[derive(Debug, Clone)]
pub struct Vrf {
    /// Name for operators.
    pub name: String,
    /// Its routes, whose next hops are numbers of [`Fabric::hops`].
    pub table: Table,
}

/// Address of the router that packets are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gateway {
    /// IPv4.
    V4(u32),
    /// IPv6, which may also be the next hop of IPv4 routes (RFC 8950).
    V6(u128),
}

impl From<IpAddr> for Gateway {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(ip) => Self::V4(ip.into()),
            IpAddr::V6(ip) => Self::V6(ip.into()),
        }
    }
}

/// The action of a route on its packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Hop {
    /// Sends packets to another router.
    Via {
        /// Number of the interface.
        interface: u16,
        /// The other router.
        gateway: Gateway,
    },
    /// Sends packets to their destination, which is a neighbour.
    Connected {
        /// Number of the interface.
        interface: u16,
    },
    /// Gives packets to the machine itself.
    Local,
    /// Discards packets silently.
    Blackhole,
    /// Discards packets, and reports to the sender that the destination is unreachable.
    Unreachable,
    /// Discards packets, and reports to the sender that the destination is prohibited.
    Prohibit,
    /// Spreads flows over next hops. Each member's number is repeated as often as its weight says.
    Group(Box<[u32]>),
}

impl Hop {
    /// Returns the interface that packets leave through.
    #[inline]
    #[must_use]
    pub const fn interface(&self) -> Option<u16> {
        match self {
            Self::Via { interface, .. } | Self::Connected { interface } => Some(*interface),
            _ => None,
        }
    }
}

/// The whole configuration of forwarding.
#[derive(Debug, Clone, Default)]
pub struct Fabric {
    /// Ports by number.
    pub ports: Vec<Port>,
    /// Interfaces by number.
    pub interfaces: Vec<Interface>,
    /// VRFs by number.
    pub vrfs: Vec<Vrf>,
    /// Next hops by number. Number 0 is unused.
    pub hops: Vec<Option<Hop>>,
    /// How flows are spread over groups.
    pub hash: FlowHash,
    /// Whether frames are passed unchanged from one port of a pair to the other, without routing.
    pub bridge: bool,
    /// ICMP errors a second and in a burst, for each port of each worker.
    pub icmp_rate: (u32, u32),
    /// The martians that are forwarded all the same.
    pub martians: Martians,
    /// The router's own addresses, which no packet that it forwards has as its source.
    pub own: Own,
    /// The rules for packets that are forwarded.
    pub forward_rules: Option<Arc<RuleSet>>,
    /// The rules for packets to the router itself.
    pub local_rules: Option<Arc<RuleSet>>,
    /// The policers for packets to the machine; `None` if all pass uncounted.
    pub policers: Option<Arc<Policers>>,
}

impl Fabric {
    /// Returns whether the frames of an interface can be given to the kernel of the machine, by its port or by a tap.
    #[must_use]
    pub fn has_host(&self, interface: u16) -> bool {
        let interface = &self.interfaces[usize::from(interface)];
        let port = &self.ports[interface.port];
        interface.machine.is_some() || port.host && (interface.tags.is_none() || port.host_vlans)
    }

    /// Returns the same fabric with these next hops.
    #[must_use]
    pub fn with_hops(&self, hops: Vec<Option<Hop>>) -> Self {
        let Self { ports, interfaces, vrfs, hops: _, hash, bridge, icmp_rate, martians, own, .. } = self;
        Self {
            ports: ports.clone(),
            interfaces: interfaces.clone(),
            vrfs: vrfs.clone(),
            hops,
            hash: *hash,
            bridge: *bridge,
            icmp_rate: *icmp_rate,
            martians: *martians,
            own: own.clone(),
            forward_rules: self.forward_rules.clone(),
            local_rules: self.local_rules.clone(),
            policers: self.policers.clone(),
        }
    }
}

/// The addresses of interfaces, by VRF.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// A bit for each value of the six lowest bits of an address that some address has. Most packets are settled by it.
    bits: u64,
    /// VRF and address, in order. An IPv4 address has the bits that it has in a packet's columns.
    addresses: Vec<(usize, bool, u128)>,
}

impl Own {
    /// Collects the addresses of interfaces.
    #[must_use]
    pub fn of(interfaces: &[Interface]) -> Self {
        let mut addresses = Vec::new();
        for interface in interfaces {
            let v4 = interface.v4.iter().map(|&(address, _)| (interface.vrf, false, u128::from(address)));
            addresses
                .extend(v4.chain(interface.v6.iter().map(|&(address, _)| (interface.vrf, true, address))));
        }
        addresses.sort_unstable();
        let bits = addresses.iter().fold(0, |bits, own| bits | 1 << (own.2 & 63));
        Self { bits, addresses }
    }

    /// Returns whether an address is the router's own in a VRF.
    #[inline]
    #[must_use]
    pub fn contains(&self, vrf: usize, v6: bool, address: u128) -> bool {
        self.bits >> (address as u32 & 63) & 1 != 0 && self.search(vrf, v6, address)
    }

    #[cold]
    fn search(&self, vrf: usize, v6: bool, address: u128) -> bool {
        self.addresses.binary_search(&(vrf, v6, address)).is_ok()
    }
}

impl Fabric {
    /// Returns the next hop with this number. For a group, returns the member that `hash` chooses.
    #[inline]
    #[must_use]
    pub fn hop(&self, number: u32, hash: impl FnOnce() -> u32) -> Option<&Hop> {
        match self.hops.get(number as usize)?.as_ref()? {
            Hop::Group(members) => {
                let member = *members.get(flow::member(hash(), members.len()))?;
                // A member may not be a group. Thus, a lookup needs at most two steps and cannot loop.
                self.hops.get(member as usize)?.as_ref().filter(|hop| !matches!(hop, Hop::Group(_)))
            }
            hop => Some(hop),
        }
    }

    /// Returns the number of the next hop that `hash` chooses from group `number`, or `None` if `number` is not a group.
    #[inline]
    #[must_use]
    pub fn member(&self, number: u32, hash: impl FnOnce() -> u32) -> Option<u32> {
        match self.hops.get(number as usize)?.as_ref()? {
            Hop::Group(members) => members.get(flow::member(hash(), members.len())).copied(),
            _ => None,
        }
    }

    /// Returns whether packets to next hop `number` may leave through `interface`. For a group, one member is enough.
    #[must_use]
    pub fn leads_through(&self, number: u32, interface: u16) -> bool {
        let through = |number: u32| {
            self.hops.get(number as usize).and_then(Option::as_ref).and_then(Hop::interface)
                == Some(interface)
        };
        match self.hops.get(number as usize).and_then(Option::as_ref) {
            Some(Hop::Group(members)) => members.iter().any(|&member| through(member)),
            _ => through(number),
        }
    }

    /// Returns an address of any interface of a VRF. The router uses it as the source where an interface has no address.
    #[must_use]
    pub fn any_v4(&self, vrf: usize) -> Option<u32> {
        self.interfaces.iter().filter(|interface| interface.vrf == vrf).find_map(|i| i.v4_towards(0))
    }

    /// Like [`any_v4`](Self::any_v4), for IPv6.
    #[must_use]
    pub fn any_v6(&self, vrf: usize) -> Option<u128> {
        // `1 << 127` is neither link-local nor multicast, so this finds a global address.
        self.interfaces.iter().filter(|interface| interface.vrf == vrf).find_map(|i| i.v6_towards(1 << 127))
    }
}

/// Returns the neighbour that a packet is sent to.
#[inline]
pub(super) fn neighbour(out: u16, gateway: Option<Gateway>, v6: bool, destination: u128) -> Key {
    match gateway {
        Some(Gateway::V4(address)) => Key::v4(out, address),
        Some(Gateway::V6(address)) => Key::v6(out, address),
        None => Key { interface: out, v6, address: destination },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_those_of_a_vrf_and_a_family() {
        let interface = |vrf, v4: u32, v6: u128| Interface {
            name: "eth".into(),
            port: 0,
            tags: Tags::NONE,
            mac: Mac::default(),
            virtual_macs: vec![],
            mtu: 1500,
            v4: vec![(v4, 24)],
            v6: vec![(v6, 64)],
            vrf,
            urpf: Urpf::Off,
            kernel: false,
            machine: None,
            up: true,
            missing: false,
        };
        let own = Own::of(&[interface(0, 1, 1 << 64), interface(1, 2, 2)]);
        assert!(own.contains(0, false, 1) && own.contains(0, true, 1 << 64) && own.contains(1, true, 2));
        for (vrf, v6, address) in [(1, false, 1), (0, true, 1), (0, false, 2), (0, false, 65), (2, true, 2)] {
            assert!(!own.contains(vrf, v6, address), "{vrf} {v6} {address}");
        }
        assert!(!Own::default().contains(0, false, 0));
    }
}
