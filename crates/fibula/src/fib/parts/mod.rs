//! Building blocks that structures share.

pub mod codes;
pub(crate) mod lanes;
pub mod ranges;
