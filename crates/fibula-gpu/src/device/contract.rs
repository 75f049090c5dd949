//! The traits that every device implements.

use core::fmt;
use std::sync::Arc;

use crate::error::GpuError;
use crate::image::Images;

/// Properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The back end and the number among its devices: `cuda:0`.
    pub id: String,
    /// The driver's name for it.
    pub name: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Whether it is the processor itself, so that rates are those of no coprocessor.
    pub is_processor: bool,
    /// The driver, and its version.
    pub driver: String,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, memory_bytes, .. } = self;
        write!(f, "{id}: {name}, {:.1} GB", *memory_bytes as f64 / 1e9)
    }
}

/// A coprocessor.
pub trait Device: Send + Sync {
    /// Returns its properties.
    fn facts(&self) -> &Facts;

    /// Uploads tables, with room for so many words beside them.
    ///
    /// # Errors
    /// When the device has too little memory, or fails.
    fn load(&self, images: &Images, room: usize) -> Result<Arc<dyn Loaded>, GpuError>;
}

/// Tables on a device.
pub trait Loaded: Send + Sync {
    /// Returns the words of a key, as [`put_keys`](crate::put_keys) takes them.
    fn key_words(&self) -> usize;

    /// Returns a buffer for so many keys, with a queue of its own.
    ///
    /// # Errors
    /// When memory runs out, or the device fails.
    fn lane(&self, keys: usize) -> Result<Box<dyn Lane>, GpuError>;

    /// Replaces words of the tables, and waits until they are there.
    ///
    /// # Errors
    /// [`GpuError::Busy`] while a lane is under way; when the words are past the end, or the device fails.
    fn store(&self, first: usize, words: &[u32]) -> Result<(), GpuError>;
}

/// A buffer of keys and answers, in memory that the device reads by itself.
pub trait Lane: Send {
    /// Returns where keys are written, as words. Waits for lookups that are under way.
    ///
    /// # Errors
    /// When the device fails.
    fn keys(&mut self) -> Result<&mut [u32], GpuError>;

    /// Begins lookups: keys to the device, lookups, answers back. Returns at once. With several tables, so many keys each go
    /// to one after the other; 0 for one table.
    ///
    /// # Errors
    /// When there are more keys than the buffer has room for, or the device fails.
    fn start(&mut self, count: usize, keys_a_table: u32) -> Result<(), GpuError>;

    /// Begins lookups of the keys that are on the device already, and leaves the answers there.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    fn start_resident(&mut self, count: usize) -> Result<(), GpuError>;

    /// Waits for lookups that are under way, and returns the answers to those that [`start`](Self::start) began, as words.
    ///
    /// # Errors
    /// When the device fails.
    fn wait(&mut self) -> Result<&[u32], GpuError>;
}
