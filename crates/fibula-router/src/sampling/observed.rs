//! Samples, with the routes of their addresses.

use crate::forward::sample::Sample;

/// The route and the origin of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Length of its route's prefix; 0 without a route too.
    pub len: u8,
    /// Whether it has a route.
    pub has_route: bool,
    /// The AS that announces it; 0 if that is not known.
    pub origin: u32,
}

/// A sample, with the routes of its addresses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The sample.
    pub sample: Sample,
    /// When it was taken out of its worker's ring: milliseconds since 1970. That is some 20 ms after the packet.
    pub at_ms: u64,
    /// Its source.
    pub source: Origin,
    /// Its destination.
    pub destination: Origin,
}
