//! The values of next hops, as a file has them.

use crate::net::NextHop;

/// Bytes of next hops, in order.
#[derive(Debug, Default)]
pub(super) struct HopBytes {
    next_hops: Vec<NextHop>,
    /// Where the bytes of each next hop end.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl HopBytes {
    /// Returns the values, or the first one that is out of order.
    pub(super) fn new(next_hops: Vec<NextHop>, ends: Vec<usize>, bytes: Vec<u8>) -> Result<Self, usize> {
        let ascend = next_hops.windows(2).position(|pair| pair[0] >= pair[1]);
        let inside = ends.windows(2).position(|pair| pair[0] > pair[1]);
        if let Some(at) = ascend.or(inside) {
            return Err(at + 1);
        }
        let is_whole = next_hops.len() == ends.len() && ends.last().copied().unwrap_or(0) == bytes.len();
        if is_whole { Ok(Self { next_hops, ends, bytes }) } else { Err(ends.len()) }
    }

    pub(super) fn get(&self, next_hop: NextHop) -> Option<&[u8]> {
        self.next_hops.binary_search(&next_hop).ok().map(|at| self.at(at))
    }

    fn at(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (NextHop, &[u8])> {
        self.next_hops.iter().enumerate().map(|(at, &next_hop)| (next_hop, self.at(at)))
    }
}
