//! How a command ends other than well.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use fibula_lab::bench::BenchError;

/// Exit codes; the help texts list them.
pub(crate) mod code {
    /// Nothing was found; of the tour, an answer was wrong.
    pub(crate) const NOTHING_FOUND: u8 = 1;
    pub(crate) const WRONG_USE: u8 = 2;
    pub(crate) const BAD_INPUT: u8 = 3;
}

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read the output has seen enough: not an error.
    ClosedPipe,
    /// The command was asked for something that does not exist.
    WrongUse(String),
    /// What was to be read cannot be used.
    BadInput(String),
    /// Standard output was closed from the start.
    StdoutClosed,
    /// The output cannot be written.
    Output(io::Error),
}

impl Failure {
    /// Of a read that failed.
    pub(crate) fn reading(what: &str, error: &io::Error) -> Self {
        Self::BadInput(format!("cannot read {what}: {error}"))
    }

    /// Of a file that cannot be opened to be read.
    pub(crate) fn opening(path: &Path, error: &io::Error) -> Self {
        Self::BadInput(format!("{}: cannot be opened: {error}", path.display()))
    }

    /// What to say about it, if anything, and the exit code.
    pub(crate) fn report(self) -> (Option<String>, ExitCode) {
        match self {
            Self::ClosedPipe => (None, ExitCode::SUCCESS),
            Self::StdoutClosed => (Some("standard output is closed".to_owned()), code::BAD_INPUT.into()),
            Self::WrongUse(message) => (Some(message), code::WRONG_USE.into()),
            Self::BadInput(message) => (Some(message), code::BAD_INPUT.into()),
            Self::Output(error) => {
                (Some(format!("cannot write the output: {error}")), code::BAD_INPUT.into())
            }
        }
    }
}

/// Of a benchmark: what its options cannot mean is told from what its table cannot do.
impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Plan(_) | BenchError::UnknownAlgorithm { .. } | BenchError::UnknownTraffic { .. } => {
                Self::WrongUse(error.to_string())
            }
            error => Self::BadInput(error.to_string()),
        }
    }
}

/// Of a write: a closed pipe is told from the rest.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ClosedPipe } else { Self::Output(error) }
    }
}
