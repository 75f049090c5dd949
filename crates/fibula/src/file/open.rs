//! Reads a file: as a verified copy, or where it lies.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::auto::{self, Workload};
use crate::check::CheckError;
use crate::fib::registry::{Engines, is_published};
use crate::fib::sections::{Array, Element, FileWords, Parts, PartsError};
use crate::fib::{Fib, WithLength};
use crate::memory::{Budget, Limits, Mapping, OutOfMemory, Shared};
use crate::net::{Dual, Key};

use super::column::StoredColumn;
use super::columns::columns;
use super::error::FileErrorKind;
use super::format::{HEADER_BYTES, Header, MATCHES, Section, read_table};
use super::part::Part;
use super::routes::{Addresses, StoredRoutes};

/// The contents of a file that was read.
pub(super) struct Opened {
    pub(super) parts: Dual<Part<u32>, Part<u128>>,
    pub(super) columns: Vec<StoredColumn>,
}

/// A file whose header and section table are good.
struct Head {
    sections: Vec<Section>,
    families: u32,
}

/// Opens a copy: verifies every checksum and every invariant.
pub(super) fn copy(
    mut input: impl Read + Seek,
    limits: Limits,
    engines: Engines,
) -> Result<Opened, FileErrorKind> {
    // Not generic, so that it is compiled once, here.
    copy_of(&mut input, limits, engines)
}

fn copy_of(input: &mut dyn ReadSeek, limits: Limits, engines: Engines) -> Result<Opened, FileErrorKind> {
    let mut source = CopySource { input, limits, held_bytes: 0 };
    let head = source.head()?;
    let (opened, others) = open(&mut source, head, limits, engines)?;
    // Unknown sections are verified, too, because damage anywhere in a copied file is reported.
    for section in others {
        source.skim(&section)?;
    }
    verify(&opened.parts.v4)?;
    verify(&opened.parts.v6)?;
    opened.columns.iter().try_for_each(verify_column)?;
    Ok(opened)
}

/// Opens a file where it lies: verifies the header, the section table and the small sections. Returns `None` where the system maps
/// no files.
pub(super) fn map(file: &File, limits: Limits) -> Result<Option<Opened>, FileErrorKind> {
    let mut input = file;
    let mut copying = CopySource { input: &mut input, limits, held_bytes: 0 };
    let head = copying.head()?;
    let bytes = head.sections.last().map_or(HEADER_BYTES as u64, |last| last.offset + last.bytes);
    let Ok(bytes) = usize::try_from(bytes) else { return Ok(None) };
    let mapping = match Mapping::of(file, bytes) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
        mapping => mapping.map_err(FileErrorKind::io("mapped"))?,
    };
    let mut source = MappedSource { copying, mapping: Arc::new(mapping) };
    let (opened, _) = open(&mut source, head, limits, Engines::OWN)?;
    // What had to be copied is as good as a copy.
    verify_copied(&opened.parts.v4)?;
    verify_copied(&opened.parts.v6)?;
    Ok(Some(opened))
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

struct CopySource<'a> {
    input: &'a mut dyn ReadSeek,
    limits: Limits,
    /// Bytes of all sections that were read and kept: the limit is for their sum.
    held_bytes: usize,
}

trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Bytes that are read and summed in one step. So few bytes are still in the cache when they are summed.
const CHUNK: usize = 256 << 10;

impl CopySource<'_> {
    fn head(&mut self) -> Result<Head, FileErrorKind> {
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
        let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
        while left > 0 {
            let count = chunk.len().min(usize::try_from(left).unwrap_or(CHUNK));
            self.input.read_exact(&mut chunk[..count]).map_err(&failed)?;
            crc.update(&chunk[..count]);
            left -= count as u64;
        }
        checked(crc, section)
    }
}

