//! System calls that have no safe wrapper in the standard library: bpf, mmap, membarrier.
//!
//! The only unsafe code of this crate: each function is one call whose arguments are borrowed for as long as it takes.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

fn checked(result: libc::c_long) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

fn owned(fd: usize) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for the caller, and nothing else knows its number.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
const OBJECT_PIN: i32 = 6;
const OBJECT_GET: i32 = 7;
const PROGRAM_RUN: i32 = 10;
const OBJECT_INFO: i32 = 15;
const TYPES_LOAD: i32 = 18;
const LINK_CREATE: i32 = 28;
const LINK_UPDATE: i32 = 29;

/// The types of maps that this crate makes.
pub(crate) const ARRAY: u32 = 2;
pub(crate) const ARRAY_OF_MAPS: u32 = 12;
pub(crate) const ARENA: u32 = 33;
/// The flag of maps that user space may map (Linux 5.5).
pub(crate) const MMAPABLE: u32 = 1 << 10;

/// The bytes of the attributes of a call: the fields at their places, zeros elsewhere.
struct Attributes([u8; 128]);

impl Attributes {
    fn new(words: &[(usize, u32)]) -> Self {
        let mut attributes = Self([0; 128]);
        for &(at, word) in words {
            attributes.0[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        attributes
    }

    /// Puts the address of bytes that the kernel reads at a place. They must outlive the call.
    fn pointer(self, at: usize, bytes: &[u8]) -> Self {
        self.address(at, bytes.as_ptr().expose_provenance())
    }

    /// Puts the address of bytes that the kernel writes at a place. They must outlive the call, and be read after it alone, because the
    /// compiler does not see the kernel write.
    fn pointer_mut(self, at: usize, bytes: &mut [u8]) -> Self {
        self.address(at, bytes.as_mut_ptr().expose_provenance())
    }

    fn word(mut self, at: usize, word: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        self
    }

    /// Puts a name of at most fifteen bytes at a place.
    fn name(mut self, at: usize, name: &str) -> Self {
        let len = name.len().min(15);
        self.0[at..at + len].copy_from_slice(&name.as_bytes()[..len]);
        self
    }

    /// Returns a word that the kernel has written.
    fn get(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn address(self, at: usize, address: usize) -> Self {
        self.long(at, address as u64)
    }

    fn long(mut self, at: usize, long: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&long.to_ne_bytes());
        self
    }
}

/// Calls `bpf`. Pointers within the attributes lead to slices that the caller keeps, and that are at least as long as the kernel
/// reads or writes for the command.
fn bpf(command: i32, attributes: &mut Attributes) -> io::Result<usize> {
    let (data, len) = (attributes.0.as_mut_ptr(), attributes.0.len());
    // SAFETY: the kernel reads and writes the attributes, and the slices that their pointers lead to, because callers keep them.
    checked(unsafe { libc::syscall(libc::SYS_bpf, command, data, len) })
}

/// The form of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapForm {
    pub(crate) kind: u32,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) entries: u32,
    pub(crate) flags: u32,
    /// Of an arena, where user space maps it. Kernels without it (before 5.16) take no other number than 0.
    pub(crate) extra: u64,
}

/// Makes a map. The kernel takes fifteen bytes of the name.
pub(crate) fn create_map(form: MapForm, name: &str, inner: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let MapForm { kind, key_bytes, value_bytes, entries, flags, extra } = form;
    let inner = inner.map_or(0, |fd| fd.as_raw_fd() as u32);
    let words = [(0, kind), (4, key_bytes), (8, value_bytes), (12, entries), (16, flags), (20, inner)];
    bpf(MAP_CREATE, &mut Attributes::new(&words).name(28, name).long(64, extra)).map(owned)
}

