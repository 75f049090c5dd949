//! The templates of this router, and their records.

use super::elements::Element;
use super::message::{IpfixMessage, VARIABLE, put_text};
use super::observed::Observed;
use super::status::forwarding_status;
use crate::forward::fabric::Gateway;

/// Numbers of sets that have templates (RFC 7011, section 3.3.2).
const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;

/// A field of a template: an element, and its bytes.
pub type TemplateField = (Element, u16);

/// A template: a number, its scope fields, and its other fields. Templates of samples have no scope.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    /// Its number, from 256.
    pub id: u16,
    /// The fields that name the subject of options.
    pub scope: &'static [TemplateField],
    /// The other fields.
    pub fields: &'static [TemplateField],
}

/// Samples of IPv4. `put_sample` writes their fields in this order.
pub const V4: Template = Template {
    id: 256,
    scope: &[],
    fields: &[
        (Element::SourceIpv4Address, 4),
        (Element::DestinationIpv4Address, 4),
        (Element::IpNextHopIpv4Address, 4),
        (Element::SourceIpv4PrefixLength, 1),
        (Element::DestinationIpv4PrefixLength, 1),
        (Element::IcmpTypeCodeIpv4, 2),
        (Element::ProtocolIdentifier, 1),
        (Element::IpClassOfService, 1),
        (Element::IpTtl, 1),
        (Element::ForwardingStatus, 1),
        (Element::SourceTransportPort, 2),
        (Element::DestinationTransportPort, 2),
        (Element::TcpControlBits, 2),
        (Element::IngressInterface, 4),
        (Element::EgressInterface, 4),
        (Element::IngressVrfId, 4),
        (Element::BgpSourceAsNumber, 4),
        (Element::BgpDestinationAsNumber, 4),
        (Element::OctetDeltaCount, 4),
        (Element::PacketDeltaCount, 4),
        (Element::FlowStartMilliseconds, 8),
        (Element::FlowEndMilliseconds, 8),
    ],
};

/// Samples of IPv6.
pub const V6: Template = Template {
    id: 257,
    scope: &[],
    fields: &[
        (Element::SourceIpv6Address, 16),
        (Element::DestinationIpv6Address, 16),
        (Element::IpNextHopIpv6Address, 16),
        (Element::SourceIpv6PrefixLength, 1),
        (Element::DestinationIpv6PrefixLength, 1),
        (Element::IcmpTypeCodeIpv6, 2),
        (Element::ProtocolIdentifier, 1),
        (Element::IpClassOfService, 1),
        (Element::IpTtl, 1),
        (Element::ForwardingStatus, 1),
        (Element::SourceTransportPort, 2),
        (Element::DestinationTransportPort, 2),
        (Element::TcpControlBits, 2),
        (Element::IngressInterface, 4),
        (Element::EgressInterface, 4),
        (Element::IngressVrfId, 4),
        (Element::BgpSourceAsNumber, 4),
        (Element::BgpDestinationAsNumber, 4),
        (Element::OctetDeltaCount, 4),
        (Element::PacketDeltaCount, 4),
        (Element::FlowStartMilliseconds, 8),
        (Element::FlowEndMilliseconds, 8),
    ],
};

/// How packets are selected (RFC 5477, section 8.2, and RFC 5476, section 6.5.2): the probability, and the same as an interval for
/// collectors that know no other. nfdump 1.7 takes the interval from `samplingPacketSpace`, which therefore comes after
/// `samplingInterval`.
pub const SELECTOR: Template = Template {
    id: 258,
    scope: &[(Element::SelectorId, 8)],
    fields: &[
        (Element::SamplingInterval, 4),
        (Element::SelectorAlgorithm, 2),
        (Element::SamplingProbability, 8),
        (Element::SamplingPacketInterval, 4),
        (Element::SamplingPacketSpace, 4),
    ],
};

/// Names of interfaces.
pub const INTERFACES: Template = Template {
    id: 259,
    scope: &[(Element::IngressInterface, 4)],
    fields: &[(Element::InterfaceName, VARIABLE)],
};

/// Uniform probabilistic sampling (RFC 5477, section 8.2.1).
const UNIFORM_PROBABILISTIC: u16 = 4;

fn put_template(bytes: &mut Vec<u8>, template: &Template) {
    let Template { id, scope, fields } = template;
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&((scope.len() + fields.len()) as u16).to_be_bytes());
    if !scope.is_empty() {
        bytes.extend_from_slice(&(scope.len() as u16).to_be_bytes());
    }
    for (element, len) in scope.iter().chain(*fields) {
        bytes.extend_from_slice(&(*element as u16).to_be_bytes());
        bytes.extend_from_slice(&len.to_be_bytes());
    }
}

