//! The state that the handles and the readers of a table share.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::memory::Limits;

use super::epoch::Domain;
use super::options::TableError;
use super::root::CurrentRoot;

/// The root of the readers, their domain, and the writer under its lock.
pub(crate) struct Shared<R, W> {
    pub(crate) root: CurrentRoot<R>,
    pub(crate) domain: Arc<Domain>,
    writer: Mutex<W>,
}

impl<R, W> Shared<R, W> {
    /// Returns the state of a new table without readers. The limits apply to the memory of their slots.
    pub(crate) fn new(roots: R, writer: W, limits: Limits) -> Self {
        Self {
            root: CurrentRoot::new(roots),
            domain: Arc::new(Domain::new(limits)),
            writer: Mutex::new(writer),
        }
    }

    /// Waits for changes in progress, and holds others up.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, W>, TableError> {
        self.writer.lock().map_err(|_| TableError::Poisoned)
    }
}
