//! Rivals that stand in a program of their own, in whatever language: a program is started for each table, is told the
//! routes and the keys, and times its lookups itself.
//!
//! **The protocol.** The program reads requests from its standard input and answers each on its standard output before
//! it reads the next one. Requests and answers are lines of words with a space between; bytes follow some of them at
//! once. Addresses are in network order (4 or 16 bytes), other numbers in bytes are 32 bits long and little-endian.
//!
//! | request | bytes that follow | answer |
//! |---|---|---|
//! | `table NAME FAMILY COUNT` | `COUNT` routes: address, length (1 byte), next hop | `built NANOSECONDS LOOKUP_BYTES ALLOCATED_BYTES` |
//! | `keys COUNT` | `COUNT` addresses | `ready` |
//! | `answer SHAPE BATCH` | | `answers COUNT`, and that many next hops |
//! | `time SHAPE BATCH FIRST COUNT PASSES` | | `time WALL THREAD`, in nanoseconds |
//!
//! - `NAME` is the rival's, `FAMILY` is `ipv4` or `ipv6`; routes are in order, each prefix before those within it. They
//!   are put into the forms that the structure takes before the clock of the build runs.
//! - Keys are put into the structure's own form, which is not timed, and take the place of those before them.
//! - `answer` asks for all keys in the way that `time` does. No route is next hop 0.
//! - `SHAPE` is `single`, `batch` (`BATCH` keys a call where there is such a call, else one by one) or `dependent`: where the
//!   next key lies depends on the answer before it.
//! - `time` looks up `COUNT` keys from number `FIRST` on, all of them `PASSES` times. `THREAD` is the time that the one
//!   thread had its core, or `-` where there is no such clock.
//! - Any request can be answered by `refused REASON`: the structure cannot do that.
//! - The program ends where its input ends. What it says last on its standard error is the reason where it ends before.
//!
//! A program that ends, that says something else, or that takes longer than its limit for an answer is stopped, and gives a
//! row with the reason. Only one thread asks it.

mod program;
mod structure;

use std::sync::Arc;
use std::time::Duration;

use fibula::fib::registry::Role;
use fibula::net::Key;

use crate::bench::{Bounds, Contestant, Kernel, Structure};
pub(super) use program::finished;

/// How a program is started: a new one for each table.
pub type Start = Arc<dyn Fn() -> Result<std::process::Command, String>>;

/// A rival in a program.
#[derive(Clone)]
pub struct External {
    /// What it is called, here and by the program.
    pub name: &'static str,
    /// The instruction set that its lookups are written for.
    pub isa: &'static str,
    /// Most keys it is asked.
    pub keys: usize,
    /// The longest that it may take for an answer.
    pub limit: Duration,
    /// How its program is started.
    pub start: Start,
}

/// What programs may take for an answer where nothing else is said: far more than the slowest build that was seen.
pub const LIMIT: Duration = Duration::from_secs(300);

impl External {
    /// The rival as a contestant.
    #[must_use]
    pub fn contestant<K: Key>(self) -> Contestant<K> {
        Contestant {
            name: self.name.to_owned(),
            rival: true,
            kernels: vec![Kernel::of_rival(self.isa)],
            role: Role::Published,
            bounds: Bounds { keys: self.keys, threads: 1 },
            build: Box::new(move |routes| Ok(Structure::Native(Box::new(structure::build(&self, routes)?)))),
        }
    }
}
