//! Internet checksums: computed (RFC 1071), and corrected where a field changes (RFC 1624).

/// Returns the sum of 16-bit words, folded to 16 bits, not complemented. An odd last byte counts as the high half.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8], start: u64) -> u16 {
    let mut total = start;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        total += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    match *words.remainder() {
        [a] => total += u64::from(a) << 8,
        [a, b] => total += u64::from(u16::from_be_bytes([a, b])),
        [a, b, c] => total += u64::from(u16::from_be_bytes([a, b])) + (u64::from(c) << 8),
        _ => {}
    }
    fold(total)
}

/// Returns whether the checksum of an IPv4 header without options is right. Words are added as they are in memory, because the order
/// of bytes in a word does not matter (RFC 1071, section 2 (B)).
#[inline]
#[must_use]
pub fn is_right(header: &[u8; 20]) -> bool {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_ne_bytes(bytes)
    };
    let last = u32::from_ne_bytes([header[16], header[17], header[18], header[19]]);
    let (sum, carry) = word(0).overflowing_add(word(8));
    let (sum, again) = sum.overflowing_add(u64::from(last) + u64::from(carry));
    let sum = sum + u64::from(again);
    // A sum and itself with its halves exchanged: the upper half is the sum of both halves, its carry included.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    sum.wrapping_add(sum.rotate_left(16)) >> 16 == 0xffff
}

/// Adds the carries of a sum until 16 bits are left.
#[inline]
#[must_use]
pub fn fold(mut total: u64) -> u16 {
    total = (total & 0xffff_ffff) + (total >> 32);
    total = (total & 0xffff_ffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    total as u16
}

/// Returns the checksum of `bytes`, in which the checksum field itself is zero.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes, 0)
}

/// Returns the sum of the pseudo header of ICMPv6, UDP or TCP over IPv6 (RFC 8200, section 8.1).
#[must_use]
pub fn pseudo_ipv6(source: u128, destination: u128, length: usize, protocol: u8) -> u64 {
    let halves = |address: u128| (0..4).map(move |word| (address >> (32 * word)) as u32);
    halves(source).chain(halves(destination)).map(u64::from).sum::<u64>()
        + length as u64
        + u64::from(protocol)
}

/// Returns the sum of the pseudo header of UDP or TCP over IPv4.
#[must_use]
pub fn pseudo_ipv4(source: u32, destination: u32, length: usize, protocol: u8) -> u64 {
    u64::from(source) + u64::from(destination) + length as u64 + u64::from(protocol)
}

/// Returns a checksum after one 16-bit field went from `old` to `new`: equation 3 of RFC 1624, which is right where equation
/// 4 of RFC 1141 gives the other zero.
#[inline]
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let mut total = !checksum as u32 + !old as u32 + new as u32;
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_1071() {
        // Section 3: the sum of these bytes is ddf2.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), 0xddf2);
    }

    #[test]
    fn example_of_rfc_1624() {
        // Section 4: header checksum dd2f, field 5555 becomes 3285, and the new checksum is 0000, not ffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_header_is_right_where_its_sum_is_all_ones() {
        let mut random = 1_u64;
        for _ in 0..10_000 {
            let mut header = [0; 20];
            for byte in &mut header {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (random >> 56) as u8;
            }
            assert_eq!(is_right(&header), sum(&header, 0) == 0xffff);
            header[10..12].fill(0);
            let right = checksum(&header).to_be_bytes();
            header[10..12].copy_from_slice(&right);
            assert!(is_right(&header));
            header[3] ^= 1;
            assert!(!is_right(&header));
        }
        assert!(is_right(&[0xff; 20]) && !is_right(&[0; 20]));
    }

    #[test]
    fn corrections_equal_computing_anew() {
        let mut header = [0x45u8, 0, 0, 84, 0x12, 0x34, 0x40, 0, 0, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        for ttl in 1..=255u8 {
            for identification in [0u16, 1, 0xfffe, 0xffff, 0x8000] {
                header[8] = ttl;
                header[4..6].copy_from_slice(&identification.to_be_bytes());
                header[10..12].fill(0);
                let before = checksum(&header);
                let old = u16::from_be_bytes([header[8], header[9]]);
                header[8] -= 1;
                let new = u16::from_be_bytes([header[8], header[9]]);
                assert_eq!(update(before, old, new), checksum(&header), "TTL {ttl}");
            }
        }
    }

    #[test]
    fn odd_lengths_are_padded_with_zero() {
        for len in 0..9 {
            let bytes: Vec<u8> = (1..=len).collect();
            let mut padded = bytes.clone();
            padded.resize(12, 0);
            assert_eq!(sum(&bytes, 7), sum(&padded, 7), "{len}");
        }
    }
}
