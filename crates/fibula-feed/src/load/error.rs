//! Why a file was not loaded.

use core::fmt;
use std::io;
use std::sync::Arc;

use fibula::memory::OutOfMemory;
use fibula::rib::RibError;

use super::report::{BadLine, Truncation};
use crate::compression::Compression;
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
    Rib { line: u64, error: RibError },
    NextHops { line: u64, error: NextHopsError },
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
            LoadErrorKind::Rib { line, .. } | LoadErrorKind::NextHops { line, .. } => Some(*line),
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
            LoadErrorKind::Rib { error, .. } => Some(error.out_of_memory()),
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

    /// Whether the content is at fault, rather than the system or a limit.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self.kind,
            LoadErrorKind::Line(_) | LoadErrorKind::Truncated(_) | LoadErrorKind::Damaged { .. }
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
                    "{name}: the {compression} stream is damaged within its first {bytes} bytes: {error}"
                )
            }
            LoadErrorKind::Line(bad) => bad.fmt(f),
            LoadErrorKind::Truncated(truncation) => truncation.fmt(f),
            LoadErrorKind::Rib { line, error } => write!(f, "{name}:{line}: {error}"),
            LoadErrorKind::NextHops { line, error } => write!(f, "{name}:{line}: {error}"),
        }
    }
}

impl core::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            LoadErrorKind::Open(error)
            | LoadErrorKind::Read { error, .. }
            | LoadErrorKind::Damaged { error, .. } => Some(error),
            LoadErrorKind::Rib { error, .. } => Some(error),
            LoadErrorKind::NextHops { error, .. } => Some(error),
            LoadErrorKind::Line(_) | LoadErrorKind::Truncated(_) => None,
        }
    }
}
