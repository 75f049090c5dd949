//! Results of the first pass over a burst.

use crate::acl::{self, HeaderFields};
use crate::drops::DropReason;
use crate::io::{Offload, Received};
use crate::packet::ethernet::{self, ARP, IPV4, IPV6, Mac};
use crate::packet::flow::{self, Flow};
use crate::packet::martian::Martians;
use crate::packet::{ipv4, ipv6, mld, nd};
use crate::police::PolicerClass;

use super::fabric::{Fabric, Interface};

/// A packet to route.
#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    /// Number of the frame in the burst.
    pub(super) index: usize,
    /// Interface on which it was received.
    pub(super) interface: u16,
    /// VRF of that interface.
    pub(super) vrf: usize,
    /// Offset of the packet in the frame.
    pub(super) start: usize,
    /// Length of the packet in bytes.
    pub(super) len: usize,
    /// Length of the header in bytes, for IPv4 with options.
    pub(super) header: usize,
    /// Offset of the payload in the packet. `None` if there is none, for example in later fragments and cut chains of headers.
    pub(super) upper: Option<usize>,
    pub(super) v6: bool,
    /// Whether the frame went to a group of stations.
    pub(super) group: bool,
    /// TTL or hop limit.
    pub(super) ttl: u8,
    pub(super) protocol: u8,
    pub(super) fragment: bool,
    pub(super) later_fragment: bool,
    pub(super) more_fragments: bool,
    pub(super) dont_fragment: bool,
    pub(super) routing_0: bool,
    pub(super) label: u32,
    /// Source address. An IPv4 address is in the low bits.
    pub(super) source: u128,
    pub(super) destination: u128,
}

impl Item {
    /// Returns the range of the packet in its frame.
    #[inline]
    pub(super) fn range(&self) -> core::ops::Range<usize> {
        self.start..self.start + self.len
    }

    /// Returns the fields that identify the packet's flow.
    pub(super) fn flow(&self, packet: &[u8]) -> Flow {
        // Only the first fragment has ports. All fragments must hash alike, because they must take the same way.
        let whole = !self.fragment;
        let ports = match self.upper {
            Some(offset) if whole => flow::ports(packet, self.protocol, offset),
            _ => 0,
        };
        Flow {
            source: self.source,
            destination: self.destination,
            ports,
            protocol: if whole { self.protocol } else { 0 },
            label: self.label,
        }
    }

    /// Returns the fields that rules test. `output` is the interface by which the packet leaves, if that is known.
    #[inline]
    pub(super) fn fields(&self, packet: &[u8], offload: &Offload, output: Option<u16>) -> HeaderFields {
        let upper = self.upper.and_then(|at| packet.get(at..)).unwrap_or_default();
        let (ports, tcp_flags, icmp) = acl::upper(self.protocol, self.v6, upper);
        let len = match offload.segment {
            0 => self.len,
            segment => usize::from(segment) + usize::from(offload.headers),
        };
        let dont = !self.v6 && self.dont_fragment;
        HeaderFields {
            v6: self.v6,
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            ports,
            tcp_flags,
            icmp,
            // That of a packet on the wire. One of IPv6 may have 40 bytes more than fit, and no rule tells those apart.
            length: u16::try_from(len).unwrap_or(u16::MAX),
            dscp: acl::dscp(packet, self.v6),
            fragment: acl::fragment(dont, self.fragment, self.later_fragment, self.more_fragments),
            input: self.interface,
            output,
            vrf: self.vrf as u16,
        }
    }

    /// Returns whether this is a message of neighbour discovery from this link, to which no rules apply: without them, the link is dead.
    pub(super) fn is_nd(&self, packet: &[u8]) -> bool {
        let kind = || self.upper.and_then(|at| packet.get(at));
        self.v6
            && self.ttl == 255
            && self.protocol == ipv6::ICMPV6
            && kind().is_some_and(|&kind| nd::is_nd(kind))
    }

    /// Returns the class of a message of neighbour discovery, or of an MLD query, that the router handles itself.
    pub(super) const fn neighbour_class(&self) -> PolicerClass {
        // With another hop limit, it is not of this link. MLD has 1.
        if self.ttl == 255 || self.ttl == 1 { PolicerClass::Neighbour } else { PolicerClass::Rest }
    }

    /// Returns whether packets with this source are never forwarded.
    #[inline]
    pub(super) fn is_martian_source(&self, accepted: Martians) -> bool {
        match self.v6 {
            true => ipv6::is_martian_source(self.source),
            false => ipv4::is_martian_source(self.source as u32, accepted),
        }
    }

    /// Returns whether the source means a station of the link alone.
    #[inline]
    pub(super) fn is_link_local_source(&self) -> bool {
        self.v6 && ipv6::is_link_local(self.source)
    }
}

/// The next step for a frame after the first pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum Class {
    /// Look up its route.
    Route,
    /// Handle ARP, because the router resolves the neighbours of the interface. Fields: interface, start of the packet.
    Arp(u16, usize),
    /// Handle neighbour discovery or a query of MLD, because the router resolves the neighbours of the interface.
    Nd,
    /// Give it to the kernel, if the interface has one. Otherwise drop it for this reason.
    Host(DropReason),
    /// The same for an IP packet, which the rules for packets to the router judge first.
    HostIp(DropReason),
    /// Treat it as the router's own without a lookup, because it has a link-local destination.
    Local,
}

