//! Binary tables as feeds: compiled ones are read as the lines of a text, or of JSON where they have columns with names, and MaxMind
//! databases too.

use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;

use fibula::file::{self, ColumnValue, Part, TableFile};
use fibula::memory::Limits;
use fibula::net::{Key, Route};

use super::error::{LoadError, LoadErrorKind, LoadPosition};
use super::maxmind;
use super::source::Feed;
use crate::document::{TableForm, is_place};
use crate::ledger::{Held, Ledger};
use crate::next_hops::quoted;
use crate::value::Value;

/// Returns the feed as it is, or as the text of its routes if it is a compiled table or the file of a MaxMind database.
pub(super) fn recognised<'a>(feed: Feed<'a>, limits: Limits, ledger: &Ledger) -> Result<Feed<'a>, LoadError> {
    // Memory that other feeds hold is not available for this one.
    let limits = Limits { memory_bytes: ledger.free_bytes(), ..limits };
    match feed {
        Feed::File(path) => {
            let name: Arc<str> = path.to_string_lossy().into();
            // Files that cannot be opened are reported where they are read. A FIFO is not opened here, because opening
            // it wakes its writer.
            let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
            if !is_file {
                return Ok(Feed::File(path));
            }
            if let Some(text) = text_of(&name, &path, limits, ledger) {
                let text = text?;
                let form = text.form();
                return Ok(Feed::Reader { name, input: Box::new(text), form });
            }
            match maxmind::text_of(&name, &path, ledger) {
                Some(text) => {
                    Ok(Feed::Reader { name, input: Box::new(text?), form: TableForm::named("json") })
                }
                None => Ok(Feed::File(path)),
            }
        }
        Feed::Replay(paths) => Ok(Feed::Replay(paths)),
        Feed::Reader { name, mut input, form } => {
            let mut head = Vec::new();
            // If this fails, the error is returned again when the stream is read on.
            let looked = (&mut input).take(file::MAGIC_BYTES as u64).read_to_end(&mut head);
            if looked.is_ok() && file::is_table_file(&head) {
                let read = |error| LoadError::new(&name, LoadErrorKind::Read { bytes: 0, error });
                let mut held = Held::new(ledger);
                // At most half, because the bytes and the table that is made of them exist at the same time.
                let most = limits.memory_bytes.map_or(u64::MAX, |free| free as u64 / 2);
                (&mut input).take(most).read_to_end(&mut head).map_err(read)?;
                held.add(head.len().saturating_mul(2)).map_err(|error| {
                    LoadError::new(&name, LoadErrorKind::Memory { place: LoadPosition::End, error })
                })?;
                let table = TableFile::copy_of(Cursor::new(head), limits);
                let text = text(&name, table, held)?;
                let form = text.form();
                return Ok(Feed::Reader { name, input: Box::new(text), form });
            }
            Ok(Feed::Reader {
                name,
                input: Box::new(Cursor::new(head).chain(Failing(looked.err())).chain(input)),
                form,
            })
        }
    }
}

