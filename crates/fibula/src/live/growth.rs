//! An engine that is built in the background, from a copy of the routes, while the old one serves.

use std::panic;
use std::thread::{self, JoinHandle};

use crate::fib::Applied;
use crate::fib::in_place;
use crate::fib::registry::Engine;
use crate::memory::{Limits, OutOfMemory};
use crate::net::{Key, Prefix};
use crate::rib::Rib;

use super::options::TableError;
use super::serving::{Replacement, Serving};

/// A thread that builds an engine, and the prefixes that have changed since it began.
pub(super) struct Growth<K: Key> {
    engine: Engine<K>,
    thread: JoinHandle<Result<Serving<K>, TableError>>,
    /// Prefixes that have changed since the copy of the routes was made, or that were changed back in it.
    pub(super) missed: Vec<Prefix<K>>,
}

impl<K: Key> Growth<K> {
    /// Begins to build. The copy of the routes counts towards no limit.
    pub(super) fn start(routes: Rib<K>, engine: Engine<K>, limits: Limits) -> Result<Self, TableError> {
        let work = move || Serving::build(&engine, &routes, limits);
        let thread = thread::Builder::new().name("fibula-build".to_owned()).spawn(work);
        let no_thread = |_| OutOfMemory { wanted_bytes: 0, used_bytes: 0, limit_bytes: None };
        Ok(Self { engine, thread: thread.map_err(no_thread)?, missed: Vec::new() })
    }

    /// Returns whether the structure is built, so that [`finish`](Self::finish) does not wait.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Returns the structure, with all changes since the copy if it changes in place; `None` if it has to be built again.
    pub(super) fn finish(self, routes: &Rib<K>) -> Result<Option<Replacement<K>>, TableError> {
        let Self { engine, thread, mut missed } = self;
        // A panic of the build is passed on, because it is a fault of the engine and not a lack of memory.
        let mut serving = thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        if let Serving::InPlace(editor) = &mut serving {
            // Prefixes that changed several times are prepared once, with their present routes.
            missed.sort_unstable();
            missed.dedup();
            if editor.prepare(&missed, routes, false)? != Applied::InPlace {
                return Ok(None);
            }
            // No reader has seen it.
            in_place::publish_alone(&mut **editor, &mut Vec::new())?;
            missed.clear();
        }
        Ok(Some(Replacement { engine, serving, routes: None, missed }))
    }
}
