//! The Toeplitz hash of receive-side scaling, and the redirection table that it looks up.
//!
//! What network cards do in hardware: the hash of addresses and ports chooses an entry of a table, and the entry a queue. For
//! back ends whose device does not, and to foresee where a device will put a flow. Both directions and the key are as in the
//! documentation of Microsoft's network drivers, whose vectors the tests verify.

use super::ethernet::{self, IPV4, IPV6};
use super::{flow, ipv4, ipv6};

/// The key of the published vectors, and the default of many drivers.
pub const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// A key that repeats 16 bits, with which both directions of a conversation have the same hash.
pub const SYMMETRIC_KEY: [u8; 40] = {
    let mut key = [0; 40];
    let mut at = 0;
    while at < 40 {
        key[at] = if at % 2 == 0 { 0x6d } else { 0x5a };
        at += 1;
    }
    key
};

/// Returns the hash of `input`, at most 36 bytes: for each set bit, the 32 bits of the key from that bit on.
#[must_use]
pub fn hash(key: &[u8; 40], input: &[u8]) -> u32 {
    let mut window = u64::from_be_bytes([key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7]]);
    let mut result = 0;
    for (index, &byte) in input.iter().take(36).enumerate() {
        for bit in 0..8 {
            if byte & (0x80 >> bit) != 0 {
                result ^= ((window << bit) >> 32) as u32;
            }
        }
        window = window << 8 | u64::from(key.get(index + 8).copied().unwrap_or(0));
    }
    result
}

/// Assigns flows to queues.
#[derive(Debug, Clone)]
pub struct Redirection {
    /// The hash of each half byte alone, by its place: the hash is the sum, bit by bit, of those of its parts.
    parts: Box<[[u32; 16]; 72]>,
    entries: [u8; 128],
}

impl Redirection {
    /// Makes a table that spreads flows evenly over `queues`, from 1 to 256.
    #[must_use]
    pub fn even(key: [u8; 40], queues: usize) -> Self {
        let queues = queues.clamp(1, 256);
        let mut parts = Box::new([[0; 16]; 72]);
        for (place, values) in parts.iter_mut().enumerate() {
            for (value, part) in values.iter_mut().enumerate() {
                let mut input = [0; 36];
                input[place / 2] = (value as u8) << if place % 2 == 0 { 4 } else { 0 };
                *part = hash(&key, &input);
            }
        }
        Self { parts, entries: std::array::from_fn(|entry| (entry % queues) as u8) }
    }

    /// Returns the entries. The low bits of a hash choose one.
    pub fn entries_mut(&mut self) -> &mut [u8; 128] {
        &mut self.entries
    }

    /// Returns the queue of a frame. Frames that are not IP go to the first queue, and fragments are hashed by addresses alone.
    #[must_use]
    pub fn queue(&self, frame: &[u8]) -> usize {
        let Ok(header) = ethernet::parse(frame, None) else { return 0 };
        let packet = &frame[header.payload..];
        let mut input = [0; 36];
        let (addresses, ports) = match header.ether_type {
            IPV4 => {
                let Ok(parsed) = ipv4::parse(packet) else { return 0 };
                input[..8].copy_from_slice(&packet[12..20]);
                let whole = !parsed.is_fragment();
                (8, if whole { flow::ports(packet, parsed.protocol, parsed.header) } else { 0 })
            }
            IPV6 => {
                let Ok(parsed) = ipv6::parse(packet) else { return 0 };
                input[..32].copy_from_slice(&packet[8..40]);
                let upper = ipv6::upper(packet, parsed.next_header);
                let offset = upper.offset.filter(|_| !upper.fragment);
                (32, offset.map_or(0, |offset| flow::ports(packet, upper.protocol, offset)))
            }
            _ => return 0,
        };
        let length = if ports == 0 {
            addresses
        } else {
            input[addresses..addresses + 4].copy_from_slice(&ports.to_be_bytes());
            addresses + 4
        };
        usize::from(self.entries[(self.hash(&input[..length]) & 127) as usize])
    }