/// Sets an entry of a map of this form.
pub(crate) fn update(map: BorrowedFd<'_>, form: &MapForm, key: &[u8], value: &[u8]) -> io::Result<()> {
    has_length(key, form.key_bytes)?;
    has_length(value, form.value_bytes)?;
    let attributes = Attributes::new(&[(0, map.as_raw_fd() as u32)]).pointer(8, key);
    bpf(MAP_UPDATE, &mut attributes.pointer(16, value)).map(drop)
}

/// Removes an entry of a map of this form.
pub(crate) fn delete(map: BorrowedFd<'_>, form: &MapForm, key: &[u8]) -> io::Result<()> {
    has_length(key, form.key_bytes)?;
    bpf(MAP_DELETE, &mut Attributes::new(&[(0, map.as_raw_fd() as u32)]).pointer(8, key)).map(drop)
}

/// Refuses bytes that are fewer or more than the kernel reads.
fn has_length(bytes: &[u8], wanted: u32) -> io::Result<()> {
    if bytes.len() == wanted as usize { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The type of a program, and where it is to be attached.
pub(crate) type ProgramPlace = (u32, u32);

/// Loads a program. `types` has descriptions of its functions (BTF), and the records that say where each begins: of two words.
pub(crate) fn load_program(
    (kind, place): ProgramPlace,
    name: &str,
    code: &[u8],
    types: Option<(BorrowedFd<'_>, &[u8])>,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    // Helpers that forward frames need a licence that is compatible with the GPL.
    let licence = b"Dual MIT/GPL\0";
    let mut attributes = Attributes::new(&[(0, kind), (4, (code.len() / 8) as u32), (68, place)])
        .pointer(8, code)
        .pointer(16, licence)
        .name(48, name);
    if !log.is_empty() {
        attributes = attributes.word(24, 1).word(28, log.len() as u32).pointer_mut(32, log);
    }
    if let Some((types, functions)) = types {
        let count = (functions.len() / 8) as u32;
        attributes = attributes.word(72, types.as_raw_fd() as u32).word(76, 8).word(88, count);
        attributes = attributes.pointer(80, functions);
    }
    bpf(PROGRAM_LOAD, &mut attributes).map(owned)
}

/// Loads descriptions of types (BTF).
pub(crate) fn load_types(bytes: &[u8]) -> io::Result<OwnedFd> {
    bpf(TYPES_LOAD, &mut Attributes::new(&[(16, bytes.len() as u32)]).pointer(0, bytes)).map(owned)
}

/// Attaches a program to a device. It is detached when the descriptor is closed, with the process at the latest.
pub(crate) fn create_link(
    program: BorrowedFd<'_>,
    device: u32,
    place: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    bpf(LINK_CREATE, &mut Attributes::new(&[(0, program), (4, device), (8, place), (12, flags)])).map(owned)
}

/// Puts another program in the place of that of a link.
pub(crate) fn update_link(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let words = [(0, link.as_raw_fd() as u32), (4, program.as_raw_fd() as u32)];
    bpf(LINK_UPDATE, &mut Attributes::new(&words)).map(drop)
}

/// Runs a program once with a frame. Returns its verdict, and how many bytes of the frame it left in `out`.
pub(crate) fn run_program(program: BorrowedFd<'_>, frame: &[u8], out: &mut [u8]) -> io::Result<(u32, usize)> {
    let words = [(0, program.as_raw_fd() as u32), (8, frame.len() as u32), (12, out.len() as u32), (32, 1)];
    let mut attributes = Attributes::new(&words).pointer(16, frame).pointer_mut(24, out);
    bpf(PROGRAM_RUN, &mut attributes)?;
    Ok((attributes.get(4), attributes.get(12) as usize))
}

/// Runs a program once with a frame and a context, which the kernel reads and writes. Returns its verdict.
pub(crate) fn run_program_in(program: BorrowedFd<'_>, frame: &[u8], context: &mut [u8]) -> io::Result<u32> {
    let (before, len) = (context.to_vec(), context.len() as u32);
    let words = [(0, program.as_raw_fd() as u32), (8, frame.len() as u32), (32, 1), (40, len), (44, len)];
    let attributes = Attributes::new(&words).pointer(16, frame);
    let mut attributes = attributes.pointer(48, &before).pointer_mut(56, context);
    bpf(PROGRAM_RUN, &mut attributes)?;
    Ok(attributes.get(4))
}

/// Puts a map into an entry of a map of maps.
pub(crate) fn update_inner(outer: BorrowedFd<'_>, at: u32, inner: BorrowedFd<'_>) -> io::Result<()> {
    let (key, value) = (at.to_ne_bytes(), inner.as_raw_fd().to_ne_bytes());
    let mut attributes =
        Attributes::new(&[(0, outer.as_raw_fd() as u32)]).pointer(8, &key).pointer(16, &value);
    bpf(MAP_UPDATE, &mut attributes).map(drop)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Pins a map.
pub(crate) fn pin(map: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let mut attributes = Attributes::new(&[(8, map.as_raw_fd() as u32)]).pointer(0, path.as_bytes_with_nul());
    bpf(OBJECT_PIN, &mut attributes).map(drop)
}

/// Opens a pinned map.
pub(crate) fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    bpf(OBJECT_GET, &mut Attributes::new(&[]).pointer(0, path.as_bytes_with_nul())).map(owned)
}

/// Returns the number of a map in the kernel, and its form. Of another object than a map, they have no meaning: of a program, the first
/// word is a type of program, and there are bytes of instructions where sizes are.
pub(crate) fn map_form(map: BorrowedFd<'_>) -> io::Result<(u32, MapForm)> {
    let mut info = [0u8; 256];
    let mut attributes =
        Attributes::new(&[(0, map.as_raw_fd() as u32), (4, info.len() as u32)]).pointer_mut(8, &mut info);
    bpf(OBJECT_INFO, &mut attributes)?;
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let (kind, key_bytes, extra) = (word(0), word(8), u64::from(word(84)) << 32 | u64::from(word(80)));
    let form = MapForm { kind, key_bytes, value_bytes: word(12), entries: word(16), flags: word(20), extra };
    Ok((word(4), form))
}

/// Returns whether a folder is in a file system of BPF.
#[allow(
    clippy::useless_conversion,
    reason = "a long of C has 32 bits on some machines, and then no conversion is needed"
)]
pub(crate) fn is_bpffs(path: &Path) -> io::Result<bool> {
    const MAGIC: u64 = 0xcafe_4a11;
    let path = c_path(path)?;
    // SAFETY: zeros are a value of this type, which has numbers alone.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel reads the path, which ends with a zero, and writes one `statfs`.
    checked(unsafe { libc::statfs(path.as_ptr(), &raw mut found) }.into())?;
    Ok(found.f_type as u64 == MAGIC)
}

/// Lifts the limit on locked memory, to which kernels before 5.11 count maps.
pub(crate) fn lift_memlock() {
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads one `rlimit`.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const all) };
}