#[cold]
fn has_virtual(interface: &Interface, mac: Mac) -> bool {
    interface.virtual_macs.contains(&mac)
}

/// Classifies a frame of a port by its headers alone. Writes the results into `item` directly, because moving an item costs more
/// than all the checks.
#[inline]
pub(super) fn classify(
    fabric: &Fabric,
    port: usize,
    index: usize,
    frame: &Received<'_>,
    item: &mut Item,
) -> Result<Class, DropReason> {
    let header = ethernet::parse(frame.bytes, frame.tag)?;
    if frame.cut {
        return Err(DropReason::FrameTruncated);
    }
    let port = &fabric.ports[port];
    let number = port.interface(header.tags).ok_or(DropReason::VlanUnknown)?;
    let interface = &fabric.interfaces[usize::from(number)];
    let group = header.destination.is_group();
    // Devices in promiscuous mode also deliver frames for other stations.
    if header.destination != interface.mac && !group && !has_virtual(interface, header.destination) {
        return Err(DropReason::OtherMac);
    }
    item.index = index;
    item.interface = number;
    item.vrf = interface.vrf;
    item.start = header.payload;
    item.group = group;
    let packet = &frame.bytes[header.payload..];
    match header.ether_type {
        IPV4 => {
            read_v4(item, packet)?;
            Ok(scope_v4(item.destination as u32, fabric.martians))
        }
        IPV6 => {
            read_v6(item, packet)?;
            scope_v6(item, packet, interface.kernel)
        }
        ARP if interface.kernel => Ok(Class::Host(DropReason::NoHost)),
        ARP => Ok(Class::Arp(number, header.payload)),
        _ => Ok(Class::Host(DropReason::EtherType)),
    }
}

#[inline]
fn read_v4(item: &mut Item, packet: &[u8]) -> Result<(), DropReason> {
    let parsed = ipv4::parse(packet)?;
    if parsed.is_beyond_datagram() {
        return Err(DropReason::Ipv4Fragment);
    }
    item.v6 = false;
    item.len = parsed.len;
    item.header = parsed.header;
    item.fragment = parsed.is_fragment();
    item.later_fragment = parsed.is_later_fragment();
    item.more_fragments = parsed.more_fragments();
    item.upper = (!item.later_fragment).then_some(parsed.header);
    item.ttl = parsed.ttl;
    item.protocol = parsed.protocol;
    item.dont_fragment = parsed.dont_fragment();
    item.routing_0 = false;
    item.label = 0;
    item.source = u128::from(parsed.source);
    item.destination = u128::from(parsed.destination);
    Ok(())
}

#[inline]
fn read_v6(item: &mut Item, packet: &[u8]) -> Result<(), DropReason> {
    let parsed = ipv6::parse(packet)?;
    let upper = ipv6::upper(&packet[..parsed.len], parsed.next_header);
    item.v6 = true;
    item.len = parsed.len;
    item.header = ipv6::HEADER;
    item.fragment = upper.fragment;
    item.later_fragment = upper.later_fragment;
    item.more_fragments = upper.more_fragments;
    item.upper = upper.offset;
    item.ttl = parsed.hop_limit;
    item.protocol = upper.protocol;
    // Routers do not fragment IPv6 packets (RFC 8200, section 4.5).
    item.dont_fragment = true;
    item.routing_0 = upper.routing_0;
    item.label = parsed.flow_label;
    item.source = parsed.source;
    item.destination = parsed.destination;
    Ok(())
}

#[inline]
fn scope_v4(destination: u32, accepted: Martians) -> Class {
    if ipv4::is_multicast(destination) {
        return Class::HostIp(DropReason::Multicast);
    }
    if destination == u32::MAX {
        return Class::HostIp(DropReason::NoHost);
    }
    if ipv4::is_martian_destination(destination, accepted) {
        return Class::HostIp(DropReason::MartianDestination);
    }
    Class::Route
}

#[inline]
fn scope_v6(item: &Item, packet: &[u8], kernel: bool) -> Result<Class, DropReason> {
    if !kernel && item.protocol == ipv6::ICMPV6 {
        let kind = item.upper.and_then(|at| packet[..item.len].get(at));
        if kind == Some(&mld::QUERY) && ipv6::is_multicast(item.destination) {
            return Ok(Class::Nd);
        }
        // With a hop limit other than 255, the packet came through a router. It is not for this link, and is forwarded like any
        // other.
        if kind.is_some_and(|&kind| nd::is_nd(kind))
            && (item.ttl == 255 || ipv6::is_multicast(item.destination))
        {
            return Ok(Class::Nd);
        }
    }
    if ipv6::is_multicast(item.destination) {
        return Ok(Class::HostIp(DropReason::Multicast));
    }
    if ipv6::is_martian_destination(item.destination) {
        return Ok(Class::HostIp(DropReason::MartianDestination));
    }
    // A link-local address means another station on each link, so it must not be looked up in the table of a VRF.
    if ipv6::is_link_local(item.destination) {
        return Ok(Class::Local);
    }
    if item.routing_0 {
        return Err(DropReason::Ipv6RoutingHeader);
    }
    Ok(Class::Route)
}