    /// Returns the hash of `input`, like [`hash`].
    #[must_use]
    pub fn hash(&self, input: &[u8]) -> u32 {
        let pairs = self.parts.as_chunks::<2>().0.iter().zip(input);
        pairs.fold(0, |hash, ([high, low], &byte)| {
            hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 15)]
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Destination, its port, source, its port, hash of the addresses, hash with ports: "Verifying the RSS Hash
    /// Calculation", Windows driver documentation.
    const V4: [(&str, u16, &str, u16, u32, u32); 5] = [
        ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e_8fc2, 0x51cc_c178),
        ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718_262a, 0xc626_b0ea),
        ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0_a5de, 0x5c2b_394a),
        ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x8298_9176, 0xafc7_327f),
        ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d18_09c5, 0x10e8_28a2),
    ];
    const V6: [(&str, u16, &str, u16, u32, u32); 3] = [
        ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc1_8cd5, 0x4020_7d3d),
        ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c_461c, 0xdde5_1bbf),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn published_vectors() {
        for (to, to_port, from, from_port, addresses, with_ports) in V4 {
            let mut input = from.parse::<Ipv4Addr>().unwrap().octets().to_vec();
            input.extend(to.parse::<Ipv4Addr>().unwrap().octets());
            assert_eq!(hash(&KEY, &input), addresses, "{from}");
            input.extend(from_port.to_be_bytes());
            input.extend(to_port.to_be_bytes());
            assert_eq!(hash(&KEY, &input), with_ports, "{from}");
        }
        for (to, to_port, from, from_port, addresses, with_ports) in V6 {
            let mut input = from.parse::<Ipv6Addr>().unwrap().octets().to_vec();
            input.extend(to.parse::<Ipv6Addr>().unwrap().octets());
            assert_eq!(hash(&KEY, &input), addresses, "{from}");
            input.extend(from_port.to_be_bytes());
            input.extend(to_port.to_be_bytes());
            assert_eq!(hash(&KEY, &input), with_ports, "{from}");
        }
    }

    #[test]
    fn frames_go_to_the_queue_of_their_hash() {
        let mut table = Redirection::even(KEY, 4);
        let (to, from) =
            (u32::from(Ipv4Addr::new(161, 142, 100, 80)), u32::from(Ipv4Addr::new(66, 9, 149, 187)));
        let mut frame =
            ethernet::Header::new(Default::default(), Default::default(), Default::default(), IPV4)
                .as_bytes()
                .to_vec();
        frame.resize(14 + 28, 0);
        ipv4::write(&mut frame[14..], 28, 64, ipv4::UDP, from, to);
        frame[34..36].copy_from_slice(&2794u16.to_be_bytes());
        frame[36..38].copy_from_slice(&1766u16.to_be_bytes());
        assert_eq!(table.queue(&frame), (0x51cc_c178 & 127) % 4);
        table.entries_mut()[0x51cc_c178 & 127] = 9;
        assert_eq!(table.queue(&frame), 9);
        // A fragment, which goes by its addresses alone.
        let mut part = frame.clone();
        part[20] |= 0x20;
        let (sum, carry) = (!u16::from_be_bytes([part[24], part[25]])).overflowing_add(0x2000);
        part[24..26].copy_from_slice(&(!(sum + u16::from(carry))).to_be_bytes());
        assert_eq!(table.queue(&part), (0x323e_8fc2 & 127) % 4);
        frame[12] = 0x99;
        assert_eq!(table.queue(&frame), 0, "not IP");
        assert_eq!(table.queue(&frame[..5]), 0);
    }

    #[test]
    fn the_symmetric_key_is_symmetric() {
        let input = [10, 1, 2, 3, 192, 168, 7, 9, 0x12, 0x34, 0x56, 0x78];
        let turned = [192, 168, 7, 9, 10, 1, 2, 3, 0x56, 0x78, 0x12, 0x34];
        assert_eq!(hash(&SYMMETRIC_KEY, &input), hash(&SYMMETRIC_KEY, &turned));
    }
}
