//! A router in memory, and frames in words: what the tests of the pipeline share.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod cases;
pub mod frames;
pub mod network;
pub mod random;