/// Waits until every program that is running now has ended (Linux 4.3). Fails where processors run without a tick.
pub(crate) fn membarrier() -> io::Result<()> {
    const GLOBAL: i32 = 1;
    // SAFETY: takes numbers alone.
    checked(unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) }).map(drop)
}

/// Returns the number of processors that are running.
pub(crate) fn processors() -> usize {
    // SAFETY: takes a number alone.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1)
}

/// The memory of a map, or a part of it. Programs and other processes read it, and may write it, at the same time.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
    whole: Arc<Whole>,
}

/// The memory that one call of `mmap` has mapped.
#[derive(Debug)]
struct Whole {
    at: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the memory belongs to no thread, and it is read and written by atomic operations alone.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}
// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Whole {}
// SAFETY: it is only ended, by the last owner.
unsafe impl Sync for Whole {}

impl Mapping {
    /// Maps the value of a map.
    pub(crate) fn of(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice, which replaces nothing.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        Self::mapped(at, bytes)
    }

    /// Maps an arena at the place that it has in every process.
    pub(crate) fn of_arena(map: BorrowedFd<'_>, at: u64, bytes: u64) -> io::Result<Self> {
        let wide = || io::Error::from(io::ErrorKind::Unsupported);
        let (place, bytes) = (usize::try_from(at), usize::try_from(bytes));
        let (place, bytes) = (place.map_err(|_| wide())?, bytes.map_err(|_| wide())?);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
        let place = std::ptr::without_provenance_mut(place);
        // SAFETY: a new mapping. Where another one is in its place, this fails (Linux 4.17, and arenas are of 6.9).
        let at = unsafe { libc::mmap(place, bytes, access, flags, map.as_raw_fd(), 0) };
        Self::mapped(at, bytes)
    }

