//! ARP for Ethernet and IPv4 (RFC 826).

use crate::drops::DropReason;

use super::ethernet::Mac;
use super::{u16_at, u32_at};

/// Bytes of a packet.
pub const LEN: usize = 28;

/// A request or a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// Whether it is a request; else a reply.
    pub request: bool,
    /// MAC address of the sender.
    pub sender_mac: Mac,
    /// IPv4 address of the sender; 0 in probes (RFC 5227).
    pub sender: u32,
    /// Address that is looked for, or that of the receiver of a reply.
    pub target: u32,
}

/// Reads a packet.
///
/// # Errors
/// When it is short, of other kinds of networks or addresses, neither request nor reply, or its sender's MAC address is a
/// group's.
pub fn parse(packet: &[u8]) -> Result<Arp, DropReason> {
    let packet = packet.get(..LEN).ok_or(DropReason::ArpMalformed)?;
    let operation = u16_at(packet, 6);
    let sender_mac = Mac([packet[8], packet[9], packet[10], packet[11], packet[12], packet[13]]);
    if packet[..6] != [0, 1, 8, 0, 6, 4] || !matches!(operation, 1 | 2) || !sender_mac.is_station() {
        return Err(DropReason::ArpMalformed);
    }
    Ok(Arp { request: operation == 1, sender_mac, sender: u32_at(packet, 14), target: u32_at(packet, 24) })
}

/// Makes a packet.
#[must_use]
pub fn write(request: bool, sender: (Mac, u32), target: (Mac, u32)) -> [u8; LEN] {
    let mut packet = [0; LEN];
    packet[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, if request { 1 } else { 2 }]);
    packet[8..14].copy_from_slice(&sender.0.0);
    packet[14..18].copy_from_slice(&sender.1.to_be_bytes());
    packet[18..24].copy_from_slice(&target.0.0);
    packet[24..28].copy_from_slice(&target.1.to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        let (a, b) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        for request in [true, false] {
            let packet = write(request, (a, 10), (b, 20));
            assert_eq!(parse(&packet), Ok(Arp { request, sender_mac: a, sender: 10, target: 20 }));
            for short in 0..LEN {
                assert_eq!(parse(&packet[..short]), Err(DropReason::ArpMalformed));
            }
            for at in 0..8 {
                let mut wrong = packet;
                wrong[at] ^= 0x40;
                assert_eq!(parse(&wrong), Err(DropReason::ArpMalformed), "{at}");
            }
        }
        assert_eq!(parse(&write(true, (Mac::BROADCAST, 1), (b, 2))), Err(DropReason::ArpMalformed));
    }
}
