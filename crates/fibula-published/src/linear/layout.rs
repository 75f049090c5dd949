//! The data that lookups read.

use fibula::net::Route;
use fibula::unstable::memory::Budget;

/// The routes of a table, in no particular order.
#[derive(Debug)]
pub(crate) struct Linear<K> {
    pub(super) routes: Vec<Route<K>>,
    pub(super) budget: Budget,
}

const _: () = assert!(size_of::<Route<u32>>() == 12);
// The length and the next hop take one alignment unit each: 48 bytes on x86-64 and AArch64, 32 where `u128` is aligned
// to 8.
const _: () = assert!(size_of::<Route<u128>>() == 16 + 2 * align_of::<u128>());
