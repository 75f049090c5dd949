//! Building blocks that structures share.

pub mod ranges;
