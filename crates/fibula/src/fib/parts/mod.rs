//! Building blocks that structures share.

pub mod codes;
pub mod ranges;
