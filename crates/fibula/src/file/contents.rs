//! The contents of a file to write, and their bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::fib::sections::OwnedWords;
use crate::fib::{Elements, Fib, WithLength};
use crate::memory::{OutOfMemory, Words};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::VERSION;
use super::column::{Offsets, StoredColumn, ValueWords};
use super::columns::{COLUMNS, MOST_COLUMNS, NAME_BYTES, column_line, is_name, section_name};
use super::error::{FileError, FileErrorKind};
use super::format::{HEADER_BYTES, HUGE, Header, LINE, MATCHES, PAGE, SECTION_BYTES, Section};

/// The contents of a file to write: for each family an engine, routes, both or neither, and values by id.
#[derive(Debug, Default)]
pub struct Contents<'a> {
    /// The IPv4 half.
    pub v4: Half<'a, u32>,
    /// The IPv6 half.
    pub v6: Half<'a, u128>,
    /// Columns of values by id: the next hops of engines and routes are the ids. Each has a name of its own.
    pub columns: Vec<&'a StoredColumn>,
    /// Values of next hops whose numbers may have gaps: bytes, in any form that the caller can read again. A file has these or
    /// columns. It is read as one with the column [`VALUE`](super::VALUE).
    pub values: BTreeMap<NextHop, Vec<u8>>,
}

/// The contents for one family. An engine and routes must be of the same table, because nothing compares them.
pub struct Half<'a, K: Key> {
    /// The engine, for lookups.
    pub fib: Option<&'a dyn Fib<K>>,
    /// The routes, to list them or to build another engine.
    pub routes: Option<&'a dyn Routes<K>>,
}

impl<'a, K: Key> Half<'a, K> {
    /// Returns an engine with its routes.
    #[must_use]
    pub fn new(fib: &'a dyn Fib<K>, routes: &'a dyn Routes<K>) -> Self {
        Self { fib: Some(fib), routes: Some(routes) }
    }
}

impl<K: Key> Default for Half<'_, K> {
    fn default() -> Self {
        Self { fib: None, routes: None }
    }
}

impl<K: Key> core::fmt::Debug for Half<'_, K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let routes = self.routes.map(Routes::len);
        f.debug_struct("Half").field("fib", &self.fib).field("routes", &routes).finish()
    }
}

/// A section before it is written.
struct Planned<'a> {
    line: Section,
    data: Data<'a>,
}

enum Data<'a> {
    Elements(Elements<'a>),
    Words(Words<'a>),
    Owned(OwnedWords),
    Bytes(Vec<u8>),
}

/// Bytes that are summed and written in one step.
const CHUNK: usize = 64 << 10;

impl Data<'_> {
    fn words(&self) -> Option<Words<'_>> {
        match self {
            Data::Elements(elements) => Some(elements.words()),
            Data::Words(words) => Some(*words),
            Data::Owned(OwnedWords::Half(words)) => Some(words[..].into()),
            Data::Owned(OwnedWords::Narrow(words)) => Some(words[..].into()),
            Data::Owned(OwnedWords::Wide(words)) => Some(words[..].into()),
            Data::Bytes(_) => None,
        }
    }

    /// Returns the bytes of a word, and the bytes of all words.
    fn sizes(&self) -> (u32, u64) {
        match (self, self.words()) {
            (Data::Bytes(bytes), _) => (1, bytes.len() as u64),
            (_, Some(words)) => (words.word_bytes() as u32, (words.len() * words.word_bytes()) as u64),
            (_, None) => (1, 0),
        }
    }

    /// Calls `each` for the bytes in order, the lowest byte of each word first.
    fn try_for_each(&self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let Data::Bytes(bytes) = self {
            return each(bytes);
        }
        let Some(words) = self.words() else { return Ok(()) };
        let mut buffer = vec![0; CHUNK];
        // A chunk has a whole number of words, because every width divides it.
        let at_once = CHUNK / words.word_bytes();
        for first in (0..words.len()).step_by(at_once) {
            let count = at_once.min(words.len() - first);
            let bytes = &mut buffer[..count * words.word_bytes()];
            words.part(first..first + count).copy_to_little_endian(bytes);
            each(bytes)?;
        }
        Ok(())
    }
}

