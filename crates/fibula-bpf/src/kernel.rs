//! Maps, programs and links of the kernel, for this project's own programs, such as those by which `fibula-router` keeps the kernel from
//! its packets. All of them go with the process, because nothing is pinned.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::error::BpfError;
use crate::grace::{Grace, Waiting};
use crate::sys::{self, MMAPABLE, MapForm, Mapping};

/// Kinds of maps. None has a value for each processor, so a value has the length that it was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// An array, whose keys are numbers and whose values user space maps (Linux 5.5).
    Array,
    /// A hash table that takes memory for each entry when it comes, so that programs see a whole value.
    Hash,
    /// Devices that frames are given to.
    Devices,
    /// Sockets of AF_XDP that frames are given to.
    Sockets,
}

impl MapKind {
    const fn number_and_flags(self) -> (u32, u32) {
        match self {
            Self::Array => (sys::ARRAY, MMAPABLE),
            Self::Hash => (1, 1),
            Self::Devices => (14, 0),
            Self::Sockets => (17, 0),
        }
    }
}

/// A map.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    form: MapForm,
}

impl Map {
    /// Makes a map. `bytes` are those of a key and of a value. The kernel takes fifteen bytes of the name.
    ///
    /// # Errors
    /// Without CAP_BPF (for devices and sockets, CAP_NET_ADMIN too), without memory, and where the kernel has no such maps.
    pub fn create(kind: MapKind, name: &str, bytes: (u32, u32), entries: u32) -> io::Result<Self> {
        let (number, flags) = kind.number_and_flags();
        let form =
            MapForm { kind: number, key_bytes: bytes.0, value_bytes: bytes.1, entries, flags, extra: 0 };
        sys::create_map(form, name, None).map(|fd| Self { fd, form })
    }

    /// Makes an array of one entry that user space maps.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn memory(name: &str, bytes: u32) -> io::Result<(Self, Memory)> {
        let map = Self::create(MapKind::Array, name, (4, bytes), 1)?;
        let memory = map.map()?;
        Ok((map, memory))
    }

    /// Maps all values of an array, each of whose values has a multiple of eight bytes.
    ///
    /// # Errors
    /// When the map is of another kind, or there is no memory.
    pub fn map(&self) -> io::Result<Memory> {
        let MapForm { value_bytes, entries, flags, .. } = self.form;
        // The kernel would refuse it too, with an error that says less.
        if flags & MMAPABLE == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // As the kernel rounds the places of values up.
        let bytes = value_bytes.next_multiple_of(8) as usize * entries as usize;
        Mapping::of(self.fd.as_fd(), bytes).map(Memory)
    }

    /// Sets an entry.
    ///
    /// # Errors
    /// When key or value have another length than those of the map, or there is no room.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        sys::update(self.fd.as_fd(), &self.form, key, value)
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// When there is none.
    pub fn delete(&self, key: &[u8]) -> io::Result<()> {
        sys::delete(self.fd.as_fd(), &self.form, key)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The memory of a map, which programs read and write at the same time.
#[derive(Debug)]
pub struct Memory(Mapping);

impl Memory {
    /// Returns the word of 32 bits at a byte, a multiple of four.
    ///
    /// # Panics
    /// When the byte is outside the map, or no multiple of four.
    #[must_use]
    pub fn word(&self, byte: usize) -> &AtomicU32 {
        self.0.word(byte)
    }

    /// Returns the word of 64 bits at a byte, a multiple of eight.
    ///
    /// # Panics
    /// When the byte is outside the map, or no multiple of eight.
    #[must_use]
    pub fn long(&self, byte: usize) -> &AtomicU64 {
        self.0.long(byte)
    }
}

/// The place of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// The ingress of a device, after sockets have had the packet (TCX, Linux 6.6).
    Ingress,
    /// The egress of a device, before sockets and its queue have the packet (TCX, Linux 6.6).
    Egress,
    /// The driver of a device, or the first code of the kernel that its frames meet.
    Xdp,
}

impl ProgramKind {
    const fn type_and_place(self) -> (u32, u32) {
        match self {
            Self::Ingress => (3, 46),
            Self::Egress => (3, 47),
            Self::Xdp => (6, 37),
        }
    }
}

/// A function of a program, which the verifier looks at by itself: where it begins, and how many numbers it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The number of its first instruction.
    pub at: u32,
    /// Its name.
    pub name: String,
    /// How many numbers it takes.
    pub takes: u32,
}

/// A program that the kernel has accepted.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
    kind: ProgramKind,
}

impl Program {
    /// Loads a program of instructions of eight bytes. With `functions`, which must begin with the program itself at 0, each of them is
    /// verified once (Linux 5.6).
    ///
    /// # Errors
    /// Without CAP_BPF and CAP_NET_ADMIN, and when the verifier refuses. The error then has the verifier's last lines.
    pub fn load(kind: ProgramKind, name: &str, code: &[u8], functions: &[Function]) -> io::Result<Self> {
        let place = kind.type_and_place();
        let blob = types(functions);
        let of_functions = match functions {
            [] => None,
            _ => Some((sys::load_types(&blob)?, records(functions))),
        };
        let of_functions = of_functions.as_ref().map(|(fd, records)| (fd.as_fd(), &records[..]));
        let load = |log: &mut [u8]| sys::load_program(place, name, code, of_functions, log);
        // Without a log at first, because writing it takes the verifier longer than its work.
        match load(&mut []) {
            Ok(fd) => Ok(Self { fd, kind }),
            // The verifier says EACCES, so that a lack of rights is the other one.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) || functions.is_empty() => Err(error),
            Err(error) => {
                // Of a longer log, the kernel keeps the end (Linux 6.4), where the reason is.
                let mut log = vec![0; 1 << 20];
                let fd = load(&mut log).map_err(|_| {
                    let len = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
                    let said = String::from_utf8_lossy(&log[..len]);
                    let last: Vec<&str> = said.lines().rev().take(3).collect();
                    let last: Vec<&str> = last.into_iter().rev().collect();
                    io::Error::new(error.kind(), format!("{error}: the verifier says: {}", last.join("; ")))
                })?;
                Ok(Self { fd, kind })
            }
        }
    }

