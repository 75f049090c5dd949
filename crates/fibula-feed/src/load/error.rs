//! Why a file was not loaded.

use core::fmt;
use std::io;
use std::sync::Arc;

use fibula::memory::OutOfMemory;

use super::choice::PeerName;
use super::report::{BadLine, Truncation};
use super::routes::Refusal;
use crate::compression::Compression;
use crate::mrt::Fault;
use crate::next_hops::NextHopsError;

/// Why a file was not loaded. Prints with the file's name, and the line where there is one.
#[derive(Debug)]
pub struct LoadError {
    name: Arc<str>,
    kind: LoadErrorKind,
}

#[derive(Debug)]
pub(super) enum LoadErrorKind {
    Open(io::Error),
    Read { bytes: u64, error: io::Error },
    Damaged { compression: Compression, bytes: u64, error: io::Error },
    Line(BadLine),
    Truncated(Truncation),
    Fault(Fault),
    Memory { place: Place, error: OutOfMemory },
    NextHops { place: Place, error: NextHopsError },
    Mixed { place: Place },
    NoPeer { names: Vec<PeerName>, peers: usize },
    TooLongToReadTwice { limit_bytes: usize },
    Threads(io::Error),
    Stopped(io::Error),
}

/// Where loading stopped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Line(u64),
    /// Of the decompressed file; somewhere near it.
    Byte(u64),
    End,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Byte(byte) => write!(f, ": near byte {byte}"),
            Self::End => f.write_str(": at its end"),
        }
    }
}

impl Refusal {
    pub(super) fn at(self, place: Place) -> LoadErrorKind {
        match self {
            Self::Memory(error) => LoadErrorKind::Memory { place, error },
            Self::NextHops(error) => LoadErrorKind::NextHops { place, error },
            Self::Mixed => LoadErrorKind::Mixed { place },
            Self::Stopped(error) => LoadErrorKind::Stopped(error),
        }
    }
}

impl LoadError {
    pub(super) fn new(name: &Arc<str>, kind: LoadErrorKind) -> Self {
        Self { name: Arc::clone(name), kind }
    }

    /// The name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line at which loading stopped, from 1; none when it was no line's fault.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match &self.kind {
            LoadErrorKind::Line(bad) => Some(bad.line()),
            LoadErrorKind::Memory { place: Place::Line(line), .. }
            | LoadErrorKind::NextHops { place: Place::Line(line), .. } => Some(*line),
            _ => None,
        }
    }

    /// The bad line at which a strict load stopped.
    #[must_use]
    pub fn bad_line(&self) -> Option<&BadLine> {
        match &self.kind {
            LoadErrorKind::Line(bad) => Some(bad),
            _ => None,
        }
    }

    /// The cut in the compressed stream at which a strict load stopped.
    #[must_use]
    pub fn truncation(&self) -> Option<&Truncation> {
        match &self.kind {
            LoadErrorKind::Truncated(truncation) => Some(truncation),
            _ => None,
        }
    }

    /// The memory that a table needed and could not have.
    #[must_use]
    pub fn out_of_memory(&self) -> Option<OutOfMemory> {
        match &self.kind {
            LoadErrorKind::Memory { error, .. } => Some(*error),
            _ => None,
        }
    }

    /// What the system said when the file could not be opened or read.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.kind {
            LoadErrorKind::Open(error) | LoadErrorKind::Read { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The damage of an MRT file at which a strict load stopped.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match &self.kind {
            LoadErrorKind::Fault(fault) => Some(fault),
            _ => None,
        }
    }

    /// What the function returned that [`events`](crate::events) told what was said.
    ///
    /// # Errors
    /// This error, where it is another.
    pub fn stopped(self) -> Result<io::Error, Self> {
        match self.kind {
            LoadErrorKind::Stopped(error) => Ok(error),
            _ => Err(self),
        }
    }

    /// The names of which no peer of the file is one.
    #[must_use]
    pub fn unknown_peers(&self) -> Option<&[PeerName]> {
        match &self.kind {
            LoadErrorKind::NoPeer { names, .. } => Some(names),
            _ => None,
        }
    }

    /// Whether the content is at fault, rather than the system or a limit.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self.kind,
            LoadErrorKind::Line(_)
                | LoadErrorKind::Truncated(_)
                | LoadErrorKind::Damaged { .. }
                | LoadErrorKind::Fault(_)
        )
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.kind {
            LoadErrorKind::Open(error) => write!(f, "{name}: cannot be opened: {error}"),
            LoadErrorKind::Read { bytes, error } => {
                write!(f, "{name}: cannot be read behind byte {bytes}: {error}")
            }
            LoadErrorKind::Damaged { compression, bytes, error } => {
                write!(
                    f,
                    "{name}: the {compression} stream is damaged, noticed at byte {bytes} of the file: {error}"
                )
            }
            LoadErrorKind::Line(bad) => bad.fmt(f),
            LoadErrorKind::Truncated(truncation) => truncation.fmt(f),
            LoadErrorKind::Fault(fault) => write!(f, "{name}: {fault}"),
            LoadErrorKind::Memory { place, error } => {
                write!(f, "{name}{place}: the table cannot grow: {error}")
            }
            LoadErrorKind::NextHops { place, error } => write!(f, "{name}{place}: {error}"),
            LoadErrorKind::Mixed { place } => write!(
                f,
                "{name}{place}: updates follow a table dump with several paths a prefix: choose one peer, or load the \
                 dump alone"
            ),
            LoadErrorKind::NoPeer { names, peers } => {
                let names: Vec<String> = names.iter().map(PeerName::to_string).collect();
                write!(f, "{name}: none of its {peers} peers is {}", names.join(" or "))
            }
            LoadErrorKind::TooLongToReadTwice { limit_bytes } => write!(
                f,
                "{name}: which peer has most routes shows at the end, and what was read can be kept up to {limit_bytes} \
                 bytes only: name a peer, take the best path over all, or give a file instead of a stream"
            ),
            LoadErrorKind::Stopped(error) => error.fmt(f),
            LoadErrorKind::Threads(error) => {
                write!(f, "{name}: a thread to decode it cannot be had: {error}")
            }
        }
    }
}

impl core::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            LoadErrorKind::Open(error)
            | LoadErrorKind::Read { error, .. }
            | LoadErrorKind::Damaged { error, .. } => Some(error),
            LoadErrorKind::Threads(error) | LoadErrorKind::Stopped(error) => Some(error),
            LoadErrorKind::Memory { error, .. } => Some(error),
            LoadErrorKind::NextHops { error, .. } => Some(error),
            LoadErrorKind::Fault(fault) => Some(fault),
            LoadErrorKind::Line(_)
            | LoadErrorKind::Truncated(_)
            | LoadErrorKind::Mixed { .. }
            | LoadErrorKind::NoPeer { .. }
            | LoadErrorKind::TooLongToReadTwice { .. } => None,
        }
    }
}
