//! The pipeline on ports in memory, to be timed: what a packet costs without a network card.
//!
//! ```text
//! Frames  headers of packets, by flow        Ring  receives them again and again, and sends in place
//! network a fabric whose neighbours are known      Crew  workers on rings, each on a thread of its own
//! ```
//!
//! Forwarding spends the TTL and changes addresses, so headers are [written afresh](Ring::renew) before every pass; a [`Crew`]
//! does not count that time.

mod crew;
mod frames;
mod network;
mod ring;

pub use crew::{Crew, RunTime};
pub use frames::{Frames, Keys, NoFrames};
pub use network::{GATEWAYS, counters, network};
pub use ring::Ring;
