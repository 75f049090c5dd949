//! The header and the section table, as bytes.

use super::VERSION;
use super::error::FileErrorKind;

/// The first bytes. The first one is not text. The last one is a line end, which transfers in text mode would change.
pub(super) const MAGIC: [u8; 8] = *b"\x89FIBULA\n";

/// Detects a file with swapped bytes in its words.
const MARK: u32 = 0x0102_0304;

pub(super) const HEADER_BYTES: usize = 64;
pub(super) const SECTION_BYTES: usize = 64;

/// Longest name of a section.
const NAME_BYTES: usize = 32;

/// The most sections. A larger number is damage.
const SECTIONS: u32 = 1 << 10;

/// The end of the name of a section: the pairs of next hops and lengths that the next hops of an engine number.
pub(super) const MATCHES: &str = "matches";

/// The alignments of sections: small ones to a cache line, others to a page, large arrays of engines to a huge page.
pub(super) const LINE: u64 = 64;
pub(super) const PAGE: u64 = 4096;
pub(super) const HUGE: u64 = 2 << 20;

/// The header of a file, without the fields that are the same in all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) sections: u32,
    /// Bit 0 for IPv4, bit 1 for IPv6.
    pub(super) families: u32,
    /// The bytes of the whole file.
    pub(super) bytes: u64,
    /// The checksum of the section table.
    pub(super) table_crc: u32,
}

/// A line of the section table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    /// Bytes of a word: 1, 2, 4 or 8.
    pub(super) width: u32,
    pub(super) crc: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Whether a program that does not know the section must refuse the file.
    pub(super) is_needed: bool,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    // The slice has this length, so the default is never used.
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

impl Header {
    /// Bytes before the checksum.
    const SUMMED: usize = HEADER_BYTES - 4;

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        for (at, word) in [(8, self.version), (12, MARK), (16, self.sections), (20, self.families)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.table_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..Self::SUMMED]);
        bytes[Self::SUMMED..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the first bytes of a file, which may be fewer than a header's. The fields before the version, the version and
    /// the checksum have the same places in all versions.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, FileErrorKind> {
        // A file that ends within the magic number counts as truncated, if it agrees so far.
        let magic = bytes.get(..MAGIC.len()).unwrap_or(bytes);
        if bytes.is_empty() || !MAGIC.starts_with(magic) {
            return Err(FileErrorKind::Foreign);
        }
        if bytes.len() < HEADER_BYTES {
            return Err(FileErrorKind::Truncated { bytes: bytes.len() as u64, needed: HEADER_BYTES as u64 });
        }
        // Before the checksum, which swapped words would not match either.
        if word(bytes, 12) == MARK.swap_bytes() {
            return Err(FileErrorKind::Swapped);
        }
        // Before the version, so that a damaged version is not reported as a newer one.
        if crc32fast::hash(&bytes[..Self::SUMMED]) != word(bytes, Self::SUMMED) {
            return Err(FileErrorKind::Damaged("header".to_owned()));
        }
        let version = word(bytes, 8);
        if version > VERSION {
            return Err(FileErrorKind::Newer { version });
        }
        let header = Self {
            version,
            sections: word(bytes, 16),
            families: word(bytes, 20),
            bytes: long(bytes, 24),
            table_crc: word(bytes, 32),
        };
        // Comparing all bytes covers those that belong to no field, too.
        let is_right =
            header.to_bytes() == *bytes && version > 0 && header.sections <= SECTIONS && header.families < 4;
        let end = HEADER_BYTES as u64 + u64::from(header.sections) * SECTION_BYTES as u64;
        if is_right && end <= header.bytes {
            Ok(header)
        } else {
            Err(FileErrorKind::Damaged("header".to_owned()))
        }
    }

    /// Returns the bytes of the section table.
    pub(super) fn table_bytes(self) -> usize {
        self.sections as usize * SECTION_BYTES
    }
}

impl Section {
    pub(super) fn to_bytes(&self) -> [u8; SECTION_BYTES] {
        let mut bytes = [0; SECTION_BYTES];
        let name = self.name.as_bytes();
        bytes[..name.len()].copy_from_slice(name);
        bytes[32..36].copy_from_slice(&self.width.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.crc.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.offset.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[56] = self.is_needed.into();
        bytes
    }

    fn read(bytes: &[u8; SECTION_BYTES]) -> Option<Self> {
        let len = bytes[..NAME_BYTES].iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        let name = core::str::from_utf8(&bytes[..len]).ok()?.to_owned();
        let section = Self {
            width: word(bytes, 32),
            crc: word(bytes, 36),
            offset: long(bytes, 40),
            bytes: long(bytes, 48),
            is_needed: bytes[56] == 1,
            name,
        };
        // Comparing all bytes covers the padding of the name and the spare bytes, too.
        let is_right = section.to_bytes() == *bytes
            && [1, 2, 4, 8].contains(&section.width)
            && section.bytes.is_multiple_of(section.width.into())
            && section.offset.is_multiple_of(LINE);
        is_right.then_some(section)
    }

    /// Returns the number of words.
    pub(super) fn words(&self) -> u64 {
        self.bytes / u64::from(self.width)
    }
}

/// Reads the section table: sections must follow each other within the bytes of the file, and have different names.
pub(super) fn read_table(header: Header, bytes: &[u8]) -> Result<Vec<Section>, FileErrorKind> {
    let damaged = || FileErrorKind::Damaged("section table".to_owned());
    if crc32fast::hash(bytes) != header.table_crc {
        return Err(damaged());
    }
    let mut sections: Vec<Section> = Vec::new();
    let mut end = (HEADER_BYTES + bytes.len()) as u64;
    for line in bytes.as_chunks::<SECTION_BYTES>().0 {
        let section = Section::read(line).ok_or_else(damaged)?;
        let its_end = section.offset.checked_add(section.bytes).ok_or_else(damaged)?;
        let is_new = sections.iter().all(|known| known.name != section.name);
        if section.offset < end || its_end > header.bytes || !is_new {
            return Err(damaged());
        }
        end = its_end;
        sections.push(section);
    }
    // The last section ends the file, so that appended bytes are noticed.
    if end == header.bytes { Ok(sections) } else { Err(damaged()) }
}
