//! The pipeline: what a worker does with a burst of frames.
//!
//! ```text
//! first pass    Ethernet, VLAN, headers: each frame is dropped, given to the kernel, or noted with its addresses
//! lookups       all destinations of the burst at once, in the table of their VRF; sources too where uRPF wants them
//! second pass   what the route says: local, blackhole, ...; rules for sources; TTL; MTU; MAC address; out
//! ```
//!
//! Both families take the same code. A packet is neither copied nor does it cost memory, a lock, a look at the clock or a
//! call through a pointer; what is rare (neighbours that are not known, fragments, ICMP) copies it once. Routes may change
//! at any time: each burst pins the tables once, and sees every address with its old or its new route.
//!
//! Every frame that was received ends in exactly one counter: see [`PortCounters`](crate::count::PortCounters).

pub mod fabric;
mod item;
mod local;
mod pending;
mod send;
mod worker;

pub use worker::{Shared, Worker};