/// Returns the text of a file, if that is a compiled table.
fn text_of(name: &Arc<str>, path: &Path, limits: Limits, ledger: &Ledger) -> Option<Result<Text, LoadError>> {
    let mut head = Vec::new();
    let input = File::open(path).ok()?;
    let bytes = input.metadata().map_or(0, |metadata| metadata.len());
    input.take(file::MAGIC_BYTES as u64).read_to_end(&mut head).ok()?;
    file::is_table_file(&head).then(|| {
        let table = TableFile::open_within(path, limits);
        let mut held = Held::new(ledger);
        if table.is_ok() {
            held.add(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(|error| {
                LoadError::new(name, LoadErrorKind::Memory { place: LoadPosition::End, error })
            })?;
        }
        text(name, table, held)
    })
}

fn text(name: &Arc<str>, table: Result<TableFile, file::FileError>, held: Held) -> Result<Text, LoadError> {
    let failed = |kind| LoadError::new(name, kind);
    let table = table.map_err(|error| failed(LoadErrorKind::Compiled(error)))?;
    let has_routes = |routes: bool, fib: bool| routes || !fib;
    let v4 = has_routes(table.v4.routes.is_some(), table.v4.fib.is_some());
    if v4 && has_routes(table.v6.routes.is_some(), table.v6.fib.is_some()) {
        let names =
            named(&table).then(|| table.columns().iter().map(|column| field(column.name())).collect());
        Ok(Text { table, names, _held: held, next: [0; 2], lines: Cursor::default() })
    } else {
        Err(failed(LoadErrorKind::WithoutRoutes))
    }
}

/// Fails once, if it has an error.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The routes of a compiled table as text, some lines at a time.
struct Text {
    table: TableFile,
    /// The names of the columns as fields of JSON; `None` for lines of text.
    names: Option<Vec<String>>,
    _held: Held,
    /// The number of the next route of each family.
    next: [usize; 2],
    lines: Cursor<Vec<u8>>,
}

/// Routes that are written at a time.
const AT_ONCE: usize = 1 << 10;

impl Text {
    fn fill(&mut self) -> io::Result<()> {
        let mut lines = core::mem::take(&mut self.lines).into_inner();
        lines.clear();
        let [v4, v6] = &mut self.next;
        let names = self.names.as_deref();
        write((&self.table, names), &self.table.v4, v4, &mut lines)?;
        if lines.is_empty() {
            write((&self.table, names), &self.table.v6, v6, &mut lines)?;
        }
        self.lines = Cursor::new(lines);
        Ok(())
    }
}

/// Returns whether the columns have names that a reader may ask for. A next hop alone is what lines have.
fn named(table: &TableFile) -> bool {
    match table.columns() {
        [] => false,
        [column] => column.ids().is_none() && column.name() != Value::NextHop.column(),
        _ => true,
    }
}

/// Returns the beginning of a field: a comma and the name. A name that says where a route applies is another one here.
fn field(name: &str) -> String {
    let name = if is_place(name) { format!("value_{name}") } else { name.to_owned() };
    format!(",{}:", serde_json::Value::from(name))
}

fn write<K: Key>(
    (table, names): (&TableFile, Option<&[String]>),
    part: &Part<K>,
    next: &mut usize,
    lines: &mut Vec<u8>,
) -> io::Result<()> {
    let Some(routes) = &part.routes else { return Ok(()) };
    let end = routes.len().min(*next + AT_ONCE);
    for Route { prefix, next_hop: id } in (*next..end).filter_map(|at| routes.get(at)) {
        if let Some(names) = names {
            write!(lines, "{{\"prefix\":\"{prefix}\"")?;
            // Where no column is that of next hops, the first one is in its place, also for a route without a value there.
            let next_hop = table.columns().iter().find(|column| column.name() == Value::NextHop.column());
            lines.extend_from_slice(b",\"next_hop\":");
            match next_hop.or(table.columns().first()).and_then(|column| column.value(id)) {
                Some(value) => put(&value, lines)?,
                None => lines.extend_from_slice(b"null"),
            }
            for (name, column) in names
                .iter()
                .zip(table.columns())
                .filter(|(_, column)| column.name() != Value::NextHop.column())
            {
                if let Some(value) = column.value(id) {
                    lines.extend_from_slice(name.as_bytes());
                    put(&value, lines)?;
                }
            }
            lines.extend_from_slice(b"}\n");
            continue;
        }
        match table.value(id) {
            Some(value) => writeln!(lines, "{prefix} {}", quoted(&value.to_string()))?,
            // A route without a value has a line too.
            None if table.columns().iter().any(|column| column.ids().is_none()) => {
                writeln!(lines, "{prefix} -")?;
            }
            // The table was made without labels, by another program.
            None => writeln!(lines, "{prefix} {id}")?,
        }
    }
    *next = end;
    Ok(())
}

/// Writes a value as JSON, which has no other numbers than finite ones.
fn put(value: &ColumnValue<'_>, lines: &mut Vec<u8>) -> io::Result<()> {
    match value {
        ColumnValue::F64(number) if !number.is_finite() => write!(lines, "\"{number}\""),
        ColumnValue::Text(_) | ColumnValue::Bytes(_) => {
            serde_json::to_writer(lines, &*value.to_string()).map_err(io::Error::from)
        }
        plain => write!(lines, "{plain}"),
    }
}

impl Text {
    fn form(&self) -> Option<&'static TableForm> {
        TableForm::named(if self.names.is_some() { "json" } else { "lines" })
    }
}

impl Read for Text {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.lines.read(buf)?;
        if count > 0 || buf.is_empty() {
            return Ok(count);
        }
        self.fill()?;
        self.lines.read(buf)
    }
}
