//! TAP: a port whose other end is a network device of the kernel (Documentation/networking/tuntap.rst).
//!
//! Other programs use the device, in this network namespace or in one to which it is moved. The router is at the other end of the
//! wire, with a MAC address of its own, and resolves neighbours itself. Each frame costs a system call, so a tap suits a few
//! hosts, virtual machines and tests.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use crate::kernel::sys;

use super::packet::vnet;
use super::{BURST, Offload, Received};

const IFF_TAP: i16 = 0x0002;
const IFF_NO_PI: i16 = 0x1000;
const IFF_MULTI_QUEUE: i16 = 0x0100;
/// Frames have a `struct virtio_net_hdr` in front.
const IFF_VNET_HDR: i16 = 0x4000;
/// Bytes of a `struct virtio_net_hdr`.
const VNET: usize = 10;
/// Longest frame. The kernel sends none that is larger, because the tap offers no offloads.
const LARGEST: usize = 9216 + 18;
/// Longest frame to the kernel that combines several segments.
const LARGEST_SEGMENTS: usize = 65_536 + 18;

/// One queue of a tap, for one worker.
#[derive(Debug)]
pub struct Tap {
    file: Arc<File>,
    frames: Vec<(Box<[u8]>, usize)>,
    held: usize,
    /// Bytes in front of each frame.
    front: usize,
}

impl Tap {
    /// Makes a tap, or joins one as a further queue.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN, without /dev/net/tun, and when another kind of device has the name.
    pub fn open(name: &str) -> io::Result<Self> {
        Self::open_as(name, 0)
    }

    /// Makes a tap that is the machine's side of an interface, or joins one as a further queue. It takes packets that an offload has combined, and
    /// checksums that are still to be computed, as packet sockets have them.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_side(name: &str) -> io::Result<Self> {
        Self::open_as(name, IFF_VNET_HDR)
    }

    fn open_as(name: &str, more: i16) -> io::Result<Self> {
        if name.is_empty() || name.len() > 15 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device name has 1 to 15 bytes"));
        }
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        sys::set_tap(file.as_fd(), name, IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | more)?;
        Self::of(file)
    }

    /// Has a queue of another router, which gave this descriptor.
    ///
    /// # Errors
    /// When the tap is gone.
    pub fn inherited(queue: OwnedFd) -> io::Result<Self> {
        Self::of(queue.into())
    }

    /// Returns whether the device is in the network namespace of this thread, where its name leads to it; `false` where the kernel does not
    /// say.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let there = sys::tap_namespace(self.file.as_fd()).and_then(|space| File::from(space).metadata());
        let here = std::fs::metadata("/proc/thread-self/ns/net");
        matches!((there, here), (Ok(there), Ok(here)) if (there.dev(), there.ino()) == (here.dev(), here.ino()))
    }

    fn of(file: File) -> io::Result<Self> {
        let has_front = sys::tap_flags(file.as_fd())? & IFF_VNET_HDR != 0;
        let front = if has_front { VNET } else { 0 };
        let frames = (0..BURST).map(|_| (vec![0; front + LARGEST].into_boxed_slice(), 0)).collect();
        Ok(Self { file: Arc::new(file), frames, held: 0, front })
    }

    /// Returns the queue, for a router that takes over, and to set the carrier.
    #[must_use]
    pub fn queue(&self) -> TapQueue {
        TapQueue { file: Arc::clone(&self.file) }
    }

    pub(super) fn receive(&mut self) -> usize {
        while let Some((room, len)) = self.frames.get_mut(self.held) {
            match (&*self.file).read(room) {
                // The header says nothing: the router asked for no offloads.
                Ok(read) if read > self.front => *len = read,
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
        Received { bytes: &mut room[self.front..*len], tag: None, offload: Offload::default(), cut }
    }

    pub(super) fn finish(&mut self) {
        self.held = 0;
    }

    /// Returns an end for sending.
    #[must_use]
    pub fn sender(&self) -> TapSender {
        TapSender::new(Arc::clone(&self.file), self.front)
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// A queue of a tap, for a router that takes over, and to set the carrier.
#[derive(Debug)]
pub struct TapQueue {
    file: Arc<File>,
}

impl TapQueue {
    /// Gives the tap a carrier, or takes it away.
    ///
    /// # Errors
    /// When the tap is gone, and on kernels before 5.0.
    pub fn set_carrier(&self, on: bool) -> io::Result<()> {
        sys::set_carrier(self.file.as_fd(), on)
    }
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
    /// Bytes in front of each frame.
    front: usize,
}

impl TapSender {
    /// Returns another end for sending, for another thread.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.file), self.front)
    }

    fn new(file: Arc<File>, front: usize) -> Self {
        let largest = if front == 0 { LARGEST } else { front + LARGEST_SEGMENTS };
        Self { file, out: vec![0; largest].into_boxed_slice(), front }
    }

    /// Returns whether packets of several segments may be sent.
    pub(super) const fn takes_segments(&self) -> bool {
        self.front != 0
    }

    pub(super) fn push(&mut self, parts: [&[u8]; 3], offload: &Offload) -> bool {
        let mut len = self.front;
        for part in parts {
            let Some(room) = self.out.get_mut(len..len + part.len()) else { return false };
            room.copy_from_slice(part);
            len += part.len();
        }
        match self.out.first_chunk_mut::<VNET>().filter(|_| self.front != 0) {
            Some(front) => *front = vnet(offload, parts[0].len() as u16),
            None => super::complete_checksum(&mut self.out[parts[0].len()..len], offload),
        }
        matches!((&*self.file).write(&self.out[..len]), Ok(written) if written == len)
    }
}
