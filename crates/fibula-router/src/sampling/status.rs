//! The end of a packet as a `forwardingStatus` of IPFIX (IANA, "forwardingStatus (Value 89)"; RFC 7270, section 4.12).

use crate::drops::DropReason;
use crate::forward::trace::Fate;

/// Returns the code of a fate. Its two highest bits say unknown, forwarded, dropped or consumed, and the others why, where there is a
/// code for the reason.
#[must_use]
pub fn forwarding_status(fate: Fate) -> u8 {
    match fate {
        // Its end is not known yet.
        Fate::Waiting => 0,
        Fate::Forwarded => FORWARDED,
        Fate::Delivered | Fate::Consumed => FOR_US,
        Fate::Dropped(reason) => dropped(reason),
    }
}

const FORWARDED: u8 = 64;
const DROPPED: u8 = 128;
const ACL_DENY: u8 = 129;
const UNROUTABLE: u8 = 131;
const ADJACENCY: u8 = 132;
const DONT_FRAGMENT: u8 = 133;
const BAD_CHECKSUM: u8 = 134;
const BAD_TOTAL_LENGTH: u8 = 135;
const BAD_HEADER_LENGTH: u8 = 136;
const BAD_TTL: u8 = 137;
const POLICER: u8 = 138;
const RPF: u8 = 140;
const BAD_OUTPUT: u8 = 142;
const FOR_US: u8 = 195;

const fn dropped(reason: DropReason) -> u8 {
    use DropReason as Drop;
    match reason {
        Drop::FilterDeny | Drop::FilterReject | Drop::Prohibit => ACL_DENY,
        Drop::NoRoute
        | Drop::Unreachable
        | Drop::Blackhole
        | Drop::NextHopUnknown
        | Drop::MartianDestination => UNROUTABLE,
        Drop::NeighbourQueue | Drop::NeighbourLimit | Drop::NeighbourTimeout | Drop::NeighbourFailed => {
            ADJACENCY
        }
        Drop::TooBig => DONT_FRAGMENT,
        Drop::Ipv4Checksum => BAD_CHECKSUM,
        Drop::Ipv4Length | Drop::Ipv6Length => BAD_TOTAL_LENGTH,
        Drop::Ipv4Header => BAD_HEADER_LENGTH,
        Drop::TtlExpired => BAD_TTL,
        Drop::PolicedBgp
        | Drop::PolicedBfd
        | Drop::PolicedOspf
        | Drop::PolicedVrrp
        | Drop::PolicedNeighbour
        | Drop::PolicedIcmp
        | Drop::PolicedRest => POLICER,
        Drop::UrpfStrict | Drop::UrpfLoose | Drop::MartianSource => RPF,
        Drop::InterfaceDown | Drop::InterfaceMissing => BAD_OUTPUT,
        _ => DROPPED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bits_say_what_became_of_a_packet() {
        for &reason in DropReason::ALL {
            assert_eq!(forwarding_status(Fate::Dropped(reason)) >> 6, 2, "{}", reason.name());
        }
        assert_eq!(forwarding_status(Fate::Forwarded) >> 6, 1);
        for fate in [Fate::Delivered, Fate::Consumed] {
            assert_eq!(forwarding_status(fate) >> 6, 3);
        }
        assert_eq!(forwarding_status(Fate::Waiting) >> 6, 0);
        for (reason, code) in
            [(DropReason::FilterDeny, 129), (DropReason::NoRoute, 131), (DropReason::TtlExpired, 137)]
        {
            assert_eq!(forwarding_status(Fate::Dropped(reason)), code);
        }
    }
}
