//! Building blocks that structures share.

pub(crate) mod arena;
pub(crate) mod bitmap;
pub(crate) mod by_entry;
pub(crate) mod intervals;
pub(crate) mod lanes;
pub(crate) mod next_hop_dictionary;
pub(crate) mod overflow;
pub mod ranges;
pub(crate) mod shadow;
pub(crate) mod units;
