//! What lookups touch.

use crate::memory::Budget;
use crate::net::Route;

/// All routes, in no particular order.
#[derive(Debug)]
pub struct Linear<K> {
    pub(super) routes: Vec<Route<K>>,
    pub(super) budget: Budget,
}

const _: () = assert!(size_of::<Route<u32>>() == 12);
const _: () = assert!(size_of::<Route<u128>>() == 48);
