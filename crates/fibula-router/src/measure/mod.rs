//! The pipeline on ports in memory, to measure the cost of a packet without a network card.
//!
//! ```text
//! Frames   headers of packets, by flow              FrameRing  receives them again and again, and sends in place
//! network  a fabric whose neighbours are known      Crew       workers on rings, each on a thread of its own
//! null     the same on ports of DPDK, in stages
//! ```
//!
//! Forwarding decrements the TTL and changes addresses, so headers are [rewritten](FrameRing::renew) before every pass. A [`Crew`]
//! does not count that time.

mod crew;
mod frames;
mod network;
#[cfg(all(target_os = "linux", feature = "dpdk"))]
pub mod null;
mod ring;

pub use crew::Crew;
pub use frames::{Frames, Keys, NoFrames};
pub use network::{GATEWAYS, counters, network};
pub use ring::FrameRing;
