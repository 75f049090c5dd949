//! The atomics and locks of live tables.
//!
//! Code whose memory ordering matters takes them from here. The tests of `fibula-proof` compile the same files with
//! loom's versions in their place, which run them in every order that the orderings allow.

pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
