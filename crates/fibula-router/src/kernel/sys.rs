//! System calls that have no safe wrapper in the standard library.
//!
//! One of the rooms of unsafe code: each function is one call whose arguments are borrowed for as long as it takes.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Sets an option, given as the bytes of its engine.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let (data, len) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes, which are those of `value`.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, data, len) };
    checked(result.into()).map(drop)
}

/// Sets what a socket receives: a program of instructions, each with its code, its two jumps and its value.
pub(crate) fn set_filter(fd: BorrowedFd<'_>, program: &[(u16, u8, u8, u32)]) -> io::Result<()> {
    // struct sock_filter.
    let mut code = Vec::new();
    for &(instruction, holds, fails, value) in program {
        code.extend(instruction.to_ne_bytes());
        code.extend([holds, fails]);
        code.extend(value.to_ne_bytes());
    }
    // struct sock_fprog: the number of instructions, and where they are.
    let mut header = [0; 16];
    header[..2].copy_from_slice(&(program.len() as u16).to_ne_bytes());
    let at = size_of::<usize>();
    header[at..2 * at].copy_from_slice(&(code.as_ptr() as usize).to_ne_bytes());
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &header[..2 * at])
}

/// Sets an option that is a number.
pub(crate) fn set_number(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_option(fd, level, name, &value.to_ne_bytes())
}

/// Binds a socket to an address, given as the bytes of its engine.
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

/// Sends bytes. Without any, makes the kernel send the frames of a ring.
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

/// Opens a counter that other threads add to, and that never blocks.
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers alone.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    checked(fd.into()).map(owned)
}

/// Writes bytes.
pub(crate) fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads `bytes` alone.
    checked(unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) } as libc::c_long)
}

/// Reads bytes.
pub(crate) fn read(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    let (data, len) = (bytes.as_mut_ptr().cast(), bytes.len());
    // SAFETY: the kernel writes at most `len` bytes, into `bytes`.
    checked(unsafe { libc::read(fd.as_raw_fd(), data, len) } as libc::c_long)
}

/// Waits until one of the descriptors can be read, or for a time.
pub(crate) fn poll(fds: &mut [libc::pollfd], milliseconds: i32) -> io::Result<usize> {
    // SAFETY: the kernel reads and writes the entries of `fds` alone.
    checked(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) }.into())
}

/// Returns no descriptor, for [`poll`]: it never has anything.
pub(crate) fn nothing() -> libc::pollfd {
    libc::pollfd { fd: -1, events: 0, revents: 0 }
}

/// Returns an entry for [`poll`].
pub(crate) fn readable(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Returns an entry for [`poll`] that waits until something can be written.
pub(crate) fn writable(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { events: libc::POLLOUT, ..readable(fd) }
}

/// Returns an entry for [`poll`] that also waits until something can be written.
pub(crate) fn readable_or_writable(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { events: libc::POLLIN | libc::POLLOUT, ..readable(fd) }
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

/// Returns the flags of a tap, as [`set_tap`] takes them.
pub(crate) fn tap_flags(fd: BorrowedFd<'_>) -> io::Result<i16> {
    let mut request = [0u8; 40];
    // SAFETY: the kernel writes a `struct ifreq`, see above.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETIFF as _, request.as_mut_ptr()) };
    checked(result.into()).map(|_| i16::from_ne_bytes([request[16], request[17]]))
}

/// Opens the network namespace that the device of a tap is in.
pub(crate) fn tap_namespace(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the command has no argument.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETDEVNETNS as _) };
    checked(result.into()).map(owned)
}

/// Gives a tap a carrier, or takes it away.
pub(crate) fn set_carrier(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let on = i32::from(on);
    // SAFETY: the kernel reads an `int`, which outlives the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETCARRIER as _, &raw const on) };
    checked(result.into()).map(drop)
}

