//! Packets to receive.

use core::fmt;

use crate::packet::ethernet::{Header, IPV4, IPV6, Mac, Tags};
use crate::packet::martian::Martians;
use crate::packet::toeplitz::{KEY, Redirection};
use crate::packet::{ipv4, ipv6, u16_at, u32_at};

use super::network::mac;

/// Bytes of a frame that are rewritten before each pass.
pub(super) const HEADERS: usize = 64;
/// The checksum of Ethernet, which counts towards the size of a frame on the wire and is not in memory.
const FCS: usize = 4;
const UDP: u8 = 17;
/// Next header of an IPv6 packet without room for a UDP header.
const NO_NEXT_HEADER: u8 = 59;

/// Destinations of one family.
#[derive(Debug, Clone, Copy)]
pub enum Keys<'k> {
    /// IPv4 addresses.
    V4(&'k [u32]),
    /// IPv6 addresses.
    V6(&'k [u128]),
}

/// Why there are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoFrames;

impl fmt::Display for NoFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no address among the keys that packets may be forwarded to, or frames below 64 bytes")
    }
}

impl core::error::Error for NoFrames {}

/// UDP packets, or IPv6 packets without contents where a frame has no room for more: their headers, and the size of their frames.
#[derive(Debug, Clone)]
pub struct Frames {
    pub(super) headers: Vec<[u8; HEADERS]>,
    pub(super) bytes: usize,
}

impl Frames {
    /// Makes `count` packets in frames of `bytes` bytes, including the checksum of 4 bytes. `input` is the number of a port that
    /// receives. Destinations are taken in turn, except those to which no router forwards. There are `flows` different ones;
    /// without a number, as many as keys.
    ///
    /// # Errors
    /// When no key can be a destination, or for frames below 64 bytes.
    pub fn new(
        keys: Keys<'_>,
        flows: Option<usize>,
        count: usize,
        bytes: usize,
        input: usize,
    ) -> Result<Self, NoFrames> {
        let payload = bytes.checked_sub(FCS + 14).filter(|_| bytes >= HEADERS).ok_or(NoFrames)?;
        let most = flows.unwrap_or(count).min(count);
        let headers: Vec<[u8; HEADERS]> = match keys {
            Keys::V4(keys) => {
                let there = keys.iter().filter(|&&key| {
                    !ipv4::is_martian_destination(key, Martians::default()) && !ipv4::is_multicast(key)
                });
                there
                    .cycle()
                    .take(most)
                    .enumerate()
                    .map(|(flow, &key)| v4(key, flow, payload, input))
                    .collect()
            }
            Keys::V6(keys) => {
                let there = keys
                    .iter()
                    .filter(|&&key| !ipv6::is_link_local(key) && !ipv6::is_multicast(key) && key > 1);
                there
                    .cycle()
                    .take(most)
                    .enumerate()
                    .map(|(flow, &key)| v6(key, flow, payload, input))
                    .collect()
            }
        };
        if headers.is_empty() {
            return Err(NoFrames);
        }
        let headers = headers.iter().copied().cycle().take(count).collect();
        Ok(Self { headers, bytes: bytes - FCS })
    }

    /// Gives the packets these source addresses, in turn. Packets of another family than the addresses stay as they are.
    pub fn set_sources(&mut self, keys: Keys<'_>) {
        for (number, frame) in self.headers.iter_mut().enumerate() {
            match keys {
                Keys::V4(keys) if !keys.is_empty() && frame[14] >> 4 == 4 => {
                    let (to, len) = (u32_at(frame, 30), usize::from(u16_at(frame, 16)));
                    ipv4::write(&mut frame[14..34], len, 64, UDP, keys[number % keys.len()], to);
                }
                Keys::V6(keys) if !keys.is_empty() && frame[14] >> 4 == 6 => {
                    frame[22..38].copy_from_slice(&keys[number % keys.len()].to_be_bytes());
                }
                _ => {}
            }
        }
    }

    /// Returns no packets, for a port that only sends.
    #[must_use]
    pub const fn none() -> Self {
        Self { headers: Vec::new(), bytes: HEADERS - FCS }
    }

    /// Returns the first 64 bytes of each frame.
    #[must_use]
    pub fn headers(&self) -> &[[u8; HEADERS]] {
        &self.headers
    }

    /// Returns the number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.headers.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Divides the packets by flow, as a network card with this number of queues does.
    #[must_use]
    pub fn spread(&self, queues: usize) -> Vec<Self> {
        let redirection = Redirection::even(KEY, queues);
        let mut parts = vec![Self { headers: Vec::new(), bytes: self.bytes }; queues.max(1)];
        // Hash whole frames. A packet that is shorter than its header claims would go to the first queue.
        let mut frame = vec![0; self.bytes.max(HEADERS)];
        for header in &self.headers {
            frame[..HEADERS].copy_from_slice(header);
            parts[redirection.queue(&frame)].headers.push(*header);
        }
        parts
    }
}

fn start(input: usize, ether_type: u16) -> [u8; HEADERS] {
    let mut frame = [0; HEADERS];
    let header = Header::new(mac(input), Mac([2, 0, 0, 0, 0, 9]), Tags::NONE, ether_type);
    frame[..14].copy_from_slice(header.as_bytes());
    frame
}

/// Writes the ports of a flow.
fn udp(at: &mut [u8], flow: usize) {
    at[..2].copy_from_slice(&(flow as u16).wrapping_add(1024).to_be_bytes());
    at[2..4].copy_from_slice(&53u16.to_be_bytes());
}

fn v4(key: u32, flow: usize, payload: usize, input: usize) -> [u8; HEADERS] {
    let mut frame = start(input, IPV4);
    ipv4::write(&mut frame[14..34], payload, 64, UDP, 0x0a00_0001, key);
    udp(&mut frame[34..], flow);
    frame
}

fn v6(key: u128, flow: usize, payload: usize, input: usize) -> [u8; HEADERS] {
    let mut frame = start(input, IPV6);
    let next = if payload < 40 + 8 { NO_NEXT_HEADER } else { UDP };
    ipv6::write(&mut frame[14..54], payload - 40, 64, next, 0x2001_0db8 << 96 | 1, key);
    udp(&mut frame[54..], flow);
    frame
}
