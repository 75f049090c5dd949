//! Rivals in programs of their own, in any language. A program is started for each table, gets the routes and the
//! keys, and times its lookups itself.
//!
//! **The protocol.** The program reads requests from its standard input and answers each on its standard output
//! before it reads the next one. Requests and answers are lines of words with a space between; bytes follow some of
//! them directly. Addresses are in network order (4 or 16 bytes); other binary numbers have 32 bits and are
//! little-endian.
//!
//! | request | bytes that follow | answer |
//! |---|---|---|
//! | `table NAME FAMILY COUNT` | `COUNT` routes: address, length (1 byte), next hop | `built NANOSECONDS LOOKUP_BYTES ALLOCATED_BYTES` |
//! | `change COUNT` | `COUNT` changes: address, length (1 byte), next hop, 0 to remove the route | `changed NANOSECONDS` |
//! | `keys COUNT` | `COUNT` addresses | `ready` |
//! | `answer SHAPE BATCH` | | `answers COUNT`, and that many next hops |
//! | `time SHAPE BATCH FIRST COUNT PASSES` | | `time WALL THREAD`, in nanoseconds |
//!
//! - `NAME` is the rival's, `FAMILY` is `ipv4` or `ipv6`. Routes are in order, each prefix before those within it.
//!   The program converts them to the engine's form before the clock of the build starts.
//! - Keys are converted to the engine's own form, which is not timed, and replace those before them.
//! - `answer` looks up all keys with the same calls as `time`. Next hop 0 means no route.
//! - `SHAPE` is `single`, `batch` (`BATCH` keys a call if there is such a call, else one by one) or `dependent`: the
//!   place of the next key depends on the answer before it.
//! - `time` looks up `COUNT` keys from number `FIRST` on, all of them `PASSES` times. `THREAD` is the processor time
//!   of the one thread, or `-` if there is no such clock.
//! - Any request can be answered by `refused REASON`: the engine cannot do that.
//! - The program ends when its input ends. If it ends before, the last line of its standard error is the reason.
//!
//! A program that ends, gives another answer, or takes longer than its limit is stopped, and gets rows with the
//! reason. Only one thread uses it.

mod program;
mod structure;

use std::sync::Arc;
use std::time::Duration;

use fibula::fib::registry::Role;
use fibula::net::Key;

use crate::bench::{Bounds, Contestant, Kernel, Structure};
pub(super) use program::finished;

/// Returns the command that starts a program. Each table gets a new one.
pub type StartProgram = Arc<dyn Fn() -> Result<std::process::Command, String>>;

/// A rival in a program.
#[derive(Clone)]
pub struct External {
    /// Its name, here and in the program.
    pub name: &'static str,
    /// The instruction set that its lookups are written for.
    pub isa: &'static str,
    /// The most keys it is measured with.
    pub keys: usize,
    /// The longest that it may take for an answer.
    pub limit: Duration,
    /// Starts its program.
    pub start: StartProgram,
}

/// The default limit for an answer, far more than the slowest build known.
pub const LIMIT: Duration = Duration::from_secs(300);

impl External {
    /// Makes the rival a contestant.
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