/// Asks a device for a number, by a command of ethtool.
pub(crate) fn ethtool(fd: BorrowedFd<'_>, name: &str, command: u32) -> io::Result<u32> {
    let mut value = [command, 0];
    // struct ifreq: the name, and a pointer to a struct ethtool_value.
    let mut request = [0u8; 40];
    let name = name.as_bytes().get(..15).unwrap_or(name.as_bytes());
    request[..name.len()].copy_from_slice(name);
    let pointer = (value.as_mut_ptr() as usize).to_ne_bytes();
    request[16..16 + pointer.len()].copy_from_slice(&pointer);
    // SAFETY: the kernel reads and writes `request` and the two words of `value`, which outlive the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), 0x8946, request.as_mut_ptr()) };
    checked(result.into()).map(|_| value[1])
}

/// Returns the account that the process runs as.
pub(crate) fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sets the permissions that new files do not get. Returns the earlier setting.
pub(crate) fn umask(mask: u32) -> u32 {
    // SAFETY: takes and returns a number.
    unsafe { libc::umask(mask as libc::mode_t) as u32 }
}

/// Capability to configure the network. Requests for neighbours need it.
pub(crate) const NET_ADMIN: u64 = 1 << 12;

/// Capability to make maps and programs.
pub(crate) const BPF: u64 = 1 << 39;
/// Capability to open packet sockets and sockets of AF_XDP.
pub(crate) const NET_RAW: u64 = 1 << 13;
/// Capability to register memory with the kernel beyond the limit of the process.
pub(crate) const IPC_LOCK: u64 = 1 << 14;

/// Permanently drops all capabilities of the calling thread except those in `keep`. Never adds any.
pub(crate) fn keep_capabilities(keep: u64) -> io::Result<()> {
    // struct __user_cap_header_struct: version 3, this thread. Then two of struct __user_cap_data_struct.
    let mut header = [0x2008_0522u32, 0];
    let mut sets = [0u32; 6];
    // SAFETY: the kernel reads the header, and writes it and the six words of `sets`.
    checked(unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) })?;
    for (word, set) in sets.iter_mut().enumerate() {
        // Effective, permitted and inheritable, of the lower capabilities and then of the upper ones.
        let keep = if word < 3 { keep as u32 } else { (keep >> 32) as u32 };
        *set &= if word % 3 == 2 { 0 } else { keep };
    }
    // SAFETY: the kernel reads the header and the six words of `sets`.
    checked(unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) }).map(drop)
}

/// Most processors of a set, as in `struct cpu_set_t` of the C library.
const PROCESSORS: usize = 1024;

/// Returns the processors that the calling thread may run on.
pub(crate) fn allowed_processors() -> Vec<usize> {
    let mut set = [0u64; PROCESSORS / 64];
    let (len, data) = (size_of_val(&set), set.as_mut_ptr());
    // SAFETY: the kernel writes at most `len` bytes, into `set`.
    let result = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, len, data) };
    let bytes = checked(result).unwrap_or(0);
    let known = set.iter().take(bytes.div_ceil(8)).enumerate();
    known
        .flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        })
        .collect()
}

/// Makes the calling thread run on one processor.
pub(crate) fn run_on(processor: usize) -> io::Result<()> {
    let mut set = [0u64; PROCESSORS / 64];
    let Some(word) = set.get_mut(processor / 64) else { return Err(io::ErrorKind::InvalidInput.into()) };
    *word = 1 << (processor % 64);
    // SAFETY: the kernel reads the bytes of `set`.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&set), set.as_ptr()) };
    checked(result).map(drop)
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
/// The first word of a slot is its owner. Each side changes it only to give the slot away. The ring's owner calls the methods
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

    /// Returns the word that names the owner of the slot.
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

/// Maps `len` bytes: of a descriptor from `offset` on, or new memory.
fn mapping(fd: Option<BorrowedFd<'_>>, len: usize, offset: u64) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, fd) = match fd {
        Some(fd) => (libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1),
    };
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, offset as libc::off_t) };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(base.cast()) }
}