    /// Attaches the program to a device, by its number. `flags` are those of the kernel's call, such as the mode of XDP.
    ///
    /// # Errors
    /// When the device is gone, has such a program, or cannot have one.
    pub fn attach(&self, device: u32, flags: u32) -> io::Result<Link> {
        let (_, place) = self.kind.type_and_place();
        sys::create_link(self.fd.as_fd(), device, place, flags).map(|fd| Link { fd })
    }

    /// Runs the program once with a frame. Returns its verdict and the frame as it left it, in at most `most` bytes.
    ///
    /// # Errors
    /// When the frame is shorter than a header, or the kernel cannot run such a program.
    pub fn run(&self, frame: &[u8], most: usize) -> io::Result<(u32, Vec<u8>)> {
        // The kernel fails when the frame has become longer than there is room for.
        let mut out = vec![0; most];
        let (verdict, len) = sys::run_program(self.fd.as_fd(), frame, &mut out)?;
        out.truncate(len);
        Ok((verdict, out))
    }

    /// Runs the program once with a frame and the context of it, such as a `struct __sk_buff`, which the kernel then has as the
    /// program left it. Returns the verdict.
    ///
    /// # Errors
    /// When the frame is shorter than a header, or the kernel cannot run such a program so.
    pub fn run_in(&self, frame: &[u8], context: &mut [u8]) -> io::Result<u32> {
        sys::run_program_in(self.fd.as_fd(), frame, context)
    }
}

/// A program at a device, for as long as this value lives.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
}

impl Link {
    /// A link that another process made.
    #[must_use]
    pub const fn inherited(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Puts another program in the place of the present one: each frame goes through one of the two.
    ///
    /// # Errors
    /// When the device is gone, or the program is of another kind.
    pub fn replace(&self, program: &Program) -> io::Result<()> {
        sys::update_link(self.fd.as_fd(), program.fd.as_fd())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until every program that is running has ended.
#[derive(Debug)]
pub struct GracePeriod(Waiting);

impl GracePeriod {
    /// Returns a way that works on this machine.
    ///
    /// # Errors
    /// When there is none.
    pub fn new(grace: Grace) -> Result<Self, BpfError> {
        Waiting::of(grace).map(Self)
    }

    /// Waits: some 16 ms.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&self) -> Result<(), BpfError> {
        self.0.wait()
    }
}

/// Describes functions that take and return numbers, in the form of the kernel (Documentation/bpf/btf.rst).
fn types(functions: &[Function]) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut name = |text: &str| {
        let at = names.len() as u32;
        names.extend(text.bytes());
        names.push(0);
        at
    };
    // A number of 64 bits, and one of 32 with a sign: `kind << 24`, and the bits.
    let mut words: Vec<u32> = vec![name("long"), 1 << 24, 8, 64, name("int"), 1 << 24, 4, 1 << 24 | 32];
    let number = name("number");
    for (at, function) in functions.iter().enumerate() {
        words.extend([0, 13 << 24 | function.takes, 2]);
        (0..function.takes).for_each(|_| words.extend([number, 1]));
        // Of global linkage, which has it verified by itself.
        words.extend([name(&function.name), 12 << 24 | 1, prototype(at)]);
    }
    // The header has a magic number with the version, its own length and no flags. The types follow, and the names come last.
    let len = 4 * words.len() as u32;
    let header = [0x0001_eb9f, 24, 0, len, len, names.len() as u32];
    let mut bytes: Vec<u8> = header.iter().chain(&words).flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend(names);
    bytes
}

/// Returns the number of the prototype of the function at this place. Its own type is the next.
const fn prototype(at: usize) -> u32 {
    // The first two types are numbers.
    3 + 2 * at as u32
}

/// Returns the records of functions: where each begins, and its type.
fn records(functions: &[Function]) -> Vec<u8> {
    let all = functions.iter().enumerate();
    all.flat_map(|(at, function)| [function.at, prototype(at) + 1]).flat_map(u32::to_ne_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_numbered_in_pairs_after_the_two_numbers() {
        let function = |at, name: &str, takes| Function { at, name: name.to_owned(), takes };
        let functions = [function(0, "main", 1), function(9, "find", 2)];
        let blob = types(&functions);
        let word = |at: usize| u32::from_ne_bytes([blob[at], blob[at + 1], blob[at + 2], blob[at + 3]]);
        let (len, names) = (word(12) as usize, word(20) as usize);
        assert_eq!(blob.len(), 24 + len + names);
        // Two numbers of 4 words; then prototypes of 3 words and 2 for each number, and functions of 3.
        assert_eq!(len, 4 * (8 + 3 + 2 + 3 + 3 + 4 + 3));
        assert_eq!(records(&functions), [0, 4, 9, 6].map(u32::to_ne_bytes).concat());
        let at = 24 + len + word(24 + 4 * 13) as usize;
        assert_eq!(&blob[at..at + 5], b"main\0");
    }
}
