//! The hash of a flow, which chooses a member of a next-hop group.
//!
//! Packets of a flow have the same hash, so they take the same path and stay in order. The parts of a fragmented datagram
//! have no ports but in the first, so all are hashed by addresses alone (and the flow label, which all parts carry).

/// The fields that identify a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// Source address; an IPv4 address in the low bits.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Source and destination port of TCP, UDP and others that begin with them; 0 without.
    pub ports: u32,
    /// Protocol; 0 for fragments.
    pub protocol: u8,
    /// Flow label of IPv6; 0 for IPv4.
    pub label: u32,
}

/// How flows are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowHash {
    /// Seed of the hash. If routers in a row share a seed, they make the same choices, and use only some of the paths.
    pub seed: u64,
    /// Whether both directions of a conversation have the same hash. The flow label is then left out, as the two
    /// directions have different ones.
    pub symmetric: bool,
}

impl FlowHash {
    /// Returns the hash of a flow. Every bit depends on every bit of the flow.
    #[inline]
    #[must_use]
    pub fn hash(self, flow: &Flow) -> u32 {
        let (mut source, mut destination, mut ports) = (flow.source, flow.destination, flow.ports);
        let mut label = flow.label;
        if self.symmetric {
            label = 0;
            let swap = (source, ports >> 16) > (destination, ports & 0xffff);
            if swap {
                (source, destination) = (destination, source);
                ports = ports.rotate_left(16);
            }
        }
        let mut hash =
            self.seed ^ (u64::from(ports) << 32 | u64::from(flow.protocol) << 24 | u64::from(label));
        // A multiplication folds 64 bits of input at a time; the constants are odd, without engine (digits of pi).
        for word in [source as u64, (source >> 64) as u64, destination as u64, (destination >> 64) as u64] {
            hash = fold(hash ^ 0x243f_6a88_85a3_08d3, word ^ 0x1319_8a2e_0370_7345);
        }
        (fold(hash, 0xa409_3822_299f_31d1) >> 32) as u32
    }
}

/// Multiplies two words and folds the halves of the product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// Returns the member of `count` that a hash chooses: by its upper bits, evenly.
#[inline]
#[must_use]
pub fn member(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

/// Returns the ports of a packet's payload, which begins at `offset`, or 0 if the protocol has none or the packet is cut.
#[inline]
#[must_use]
pub fn ports(packet: &[u8], protocol: u8, offset: usize) -> u32 {
    match protocol {
        // TCP, UDP, DCCP, SCTP, UDP-Lite.
        6 | 17 | 33 | 132 | 136 => super::u32_at(packet, offset),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: u128, destination: u128, from: u16, to: u16) -> Flow {
        Flow {
            source,
            destination,
            ports: u32::from(from) << 16 | u32::from(to),
            protocol: 6,
            ..Flow::default()
        }
    }

    #[test]
    fn symmetric_hashes_do_not_depend_on_the_direction() {
        let both = FlowHash { seed: 9, symmetric: true };
        let one = FlowHash { seed: 9, symmetric: false };
        let mut differing = 0;
        for low in 0..200u128 {
            let there = flow(low << 64 | 5, 7, 1000 + low as u16, 443);
            let back = flow(7, low << 64 | 5, 443, 1000 + low as u16);
            assert_eq!(both.hash(&there), both.hash(&back));
            assert_ne!(both.hash(&there), both.hash(&Flow { ports: 1, ..there }));
            differing += usize::from(one.hash(&there) != one.hash(&back));
        }
        assert!(differing > 190);
        let same = flow(7, 7, 1, 2);
        assert_eq!(both.hash(&same), both.hash(&flow(7, 7, 2, 1)));
    }

    #[test]
    fn members_are_chosen_evenly() {
        for count in [2usize, 3, 7, 64] {
            let mut chosen = vec![0usize; count];
            for port in 0..20_000u16 {
                let hash = FlowHash::default().hash(&flow(0x0a00_0001, 0x0a00_0002, port, 80));
                chosen[member(hash, count)] += 1;
            }
            let even = 20_000 / count;
            assert!(chosen.iter().all(|&n| n * 10 > even * 7 && n * 10 < even * 13), "{count}: {chosen:?}");
        }
    }
}
