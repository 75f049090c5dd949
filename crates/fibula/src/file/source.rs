//! Where the sections of a file come from: a verified copy of them, or the file where it lies.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::fib::sections::{Array, Element, FileWords};
use crate::memory::{Budget, Limits, Mapping, OutOfMemory, Shared};

use super::error::FileErrorKind;
use super::format::{HEADER_BYTES, Header, Section, read_table};

/// A file whose header and section table are good.
pub(super) struct Head {
    pub(super) sections: Vec<Section>,
    pub(super) families: u32,
}

/// A source of sections.
pub(super) trait Source {
    /// Returns whether words may change after they are opened.
    fn maps(&self) -> bool;

    /// Returns the words of a section, in the width that it gives.
    fn array(&mut self, section: &Section) -> Result<Array, FileErrorKind>;

    /// Returns a verified copy of the words of a section.
    fn copy(&mut self, section: &Section) -> Result<Array, FileErrorKind>;

    /// Returns the bytes of a section, verified.
    fn bytes(&mut self, section: &Section) -> Result<Vec<u8>, FileErrorKind>;

    /// Verifies a section that is not used, without keeping it.
    fn skim(&mut self, section: &Section) -> Result<(), FileErrorKind>;
}

pub(super) struct CopySource<'a> {
    pub(super) input: &'a mut dyn ReadSeek,
    pub(super) limits: Limits,
    /// Bytes of all sections that were read and kept: the limit is for their sum.
    pub(super) held_bytes: usize,
}

pub(super) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Bytes that are read and summed in one step. So few bytes are still in the cache when they are summed.
const CHUNK: usize = 256 << 10;

/// The same where nothing is kept: one buffer for all, which the allocator has at hand.
const SKIMMED: usize = 64 << 10;

impl CopySource<'_> {
    pub(super) fn head(&mut self) -> Result<Head, FileErrorKind> {
        let failed = FileErrorKind::io("read");
        let bytes = self.input.seek(SeekFrom::End(0)).map_err(&failed)?;
        self.input.rewind().map_err(&failed)?;
        let mut head = [0; HEADER_BYTES];
        // A file that is shorter than a header is read too, because `Header::read` tells foreign files from truncated
        // ones.
        let there = HEADER_BYTES.min(usize::try_from(bytes).unwrap_or(HEADER_BYTES));
        self.input.read_exact(&mut head[..there]).map_err(&failed)?;
        let header = Header::read(&head[..there])?;
        match header.bytes {
            needed if bytes < needed => return Err(FileErrorKind::Truncated { bytes, needed }),
            needed if bytes > needed => return Err(FileErrorKind::Longer { bytes, needed }),
            _ => {}
        }
        let mut table = vec![0; header.table_bytes()];
        self.input.read_exact(&mut table).map_err(&failed)?;
        Ok(Head { sections: read_table(header, &table)?, families: header.families })
    }

    /// Reads the bytes of a section into `to`, and verifies them.
    fn read(&mut self, section: &Section, to: &mut [u8]) -> Result<(), FileErrorKind> {
        let failed = FileErrorKind::io("read");
        self.input.seek(SeekFrom::Start(section.offset)).map_err(&failed)?;
        let mut crc = crc32fast::Hasher::new();
        // A chunk is still in the cache when its checksum is computed.
        for chunk in to.chunks_mut(CHUNK) {
            self.input.read_exact(chunk).map_err(&failed)?;
            crc.update(chunk);
        }
        checked(crc, section)
    }

    /// Counts the bytes of a section that is kept.
    fn hold(&mut self, section: &Section) -> Result<(), FileErrorKind> {
        let wanted_bytes = usize::try_from(section.bytes).unwrap_or(usize::MAX);
        let used_bytes = self.held_bytes;
        let sum = used_bytes.saturating_add(wanted_bytes);
        if let Some(limit) = self.limits.memory_bytes.filter(|&limit| sum > limit) {
            let limit_bytes = Some(limit);
            return Err(FileErrorKind::Memory(OutOfMemory { wanted_bytes, used_bytes, limit_bytes }));
        }
        self.held_bytes = sum;
        Ok(())
    }
}

/// Compares the sum of all bytes of a section with the one in its table.
fn checked(crc: crc32fast::Hasher, section: &Section) -> Result<(), FileErrorKind> {
    if crc.finalize() == section.crc { Ok(()) } else { Err(FileErrorKind::Damaged(section.name.clone())) }
}

/// Returns the number of words of this width in a section.
fn words<T>(section: &Section) -> Result<usize, FileErrorKind> {
    let is_width = section.width as usize == size_of::<T>();
    let count = usize::try_from(section.words()).ok().filter(|_| is_width);
    count.ok_or_else(|| FileErrorKind::Damaged(section.name.clone()))
}

