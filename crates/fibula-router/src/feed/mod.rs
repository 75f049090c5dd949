//! Routes from other programs, for example a routing daemon or the kernel. Each origin is a feed, and the [`Rib`] holds the
//! routes of all feeds.
//!
//! ```text
//! threads of feeds                     Rib, locked for a frame or a datagram             main thread
//! FPM, netlink ─> messages ────────> routes and next-hop objects of the feed ─> prefixes that changed ─> live tables
//! BMP, MRT ─> routes of peers ─> best routes ─────┘
//! ```
//!
//! - [`rib`]: the routes of all feeds, and the choice of the route to use.
//! - [`routes`]: the routes of one feed. [`path`]: the paths of routes.
//! - [`enter`]: enters messages into the RIB. [`netlink`]: decodes route messages, which FPM and the kernel have in common.
//! - [`fpm`]: routes from FRR's zebra. [`bmp`]: routes that routers send to a monitoring station. [`server`]: listens for both.
//!   [`keeper`]: keeps the routes of a session when it ends. [`sessions`]: chooses one of several connections.
//! - [`kernel`]: follows the kernel's tables. [`mrt`]: plays recorded tables and updates.
//! - [`answers`]: answers to a daemon about its routes.
//! - [`best`]: the routes of all peers of a VRF, and the choice of the best ones.
//! - [`state`]: the state of a feed for operators. [`history`]: the last changes of routes.
//!
//! A thread of a feed holds the lock only while it enters messages, and never waits for a table. Thus, a slow table cannot stall
//! a sender. Between two turns of the main thread, any number of changes of one prefix are one change of the table.

pub mod answers;
pub mod best;
pub mod bmp;
pub mod enter;
pub mod fpm;
pub mod history;
pub mod keeper;
pub mod kernel;
pub mod mrt;
pub mod netlink;
pub mod path;
pub mod reply;
pub mod rib;
pub mod routes;
pub mod server;
pub mod sessions;
pub mod state;

pub use path::{Out, Path, Way};
pub use rib::{Choice, Rib};

use std::sync::{Mutex, MutexGuard, PoisonError};

use fibula::net::IpPrefix;

/// A prefix of a VRF, by the number of the VRF.
pub type Place = (u16, IpPrefix);

/// Locks the RIB. A panic of another thread is ignored, because every change leaves the RIB consistent.
pub fn lock(rib: &Mutex<Rib>) -> MutexGuard<'_, Rib> {
    rib.lock().unwrap_or_else(PoisonError::into_inner)
}
