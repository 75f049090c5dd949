//! Results of the first pass over a burst.

use crate::acl::{self, HeaderFields};
use crate::drops::DropReason;
use crate::io::{Offload, Received};
use crate::packet::ethernet::{self, ARP, IPV4, IPV6, Mac, Tags};
use crate::packet::flow::{self, Flow};
use crate::packet::martian::Martians;
use crate::packet::{checksum, ipv4, ipv6, mld, nd, u16_at, u32_at, u128_at};
use crate::police::PolicerClass;

use super::fabric::{Fabric, Interface, Urpf};

/// A packet to route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// See [`Item::is_plain`].
    pub(super) plain: bool,
    /// Whether its interface has uRPF.
    pub(super) urpf: bool,
    pub(super) label: u32,
    /// The first four bytes above IP, for rules; `None` if the packet ends before them, or if they are not a header.
    pub(super) word: Option<u32>,
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
        let len = self.length_on_wire(offload);
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
            fragment: self.fragment_field(),
            input: self.interface,
            output,
            vrf: self.vrf as u16,
        }
    }

    /// Notes the first word above IP.
    #[inline(always)]
    pub(super) fn read_word(&mut self, frame: &[u8]) {
        // Not beyond the packet, because a frame may be padded.
        let word = |at: usize| frame.get(self.start + at..)?.first_chunk().copied().map(u32::from_be_bytes);
        self.word = self.upper.filter(|&at| at + 4 <= self.len).and_then(word);
    }

    /// Returns the length of the packet on the wire: that of one segment, if several are combined.
    #[inline]
    pub(super) fn length_on_wire(&self, offload: &Offload) -> usize {
        match offload.segment {
            0 => self.len,
            segment => usize::from(segment) + usize::from(offload.headers),
        }
    }

    /// Returns the fragment bits that rules test.
    #[inline]
    pub(super) fn fragment_field(&self) -> u8 {
        let dont = !self.v6 && self.dont_fragment;
        acl::fragment(dont, self.fragment, self.later_fragment, self.more_fragments)
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

    /// Returns whether the packet may leave by any interface that is up and takes its length, but for uRPF and rules: all checks that do
    /// not depend on its route, made once.
    pub(super) fn is_plain(&self, fabric: &Fabric, offload: &Offload) -> bool {
        !self.group
            && (self.v6 || self.header == 20)
            && self.ttl > 1
            && offload.segment == 0
            && !self.is_martian_source(fabric.martians)
            && !self.is_link_local_source()
            && !fabric.own.contains(self.vrf, self.v6, self.source)
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

/// The interface of a port's frames without a tag: most frames are compared with it, worked out once a burst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Its MAC address in the upper bits, as a frame has it.
    mac: u64,
    interface: u16,
    pub(super) vrf: usize,
    pub(super) urpf: bool,
}

impl Entry {
    /// The entry of a port without such an interface. It equals no frame's address, whose low 16 bits are zero here.
    const NONE: Self = Self { mac: u64::MAX, interface: 0, vrf: 0, urpf: false };

    /// Returns that of a port.
    #[inline]
    pub(super) fn of(fabric: &Fabric, port: usize) -> Self {
        let Some(number) = fabric.ports[port].interface(Tags::NONE) else { return Self::NONE };
        let interface = &fabric.interfaces[usize::from(number)];
        if interface.mac.is_group() {
            return Self::NONE;
        }
        let m = interface.mac.0;
        let mac = u64::from_le_bytes([0, 0, m[0], m[1], m[2], m[3], m[4], m[5]]);
        Self { mac, interface: number, vrf: interface.vrf, urpf: interface.urpf != Urpf::Off }
    }
}

/// Kinds of packets that need no more thought than their header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    V4,
    V6,
}

/// First bytes of IPv4 addresses that are not all of ordinary stations: [`classify`] tells them apart.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut first = 0;
    while first < 256 {
        special[first] = matches!(first, 0 | 127 | 169 | 224..=255);
        first += 1;
    }
    special
};

