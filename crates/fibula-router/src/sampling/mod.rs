//! Samples of packets for people and collectors.
//!
//! Workers draw packets at random ([`forward::sample`](crate::forward::sample)). One thread takes them, looks their addresses up in the
//! router's tables, keeps the latest ones for `fibula router top`, and sends them to collectors as IPFIX (RFC 7011) over UDP.
//!
//! - [`elements`]: **the list** of information elements.
//! - [`templates`]: the templates and their records; [`message`]: messages and sets.
//! - [`exporter`]: which messages go out when; [`collector`]: a session, and pauses for one that does not answer.
//! - [`top`]: sums of the latest samples, with the errors of the estimates.
//! - [`rules`]: the packets of rules, which are counted.
//! - [`origins`]: the AS of an address, by a table.

pub mod collector;
pub mod elements;
pub mod exporter;
pub mod message;
pub mod observed;
pub mod origins;
pub mod rules;
pub mod status;
pub mod templates;
pub mod top;

#[cfg(test)]
mod tests;
