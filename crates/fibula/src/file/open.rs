//! Reads a file: as a verified copy, or where it lies.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;

use crate::check::CheckError;
use crate::fib::registry::Engines;
use crate::fib::sections::{Parts, PartsError};
use crate::fib::{Fib, WithLength};
use crate::memory::{Limits, Mapping};
use crate::net::{Dual, Key};

use super::column::StoredColumn;
use super::columns::columns;
use super::error::FileErrorKind;
use super::format::{HEADER_BYTES, MATCHES, Section};
use super::part::Part;
use super::routes::{Addresses, StoredRoutes};
use super::source::{CopySource, FileSections, Head, MappedSource, ReadSeek, Source};

/// The contents of a file that was read.
pub(super) struct Opened {
    pub(super) parts: Dual<Part<u32>, Part<u128>>,
    pub(super) columns: Vec<StoredColumn>,
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

/// Opens a file where it lies: verifies the header, the section table and the small sections, and every section if `summed`. Returns
/// `None` where the system maps no files.
pub(super) fn map(
    file: &File,
    limits: Limits,
    engines: Engines,
    summed: bool,
) -> Result<Option<Opened>, FileErrorKind> {
    let mut input = file;
    let mut copying = CopySource { input: &mut input, limits, held_bytes: 0 };
    let head = copying.head()?;
    if summed {
        head.sections.iter().try_for_each(|section| copying.skim(section))?;
    }
    let bytes = head.sections.last().map_or(HEADER_BYTES as u64, |last| last.offset + last.bytes);
    let Ok(bytes) = usize::try_from(bytes) else { return Ok(None) };
    let mapping = match Mapping::of(file, bytes) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
        mapping => mapping.map_err(FileErrorKind::io("mapped"))?,
    };
    let mut source = MappedSource { copying, mapping: Arc::new(mapping) };
    let (opened, _) = open(&mut source, head, limits, engines)?;
    // An engine that had to be copied is verified, because its lookups trust its words.
    verify_copied(&opened.parts.v4)?;
    verify_copied(&opened.parts.v6)?;
    Ok(Some(opened))
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
            return rebuilt(source, sections, limits, engines, engine);
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
            part.fib = part.fib.map(|fib| Box::new(WithLength::of_parts(fib, matches)) as Box<dyn Fib<K>>);
        }
    }
    part.routes = routes(source, sections)?;
    Ok(part)
}

/// Builds another engine from the routes, for a file with an engine that the list lacks: one of a program with more, or of a later version.
fn rebuilt<K: Key>(
    source: &mut dyn Source,
    sections: &mut FileSections,
    limits: Limits,
    engines: Engines,
    engine: String,
) -> Result<Part<K>, FileErrorKind> {
    // The arrays are not used, but damage in them is reported all the same.
    for section in sections.take_all(&format!("{}/structure/", K::FAMILY.name())) {
        source.skim(&section)?;
    }
    let Some(routes) = routes::<K>(source, sections)? else {
        return Err(FileErrorKind::Lacking(engine));
    };
    // Its pairs of next hops and lengths are not those of the new one, which the routes give.
    if let Some(section) = sections.take(&format!("{}/{MATCHES}", K::FAMILY.name())) {
        source.skim(&section)?;
    }
    // Before the build, because engines rely on the order of the routes.
    if let Some(at) = routes.disorder() {
        return Err(FileErrorKind::Disorder { what: format!("{}/routes", K::FAMILY.name()), at });
    }
    // Those that files can hold mapped are fast over tables of every size, so they come first. To choose by measurements would link these,
    // and every engine, into a program that only opens files.
    let (mut all, others): (Vec<_>, Vec<_>) = engines.all::<K>().into_iter().partition(|engine| engine.maps);
    all.extend(others.into_iter().filter(|engine| engine.open.is_some()));
    let mut refused = FileErrorKind::Lacking(engine.clone());
    for other in all {
        match other.build(&routes, limits) {
            Ok(fib) => {
                let replaced = Some(engine);
                return Ok(Part {
                    engine: Some(other.name),
                    fib: Some(fib),
                    routes: Some(routes),
                    replaced,
                    is_mapped: false,
                });
            }
            Err(error) => refused = FileErrorKind::Rebuild { engine: engine.clone(), error },
        }
    }
    Err(refused)
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
