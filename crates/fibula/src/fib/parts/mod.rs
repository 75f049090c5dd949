//! Building blocks that structures share.

pub(crate) mod bitmap;
pub mod intervals;
pub(crate) mod lanes;
pub mod next_hop_dictionary;
pub(crate) mod overflow;
pub mod ranges;
