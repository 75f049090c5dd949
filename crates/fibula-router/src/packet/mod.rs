//! Packet rules without I/O: reads, checks and rewrites headers.
//!
//! Every function takes bytes and never reads past them. Addresses are integers in host order, as lookups take them.

pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod flow;
pub mod fragment;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod limit;
pub mod martian;
pub mod mld;
pub mod nd;
pub mod options;
pub mod toeplitz;

/// Returns the 16 bits at `at`. Returns zero past the end, but callers exclude that by their checks of length.
#[inline]
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]))
}

/// Returns the 32 bits at `at`; zero where the bytes end.
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

/// Returns the 128 bits at `at`; zero where the bytes end.
#[inline]
#[must_use]
pub fn u128_at(bytes: &[u8], at: usize) -> u128 {
    bytes.get(at..at + 16).map_or(0, |word| {
        let mut array = [0; 16];
        array.copy_from_slice(word);
        u128::from_be_bytes(array)
    })
}

/// Counts one hop.
#[inline]
pub(crate) fn hop(packet: &mut [u8], v6: bool) {
    if v6 { ipv6::hop(packet) } else { ipv4::hop(packet) }
}
