//! A bell that ends the wait of a thread for descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use super::sys;

/// A bell of one thread.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        sys::event().map(Self)
    }

    /// Ends the wait of the thread, or its next one.
    pub(crate) fn ring(&self) {
        // It cannot fail: a count that is full is a bell that rings.
        let _ = sys::write(self.0.as_fd(), &1u64.to_ne_bytes());
    }

    /// Stops the ringing.
    pub(crate) fn quiet(&self) {
        let _ = sys::read(self.0.as_fd(), &mut [0; 8]);
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_rings_until_it_is_quiet() {
        let bell = Bell::new().unwrap();
        let rings = || sys::poll(&mut [sys::readable(&bell)], 0).unwrap() == 1;
        assert!(!rings());
        bell.ring();
        bell.ring();
        assert!(rings());
        bell.quiet();
        assert!(!rings());
        bell.quiet();
    }
}