impl Contents<'_> {
    /// Writes the bytes of the file. Use [`save`](super::save) to replace a file by name.
    ///
    /// # Errors
    /// When files cannot hold an engine of these contents, or `out` fails.
    pub fn write(&self, mut out: impl Write) -> Result<(), FileError> {
        let (head, sections) = self.plan().map_err(FileErrorKind::nowhere)?;
        write(&head, &sections, &mut out).map_err(|error| FileErrorKind::io("written")(error).nowhere())
    }

    /// Returns the header with the section table, and the sections.
    fn plan(&self) -> Result<(Vec<u8>, Vec<Planned<'_>>), FileErrorKind> {
        let mut sections = Vec::new();
        of_half(&self.v4, &mut sections)?;
        let first_of_v6 = sections.len();
        of_half(&self.v6, &mut sections)?;
        // Sections of IPv4 come first, so the counts give the families of the file.
        let families = u32::from(first_of_v6 > 0) | u32::from(sections.len() > first_of_v6) << 1;
        let is_of_version_1 = sections.iter().all(|section| !section.line.name.ends_with(MATCHES));
        of_values(&self.values, &mut sections);
        of_columns(self, &mut sections)?;

        // The header and the section table come before the first section.
        let mut end = (HEADER_BYTES + sections.len() * SECTION_BYTES) as u64;
        for Planned { line, data } in &mut sections {
            (line.width, line.bytes) = data.sizes();
            // Large arrays of engines begin where a huge page can, because lookups read them.
            let align = match line.bytes {
                HUGE.. if matches!(data, Data::Elements(_)) => HUGE,
                PAGE.. => PAGE,
                _ => LINE,
            };
            line.offset = end.next_multiple_of(align);
            end = line.offset + line.bytes;
            // Before anything is written, because the table with the checksums precedes the sections.
            let mut crc = crc32fast::Hasher::new();
            data.try_for_each(|bytes| {
                crc.update(bytes);
                Ok(())
            })
            .map_err(FileErrorKind::io("written"))?;
            line.crc = crc.finalize();
        }
        let table: Vec<u8> = sections.iter().flat_map(|section| section.line.to_bytes()).collect();
        let is_of_version_1 = is_of_version_1 && self.columns.is_empty();
        let header = Header {
            // Programs that know version 1 alone read every file that they can.
            version: if is_of_version_1 { 1 } else { VERSION },
            sections: sections.len() as u32,
            families,
            bytes: end,
            table_crc: crc32fast::hash(&table),
        };
        Ok(([&header.to_bytes()[..], &table].concat(), sections))
    }
}

fn write(head: &[u8], sections: &[Planned<'_>], out: &mut impl Write) -> io::Result<()> {
    out.write_all(head)?;
    let mut done = head.len() as u64;
    let zeros = vec![0; CHUNK];
    for Planned { line, data } in sections {
        while done < line.offset {
            let count = (line.offset - done).min(CHUNK as u64);
            out.write_all(&zeros[..count as usize])?;
            done += count;
        }
        data.try_for_each(|bytes| out.write_all(bytes))?;
        done += line.bytes;
    }
    // Dropping a buffered writer would lose the error of the last bytes.
    out.flush()
}

fn planned<'a>(name: String, data: Data<'a>) -> Planned<'a> {
    Planned { line: Section { name, width: 1, crc: 0, offset: 0, bytes: 0, is_needed: true }, data }
}

fn of_half<'a, K: Key>(half: &Half<'a, K>, sections: &mut Vec<Planned<'a>>) -> Result<(), FileErrorKind> {
    let family = K::FAMILY.name();
    // The pairs of next hops and lengths are beside the engine, whose next hops number them.
    let with_length = half.fib.and_then(Fib::with_length);
    if let Some(fib) = with_length.map(WithLength::engine).or(half.fib) {
        let saved = fib.sections().ok_or(FileErrorKind::NotSaved)?;
        let mut text = format!("algorithm {}\n", saved.engine);
        for (name, number) in &saved.shape {
            text += &format!("{name} {number}\n");
        }
        sections.push(planned(format!("{family}/structure"), Data::Bytes(text.into_bytes())));
        for (name, elements) in saved.arrays {
            sections.push(planned(format!("{family}/structure/{name}"), Data::Elements(elements)));
        }
    }
    if let Some(with_length) = with_length {
        let data = Data::Words(with_length.packed().into());
        sections.push(planned(format!("{family}/{MATCHES}"), data));
    }
    if let Some(routes) = half.routes {
        of_routes(routes, sections)?;
    }
    Ok(())
}

