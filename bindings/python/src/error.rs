//! Errors of the library as exceptions of Python.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fibula::fib::BuildError;
use fibula::file::FileError;
use fibula::live::TableError;
use fibula::rib::{RibColumnsError, RibError};
use fibula_column::ColumnError;
use fibula_feed::LoadError;
use pyo3::exceptions::{
    PyKeyError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    fibula,
    BugError,
    PyRuntimeError,
    "A call met a bug of fibula, or a mapped file that another program wrote into, and was broken off."
);

/// An error on its way to Python. Errors of the library convert into it by `?`.
pub struct Failure(pub PyErr);

pub type Outcome<T> = Result<T, Failure>;

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

/// A value that cannot be used, whose type is right.
pub fn value_error(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

pub fn type_error(message: impl Into<String>) -> PyErr {
    PyTypeError::new_err(message.into())
}

/// Returns the exception for an error of the system, which has its number.
fn system(error: &std::io::Error, message: String) -> PyErr {
    match error.raw_os_error() {
        // With a number, Python makes the subclass, for example FileNotFoundError.
        Some(number) => PyOSError::new_err((number, message)),
        None => PyOSError::new_err(message),
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        Self(match error.io() {
            Some(io) => system(io, message),
            None if error.is_foreign() || error.is_newer() || error.is_damage() => value_error(message),
            None => PyMemoryError::new_err(message),
        })
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(system(&error, error.to_string()))
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let message = error.to_string();
        Self(match error.io_error() {
            Some(io) if io.raw_os_error().is_some() => system(io, message),
            _ if error.out_of_memory().is_some() => PyMemoryError::new_err(message),
            _ => value_error(message),
        })
    }
}

impl From<RibError> for Failure {
    fn from(error: RibError) -> Self {
        Self(PyMemoryError::new_err(error.to_string()))
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let message = error.to_string();
        Self(if error.out_of_memory().is_some() {
            PyMemoryError::new_err(message)
        } else {
            value_error(message)
        })
    }
}

impl From<RibColumnsError> for Failure {
    fn from(error: RibColumnsError) -> Self {
        let message = error.to_string();
        Self(match error {
            RibColumnsError::Memory(_) => PyMemoryError::new_err(message),
            RibColumnsError::Duplicate { .. } => {
                value_error(format!("{message}; duplicates=\"last\" replaces it"))
            }
            RibColumnsError::Prefix { error, .. } if error.is_host_bits() => {
                value_error(format!("{message}; host_bits=\"mask\" clears them"))
            }
            _ => value_error(message),
        })
    }
}

impl From<ColumnError> for Failure {
    fn from(error: ColumnError) -> Self {
        let message = error.to_string();
        Self(match error {
            ColumnError::Type(_) => PyTypeError::new_err(message),
            ColumnError::Memory { .. } => PyMemoryError::new_err(message),
            ColumnError::Vrfs(error) => return error.into(),
            _ => value_error(message),
        })
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        let message = error.to_string();
        Self(match error {
            TableError::Stalled { .. } => PyTimeoutError::new_err(message),
            TableError::UnknownVrf(_) => PyKeyError::new_err(message),
            TableError::Poisoned => BugError::new_err(message),
            _ => PyMemoryError::new_err(message),
        })
    }
}

/// Runs a call of the library, so that a panic becomes an exception that programs can catch.
pub fn guarded<T>(run: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        BugError::new_err(format!("a bug of fibula, or a mapped file that was written into: {said}"))
    })
}

/// Rows from which on other threads of Python run during a call: for fewer, to let them would cost more than the call.
const DETACHED_ROWS: usize = 64;

/// Runs a call over `rows` rows. Releases the interpreter's lock if there are at least [`DETACHED_ROWS`].
pub fn detached<T: Send>(py: Python<'_>, rows: usize, run: impl FnOnce() -> T + Send) -> PyResult<T> {
    if rows < DETACHED_ROWS { guarded(run) } else { py.detach(|| guarded(run)) }
}