/// Memory for the frames of AF_XDP sockets, which the kernel reads and writes too; or a part of it.
///
/// The rings determine which frames belong to the kernel at a moment, and the owner calls [`bytes`](Self::bytes) only for others.
/// Parts do not overlap, so each may be in a thread of its own.
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Arc<SharedMapping>,
    part: Range<usize>,
}

/// The mapping of [`Frames`].
#[derive(Debug)]
struct SharedMapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to this value, wherever it is.
unsafe impl Send for SharedMapping {}
// SAFETY: parts of the memory that do not overlap are used, each by its one owner.
unsafe impl Sync for SharedMapping {}

impl Frames {
    /// Takes memory, zeroed.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let memory = SharedMapping { base: mapping(None, len, 0)?, len };
        Ok(Self { memory: Arc::new(memory), part: 0..len })
    }

    /// Returns the address of the whole memory, for the kernel, and its length.
    pub(crate) fn address(&self) -> (u64, u64) {
        (self.memory.base as usize as u64, self.memory.len as u64)
    }

    /// Returns an empty part, which keeps the memory.
    pub(crate) fn keep(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), part: 0..0 }
    }

    /// Returns the range of the memory that belongs to this part.
    pub(crate) fn part(&self) -> Range<usize> {
        self.part.clone()
    }

    /// Splits off the first `len` bytes as a separate part.
    pub(crate) fn take(&mut self, len: usize) -> Self {
        assert!(len <= self.part.len(), "{len} bytes of {:?}", self.part);
        let middle = self.part.start + len;
        let taken = std::mem::replace(&mut self.part.start, middle)..middle;
        Self { memory: Arc::clone(&self.memory), part: taken }
    }

    /// Returns bytes of a frame that is this side's. They are counted from the start of the whole memory.
    pub(crate) fn bytes(&mut self, at: usize, len: usize) -> &mut [u8] {
        let inside = at >= self.part.start && at.checked_add(len).is_some_and(|end| end <= self.part.end);
        assert!(inside, "{len} bytes at {at} of {:?}", self.part);
        // SAFETY: inside the mapping, as the part is.
        let start = unsafe { self.memory.base.add(at) };
        // SAFETY: inside this part and, as callers see by the rings, not the kernel's; the borrow keeps this side from
        // making another reference.
        unsafe { core::slice::from_raw_parts_mut(start, len) }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

/// A ring of numbers of `WORDS` words each, between this process and the kernel: one writes, the other reads.
#[derive(Debug)]
pub(crate) struct Ring<const WORDS: usize> {
    base: *mut u8,
    len: usize,
    offsets: [usize; 4],
    mask: u32,
    /// This side's count of entries that it wrote or read.
    own: u32,
}

// SAFETY: the mapping belongs to this value, wherever it is; this process uses it from one thread at a time.
unsafe impl<const WORDS: usize> Send for Ring<WORDS> {}

impl<const WORDS: usize> Ring<WORDS> {
    /// Maps a ring of `entries` entries, a power of two. `offsets` are those of the producer's and the consumer's count, of the
    /// entries and of the flags, as the kernel gives them; `page` is where the ring is in the socket.
    pub(crate) fn map(fd: BorrowedFd<'_>, page: u64, offsets: [usize; 4], entries: u32) -> io::Result<Self> {
        let [producer, consumer, entry, flags] = offsets;
        let len = entry + entries as usize * WORDS * 8;
        let counts = [producer, consumer, flags];
        if !entries.is_power_of_two() || counts.iter().any(|at| at % 4 != 0 || at + 4 > len) || entry % 8 != 0
        {
            return Err(io::Error::other("rings of a form that is not known"));
        }
        let base = mapping(Some(fd), len, page)?;
        Ok(Self { base, len, offsets, mask: entries - 1, own: 0 })
    }

    fn count(&self, which: usize) -> &AtomicU32 {
        // SAFETY: the offset is inside the mapping, as `map` has checked.
        let at = unsafe { self.base.add(self.offsets[which]) };
        // SAFETY: aligned, as `map` has checked, and changed by both sides atomically alone.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    fn entry(&self, count: u32) -> *mut [u64; WORDS] {
        let index = (count & self.mask) as usize;
        // SAFETY: the entry is inside the mapping, whose length is that of all entries; `map` has checked the alignment.
        unsafe { self.base.add(self.offsets[2] + index * WORDS * 8).cast() }
    }

    /// Returns how many entries this side may write.
    pub(crate) fn room(&self) -> u32 {
        // Acquire: the kernel has read the entries before it counted them.
        let used = self.own.wrapping_sub(self.count(1).load(Ordering::Acquire));
        (self.mask + 1).saturating_sub(used)
    }

    /// Returns how many entries of this side the kernel has not read.
    pub(crate) fn waiting(&self) -> u32 {
        (self.mask + 1) - self.room()
    }

    /// Returns whether the kernel has read all entries.
    pub(crate) fn is_read(&self) -> bool {
        self.room() == self.mask + 1
    }

    /// Writes an entry, if there is room. The kernel sees it after [`publish`](Self::publish).
    pub(crate) fn write(&mut self, value: [u64; WORDS]) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: an entry that the kernel does not read before it is published.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
        true
    }

    /// Makes written entries visible to the kernel.
    pub(crate) fn publish(&self) {
        // Release: the entries are written before their count.
        self.count(0).store(self.own, Ordering::Release);
    }

    /// Reads an entry that the kernel has written, if there is one.
    pub(crate) fn read(&mut self) -> Option<[u64; WORDS]> {
        // Acquire: the entries were written before their count.
        if self.count(0).load(Ordering::Acquire) == self.own {
            return None;
        }
        // SAFETY: an entry that the kernel does not write before it is given back.
        let value = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        Some(value)
    }

    /// Gives the entries that were read back.
    pub(crate) fn give_back(&self) {
        // Release: the entries are read before they are given back.
        self.count(1).store(self.own, Ordering::Release);
    }

    /// Returns whether the kernel wants a system call before it goes on with this ring.
    pub(crate) fn wants_call(&self) -> bool {
        self.count(2).load(Ordering::Relaxed) & 1 != 0
    }
}

