//! MaxMind databases as feeds: their networks, as lines of JSON.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use fibula::memory::OutOfMemory;
use fibula::net::{IpPrefix, Key, Prefix, prefixes_of};
use maxminddb::{MaxMindDbError, Reader, WithinOptions};

use super::error::{LoadError, LoadErrorKind, LoadPosition};
use super::record_text::RecordText;
use crate::compression::ends_as_mmdb;
use crate::ledger::{Held, Ledger};

/// The end of a file, in which the mark of a database is looked for (MaxMind DB file format, "Database Metadata").
const END_BYTES: u64 = 128 << 10;

/// Networks that are written at a time, and the bytes after which no more are.
const AT_ONCE: usize = 1 << 10;
const AT_ONCE_BYTES: usize = 256 << 10;

/// Most bytes of text that a file gives for one of its own. The number can be high because records may belong to many
/// networks: for example, databases of cities give 80.
const MOST_TEXT: u64 = 1_000;

/// Returns the text of a file, if that is a database.
pub(super) fn text_of(name: &Arc<str>, path: &Path, ledger: &Ledger) -> Option<Result<Text, LoadError>> {
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(len.saturating_sub(END_BYTES))).ok()?;
    (&mut file).take(END_BYTES).read_to_end(&mut end).ok()?;
    ends_as_mmdb(&end).then(|| {
        let (bytes, held) = read(name, file, len, ledger)?;
        Text::new(name, bytes, held)
    })
}

/// Reads the file, and charges the ledger for it.
fn read(name: &Arc<str>, mut file: File, len: u64, ledger: &Ledger) -> Result<(Vec<u8>, Held), LoadError> {
    let failed = |error| LoadError::new(name, LoadErrorKind::Read { bytes: 0, error });
    let out_of_memory =
        |error: OutOfMemory| LoadError::new(name, LoadErrorKind::Memory { place: LoadPosition::End, error });
    let wanted_bytes = usize::try_from(len).unwrap_or(usize::MAX);
    let mut held = Held::new(ledger);
    held.add(wanted_bytes).map_err(out_of_memory)?;
    let mut bytes = Vec::new();
    let no_memory = |_| out_of_memory(OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None });
    bytes.try_reserve_exact(wanted_bytes).map_err(no_memory)?;
    file.rewind().map_err(failed)?;
    file.take(len).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, held))
}

/// The networks of a database as text, some lines at a time.
pub(super) struct Text {
    database: Reader<Vec<u8>>,
    _held: Held,
    /// Bytes that may still be written.
    left_bytes: u64,
    /// The addresses that are not written yet, those that come first at the end.
    rest: Vec<IpPrefix>,
    lines: Cursor<Vec<u8>>,
}

impl Text {
    fn new(name: &Arc<str>, bytes: Vec<u8>, held: Held) -> Result<Self, LoadError> {
        let failed = |error| LoadError::new(name, LoadErrorKind::MaxMind(Box::new(error)));
        let left_bytes = (bytes.len() as u64).saturating_mul(MOST_TEXT);
        let database = Reader::from_source(bytes).map_err(failed)?;
        let mut rest = Vec::new();
        if database.metadata().ip_version == 6 {
            // The lowest addresses of a tree of IPv6 are those of IPv4.
            push(&mut rest, prefixes_of::<u128, _>(1 << Ipv4Addr::BITS..=u128::MAX));
        }
        rest.push(Prefix::<u32>::ALL.into());
        Ok(Self { database, _held: held, left_bytes, rest, lines: Cursor::default() })
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut lines = core::mem::take(&mut self.lines).into_inner();
        lines.clear();
        while lines.is_empty()
            && let Some(part) = self.rest.pop()
        {
            match (part, self.write(part, &mut lines)?) {
                (IpPrefix::V4(part), Some(IpPrefix::V4(last))) if last.last() < part.last() => {
                    push(&mut self.rest, prefixes_of::<u32, _>(last.last() + 1..=part.last()));
                }
                (IpPrefix::V6(part), Some(IpPrefix::V6(last))) if last.last() < part.last() => {
                    push(&mut self.rest, prefixes_of::<u128, _>(last.last() + 1..=part.last()));
                }
                _ => {}
            }
        }
        self.left_bytes = self.left_bytes.checked_sub(lines.len() as u64).ok_or_else(|| {
            let message =
                format!("its records, repeated for all networks, are more than {MOST_TEXT} times its length");
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        self.lines = Cursor::new(lines);
        Ok(())
    }

    /// Writes the networks in a part of the addresses. Returns the last one, if there may be more than were written.
    fn write(&self, part: IpPrefix, lines: &mut Vec<u8>) -> io::Result<Option<IpPrefix>> {
        let part = part.to_string().parse().map_err(io::Error::other)?;
        let mut left = AT_ONCE;
        // IPv4 networks are in the tree several times, under their IPv6 aliases too. The default leaves those out.
        for found in self.database.within(part, WithinOptions::default()).map_err(bad)? {
            let found = found.map_err(bad)?;
            let network = found.network().map_err(bad)?;
            let prefix = IpPrefix::try_from((network.ip(), network.prefix())).map_err(io::Error::other)?;
            write!(lines, "{{\"prefix\":\"{prefix}\"")?;
            let before = lines.len();
            match found.decode::<RecordText>() {
                Ok(record) => lines.extend_from_slice(&record.unwrap_or_default().0),
                // A record that is too long, or that is damaged, is one bad entry.
                Err(_) => {
                    lines.truncate(before);
                    lines.extend_from_slice(b",the record is damaged, or longer than 64 KiB");
                }
            }
            lines.write_all(b"}\n")?;
            left -= 1;
            if left == 0 || lines.len() >= AT_ONCE_BYTES {
                return Ok(Some(prefix));
            }
        }
        Ok(None)
    }
}

/// Puts parts before those that there are.
fn push<K: Key>(rest: &mut Vec<IpPrefix>, parts: impl Iterator<Item = Prefix<K>>)
where
    IpPrefix: From<Prefix<K>>,
{
    let at = rest.len();
    rest.extend(parts.map(IpPrefix::from));
    rest[at..].reverse();
}

fn bad(error: MaxMindDbError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
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