    /// Returns the mapping that `mmap` made, or its error.
    fn mapped(at: *mut libc::c_void, bytes: usize) -> io::Result<Self> {
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at: at.cast(), bytes, whole: Arc::new(Whole { at, bytes }) })
    }

    /// Returns a part of this memory, which keeps all of it mapped.
    ///
    /// # Panics
    /// When it is not inside, or begins within a page.
    pub(crate) fn part(&self, from: usize, bytes: usize) -> Self {
        assert!(
            from.is_multiple_of(4096) && from + bytes <= self.bytes,
            "{bytes} from {from} of {}",
            self.bytes
        );
        // SAFETY: the place is inside the mapping, as was just asserted.
        Self { at: unsafe { self.at.add(from) }, bytes, whole: Arc::clone(&self.whole) }
    }

    /// Returns a handle that does not keep the memory mapped.
    pub(crate) fn downgrade(&self) -> Lasting {
        Lasting(Arc::downgrade(&self.whole))
    }

    /// Returns memory of this process and its children, without a map.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice, which replaces nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        Self::mapped(at, bytes)
    }

    /// Returns all words of 32 bits.
    pub(crate) fn words(&self) -> impl Iterator<Item = &AtomicU32> {
        (0..self.bytes / 4).map(|at| self.word(4 * at))
    }

    /// Returns the word of 32 bits at a byte, a multiple of four.
    pub(crate) fn word(&self, byte: usize) -> &AtomicU32 {
        assert!(byte.is_multiple_of(4) && byte + 4 <= self.bytes, "byte {byte} of {}", self.bytes);
        // SAFETY: the place is inside the mapping, as was just asserted, which begins at a page.
        let at = unsafe { self.at.add(byte) };
        // SAFETY: the word is aligned and mapped for as long as `self`, and everything uses it atomically.
        unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) }
    }

    /// Returns the word of 64 bits at a byte, a multiple of eight.
    pub(crate) fn long(&self, byte: usize) -> &AtomicU64 {
        assert!(byte.is_multiple_of(8) && byte + 8 <= self.bytes, "byte {byte} of {}", self.bytes);
        // SAFETY: as in `word`.
        let at = unsafe { self.at.add(byte) };
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) }
    }

    /// Loads a word of 32 bits.
    pub(crate) fn load(&self, byte: usize) -> u32 {
        self.word(byte).load(Ordering::Acquire)
    }
}

/// A mapping that may have ended.
#[derive(Debug)]
pub(crate) struct Lasting(Weak<Whole>);

impl Lasting {
    /// Returns the mapping, unless it has ended.
    pub(crate) fn upgrade(&self) -> Option<Mapping> {
        let whole = self.0.upgrade()?;
        Some(Mapping { at: whole.at.cast(), bytes: whole.bytes, whole })
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // SAFETY: no part of the mapping is left, as each has this value, and so no reference into it is.
        let _ = unsafe { libc::munmap(self.at.as_ptr(), self.bytes) };
    }
}
