//! The list of reasons to drop a packet.
//!
//! Each reason is one entry: its name in the source, its name for operators, a description, and advice. Counters, the command,
//! the metrics and the guide follow from this list.

macro_rules! reasons {
    ($($variant:ident $name:literal $what:literal $advice:literal)*) => {
        /// Why a packet was dropped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = $what] $variant,)*
        }

        impl DropReason {
            /// All reasons, in the order of their counters.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name by which the reason is counted and shown.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Describes the reason in one sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $what),* }
            }

            /// Advises operators in one sentence.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice),* }
            }
        }
    };
}

reasons! {
    FrameTruncated "frame-truncated" "The frame ends within its Ethernet header, or the ring cut it short." "Look for a damaged link or driver; jumbo frames of more than 64 KiB do not fit the ring."
    OtherMac "other-mac" "The destination MAC address belongs to another station." "Normal on hubs, mirrored ports and after a switch forgot an address; otherwise look for a wrong static neighbour."
    VlanUnknown "vlan-unknown" "No interface is configured for the VLAN tag, for the pair of two tags, or for frames without one." "Add an [[interface]] with this 'vlan', for two tags with 'outer_vlan' and the EtherType of the outer one in 'outer_tag'; or remove the VLAN from the switch port."
    VlanNested "vlan-nested" "The frame has more than two VLAN tags." "An interface has two at most ('outer_vlan' and 'vlan'): remove the outer one at the switch."
    EtherType "ether-type" "The EtherType is neither IPv4, IPv6 nor ARP, and the interface has no kernel to give the frame to." "Normal for LLDP, STP and others; nothing to do."
    Ipv4Version "ipv4-version" "The EtherType says IPv4, the header does not." "Look for a broken sender."
    Ipv4Header "ipv4-header" "The IPv4 header is shorter than 20 bytes, or ends beyond the packet." "Look for a broken sender or a damaged link."
    Ipv4Length "ipv4-length" "The total length of IPv4 exceeds the frame, or is shorter than the header." "Look for frames cut on the way: an MTU that differs along the link."
    Ipv4Checksum "ipv4-checksum" "The header checksum of IPv4 is wrong." "Look for a damaged link or memory; a sender that leaves checksums to hardware that does not compute them."
    Ipv4Options "ipv4-options" "The options of IPv4 are malformed." "Look for a broken or hostile sender."
    Ipv4Fragment "ipv4-fragment" "The fragment ends beyond the 65,535 bytes that a datagram may have." "Look for a hostile sender: such fragments were made to crash those that put them together."
    Ipv4SourceRoute "ipv4-source-route" "The packet has a source-route option." "Nothing to do: source routes are refused on purpose."
    Ipv6Version "ipv6-version" "The EtherType says IPv6, the header does not." "Look for a broken sender."
    Ipv6Length "ipv6-length" "The IPv6 header or payload exceeds the frame." "Look for frames cut on the way: an MTU that differs along the link."
    Ipv6RoutingHeader "ipv6-routing-header" "The packet has a routing header of type 0, which RFC 5095 deprecates." "Nothing to do: such packets are refused on purpose."
    MartianSource "martian-source" "The source address is unspecified, loopback, link-local (IPv4), multicast, reserved, or the router's own." "Find the sender by its MAC address: a wrong configuration or a forged source; 'martians.accept' has those that a network may use."
    SourceScope "source-scope" "The IPv6 source address is link-local and the route leads to another link; the sender is told by ICMP." "Find the sender by its MAC address: it has no other address, or chose the wrong one."
    MartianDestination "martian-destination" "The destination address is unspecified, loopback, link-local or reserved, and not one that 'martians.accept' has." "Find the sender by its MAC address and correct its configuration; 'martians.accept' has those that a network may use."
    LinkBroadcast "link-broadcast" "The frame went to all stations or to a group, the packet to a single address of another network." "Find the sender by its MAC address: packets to be forwarded are sent to one router."
    Multicast "multicast" "A multicast packet, and the interface has no kernel to give it to." "Multicast is not routed; nothing to do."
    NoHost "no-host" "The packet is for the router itself, and the interface has no kernel to give it to." "Use a back end that has one (af-packet), or do not address the router."
    UrpfStrict "urpf-strict" "The route back to the source does not leave through the interface that the packet came from." "A forged source, or asymmetric routing: use urpf = \"loose\" there."
    UrpfLoose "urpf-loose" "There is no route back to the source." "A forged source, or a route is missing."
    FilterDeny "filter-deny" "A rule of the filter denies the packet." "Nothing to do if the rule is right: 'fibula router filters' shows the rules and their hits."
    FilterReject "filter-reject" "A rule of the filter rejects the packet; the sender is told by ICMP." "Nothing to do if the rule is right: 'fibula router filters' shows the rules and their hits."
    PolicedBgp "policed-bgp" "BGP to the router, above the rate of its policer." "Raise 'policer.bgp', or permit the peers alone in 'filter.local'."
    PolicedBfd "policed-bfd" "BFD to the router, above the rate of its policer." "Raise 'policer.bfd': sessions end when their packets are dropped."
    PolicedOspf "policed-ospf" "OSPF, above the rate of its policer." "Raise 'policer.ospf': adjacencies end when their packets are dropped."
    PolicedVrrp "policed-vrrp" "VRRP, above the rate of its policer." "Raise 'policer.vrrp', or look for a loop between switches."
    PolicedNeighbour "policed-neighbour" "ARP and neighbour discovery of stations of the link, above the rate of their policer." "Raise 'policer.neighbour', or look for a loop between switches and for scans."
    PolicedIcmp "policed-icmp" "ICMP and ICMPv6 to the router, above the rate of their policer." "Normal while somebody floods with pings; otherwise raise 'policer.icmp'."
    PolicedRest "policed-rest" "Other packets to the router, above the rate of their policer." "Find the sender ('fibula router trace'); raise 'policer.rest' if the traffic is wanted."
    NoRoute "no-route" "No route matches the destination." "Add the route, or a default route; the sender is told by ICMP."
    Blackhole "blackhole" "The route discards its packets silently." "Nothing to do: the route says so."
    Unreachable "unreachable" "The route declares the destination unreachable; the sender is told by ICMP." "Nothing to do: the route says so."
    Prohibit "prohibit" "The route prohibits the destination; the sender is told by ICMP." "Nothing to do: the route says so."
    NextHopUnknown "next-hop-unknown" "The route leads to a next hop that the router does not know, or to an empty group." "A fault of the feed of this route: see 'fibula router check'."
    InterfaceDown "interface-down" "The interface that the route leads to is down." "Bring the link up, or withdraw the route."
    InterfaceMissing "interface-missing" "The device of the interface that the route leads to does not exist." "Make the device, give it its name again, or withdraw the route; it is taken up by itself."
    TtlExpired "ttl-expired" "The TTL or hop limit has run out; the sender is told by ICMP." "Normal for traceroute; in numbers it is a routing loop."
    TooBig "too-big" "The packet exceeds the MTU and may not be fragmented; the sender is told by ICMP." "Normal for path MTU discovery; in numbers, look for a small MTU on the way."
    OffloadTooBig "offload-too-big" "A packet of several segments has segments above the MTU of the way out and permits fragments." "Switch off segmentation offload of the sender: ethtool -K DEVICE tso off gso off."
    OffloadUnsupported "offload-unsupported" "A packet of several segments goes to a back end that cannot segment it." "Switch off offloads on the way in: ethtool -K DEVICE gro off, and gso off at the sender."
    NeighbourQueue "neighbour-queue" "The neighbour's MAC address is not known yet, and the queue for it is full." "Normal when a burst starts; in numbers, look for a neighbour that answers slowly or a scan of addresses."
    NeighbourLimit "neighbour-limit" "Too many neighbours of the interface or prefix are being resolved at once." "A scan of unused addresses; raise 'neighbours.requests' only if it is not."
    NeighbourTimeout "neighbour-timeout" "The packet waited too long for the neighbour's MAC address." "Look for a neighbour that is down or answers slowly."
    NeighbourFailed "neighbour-failed" "The neighbour does not answer; the sender is told by ICMP." "Check that the neighbour is up and its address right: 'fibula router neigh'."
    ArpMalformed "arp-malformed" "The ARP packet is short, or not for Ethernet and IPv4." "Look for a broken or hostile station."
    ArpForeign "arp-foreign" "The sender of the ARP packet is outside the networks of the interface, or has the router's MAC address." "Find the station by its MAC address: a wrong configuration, or a loop between switches."
    ArpConflict "arp-conflict" "The sender of the ARP packet claims an address of the router's: a duplicate address." "The log names the station, 'fibula router neigh' whether the router uses the address: give one of them another."
    NdMalformed "nd-malformed" "The packet fails the checks of neighbour discovery (RFC 4861: hop limit 255, checksum, lengths) or of an MLD query (RFC 3810)." "Look for a broken or hostile station."
    NdIgnored "nd-ignored" "A router solicitation, router advertisement or redirect: the router neither answers nor obeys these." "Run a daemon for router advertisements (radvd) if hosts need them; otherwise nothing to do."
    StageFull "stage-full" "The ring between two stages had no room." "The next stage is slower: give it more threads, or processors of its own."
    TransmitFull "transmit-full" "The transmit ring had no room." "The way out is slower than the way in: normal under overload; otherwise raise 'frames'."
    HostFull "host-full" "The way to the kernel had no room or its rate limit was reached." "Somebody sends much to the router itself; protect it with a filter."
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the number of the reason's counter.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the reason of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_are_in_the_guide() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/router.md"));
        let guide = guide.expect("docs/guide/router.md");
        for (index, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
            assert_eq!(DropReason::of_name(reason.name()), Some(reason), "a name twice");
            for text in [reason.name(), reason.meaning(), reason.advice()] {
                assert!(text.len() > 3, "{}: '{text}'", reason.name());
            }
            let row = format!("| `{}` | {} | {} |", reason.name(), reason.meaning(), reason.advice());
            assert!(guide.contains(&row), "docs/guide/router.md lacks this row:\n{row}");
        }
    }
}
