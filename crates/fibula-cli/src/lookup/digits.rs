//! Prefixes as text, without `core::fmt`, which would take most of the time of an answer.

use fibula::net::Key;

/// A key that writes itself.
pub(super) trait Digits: Key {
    /// Appends the address, byte for byte as the standard library prints it (RFC 5952).
    fn put(self, out: &mut Vec<u8>);
}

/// Appends the prefix of `len` bits that contains `key`.
#[inline]
pub(super) fn put_prefix<K: Digits>(key: K, len: u8, out: &mut Vec<u8>) {
    key.and(K::mask(len)).put(out);
    let (digits, count) = DECIMAL[usize::from(len)];
    let [a, b, c, _] = digits;
    put_short(&[b'/', a, b, c], count, out);
}

/// Appends the first `len` bytes, of at most `N`. It copies all of them, so that the copy is a few instructions, not a call.
#[inline]
pub(super) fn put_short<const N: usize>(bytes: &[u8; N], len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    out.extend_from_slice(bytes);
    out.truncate(end);
}

impl Digits for u32 {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        let (mut text, mut at) = ([0; 16], 0);
        for octet in self.to_be_bytes() {
            let (digits, len) = DECIMAL[usize::from(octet)];
            text[at..at + 4].copy_from_slice(&digits);
            at += len;
        }
        // No dot follows the last one.
        put_short(&text, at - 1, out);
    }
}

impl Digits for u128 {
    fn put(self, out: &mut Vec<u8>) {
        if self >> 32 == 0xffff {
            out.extend_from_slice(b"::ffff:");
            return (self as u32).put(out);
        }
        let groups: [u16; 8] = std::array::from_fn(|index| (self >> (112 - 16 * index)) as u16);
        let (start, len) = longest_zeros(&groups);
        for (index, &group) in groups.iter().enumerate() {
            if len > 1 && (start..start + len).contains(&index) {
                if index == start {
                    out.extend_from_slice(b"::");
                }
                continue;
            }
            if index > 0 && !(len > 1 && index == start + len) {
                out.push(b':');
            }
            put_hex(group, out);
        }
    }
}

/// Start and length of the first of the longest runs of zero groups.
fn longest_zeros(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best, mut run) = ((0, 0), (0, 0));
    for (index, &group) in groups.iter().enumerate() {
        if group != 0 {
            run = (index + 1, 0);
            continue;
        }
        run.1 += 1;
        if run.1 > best.1 {
            best = run;
        }
    }
    best
}

/// The digits of every octet and a dot, and how many bytes these are.
const DECIMAL: [([u8; 4], usize); 256] = {
    let mut table = [([0; 4], 0); 256];
    let mut value = 0;
    while value < 256 {
        let (hundreds, tens, ones) =
            (b'0' + (value / 100) as u8, b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8);
        table[value] = match value {
            0..10 => ([ones, b'.', 0, 0], 2),
            10..100 => ([tens, ones, b'.', 0], 3),
            _ => ([hundreds, tens, ones, b'.'], 4),
        };
        value += 1;
    }
    table
};

#[inline]
fn put_hex(group: u16, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digits: [u8; 4] = std::array::from_fn(|index| HEX[usize::from(group >> (12 - 4 * index) & 0xf)]);
    // The last digit is written even if it is zero.
    let zeros = (group | 1).leading_zeros() as usize / 4;
    out.extend_from_slice(&digits[zeros..]);
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn text<K: Digits>(key: K) -> String {
        let mut out = Vec::new();
        key.put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn addresses_print_as_the_standard_library_prints_them() {
        for octet in 0..=255u32 {
            for key in [octet, octet << 8, octet << 16, octet << 24, octet * 0x0101_0101] {
                assert_eq!(text(key), Ipv4Addr::from_bits(key).to_string());
            }
        }
        // Every pattern of zero and other groups, with groups of every number of digits.
        for pattern in 0..256u32 {
            for value in [0x1u128, 0x20, 0x300, 0xabcd, 0xffff] {
                let key =
                    (0..8).fold(0, |key, bit| key << 16 | if pattern >> bit & 1 != 0 { value } else { 0 });
                assert_eq!(text(key), Ipv6Addr::from_bits(key).to_string());
            }
        }
        for key in [0xffff_0102_0304u128, 0xfffe_0102_0304, 0x1_ffff_0102_0304, 0x0102_0304, u128::MAX] {
            assert_eq!(text(key), Ipv6Addr::from_bits(key).to_string());
        }
    }

    #[test]
    fn prefixes_are_masked() {
        let mut out = Vec::new();
        put_prefix(0xc000_02ffu32, 24, &mut out);
        out.push(b' ');
        put_prefix(u128::MAX, 0, &mut out);
        out.push(b' ');
        put_prefix(1u128, 128, &mut out);
        assert_eq!(out, b"192.0.2.0/24 ::/0 ::1/128");
    }
}
