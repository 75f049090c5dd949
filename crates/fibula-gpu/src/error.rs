//! Why a coprocessor does not answer.

use core::fmt;

/// The reason why a coprocessor could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no driver, no device, or none of the name: the reason, and the remedy.
    NotAvailable(String),
    /// The device has too little memory.
    Memory {
        /// The device.
        device: String,
        /// The bytes that were requested.
        bytes: u64,
    },
    /// No coprocessor looks up in structures of this name.
    NoEngine {
        /// The structure.
        name: String,
        /// Those that coprocessors look up in.
        known: Vec<&'static str>,
    },
    /// The structure is larger than a device can address: 2^32 words.
    TooLarge {
        /// The words that it takes.
        words: u64,
    },
    /// A buffer was given more keys than it has room for.
    Room {
        /// The keys.
        keys: usize,
        /// The room.
        room: usize,
    },
    /// The table was to be changed while lookups in it were under way.
    Busy,
    /// The device or its driver failed: the operation, and the driver's message.
    Failed {
        /// The operation, such as `load the kernels`.
        what: &'static str,
        /// The driver's message.
        said: String,
    },
}

impl GpuError {
    /// Returns whether the reason is that the machine has no such device, which is no fault.
    #[must_use]
    pub fn is_not_available(&self) -> bool {
        matches!(self, Self::NotAvailable(_) | Self::Memory { .. })
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAvailable(what) => f.write_str(what),
            Self::Memory { device, bytes } => {
                write!(f, "{device}: not enough memory for {:.1} MB more", *bytes as f64 / 1e6)
            }
            Self::NoEngine { name, known } => {
                write!(f, "no coprocessor looks up in '{name}'; there are: {}", known.join(", "))
            }
            Self::TooLarge { words } => {
                write!(f, "table too large for the device: {words} words, at most 2^32")
            }
            Self::Room { keys, room } => write!(f, "{keys} keys for a buffer with room for {room}"),
            Self::Busy => f.write_str("lookups are under way in the table that is to be changed"),
            Self::Failed { what, said } => write!(f, "{what}: {said}"),
        }
    }
}

impl core::error::Error for GpuError {}