/// Adds the routes, column by column.
fn of_routes<K: Key>(routes: &dyn Routes<K>, sections: &mut Vec<Planned<'_>>) -> Result<(), OutOfMemory> {
    let family = K::FAMILY.name();
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    let (mut lengths, mut next_hops) = (Vec::new(), Vec::new());
    routes.try_for_each(Prefix::ALL, |route| {
        let bits = route.prefix.addr().to_bits();
        if K::BITS == 32 {
            push(&mut narrow, bits as u32)?;
        } else {
            push(&mut wide, (bits >> 64) as u64)?;
            push(&mut wide, bits as u64)?;
        }
        // Arrays have no words of 8 bits.
        push(&mut lengths, u16::from(route.prefix.len()))?;
        push(&mut next_hops, route.next_hop.id())
    })?;
    let addresses = if K::BITS == 32 { OwnedWords::Narrow(narrow) } else { OwnedWords::Wide(wide) };
    for (name, column) in [
        ("addresses", addresses),
        ("lengths", OwnedWords::Half(lengths)),
        ("next-hops", OwnedWords::Narrow(next_hops)),
    ] {
        sections.push(planned(format!("{family}/routes/{name}"), Data::Owned(column)));
    }
    Ok(())
}

/// Adds a word to a list that may be as long as a full table.
fn push<T>(list: &mut Vec<T>, word: T) -> Result<(), OutOfMemory> {
    if list.len() == list.capacity() {
        let wanted_bytes = (list.len() + 1) * size_of::<T>();
        let refused = |_| OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None };
        list.try_reserve(1).map_err(refused)?;
    }
    list.push(word);
    Ok(())
}

/// Adds the columns: a list of them, and the words of each.
fn of_columns<'a>(contents: &Contents<'a>, sections: &mut Vec<Planned<'a>>) -> Result<(), FileErrorKind> {
    let columns = &contents.columns;
    if columns.is_empty() {
        return Ok(());
    }
    refuse_columns(contents).map_or(Ok(()), |reason| Err(FileErrorKind::Columns(reason)))?;
    let lines: String = columns.iter().map(|column| column_line(column)).collect();
    sections.push(planned(COLUMNS.to_owned(), Data::Bytes(lines.into_bytes())));
    for (number, column) in columns.iter().enumerate() {
        let mut add = |part: &str, words: Words<'a>| {
            sections.push(planned(section_name(number, part), Data::Words(words)));
        };
        // Absent if no value is missing, because readers then need not look.
        if let Some(valid) = &column.valid {
            add("valid", valid[..].into());
        }
        match &column.values {
            ValueWords::Narrow(words) => add("words", words[..].into()),
            ValueWords::Wide(words) => add("words", words[..].into()),
            ValueWords::Bits(_, bits) => add("bits", bits[..].into()),
            ValueWords::Bytes(offsets, bytes) => {
                match offsets {
                    Offsets::Narrow(offsets) => add("offsets", offsets[..].into()),
                    Offsets::Wide(offsets) => add("offsets", offsets[..].into()),
                }
                add("bytes", bytes[..].into());
            }
        }
    }
    Ok(())
}

/// Returns why a file cannot have these columns, if it cannot.
fn refuse_columns(contents: &Contents<'_>) -> Option<String> {
    let columns = &contents.columns;
    if !contents.values.is_empty() {
        return Some("a file has columns or values of next hops, not both".to_owned());
    }
    if columns.len() > MOST_COLUMNS {
        return Some(format!("a file has at most {MOST_COLUMNS} columns, and these are {}", columns.len()));
    }
    for (number, column) in columns.iter().enumerate() {
        let name = column.name();
        if !is_name(name) {
            let most = format!("a name has 1 to {NAME_BYTES} bytes, none of which is a control character");
            return Some(format!("'{}' cannot be the name of a column: {most}", name.escape_debug()));
        }
        if columns[..number].iter().any(|before| before.name() == name) {
            return Some(format!("two columns have the name '{name}'"));
        }
        // Version 2 has no place for ids, because its columns are dense.
        if column.ids.is_some() {
            return Some(format!("the ids of column '{name}' have gaps; save it as values"));
        }
    }
    None
}

fn of_values(values: &BTreeMap<NextHop, Vec<u8>>, sections: &mut Vec<Planned<'_>>) {
    if values.is_empty() {
        return;
    }
    let (mut ends, mut all) = (Vec::new(), Vec::new());
    for bytes in values.values() {
        all.extend_from_slice(bytes);
        ends.push(all.len() as u64);
    }
    let ids = values.keys().map(|next_hop| next_hop.id()).collect();
    sections.push(planned("values/next-hops".to_owned(), Data::Owned(OwnedWords::Narrow(ids))));
    sections.push(planned("values/ends".to_owned(), Data::Owned(OwnedWords::Wide(ends))));
    sections.push(planned("values/bytes".to_owned(), Data::Bytes(all)));
}
