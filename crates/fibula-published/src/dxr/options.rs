//! The options of a build.

/// The form in which DXR is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Leading bits of the key that index the direct table: 16 to 24 for IPv4.
    pub k: u8,
    /// Format of the entries.
    pub format: Format,
    /// How chunks are searched.
    pub search: Search,
}

/// The format of the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As section 3.2 of the paper draws it: 12 bits of size, 19 of position.
    Drawn,
    /// As drawn where the table fits; otherwise the 31 bits are split differently and chunks are padded, as
    /// section 3.2 describes.
    Stretched,
    /// 8-byte direct entries and 6-byte range entries, which hold any table.
    Wide,
}

/// How a chunk is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Halves the chunk and stops as soon as the key lies between two neighbours: few steps, and a branch on
    /// the key in each of them.
    EarlyStop,
    /// Halves the chunk until one entry is left: always log2 steps, no branch on the key.
    BranchFree,
}

impl Search {
    /// Returns the name of the search in benchmark records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EarlyStop => "early-stop",
            Self::BranchFree => "branch-free",
        }
    }
}
