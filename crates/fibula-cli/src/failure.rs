//! Why a command fails, and its exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Exit codes; `fibula --help` lists them.
pub mod code {
    /// Nothing was found; tables differ; an answer was wrong.
    pub const NOTHING_FOUND: u8 = 1;
    /// The arguments are wrong.
    pub const WRONG_USE: u8 = 2;
    /// Bad input, or a file that cannot be read or written.
    pub const BAD_INPUT: u8 = 3;
    /// An instruction set, a rival or a feature is not available here.
    pub const NOT_AVAILABLE: u8 = 4;
}

/// Why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// The reader of the output has gone, as in `| head`: not an error.
    ClosedPipe,
    /// The arguments are wrong.
    WrongUse(String),
    /// The input cannot be read or used, or a file cannot be written.
    BadInput(String),
    /// Something is not available on this machine or in this build.
    NotAvailable(String),
    /// Standard output was closed from the start.
    StdoutClosed,
    /// The output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Returns the failure of a read.
    pub(crate) fn reading(what: &str, error: &io::Error) -> Self {
        Self::BadInput(format!("cannot read {what}: {error}"))
    }

    /// Returns the failure to open an input.
    pub(crate) fn opening(path: &Path, error: &io::Error) -> Self {
        Self::BadInput(format!("{}: cannot be opened: {error}", path.display()))
    }

    /// Returns the message, if any, and the exit code.
    #[must_use]
    pub fn report(self) -> (Option<String>, ExitCode) {
        match self {
            Self::ClosedPipe => (None, ExitCode::SUCCESS),
            Self::StdoutClosed => (Some("standard output is closed".to_owned()), code::BAD_INPUT.into()),
            Self::WrongUse(message) => (Some(message), code::WRONG_USE.into()),
            Self::BadInput(message) => (Some(message), code::BAD_INPUT.into()),
            Self::NotAvailable(message) => (Some(message), code::NOT_AVAILABLE.into()),
            Self::Output(error) => {
                (Some(format!("cannot write the output: {error}")), code::BAD_INPUT.into())
            }
        }
    }
}

/// A failed write. A closed pipe is not an error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ClosedPipe } else { Self::Output(error) }
    }
}

/// A router that has no answer.
#[cfg(target_os = "linux")]
impl From<fibula_router::control::client::AskError> for Failure {
    fn from(error: fibula_router::control::client::AskError) -> Self {
        Self::BadInput(error.to_string())
    }
}

/// A failed write of Parquet.
#[cfg(feature = "parquet")]
impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(error) => (*error).into(),
                Err(cause) => Self::Output(io::Error::other(cause)),
            },
            other => Self::Output(io::Error::other(other)),
        }
    }
}

impl Failure {
    /// Returns the failure of a build without Parquet.
    #[cfg(not(feature = "parquet"))]
    pub(crate) fn no_parquet() -> Self {
        Self::NotAvailable(
            "this build has no Parquet; the package 'fibula' has it, or: cargo install fibula-cli --features parquet".to_owned(),
        )
    }
}
