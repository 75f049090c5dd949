//! Why a table file was refused.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::fib::BuildError;
use crate::fib::sections::PartsError;
use crate::memory::OutOfMemory;

use super::VERSION;

/// Why a table file was not opened, or could not be written.
#[derive(Debug)]
pub struct FileError {
    path: Option<PathBuf>,
    kind: FileErrorKind,
}

#[derive(Debug)]
pub(super) enum FileErrorKind {
    Io {
        doing: &'static str,
        error: io::Error,
    },
    Foreign,
    Swapped,
    Newer {
        version: u32,
    },
    NewerSection(String),
    Truncated {
        bytes: u64,
        needed: u64,
    },
    Longer {
        bytes: u64,
        needed: u64,
    },
    Damaged(String),
    /// An engine that this program does not have, without routes to build another from.
    Lacking(String),
    /// No other engine could be built from the routes.
    Rebuild {
        engine: String,
        error: BuildError,
    },
    Broken {
        engine: String,
        error: PartsError,
    },
    /// Routes or values that are out of order.
    Disorder {
        what: String,
        at: usize,
    },
    Memory(OutOfMemory),
    /// Files cannot hold these columns, for this reason.
    Columns(String),
    /// Files cannot hold this engine.
    NotSaved,
}

impl From<OutOfMemory> for FileErrorKind {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl FileErrorKind {
    pub(super) fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { doing, error }
    }

    pub(super) fn at(self, path: &Path) -> FileError {
        FileError { path: Some(path.to_owned()), kind: self }
    }

    pub(super) fn nowhere(self) -> FileError {
        FileError { path: None, kind: self }
    }
}

impl FileError {
    /// Returns the file, if it has a name.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns whether the file is not a table file of any version.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        matches!(self.kind, FileErrorKind::Foreign)
    }

    /// Returns whether the file is truncated, or was altered after it was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self.kind,
            FileErrorKind::Swapped
                | FileErrorKind::Truncated { .. }
                | FileErrorKind::Longer { .. }
                | FileErrorKind::Damaged(_)
                | FileErrorKind::Broken { .. }
                | FileErrorKind::Disorder { .. }
        )
    }

    /// Returns whether a newer version of this library wrote the file, or a program with more engines.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(
            self.kind,
            FileErrorKind::Newer { .. } | FileErrorKind::NewerSection(_) | FileErrorKind::Lacking(_)
        )
    }

    /// Returns the error of the system, if that is the cause.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match &self.kind {
            FileErrorKind::Io { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the error for the file of this name.
    pub(super) fn of(self, path: &Path) -> Self {
        self.kind.at(path)
    }

    /// Returns whether the file itself is the cause, so that another attempt would fail too.
    pub(super) fn is_of_the_file(&self) -> bool {
        // Errors of the system and of memory may pass. These cannot.
        self.is_foreign() || self.is_damage() || self.is_newer()
    }
}

/// The remedy for a file that differs from what was written.
const AGAIN: &str = "make it again from its table";

impl fmt::Display for FileErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, error } => write!(f, "cannot be {doing}: {error}"),
            Self::Foreign => f.write_str("not a Fibula table file (wrong magic number)"),
            Self::Swapped => write!(f, "the table file has the wrong byte order; {AGAIN}"),
            Self::Newer { version } => write!(
                f,
                "a compiled table of version {version}, and this program reads up to version {VERSION}; update the program, \
                 or make the file with this one"
            ),
            Self::NewerSection(name) => write!(
                f,
                "section '{name}' was added by a newer version; update the program, or make the file with this one"
            ),
            Self::Lacking(engine) => write!(
                f,
                "it holds the engine '{engine}', which this program does not have, and no routes to build another \
                 from; {AGAIN}"
            ),
            Self::Rebuild { engine, error } => write!(
                f,
                "it holds the engine '{engine}', which this program does not have, and building another from its \
                 routes failed: {error}"
            ),
            Self::Truncated { bytes, needed } => {
                write!(f, "truncated: {bytes} bytes of {needed}; copy it again, or {AGAIN}")
            }
            Self::Longer { bytes, needed } => {
                write!(f, "too long: {bytes} bytes instead of {needed}; copy it again, or {AGAIN}")
            }
            Self::Damaged(what) => {
                write!(f, "damaged: the checksum of '{what}' does not match; copy it again, or {AGAIN}")
            }
            Self::Broken { engine, error } => write!(f, "damaged: {engine}: {error}; {AGAIN}"),
            Self::Disorder { what, at } => write!(f, "damaged: '{what}' is out of order at {at}; {AGAIN}"),
            Self::Memory(error) => error.fmt(f),
            Self::Columns(reason) => write!(f, "cannot be written: {reason}"),
            Self::NotSaved => {
                f.write_str("files cannot hold this engine; fibula::file lists those that they can")
            }
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        self.kind.fmt(f)
    }
}

impl core::error::Error for FileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        // The text includes the causes of all other kinds.
        match &self.kind {
            FileErrorKind::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