/// Writes all templates into a message. They fit into the smallest one that the configuration allows.
pub fn put_templates(message: &mut IpfixMessage) {
    message.begin_set(TEMPLATES);
    for template in [&V4, &V6] {
        message.record(|bytes| put_template(bytes, template));
    }
    message.begin_set(OPTIONS_TEMPLATES);
    for template in [&SELECTOR, &INTERFACES] {
        message.record(|bytes| put_template(bytes, template));
    }
}

/// Writes how packets are selected.
pub fn put_selector(message: &mut IpfixMessage, interval: u32) {
    let interval = interval.max(1);
    message.begin_set(SELECTOR.id);
    message.record(|bytes| {
        // The router has one selection process.
        bytes.extend_from_slice(&1_u64.to_be_bytes());
        bytes.extend_from_slice(&interval.to_be_bytes());
        bytes.extend_from_slice(&UNIFORM_PROBABILISTIC.to_be_bytes());
        bytes.extend_from_slice(&(1.0 / f64::from(interval)).to_be_bytes());
        bytes.extend_from_slice(&1_u32.to_be_bytes());
        bytes.extend_from_slice(&(interval - 1).to_be_bytes());
    });
}

/// Writes the name of an interface. Returns `false` if there is no room.
pub fn put_interface(message: &mut IpfixMessage, number: u32, name: &str) -> bool {
    message.record(|bytes| {
        bytes.extend_from_slice(&number.to_be_bytes());
        put_text(bytes, name);
    })
}

/// Returns the number of an interface in exported records: as it is in the configuration, from 1. 0 is none.
#[must_use]
pub fn interface_number(number: Option<u16>) -> u32 {
    number.map_or(0, |number| u32::from(number) + 1)
}

/// Writes a sample. Returns `false` if there is no room.
pub fn put_sample(message: &mut IpfixMessage, observed: &Observed) -> bool {
    let Observed { sample, at_ms, source, destination } = observed;
    let packet = &sample.packet;
    message.record(|bytes| {
        let mut put = |part: &[u8]| bytes.extend_from_slice(part);
        for address in [packet.source, packet.destination] {
            match packet.v6 {
                true => put(&address.to_be_bytes()),
                false => put(&(address as u32).to_be_bytes()),
            }
        }
        match (packet.v6, sample.gateway) {
            (false, Some(Gateway::V4(gateway))) => put(&gateway.to_be_bytes()),
            // Of an IPv4 packet to an IPv6 router too, because the field has 4 bytes.
            (false, _) => put(&[0; 4]),
            (true, Some(Gateway::V6(gateway))) => put(&gateway.to_be_bytes()),
            (true, _) => put(&[0; 16]),
        }
        put(&[source.len, destination.len]);
        let (kind, code) = packet.icmp.unwrap_or_default();
        put(&[kind, code]);
        put(&[packet.protocol, sample.traffic_class, sample.ttl, forwarding_status(sample.fate)]);
        let (from, to) = packet.ports.unwrap_or_default();
        put(&from.to_be_bytes());
        put(&to.to_be_bytes());
        put(&u16::from(packet.tcp_flags.unwrap_or(0)).to_be_bytes());
        put(&interface_number(Some(packet.input)).to_be_bytes());
        put(&interface_number(packet.output).to_be_bytes());
        put(&u32::from(packet.vrf).to_be_bytes());
        put(&source.origin.to_be_bytes());
        put(&destination.origin.to_be_bytes());
        put(&sample.bytes.to_be_bytes());
        put(&u32::from(sample.packets).to_be_bytes());
        // A sample is a flow of one packet, or of the segments of one frame.
        put(&at_ms.to_be_bytes());
        put(&at_ms.to_be_bytes());
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::message::HEADER;

    #[test]
    fn all_templates_fit_into_the_smallest_message() {
        let mut message = IpfixMessage::new(512);
        put_templates(&mut message);
        put_selector(&mut message, 1000);
        let mut ended = message.finish(0, 1);
        assert_eq!(ended.data_records, 1);
        let fields = V4.fields.len() + V6.fields.len() + SELECTOR.fields.len() + 1 + 2;
        // Two sets of two templates each, and a set with a record of 30 bytes.
        let len = HEADER + (4 + 2 * 4) + (4 + 2 * 6) + 4 * fields + (4 + 30);
        assert_eq!(ended.numbered(0).len(), len);
    }
}
