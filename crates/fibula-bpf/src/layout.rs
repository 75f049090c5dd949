//! How words are in maps: engines, sizes, and the header map. `include/fibula_bpf.h` has the same.

use fibula::net::Family;

/// The layout of the maps, which has a number so that programs of another one refuse them.
pub const LAYOUT: u32 = 1;

/// The first word of a header map.
pub(crate) const MAGIC: u32 = 0x6269_6675;

/// Most arrays of an engine.
pub const ARRAYS: usize = 4;

/// The kind of map that the words are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Backend {
    /// An array map for each array of the engine, whose room is taken when it is made (Linux 5.5).
    #[default]
    Arrays,
    /// One arena, whose pages take memory when they are written (Linux 6.9, on processors whose JIT knows arenas).
    Arena,
}

impl Backend {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrays => "arrays",
            Self::Arena => "arena",
        }
    }
}

/// An engine that programs look up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// `dir-18-lines`, for IPv4: two loads for most addresses.
    Dir18Lines,
    /// `dir-17-bitmap`, for IPv4: a third of the memory, with counting of bits.
    Dir17Bitmap,
    /// `dir-btree`, for IPv6.
    DirBtree,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Dir18Lines, Self::Dir17Bitmap, Self::DirBtree];

    /// Returns the engine of a family that is taken unless another is named.
    #[must_use]
    pub const fn of(family: Family) -> Self {
        match family {
            Family::Ipv4 => Self::Dir18Lines,
            Family::Ipv6 => Self::DirBtree,
        }
    }

    /// Returns the engine of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// Returns its name in the registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dir18Lines => "dir-18-lines",
            Self::Dir17Bitmap => "dir-17-bitmap",
            Self::DirBtree => "dir-btree",
        }
    }

    /// Returns how the names of its maps begin. The kernel takes fifteen characters of a name.
    pub(crate) const fn map_name(self) -> &'static str {
        match self {
            Self::Dir18Lines => "fib4lines",
            Self::Dir17Bitmap => "fib4bitmap",
            Self::DirBtree => "fib6btree",
        }
    }

    /// Returns its family.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::DirBtree => Family::Ipv6,
            _ => Family::Ipv4,
        }
    }

    /// Returns its number in header maps, which the size of the map has too.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Dir18Lines => 1,
            Self::Dir17Bitmap => 2,
            Self::DirBtree => 3,
        }
    }

    pub(crate) fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.number() == number)
    }

    /// Returns the bytes of its header map, which programs for other maps have of another size.
    pub(crate) const fn header_bytes(self, backend: Backend) -> u32 {
        let more = match backend {
            Backend::Arrays => 0,
            Backend::Arena => 8,
        };
        1024 * LAYOUT + 16 * self.number() + more
    }

    /// Returns the bytes of a word of each array.
    #[must_use]
    pub const fn word_bytes(self) -> &'static [usize] {
        match self {
            Self::Dir18Lines => &[4, 4, 4, 4],
            Self::Dir17Bitmap => &[4, 8],
            Self::DirBtree => &[4, 4, 4],
        }
    }

    /// Returns the binary logarithms of the bytes of each array in the header without sizes of its own: a full table of 2026
    /// twice, with next hops up to 254.
    #[must_use]
    pub const fn default_rooms(self) -> [u8; ARRAYS] {
        match self {
            Self::Dir18Lines => [20, 23, 19, 22],
            Self::Dir17Bitmap => [19, 22, 0, 0],
            Self::DirBtree => [21, 22, 21, 0],
        }
    }

    /// Returns the name of the number by which its words are read.
    pub(crate) const fn number_name(self) -> &'static str {
        match self {
            Self::Dir18Lines => "width",
            Self::Dir17Bitmap => "step",
            Self::DirBtree => "first-bits",
        }
    }

    /// Returns the bytes of its first array for values of this many bits, if values shape it: `dir-18-lines` has more entries for
    /// wider ones.
    pub(crate) const fn entries_room(self, greatest: u32) -> Option<u8> {
        match self {
            Self::Dir18Lines => Some(match greatest {
                0..0xff => 20,
                0xff..0xffff => 21,
                _ => 22,
            }),
            _ => None,
        }
    }

    /// Returns the name of the engine's constant and of its family in C.
    pub(crate) const fn c_names(self) -> (&'static str, &'static str) {
        match self {
            Self::Dir18Lines => ("FIBULA_DIR_18_LINES", "IPV4"),
            Self::Dir17Bitmap => ("FIBULA_DIR_17_BITMAP", "IPV4"),
            Self::DirBtree => ("FIBULA_DIR_BTREE", "IPV6"),
        }
    }
}

/// The largest room: the verifier of programs takes offsets below 2^29, and both halves of an array are within one.
pub(crate) const ROOM_MOST: u8 = 28;

/// Places in the header map, in bytes. The first line changes only with the words' place, the third one every second.
pub(crate) mod at {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const LAYOUT: usize = 4;
    /// The word that lookups read, unless they do in an arena: see `FIBULA_STATE` in the header for programs.
    pub(crate) const STATE: usize = 8;
    pub(crate) const FAMILY: usize = 12;
    pub(crate) const ENGINE: usize = 16;
    pub(crate) const ROOMS: usize = 20;
    pub(crate) const GENERATION: usize = 128;
    pub(crate) const VERSION: usize = 136;
    pub(crate) const ROUTES: usize = 144;
    pub(crate) const BYTES: usize = 152;
    /// Seconds since 1970.
    pub(crate) const HEARTBEAT: usize = 160;
    pub(crate) const FOLLOWER: usize = 168;
}
