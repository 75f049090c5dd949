//! Options that callers fill in.

use engine::memory::Limits;
use engine::net::{Key, Prefix};

use crate::error::{Code, Failure, Outcome};

/// `fibula_options`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct OptionsPlace {
    size: u32,
    flags: u32,
    memory_limit: u64,
    reserved: [u64; 6],
}

const _: () = assert!(size_of::<OptionsPlace>() == 64);

pub const MAP: u32 = 1;
pub const VERIFY: u32 = 2;
pub const SMALL_PAGES: u32 = 4;
pub const LAST_WINS: u32 = 8;
pub const MASK: u32 = 16;
pub const FASTEST: u32 = 32;
const ALL: u32 = 63;

/// Options, read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub flags: u32,
    pub memory_limit: Option<usize>,
}

impl Options {
    /// Reads options; the default ones for NULL.
    ///
    /// # Safety
    /// The pointer is NULL or leads to as many readable bytes as its first four say, 4 at least.
    pub unsafe fn read(options: *const OptionsPlace) -> Outcome<Self> {
        if options.is_null() {
            return Ok(Self::default());
        }
        // SAFETY: the caller's promise; the size comes first, in every version.
        let size = unsafe { options.cast::<u32>().read() } as usize;
        // A larger struct is of a newer header, whose further options this library does not know.
        if size != size_of::<OptionsPlace>() {
            return Err(Failure::argument(
                "options have a size that this version does not know: use FIBULA_OPTIONS",
            ));
        }
        // SAFETY: the caller's promise, of this size.
        let OptionsPlace { flags, memory_limit, reserved, .. } = unsafe { options.read() };
        if flags & !ALL != 0 || reserved != [0; 6] {
            return Err(Failure::argument("options have a flag that this version does not know"));
        }
        let memory_limit = match memory_limit {
            0 => None,
            bytes => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
        };
        Ok(Self { flags, memory_limit })
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns the prefix of an address and a length. Bits after the length are cleared with [`MASK`], and else an error.
    pub fn prefix<K: Key>(&self, address: K, length: u8) -> Outcome<Prefix<K>> {
        let prefix =
            if self.has(MASK) { Prefix::masked(address, length) } else { Prefix::new(address, length) };
        prefix.map_err(|error| Failure::new(Code::Invalid, error.to_string()))
    }

    pub fn limits(&self) -> Limits {
        Limits { memory_bytes: self.memory_limit, huge_pages: !self.has(SMALL_PAGES) }
    }
}
