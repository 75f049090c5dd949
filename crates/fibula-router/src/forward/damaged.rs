//! Frames for tests: plain ones, nearly plain ones, and damaged ones.

use crate::packet::ethernet::{Header, IPV4, IPV6, Mac, Tags};
use crate::packet::{checksum, ipv4, ipv6};

pub(super) fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

/// Returns a frame to a station that is plain, or nearly so, or damaged.
pub(super) fn frame(state: &mut u64, to: Mac, v6: bool) -> Vec<u8> {
    let tags = if random(state).is_multiple_of(8) { Tags::one(random(state) as u16 % 2) } else { Tags::NONE };
    let header = Header::new(to, Mac([2, 0, 0, 0, 0, 9]), tags, if v6 { IPV6 } else { IPV4 });
    let mut bytes = header.as_bytes().to_vec();
    let at = bytes.len();
    bytes.resize(at + 40 + random(state) % 30, 0);
    let (room, ttl) = (bytes.len() - at, [0, 1, 2, 64, 255][random(state) % 5]);
    let len = room - random(state) % 5;
    // Bytes above IP that are often a port, a type or a flag that rules name.
    bytes[at + 20..].fill_with(|| [0, 0, 53, 8, 2, 18, 128][random(state) % 7]);
    if v6 {
        let high = [0, 0, 0x20, 0x64 << 8 | 0xff9b, 0xfc, 0xfd, 0xfe, 0xff];
        let mut address =
            || high[random(state) % 8] << 120 | [0, 0x80 << 112, 1 << 64][random(state) % 3] | 1;
        let (source, destination) = (address(), address());
        let next = [17, 17, 6, 132, 59, 58, 0, 43, 44][random(state) % 9];
        ipv6::write(&mut bytes[at..], len.saturating_sub(40), ttl, next, source, destination);
    } else {
        let high = [0, 10, 10, 10, 127, 169, 198, 223, 224, 240, 255];
        let low = [1, 254, 0xfe_fe01, 0xff_ffff];
        let mut address = || high[random(state) % 11] << 24 | low[random(state) % 4];
        let (source, destination) = (address(), address());
        let protocol = [17, 6, 1, 58, 132, 89][random(state) % 6];
        ipv4::write(&mut bytes[at..], len, ttl, protocol, source, destination);
    }
    let wrong = at + random(state) % 24;
    match random(state) % 6 {
        0 => bytes[wrong] ^= 1 << (random(state) % 8),
        1 => bytes[random(state) % 14] ^= 1 << (random(state) % 8),
        2 => bytes.truncate(wrong),
        _ => {}
    }
    if !v6 && random(state).is_multiple_of(2) && bytes.len() >= at + 20 {
        bytes[at + 10..at + 12].fill(0);
        let sum = checksum::checksum(&bytes[at..at + 20]);
        bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}
