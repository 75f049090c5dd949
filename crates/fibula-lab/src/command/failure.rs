//! Why a program of the laboratory fails.

use std::error::Error;
use std::io;

use fibula_cli::plumbing::Failure;

use crate::bench::BenchError;

/// Returns the failure of a program. A closed pipe is none.
pub(super) fn failure(error: Box<dyn Error>) -> Failure {
    match error.downcast::<io::Error>() {
        Ok(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        Ok(error) => Failure::BadInput(error.to_string()),
        Err(error) => Failure::BadInput(error.to_string()),
    }
}

/// Wrong options are [`Failure::WrongUse`], tables that cannot be measured [`Failure::BadInput`].
impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Plan(_) | BenchError::UnknownEngine { .. } | BenchError::UnknownTraffic { .. } => {
                Self::WrongUse(error.to_string())
            }
            error => Self::BadInput(error.to_string()),
        }
    }
}
