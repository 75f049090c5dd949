//! **The list** of information elements of IPFIX that are exported (IANA, "IPFIX Information Elements"), one a line.

macro_rules! elements {
    ($($variant:ident $id:literal $name:literal)*) => {
        /// An information element.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Element {
            $(#[doc = $name] $variant = $id,)*
        }

        impl Element {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns its name, as the registry has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

elements! {
    OctetDeltaCount 1 "octetDeltaCount"
    PacketDeltaCount 2 "packetDeltaCount"
    ProtocolIdentifier 4 "protocolIdentifier"
    IpClassOfService 5 "ipClassOfService"
    TcpControlBits 6 "tcpControlBits"
    SourceTransportPort 7 "sourceTransportPort"
    SourceIpv4Address 8 "sourceIPv4Address"
    SourceIpv4PrefixLength 9 "sourceIPv4PrefixLength"
    IngressInterface 10 "ingressInterface"
    DestinationTransportPort 11 "destinationTransportPort"
    DestinationIpv4Address 12 "destinationIPv4Address"
    DestinationIpv4PrefixLength 13 "destinationIPv4PrefixLength"
    EgressInterface 14 "egressInterface"
    IpNextHopIpv4Address 15 "ipNextHopIPv4Address"
    BgpSourceAsNumber 16 "bgpSourceAsNumber"
    BgpDestinationAsNumber 17 "bgpDestinationAsNumber"
    SourceIpv6Address 27 "sourceIPv6Address"
    DestinationIpv6Address 28 "destinationIPv6Address"
    SourceIpv6PrefixLength 29 "sourceIPv6PrefixLength"
    DestinationIpv6PrefixLength 30 "destinationIPv6PrefixLength"
    IcmpTypeCodeIpv4 32 "icmpTypeCodeIPv4"
    SamplingInterval 34 "samplingInterval"
    IpNextHopIpv6Address 62 "ipNextHopIPv6Address"
    InterfaceName 82 "interfaceName"
    ForwardingStatus 89 "forwardingStatus"
    IcmpTypeCodeIpv6 139 "icmpTypeCodeIPv6"
    FlowStartMilliseconds 152 "flowStartMilliseconds"
    FlowEndMilliseconds 153 "flowEndMilliseconds"
    IpTtl 192 "ipTTL"
    IngressVrfId 234 "ingressVRFID"
    SelectorId 302 "selectorId"
    SelectorAlgorithm 304 "selectorAlgorithm"
    SamplingPacketInterval 305 "samplingPacketInterval"
    SamplingPacketSpace 306 "samplingPacketSpace"
    SamplingProbability 311 "samplingProbability"
}