impl CopySource<'_> {
    fn copied<T: Element>(&mut self, section: &Section) -> Result<Array, FileErrorKind> {
        let count = words::<T>(section)?;
        // Against the sum over all sections. The budget of one buffer would know that buffer alone.
        self.hold(section)?;
        let mut buffer = Budget::new(self.limits).buffer::<T>(count)?;
        buffer.append_read(count, |bytes| self.read(section, bytes))?;
        Ok(T::array(FileWords::Copied(buffer)))
    }
}

impl Source for CopySource<'_> {
    fn maps(&self) -> bool {
        false
    }

    fn array(&mut self, section: &Section) -> Result<Array, FileErrorKind> {
        self.copy(section)
    }

    fn copy(&mut self, section: &Section) -> Result<Array, FileErrorKind> {
        match section.width {
            1 => self.copied::<u8>(section),
            2 => self.copied::<u16>(section),
            4 => self.copied::<u32>(section),
            8 => self.copied::<u64>(section),
            _ => Err(FileErrorKind::Damaged(section.name.clone())),
        }
    }

    fn bytes(&mut self, section: &Section) -> Result<Vec<u8>, FileErrorKind> {
        let count =
            usize::try_from(section.bytes).map_err(|_| FileErrorKind::Damaged(section.name.clone()))?;
        self.hold(section)?;
        let mut bytes = Budget::new(self.limits).vec(count)?;
        bytes.resize(count, 0);
        self.read(section, &mut bytes)?;
        Ok(bytes)
    }

    fn skim(&mut self, section: &Section) -> Result<(), FileErrorKind> {
        let failed = FileErrorKind::io("read");
        self.input.seek(SeekFrom::Start(section.offset)).map_err(&failed)?;
        let (mut crc, mut left) = (crc32fast::Hasher::new(), section.bytes);
        let mut chunk = vec![0; SKIMMED.min(usize::try_from(left).unwrap_or(SKIMMED))];
        while left > 0 {
            let count = chunk.len().min(usize::try_from(left).unwrap_or(SKIMMED));
            self.input.read_exact(&mut chunk[..count]).map_err(&failed)?;
            crc.update(&chunk[..count]);
            left -= count as u64;
        }
        checked(crc, section)
    }
}

pub(super) struct MappedSource<'a> {
    pub(super) copying: CopySource<'a>,
    pub(super) mapping: Arc<Mapping>,
}

impl MappedSource<'_> {
    fn mapped<T: Element>(&self, section: &Section) -> Result<Array, FileErrorKind> {
        let count = words::<T>(section)?;
        let from = usize::try_from(section.offset).ok();
        let words = from.and_then(|from| self.mapping.words::<T>(from, count));
        words
            .map(|words| T::array(FileWords::Mapped(words)))
            .ok_or_else(|| FileErrorKind::Damaged(section.name.clone()))
    }
}

impl Source for MappedSource<'_> {
    fn maps(&self) -> bool {
        true
    }

    fn array(&mut self, section: &Section) -> Result<Array, FileErrorKind> {
        match section.width {
            1 => self.mapped::<u8>(section),
            2 => self.mapped::<u16>(section),
            4 => self.mapped::<u32>(section),
            8 => self.mapped::<u64>(section),
            _ => Err(FileErrorKind::Damaged(section.name.clone())),
        }
    }

    fn copy(&mut self, section: &Section) -> Result<Array, FileErrorKind> {
        self.copying.copy(section)
    }

    fn bytes(&mut self, section: &Section) -> Result<Vec<u8>, FileErrorKind> {
        self.copying.bytes(section)
    }

    fn skim(&mut self, section: &Section) -> Result<(), FileErrorKind> {
        self.copying.skim(section)
    }
}

/// Sections by name. They are taken one by one.
#[derive(Default)]
pub(super) struct FileSections(pub(super) BTreeMap<String, Section>);

impl FileSections {
    pub(super) fn take(&mut self, name: &str) -> Option<Section> {
        self.0.remove(name)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the bytes of a word of a section.
    pub(super) fn width(&self, name: &str) -> Option<u32> {
        self.0.get(name).map(|section| section.width)
    }

    /// Takes all sections whose names begin with `prefix`.
    pub(super) fn take_all(&mut self, prefix: &str) -> Vec<Section> {
        // Names first, because the map changes while sections are taken.
        let names: Vec<String> = self.0.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        names.iter().filter_map(|name| self.take(name)).collect()
    }

    fn array<T: Element>(
        &mut self,
        source: &mut dyn Source,
        name: &str,
    ) -> Result<FileWords<T>, FileErrorKind> {
        let damaged = || FileErrorKind::Damaged(name.to_owned());
        let section = self.take(name).ok_or_else(damaged)?;
        T::found(source.array(&section)?).ok_or_else(damaged)
    }

    pub(super) fn shared<T: Element>(
        &mut self,
        source: &mut dyn Source,
        name: &str,
    ) -> Result<Shared<T>, FileErrorKind> {
        Ok(match self.array(source, name)? {
            FileWords::Copied(words) => words.into(),
            FileWords::Mapped(words) => words,
        })
    }
}
