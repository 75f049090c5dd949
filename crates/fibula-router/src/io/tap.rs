//! TAP: a port whose other end is a network device of the kernel (Documentation/networking/tuntap.rst).
//!
//! Other programs use the device, in this network namespace or in one to which it is moved. The router is at the other end of the
//! wire, with a MAC address of its own, and resolves neighbours itself. Each frame costs a system call, so a tap suits a few
//! hosts, virtual machines and tests.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use crate::kernel::sys;

use super::{BURST, Offload, Received};

const IFF_TAP: i16 = 0x0002;
const IFF_NO_PI: i16 = 0x1000;
const IFF_MULTI_QUEUE: i16 = 0x0100;
/// Longest frame. The kernel sends none that is larger, because the tap offers no offloads.
const LARGEST: usize = 9216 + 18;

/// One queue of a tap, for one worker.
#[derive(Debug)]
pub struct Tap {
    file: Arc<File>,
    frames: Vec<(Box<[u8]>, usize)>,
    held: usize,
}

impl Tap {
    /// Makes a tap, or joins one as a further queue.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN, without /dev/net/tun, and when another kind of device has the name.
    pub fn open(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() > 15 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device name has 1 to 15 bytes"));
        }
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        sys::set_tap(file.as_fd(), name, IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE)?;
        Ok(Self::of(file))
    }

    /// Has a queue of another router, which gave this descriptor.
    #[must_use]
    pub fn inherited(queue: OwnedFd) -> Self {
        Self::of(queue.into())
    }

    fn of(file: File) -> Self {
        let frames = (0..BURST).map(|_| (vec![0; LARGEST].into_boxed_slice(), 0)).collect();
        Self { file: Arc::new(file), frames, held: 0 }
    }

    /// Returns the queue, for a router that takes over.
    #[must_use]
    pub fn queue(&self) -> TapQueue {
        TapQueue { file: Arc::clone(&self.file) }
    }

    pub(super) fn receive(&mut self) -> usize {
        while let Some((room, len)) = self.frames.get_mut(self.held) {
            match (&*self.file).read(room) {
                Ok(read) if read > 0 => *len = read,
                // No frame is there, or the device is down.
                _ => break,
            }
            self.held += 1;
        }
        self.held
    }

    pub(super) fn frame(&mut self, index: usize) -> Received<'_> {
        let (room, len) = &mut self.frames[index];
        let cut = *len == room.len();
        Received { bytes: &mut room[..*len], tag: None, offload: Offload::default(), cut }
    }

    pub(super) fn finish(&mut self) {
        self.held = 0;
    }

    /// Returns an end for sending.
    #[must_use]
    pub fn sender(&self) -> TapSender {
        TapSender { file: Arc::clone(&self.file), out: vec![0; LARGEST].into_boxed_slice() }
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// A queue of a tap, for a router that takes over.
#[derive(Debug)]
pub struct TapQueue {
    file: Arc<File>,
}

impl AsFd for TapQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The sending end of a tap.
#[derive(Debug)]
pub struct TapSender {
    file: Arc<File>,
    out: Box<[u8]>,
}

impl TapSender {
    /// Returns another end for sending, for another thread.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { file: Arc::clone(&self.file), out: vec![0; LARGEST].into_boxed_slice() }
    }

    pub(super) fn push(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let mut len = 0;
        for part in parts {
            let Some(room) = self.out.get_mut(len..len + part.len()) else { return false };
            room.copy_from_slice(part);
            len += part.len();
        }
        super::complete_checksum(&mut self.out[parts[0].len()..len], offload);
        matches!((&*self.file).write(&self.out[..len]), Ok(written) if written == len)
    }
}
