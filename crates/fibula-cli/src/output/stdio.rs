//! Whether standard output was closed (`>&-`) when the command started.
//!
//! Before `main`, Rust opens `/dev/null` in the place of standard streams that are closed, so that no file gets their
//! numbers; from then on a closed output looks like `>/dev/null`. The mode of the descriptor does
//! not tell them apart: it is read and write, but so are the null devices that Python's `subprocess.DEVNULL` and Node's
//! `'ignore'` hand over. So the descriptor is looked at earlier, among the initialisers that the loader runs.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks at descriptor 1 before Rust does. It runs before `main`, so it makes one system call and nothing else.
#[ctor::ctor(unsafe)]
fn look() {
    CLOSED.store(rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err(), Ordering::Relaxed);
}

pub(super) fn stdout_is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
