//! Errors and panics of the Parquet library on damaged files, as failures. It trusts some of the sizes that a file declares.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

use parquet::errors::ParquetError;

use crate::failure::Failure;

thread_local! {
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `read`; where that panics, the file is damaged.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !READING.get() {
                before(info);
            }
        }));
    });
    READING.set(true);
    // Half-changed state is not used again, because the command stops.
    let outcome = catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    outcome.unwrap_or_else(|payload| {
        let reason = format!("the file is damaged ({})", said(&*payload));
        Err(Failure::reading(&path.display().to_string(), &io::Error::other(reason)))
    })
}

/// Says that the Parquet library cannot read a file.
pub(super) fn cannot_read(path: &Path, error: &ParquetError) -> Failure {
    Failure::reading(&path.display().to_string(), &io::Error::other(error.to_string()))
}

fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_failures() {
        assert!(matches!(guarded(Path::new("x"), || Ok(7)), Ok(7)));
        let failed = guarded::<()>(Path::new("x"), || panic!("no page {}", 7));
        assert!(matches!(failed, Err(Failure::BadInput(text)) if text.ends_with("damaged (no page 7)")));
    }
}
