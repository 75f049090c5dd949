//! System calls that have no safe wrapper in the standard library.
//!
//! One of the rooms of unsafe code: each function is one call whose arguments are borrowed for as long as it takes.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;

fn checked(result: libc::c_long) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

fn owned(fd: usize) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for the caller, and nobody else knows its number.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// Opens a socket, closed on exec.
pub(crate) fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers alone.
    let fd = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) };
    checked(fd.into()).map(owned)
}

/// Sets an option, given as the bytes of its structure.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let (data, len) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes, which are those of `value`.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, data, len) };
    checked(result.into()).map(drop)
}

/// Sets an option that is a number.
pub(crate) fn set_number(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_option(fd, level, name, &value.to_ne_bytes())
}

/// Binds a socket to an address, given as the bytes of its structure.
pub(crate) fn bind(fd: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    let len = address.len() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes, which are those of `address`, and needs no alignment.
    let result = unsafe { libc::bind(fd.as_raw_fd(), address.as_ptr().cast(), len) };
    checked(result.into()).map(drop)
}

/// Returns the address that binds a packet socket to a device.
pub(crate) fn packet_address(protocol: u16, device: u32) -> [u8; 20] {
    let mut address = [0; 20];
    address[..2].copy_from_slice(&(libc::AF_PACKET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&protocol.to_be_bytes());
    address[4..8].copy_from_slice(&device.to_ne_bytes());
    address
}

/// Sends bytes; without any, tells a ring that there is something to send.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the kernel reads `bytes` alone.
    checked(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) } as libc::c_long)
}

/// Receives bytes.
pub(crate) fn receive(fd: BorrowedFd<'_>, bytes: &mut [u8], flags: i32) -> io::Result<usize> {
    let (data, len) = (bytes.as_mut_ptr().cast(), bytes.len());
    // SAFETY: the kernel writes at most `len` bytes, into `bytes`.
    checked(unsafe { libc::recv(fd.as_raw_fd(), data, len, flags) } as libc::c_long)
}

/// Waits until one of the descriptors can be read, or for a time.
pub(crate) fn poll(fds: &mut [libc::pollfd], milliseconds: i32) -> io::Result<usize> {
    // SAFETY: the kernel reads and writes the entries of `fds` alone.
    checked(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) }.into())
}

/// Returns an entry for [`poll`].
pub(crate) fn readable(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Calls `bpf`. Pointers within `attributes` are made by [`pointer`] of slices that outlive the call.
pub(crate) fn bpf(command: i32, attributes: &mut [u8]) -> io::Result<usize> {
    let (data, len) = (attributes.as_mut_ptr(), attributes.len());
    // SAFETY: the kernel reads and writes `attributes`, and reads what pointers in there lead to, which callers keep.
    checked(unsafe { libc::syscall(libc::SYS_bpf, command, data, len) })
}

/// Calls `bpf` for a command that returns a descriptor.
pub(crate) fn bpf_fd(command: i32, attributes: &mut [u8]) -> io::Result<OwnedFd> {
    bpf(command, attributes).map(owned)
}

/// Returns the address of a slice as the kernel takes it.
pub(crate) fn pointer(bytes: &[u8]) -> [u8; 8] {
    (bytes.as_ptr() as usize as u64).to_ne_bytes()
}

/// Attaches a file of /dev/net/tun to a tap of this name.
pub(crate) fn set_tap(fd: BorrowedFd<'_>, name: &str, flags: i16) -> io::Result<()> {
    let mut request = [0u8; 40];
    request[..name.len()].copy_from_slice(name.as_bytes());
    request[16..18].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the kernel reads and writes a `struct ifreq`, 40 bytes on 64-bit machines and fewer on others.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, request.as_mut_ptr()) };
    checked(result.into()).map(drop)
}

/// Returns the frames that a packet socket had no slot for since this was called last.
pub(crate) fn packet_losses(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<u64> {
    // Frames, and frames lost.
    let mut statistics = [0u32; 2];
    let mut len = 8;
    let data = statistics.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most the eight bytes of `statistics`, and `len`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, data, &raw mut len) };
    checked(result.into()).map(|_| u64::from(statistics[1]))
}

/// Sets which rights files that are made from here on do not have; returns what was set before.
pub(crate) fn umask(mask: u32) -> u32 {
    // SAFETY: takes and returns a number.
    unsafe { libc::umask(mask as libc::mode_t) as u32 }
}

/// Returns a time in nanoseconds that never goes back.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes `time`; this clock exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Memory that is shared with the kernel: the slots of a ring.
///
/// Whose a slot is, its first word says; both sides change it only to give the slot away. The ring's owner calls the methods
/// that return bytes only for slots that it owns.
#[derive(Debug)]
pub(crate) struct Slots {
    base: *mut u8,
    slot: usize,
    block: usize,
    slots_per_block: usize,
    count: usize,
}

// SAFETY: the memory belongs to this value, wherever it is; it is not shared with other threads.
unsafe impl Send for Slots {}

impl Slots {
    /// Maps the ring of a packet socket: `blocks` blocks of `block` bytes with slots of `slot` bytes.
    pub(crate) fn map(fd: BorrowedFd<'_>, block: usize, blocks: usize, slot: usize) -> io::Result<Self> {
        let len = block * blocks;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let slots_per_block = block / slot;
        Ok(Self { base: base.cast(), slot, block, slots_per_block, count: slots_per_block * blocks })
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn start(&self, index: usize) -> *mut u8 {
        assert!(index < self.count, "slot {index} of {}", self.count);
        let offset = index / self.slots_per_block * self.block + index % self.slots_per_block * self.slot;
        // SAFETY: the slot is inside the mapping, as its index is.
        unsafe { self.base.add(offset) }
    }

    /// Returns the word that says whose the slot is.
    pub(crate) fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: slots begin at multiples of 16 bytes; both sides change this word atomically.
        unsafe { AtomicU32::from_ptr(self.start(index).cast()) }
    }

    /// Returns the bytes of a slot after its status. Only for a slot that is this side's.
    pub(crate) fn bytes(&mut self, index: usize) -> &mut [u8] {
        let start = self.start(index);
        // SAFETY: the slot has more than four bytes.
        let rest = unsafe { start.add(4) };
        // SAFETY: the slot is inside the mapping and, as callers have checked by its status, not the kernel's; the borrow of
        // the ring keeps this side from making another reference.
        unsafe { core::slice::from_raw_parts_mut(rest, self.slot - 4) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let len = self.count / self.slots_per_block * self.block;
        // SAFETY: the mapping is this value's, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), len) };
    }
}