/// Reads a plain packet, see [`Item::is_plain`], in a frame without a tag, if it is to be routed. Returns `None` for every other frame,
/// also for some that turn out to be plain: [`classify`] has all rules. Fields that rules alone test are read with `RULES`.
// Always, because a back end may know much of its frames, for example that none is cut, which makes comparisons constant.
#[inline(always)]
pub(super) fn read_plain<const RULES: bool>(
    entry: &Entry,
    fabric: &Fabric,
    index: usize,
    frame: &Received<'_>,
    item: &mut Item,
) -> Option<Plain> {
    let header = frame.bytes.first_chunk::<34>()?;
    let to = u64::from_le_bytes([
        header[0], header[1], header[2], header[3], header[4], header[5], header[6], header[7],
    ]);
    if to << 16 != entry.mac || frame.tag.is_some() || frame.cut || frame.offload.segment != 0 {
        return None;
    }
    let packet = frame.bytes.len() - 14;
    let kind = match u16_at(header, 12) {
        IPV4 => {
            let ip: &[u8; 20] = header[14..].first_chunk()?;
            let len = usize::from(u16_at(ip, 2));
            let (source, destination) = (u32_at(ip, 12), u32_at(ip, 16));
            let flags = u16_at(ip, 6);
            if ip[0] != 0x45
                || len < 20
                || len > packet
                || flags & 0x3fff != 0
                || ip[8] <= 1
                || SPECIAL[usize::from(ip[12])]
                || SPECIAL[usize::from(ip[16])]
                || !checksum::is_right(ip)
                || fabric.own.contains(entry.vrf, false, source.into())
            {
                return None;
            }
            item.v6 = false;
            item.len = len;
            item.header = 20;
            item.upper = Some(20);
            item.ttl = ip[8];
            item.protocol = ip[9];
            item.dont_fragment = flags & 0x4000 != 0;
            item.label = 0;
            item.source = source.into();
            item.destination = destination.into();
            if RULES {
                item.word = frame.bytes.get(34..38).filter(|_| len >= 24).map(|word| u32_at(word, 0));
            }
            Plain::V4
        }
        IPV6 => {
            let header = frame.bytes.first_chunk::<54>()?;
            let ip: &[u8; ipv6::HEADER] = header[14..].first_chunk()?;
            let len = ipv6::HEADER + usize::from(u16_at(ip, 4));
            let (source, destination) = (u128_at(ip, 8), u128_at(ip, 24));
            // Neither ::/64 nor fe80::/10 and multicast, nor between these.
            let is_ordinary = |address: u128| ((address >> 64) as u64).wrapping_sub(1) < (0xfe80 << 48) - 1;
            if ip[0] >> 4 != 6
                || len > packet
                || ip[7] <= 1
                // Headers to walk, and messages that may be neighbour discovery.
                || matches!(ip[6], 0 | 43 | 44 | 51 | 60 | ipv6::ICMPV6)
                || !is_ordinary(source)
                || !is_ordinary(destination)
                || fabric.own.contains(entry.vrf, true, source)
            {
                return None;
            }
            item.v6 = true;
            item.len = len;
            item.header = ipv6::HEADER;
            item.upper = Some(ipv6::HEADER);
            item.ttl = ip[7];
            item.protocol = ip[6];
            item.dont_fragment = true;
            item.label = u32_at(ip, 0) & 0xf_ffff;
            item.source = source;
            item.destination = destination;
            if RULES {
                item.word = frame.bytes.get(54..58).filter(|_| len >= 44).map(|word| u32_at(word, 0));
            }
            Plain::V6
        }
        _ => return None,
    };
    item.index = index;
    item.interface = entry.interface;
    item.vrf = entry.vrf;
    item.start = 14;
    item.group = false;
    item.fragment = false;
    item.later_fragment = false;
    item.more_fragments = false;
    item.routing_0 = false;
    item.plain = true;
    item.urpf = entry.urpf;
    Some(kind)
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
    item.plain = false;
    item.urpf = interface.urpf != Urpf::Off;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::damaged::{frame, random};
    use crate::measure::network;
    use crate::packet::ethernet::Tag;

    /// Whatever the short way says of a frame, the long one says too.
    #[test]
    fn plain_packets_are_read_as_any_others() {
        let table = fibula::Table::new().expect("memory for a table");
        let mut fabric = (*network(table, 1, false).fabric()).clone();
        fabric.interfaces[0].v6 = vec![((0x20 << 120) | (1 << 64) | 1, 64)];
        fabric.own = crate::forward::fabric::Own::of(&fabric.interfaces);
        let (mut state, mut short, mut long) = (9, [0; 2], [0; 2]);
        for round in 0..400_000 {
            fabric.interfaces[0].urpf = if round % 3 == 0 { Urpf::Loose } else { Urpf::Off };
            let entry = Entry::of(&fabric, 0);
            let v6 = random(&mut state).is_multiple_of(2);
            let mut bytes = frame(&mut state, fabric.interfaces[0].mac, v6);
            let segment = u16::from(random(&mut state).is_multiple_of(16)) * 1000;
            let tag = (random(&mut state).is_multiple_of(16)).then(|| Tag::from(0));
            let (offload, cut) =
                (Offload { segment, ..Offload::default() }, random(&mut state).is_multiple_of(32));
            let frame = Received { bytes: &mut bytes, tag, offload, cut };
            // Of the frame before, all of it must be written over.
            let before =
                Item { routing_0: true, more_fragments: true, group: true, label: 7, ..Item::default() };
            let (mut read, mut expected) = (before.clone(), before);
            let class = classify(&fabric, 0, 5, &frame, &mut expected);
            let is_plain = matches!(class, Ok(Class::Route)) && expected.is_plain(&fabric, &frame.offload);
            let Some(kind) = read_plain::<true>(&entry, &fabric, 5, &frame, &mut read) else {
                long[usize::from(expected.v6)] += usize::from(is_plain);
                continue;
            };
            assert!(is_plain, "{class:?} {:02x?}", frame.bytes);
            expected.plain = true;
            expected.read_word(frame.bytes);
            assert_eq!(read, expected, "{:02x?}", frame.bytes);
            assert_eq!(kind == Plain::V6, read.v6);
            short[usize::from(read.v6)] += 1;
        }
        assert!(short.iter().chain(&long).all(|&count| count > 500), "{short:?} {long:?}");
    }
}