impl<const WORDS: usize> Drop for Ring<WORDS> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

/// Takes the error that a socket has noted, so that it has none any more.
pub(crate) fn take_error(fd: RawFd) {
    let (mut value, mut len) = (0i32, size_of::<i32>() as libc::socklen_t);
    let data = (&raw mut value).cast();
    // SAFETY: the kernel writes at most `len` bytes, into `value`, and `len`. A wrong descriptor is refused.
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, data, &raw mut len) };
}

/// Reads an option of a socket; returns how many bytes it has.
pub(crate) fn option(fd: BorrowedFd<'_>, level: i32, name: i32, value: &mut [u8]) -> io::Result<usize> {
    let mut len = value.len() as libc::socklen_t;
    let data = value.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `len` bytes, into `value`, and `len`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, data, &raw mut len) };
    checked(result.into()).map(|_| len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_frames_do_not_overlap() {
        let mut rest = Frames::new(4 * 4096).unwrap();
        let mut first = rest.take(4096);
        assert_eq!((first.part(), rest.part()), (0..4096, 4096..4 * 4096));
        first.bytes(4000, 96).fill(1);
        rest.bytes(4096, 10).fill(2);
        let all = rest.take(3 * 4096);
        assert!(rest.part().is_empty() && all.part().len() == 3 * 4096);
        let beyond = std::panic::catch_unwind(move || first.bytes(4000, 97).len());
        assert!(beyond.is_err(), "into the next part");
        // The memory is there as long as a part of it.
        drop(rest);
        let mut all = all;
        assert_eq!(all.bytes(4096, 2), [2, 2]);
    }
}