struct MappedSource<'a> {
    copying: CopySource<'a>,
    mapping: Arc<Mapping>,
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
pub(super) struct FileSections(BTreeMap<String, Section>);

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
    fn take_all(&mut self, prefix: &str) -> Vec<Section> {
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

fn open(
    source: &mut dyn Source,
    head: Head,
    limits: Limits,
    engines: Engines,
) -> Result<(Opened, Vec<Section>), FileErrorKind> {
    let mut sections = FileSections::default();
    for section in head.sections {
        sections.0.insert(section.name.clone(), section);
    }
    let parts = Dual::new(
        part(source, &mut sections, limits, engines)?,
        part(source, &mut sections, limits, engines)?,
    );
    let columns = columns(source, &mut sections, limits)?;
    // A table that lacks the sections of a family which the header has is damaged.
    let families = u32::from(!parts.v4.is_empty()) | u32::from(!parts.v6.is_empty()) << 1;
    if families != head.families {
        return Err(FileErrorKind::Damaged("header".to_owned()));
    }
    // Left are sections of later versions. They matter only if their writer says that they are needed.
    let others: Vec<Section> = sections.0.into_values().collect();
    match others.iter().find(|section| section.is_needed) {
        Some(section) => Err(FileErrorKind::NewerSection(section.name.clone())),
        None => Ok((Opened { parts, columns }, others)),
    }
}

/// Opens the sections of a family.
fn part<K: Key>(
    source: &mut dyn Source,
    sections: &mut FileSections,
    limits: Limits,
    engines: Engines,
) -> Result<Part<K>, FileErrorKind> {
    let mut part = Part::default();
    let structure = format!("{}/structure", K::FAMILY.name());
    let prefix = format!("{structure}/");
    if let Some(section) = sections.take(&structure) {
        let text = source.bytes(&section)?;
        let damaged = || FileErrorKind::Damaged(structure.clone());
        let (engine, shape) = parse(&text).ok_or_else(damaged)?;
        // An engine that files cannot hold counts as unknown.
        let found = engines.find::<K>(&engine).ok().and_then(|found| Some((found, found.open?)));
        let Some((found, make)) = found else {
            return rebuilt(source, sections, limits, engine);
        };
        // An engine whose words must not change is copied, from a mapped file too.
        part.is_mapped = source.maps() && found.maps;
        let mut arrays = Vec::new();
        for section in sections.take_all(&prefix) {
            let array = if part.is_mapped { source.array(&section)? } else { source.copy(&section)? };
            arrays.push((section.name[prefix.len()..].to_owned(), array));
        }
        let fib = make(Parts::new(limits, shape, arrays)).map_err(|error| match error {
            PartsError::Memory(error) => FileErrorKind::Memory(error),
            error => FileErrorKind::Broken { engine, error },
        })?;
        (part.engine, part.fib) = (Some(found.name), Some(fib));
        let matches = format!("{}/{MATCHES}", K::FAMILY.name());
        if sections.contains(&matches) {
            let matches = sections.shared(source, &matches)?;
            part.fib = part.fib.map(|fib| Box::new(WithLength::of_file(fib, matches)) as Box<dyn Fib<K>>);
        }
    }
    part.routes = routes(source, sections)?;
    Ok(part)
}

/// Builds another engine from the routes, for a file that has an engine for comparison, which this crate lacks.
fn rebuilt<K: Key>(
    source: &mut dyn Source,
    sections: &mut FileSections,
    limits: Limits,
    engine: String,
) -> Result<Part<K>, FileErrorKind> {
    if !is_published(&engine) {
        return Err(FileErrorKind::Unknown(engine));
    }
    // The arrays are not used, but damage in them is reported all the same.
    for section in sections.take_all(&format!("{}/structure/", K::FAMILY.name())) {
        source.skim(&section)?;
    }
    let Some(routes) = routes::<K>(source, sections)? else {
        return Err(FileErrorKind::Published(engine));
    };
    // Its pairs of next hops and lengths are not those of the new one, which the routes give.
    if let Some(section) = sections.take(&format!("{}/{MATCHES}", K::FAMILY.name())) {
        source.skim(&section)?;
    }
    // Before the build, because engines rely on the order of the routes.
    if let Some(at) = routes.disorder() {
        return Err(FileErrorKind::Disorder { what: format!("{}/routes", K::FAMILY.name()), at });
    }
    let chosen = auto::choose_for(&routes, &Workload::default(), None, limits)
        .map_err(|error| FileErrorKind::Rebuild { engine: engine.clone(), error })?;
    Ok(Part {
        engine: chosen.choice.map(|choice| choice.engine.name),
        fib: Some(chosen.fib),
        routes: Some(routes),
        replaced: Some(engine),
        is_mapped: false,
    })
}

fn routes<K: Key>(
    source: &mut dyn Source,
    sections: &mut FileSections,
) -> Result<Option<StoredRoutes<K>>, FileErrorKind> {
    let name = |column: &str| format!("{}/routes/{column}", K::FAMILY.name());
    let addresses = name("addresses");
    // A file may have an engine and no routes.
    if !sections.0.contains_key(&addresses) {
        return Ok(None);
    }
    let column = if K::BITS == 32 {
        Addresses::Narrow(sections.shared(source, &addresses)?)
    } else {
        Addresses::Wide(sections.shared(source, &addresses)?)
    };
    let lengths = sections.shared(source, &name("lengths"))?;
    let next_hops = sections.shared(source, &name("next-hops"))?;
    let routes = StoredRoutes::new(column, lengths, next_hops);
    routes.map(Some).ok_or(FileErrorKind::Disorder { what: addresses, at: 0 })
}

/// Reads the text of an engine: one line for its name, and one for each of its numbers.
fn parse(text: &[u8]) -> Option<(String, Vec<(String, u64)>)> {
    let mut lines = core::str::from_utf8(text).ok()?.lines();
    let engine = lines.next()?.strip_prefix("algorithm ")?.to_owned();
    let shape = lines.map(|line| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    Some((engine, shape.collect::<Option<_>>()?))
}

/// Verifies every invariant of a copied part.
pub(super) fn verify<K: Key>(part: &Part<K>) -> Result<(), FileErrorKind> {
    if let (Some(fib), Some(engine)) = (&part.fib, part.engine) {
        fib.check()
            .map_err(|error| FileErrorKind::Broken { engine: engine.to_owned(), error: error.into() })?;
    }
    match part.routes.as_ref().and_then(StoredRoutes::disorder) {
        Some(at) => Err(FileErrorKind::Disorder { what: format!("{}/routes", K::FAMILY.name()), at }),
        None => Ok(()),
    }
}

/// Verifies the engine of a mapped file, if it was copied.
fn verify_copied<K: Key>(part: &Part<K>) -> Result<(), FileErrorKind> {
    match (&part.fib, part.engine) {
        (Some(fib), Some(engine)) if !part.is_mapped => {
            let broken =
                |error: CheckError| FileErrorKind::Broken { engine: engine.to_owned(), error: error.into() };
            fib.check().map_err(broken)
        }
        _ => Ok(()),
    }
}

/// Verifies a column that was copied.
pub(super) fn verify_column(column: &StoredColumn) -> Result<(), FileErrorKind> {
    let damaged = |at| FileErrorKind::Disorder { what: format!("column {}", column.name()), at };
    column.disorder().map_or(Ok(()), |at| Err(damaged(at)))
}
