//! Building blocks that structures share.

pub(crate) mod below;
pub(crate) mod bitmap;
pub mod codes;
pub(crate) mod lanes;
pub mod ranges;
pub mod upper;
