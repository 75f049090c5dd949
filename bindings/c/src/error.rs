//! Failures of calls. Each has a code, and the caller may also get a row and a message.

use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::fib::BuildError;
use engine::file::FileError;
use engine::live::TableError;
use engine::rib::RibError;
use fibula_column::ColumnError;

use crate::reserve;

/// The codes of fibula.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Argument = -1,
    Memory = -2,
    System = -3,
    Foreign = -4,
    Damaged = -5,
    Newer = -6,
    Invalid = -7,
    Absent = -8,
    Busy = -9,
    Bug = -10,
    Misuse = -11,
}

/// `fibula_error`.
#[repr(C)]
pub struct ErrorPlace {
    code: i32,
    reserved: u32,
    row: u64,
    message: [u8; 240],
}

const _: () = assert!(size_of::<ErrorPlace>() == 256 && align_of::<ErrorPlace>() == 8);

/// A row that no error is about.
pub const NO_ROW: u64 = u64::MAX;

/// A failure of a call.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    row: Option<usize>,
    message: String,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, row: None, message: message.into() }
    }

    /// An argument that this call cannot take.
    pub fn argument(message: &'static str) -> Self {
        Self::new(Code::Argument, message)
    }

    pub fn at(self, row: usize) -> Self {
        Self { row: Some(row), ..self }
    }

    /// Writes the failure to the caller's place, if there is one. Returns the code.
    ///
    /// # Safety
    /// The place is NULL or an error that may be written.
    unsafe fn report(&self, place: *mut ErrorPlace) -> c_int {
        if !place.is_null() {
            let mut message = [0; 240];
            // Cut at the end of a character.
            let mut len = self.message.len().min(message.len() - 1);
            while !self.message.is_char_boundary(len) {
                len -= 1;
            }
            message[..len].copy_from_slice(&self.message.as_bytes()[..len]);
            let row = self.row.map_or(NO_ROW, |row| row as u64);
            let error = ErrorPlace { code: self.code as i32, reserved: 0, row, message };
            // SAFETY: the caller's promise.
            unsafe { place.write(error) };
        }
        self.code as c_int
    }
}

/// Runs a call that may allocate. A failure is written to its place and returned as a code; no panic crosses the border to C.
///
/// # Safety
/// The place is NULL or an error that may be written.
pub unsafe fn call(place: *mut ErrorPlace, run: impl FnOnce() -> Outcome<()>) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { counted(place, || run().map(|()| 0)) as c_int }
}

/// As [`call`], of a call that returns a number.
///
/// # Safety
/// As for that.
pub unsafe fn counted(place: *mut ErrorPlace, run: impl FnOnce() -> Outcome<i64>) -> i64 {
    let run = || {
        reserve::check()?;
        run()
    };
    match caught(run) {
        Ok(number) => number,
        // SAFETY: the caller's promise.
        Err(failure) => i64::from(unsafe { failure.report(place) }),
    }
}

/// Runs a call that has no place for an error, and that allocates nothing.
pub fn plain(run: impl FnOnce() -> Outcome<()>) -> c_int {
    plain_counted(|| run().map(|()| 0)) as c_int
}

/// As [`plain`], of a call that returns a number.
pub fn plain_counted(run: impl FnOnce() -> Outcome<i64>) -> i64 {
    caught(run).unwrap_or_else(|failure| failure.code as i64)
}

fn caught(run: impl FnOnce() -> Outcome<i64>) -> Outcome<i64> {
    // A panic in a change poisons the lock of its table, which then refuses further changes. Lookups go on.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        forget(panic);
        Err(Failure::new(Code::Bug, "a bug in fibula: the call was broken off"))
    })
}

/// Runs a call that answers a value of its own where something goes wrong.
pub fn answer<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(answer) => answer,
        Err(panic) => {
            forget(panic);
            otherwise
        }
    }
}

/// Drops what a panic carried. Apart, so that calls need no registers for it.
#[cold]
#[inline(never)]
fn forget(panic: Box<dyn Any + Send>) {
    drop(panic);
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let code = if error.is_newer() {
            Code::Newer
        } else if error.is_foreign() {
            Code::Foreign
        } else if error.io().is_some() {
            Code::System
        } else if error.is_damage() {
            Code::Damaged
        } else {
            Code::Memory
        };
        Self::new(code, error.to_string())
    }
}

impl From<RibError> for Failure {
    fn from(error: RibError) -> Self {
        Self::new(Code::Memory, error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::new(Code::Memory, error.to_string())
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        let code = match error {
            TableError::Stalled { .. } => Code::Busy,
            TableError::UnknownVrf(_) => Code::Absent,
            TableError::Poisoned => Code::Bug,
            _ => Code::Memory,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ColumnError> for Failure {
    fn from(error: ColumnError) -> Self {
        match &error {
            ColumnError::Invalid { row, .. } => Self::new(Code::Invalid, error.to_string()).at(*row),
            ColumnError::Memory { .. } => Self::new(Code::Memory, error.to_string()),
            _ => Self::new(Code::Argument, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut place = ErrorPlace { code: 0, reserved: 0, row: 0, message: [7; 240] };
        let failure = Failure::new(Code::System, "ä".repeat(150)).at(3);
        // SAFETY: the place is an error.
        let code = unsafe { failure.report(&raw mut place) };
        assert_eq!((code, place.code, place.row, place.message[238], place.message[239]), (-3, -3, 3, 0, 0));
        assert_eq!(&place.message[..238], "ä".repeat(119).as_bytes());
        // SAFETY: no place is one that a caller may give.
        assert_eq!(unsafe { call(std::ptr::null_mut(), || panic!("planted")) }, Code::Bug as i32);
    }
}
