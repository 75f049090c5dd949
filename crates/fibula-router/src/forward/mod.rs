//! The pipeline that a worker runs on each burst of frames.
//!
//! ```text
//! first pass    Ethernet, VLAN, headers: each frame is dropped, given to the kernel, or noted with its addresses
//! lookups       all destinations of the burst at once, in the table of their VRF; sources too where uRPF wants them
//! second pass   what the route says: local, blackhole, ...; rules for sources; TTL; MTU; MAC address; out
//! ```
//!
//! Most packets are plain: untagged, without options, fragments or segments, from and to ordinary addresses. The first pass tells them by a
//! few comparisons of the header, writes their destinations into the columns that the lookup takes, and the second pass sends them by an
//! exit (`exits.rs`): port, MTU and Ethernet header of a next hop, worked out once. All else takes the long way, which has every rule;
//! the short one decides nothing that the long one would not.
//!
//! Both families share the same code. Forwarding a packet takes no copy, no allocation, no lock, no reading of the clock and no
//! call through a pointer. Only rare cases (unknown neighbours, fragments, ICMP) copy the packet once. Routes may change at any
//! time: each burst pins the tables once, and sees every address with its old or its new route.
//!
//! Every received frame ends in exactly one counter: see [`PortCounters`](crate::count::PortCounters).

mod columns;
#[cfg(test)]
mod damaged;
mod draw;
mod exits;
pub mod fabric;
mod filter;
mod item;
mod local;
mod machine;
mod pending;
pub mod predict;
mod refused;
pub mod sample;
mod send;
pub mod trace;
mod watch;
mod worker;

pub use worker::{Shared, Worker};
