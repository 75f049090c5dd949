//! A stream in chunks of whole lines, as many as each read returns.

use std::io::{self, Read};

use super::json::Objects;
use super::quotes::Ends;
use super::row_type::RowType;

/// Bytes read at a time. A pipe returns at most 64 KiB, a file fills the buffer.
const READ_BYTES: usize = 256 << 10;

/// The byte that ends a line, and the treatment of very long lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// A line feed. Of a line of more bytes than this, only one more is kept.
    Cut(usize),
    /// A line feed. A line of more bytes than this is an error.
    Whole(usize),
    /// A line feed outside quotes, which begin where a field does, after this separator (RFC 4180). A line of more bytes
    /// than the number is an error.
    Quoted(u8, usize),
    /// The brace that ends an object of JSON. One of more bytes than this is an error.
    Objects(usize),
    /// The length of a row of this type.
    Binary(RowType),
}

impl Lines {
    fn limit(self) -> usize {
        match self {
            // A row that is too long is refused by its length.
            Self::Binary(_) => usize::MAX,
            Self::Cut(limit) | Self::Whole(limit) | Self::Quoted(_, limit) | Self::Objects(limit) => limit,
        }
    }
}

/// Splits a stream into chunks without ever waiting for more than one read.
pub(super) struct Chunks<R> {
    source: R,
    lines: Lines,
    /// Bytes that follow the last chunk.
    rest: Vec<u8>,
    seen: Seen,
    /// Whether the rest of a line that was cut is being skipped.
    skipping: bool,
    started: bool,
    ended: bool,
    /// A chunk that was taken and given back.
    held: Option<Vec<u8>>,
    /// Whether a chunk was taken that was not given back.
    is_under_way: bool,
}

/// How far the bytes after the last chunk were searched, so that none of them is looked at again and again.
#[derive(Default)]
struct Seen {
    /// The number of bytes.
    len: usize,
    /// Where the last complete line among them ends, its line feed included.
    end: Option<usize>,
    /// Whether there is a quote among them.
    quotes: bool,
    objects: Objects,
}

impl<R: Read> Chunks<R> {
    pub(super) fn new(source: R, lines: Lines) -> Self {
        let (rest, seen, skipping, started, ended) = Default::default();
        Self { source, lines, rest, seen, skipping, started, ended, held: None, is_under_way: false }
    }

    /// Changes the byte that ends a line, once it is known.
    pub(super) fn set_lines(&mut self, lines: Lines) {
        self.lines = lines;
        self.seen = Seen::default();
    }

    /// Returns the first bytes, as far as the first line feed, without taking them; all that there are within some length if
    /// none has come yet.
    pub(super) fn head(&mut self) -> io::Result<&[u8]> {
        let line = |rest: &[u8]| memchr::memchr(b'\n', rest);
        while !self.ended && self.rest.len() < READ_BYTES && line(&self.rest).is_none() {
            self.read()?;
        }
        let end = line(&self.rest).unwrap_or(self.rest.len());
        Ok(&self.rest[..end])
    }

    /// Returns whether the stream ended before its first byte.
    pub(super) fn is_empty(&self) -> bool {
        self.ended && self.rest.is_empty()
    }

    /// Returns the first line, without taking it; without its line feed.
    pub(super) fn first_line(&mut self) -> io::Result<&[u8]> {
        while !self.ended && self.end_of_lines()?.is_none() {
            self.check_length()?;
            self.read()?;
        }
        let end = self.first_end().unwrap_or(self.rest.len());
        Ok(&self.rest[..end])
    }

    /// Removes the first line, which was looked at.
    pub(super) fn skip_line(&mut self) {
        let end = self.first_end().map_or(self.rest.len(), |end| end + 1);
        self.rest.drain(..end);
        self.seen = Seen::default();
    }

    /// Returns whether a chunk was taken.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Returns whether the next chunk is to be read: no whole line is there.
    pub(super) fn is_to_be_read(&mut self) -> io::Result<bool> {
        Ok(!self.ended && self.end_of_lines()?.is_none())
    }

    /// Gives back the chunk that was taken last, which will be the next one.
    pub(super) fn give_back(&mut self, chunk: Vec<u8>, was_under_way: bool) {
        self.held = Some(chunk);
        self.is_under_way = was_under_way;
    }

    /// Puts the next lines into `chunk`; returns false at the end. The last line of the stream may lack its line feed.
    pub(super) fn next(&mut self, chunk: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(held) = self.held.take() {
            *chunk = held;
            self.is_under_way = true;
            return Ok(true);
        }
        let found = self.read_next(chunk)?;
        self.is_under_way |= found;
        Ok(found)
    }

    fn read_next(&mut self, chunk: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            if let Some(end) = self.end_of_lines()? {
                chunk.clear();
                chunk.extend_from_slice(&self.rest[end..]);
                // The rest is mostly short: the long part changes hands.
                std::mem::swap(chunk, &mut self.rest);
                chunk.truncate(end);
                self.seen.len = self.rest.len();
                self.seen.end = None;
                self.seen.quotes &= memchr::memchr(b'"', &self.rest).is_some();
                return Ok(true);
            }
            if self.ended {
                std::mem::swap(chunk, &mut self.rest);
                self.rest.clear();
                return Ok(!chunk.is_empty());
            }
            self.check_length()?;
            self.read()?;
        }
    }

    /// Returns where the last complete line ends, its line feed included.
    fn end_of_lines(&mut self) -> io::Result<Option<usize>> {
        let Self { lines, rest, seen, ended, .. } = self;
        let before = seen.len.min(rest.len());
        let new = &rest[before..];
        seen.len = rest.len();
        match *lines {
            Lines::Objects(_) => seen.objects.ends(new, |end| seen.end = Some(before + end)),
            Lines::Quoted(separator, _) => {
                seen.quotes |= memchr::memchr(b'"', new).is_some();
                let Some(at) = memchr::memrchr(b'\n', new) else { return Ok(seen.end) };
                seen.end = if seen.quotes {
                    Ends::new(rest, separator, *ended).last().map(|at| at + 1)
                } else {
                    Some(before + at + 1)
                };
            }
            Lines::Cut(_) | Lines::Whole(_) => {
                seen.end = memchr::memrchr(b'\n', new).map(|at| before + at + 1).or(seen.end);
            }
            Lines::Binary(row_type) => {
                let mut end = seen.end.unwrap_or(0);
                let failed = |fault| io::Error::new(io::ErrorKind::InvalidData, fault);
                while let Some((len, _)) = row_type.row(&rest[end..]).map_err(failed)? {
                    end += len;
                }
                seen.end = (end > 0).then_some(end);
            }
        }
        Ok(seen.end)
    }

    /// Returns the place of the first line feed that ends a line.
    fn first_end(&self) -> Option<usize> {
        match self.lines {
            Lines::Quoted(separator, _) => Ends::new(&self.rest, separator, self.ended).next(),
            _ => memchr::memchr(b'\n', &self.rest),
        }
    }

    /// Reads once.
    fn read(&mut self) -> io::Result<()> {
        let old = self.rest.len();
        self.rest.resize(old + READ_BYTES, 0);
        let count = loop {
            match self.source.read(&mut self.rest[old..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.rest.truncate(old + *count.as_ref().unwrap_or(&0));
        self.ended = count? == 0;
        if self.skipping {
            match memchr::memchr(b'\n', &self.rest[old..]) {
                // The line feed ends the part of the line that was kept.
                Some(at) => {
                    self.rest.drain(old..old + at);
                    self.skipping = false;
                }
                None => self.rest.truncate(old),
            }
        }
        // Some editors write a byte order mark.
        if !self.started && !matches!(self.lines, Lines::Binary(_)) && (self.rest.len() >= 3 || self.ended) {
            self.started = true;
            if self.rest.starts_with(b"\xef\xbb\xbf") {
                self.rest.drain(..3);
                self.seen = Seen::default();
            }
        }
        Ok(())
    }

    /// Cuts or refuses a line that is too long.
    fn check_length(&mut self) -> io::Result<()> {
        let limit = self.lines.limit();
        if self.rest.len() <= limit {
            return Ok(());
        }
        if let Lines::Cut(_) = self.lines {
            self.rest.truncate(limit + 1);
            self.skipping = true;
            return Ok(());
        }
        let what = if matches!(self.lines, Lines::Objects(_)) { "an object" } else { "a line" };
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("{what} is longer than {limit} bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brings its bytes in pieces of a given size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            let (piece, rest) = self.0.split_at(count);
            buffer[..count].copy_from_slice(piece);
            self.0 = rest;
            Ok(count)
        }
    }

    fn all(bytes: &[u8], piece: usize, lines: Lines) -> io::Result<Vec<u8>> {
        let (mut chunks, mut chunk, mut all) =
            (Chunks::new(Pieces(bytes, piece), lines), Vec::new(), Vec::new());
        while chunks.next(&mut chunk)? {
            let end: &[u8] = if matches!(lines, Lines::Objects(_)) { b"}" } else { b"\n" };
            assert!(chunks.ended || chunk.ends_with(end));
            if let Lines::Quoted(separator, _) = lines {
                assert!(chunks.ended || Ends::new(&chunk, separator, true).last() == Some(chunk.len() - 1));
            }
            all.extend_from_slice(&chunk);
        }
        assert!(!chunks.next(&mut chunk)?);
        Ok(all)
    }

    #[test]
    fn chunks_are_whole_lines_however_they_arrive() {
        let mut bytes = b"1.2.3.4\n\n  5.6.7.8\r\n".to_vec();
        bytes.extend(vec![b'a'; 4096]);
        bytes.push(b'\n');
        let mut cut = bytes.clone();
        bytes.extend(vec![b'b'; 4098]);
        cut.extend(vec![b'b'; 4097]);
        for part in [&mut bytes, &mut cut] {
            part.push(b'\n');
        }
        bytes.extend(vec![b'c'; 3 * READ_BYTES]);
        cut.extend(vec![b'c'; 4097]);
        for part in [&mut bytes, &mut cut] {
            part.extend(b"\nlast");
        }
        for piece in [100, 4095, 4096, 4097, 65_536, usize::MAX] {
            let found = all(&bytes, piece, Lines::Cut(4096)).unwrap();
            // A read may bring more of a long line than is kept of it.
            let lengths = |bytes: &[u8]| {
                bytes.split(|&byte| byte == b'\n').map(|line| line.len().min(4097)).collect::<Vec<_>>()
            };
            assert_eq!(lengths(&found), lengths(&cut), "{piece}");
            assert_eq!(all(&bytes, piece, Lines::Whole(4 << 20)).unwrap(), bytes);
            assert!(all(&bytes, piece, Lines::Whole(4097)).is_err());
            assert_eq!(all(b"\xef\xbb\xbf1.2.3.4\n", piece, Lines::Cut(9)).unwrap(), b"1.2.3.4\n");
        }
        for piece in [1, 2, 3, 7, usize::MAX] {
            let quoted = b"a,\"1\n2\",b\n\"\"\"\n\",\n5\" x\n\"\"\n".repeat(10);
            assert_eq!(all(&quoted, piece, Lines::Quoted(b',', 100)).unwrap(), quoted);
        }
        assert!(all(b"", 1, Lines::Cut(9)).unwrap().is_empty());
        // A quote that is never closed does not keep lines together.
        let open = [&b"a,\""[..], &[b'\n'; 200]].concat();
        assert_eq!(all(&open, 7, Lines::Quoted(b',', 100)).unwrap(), open);
        for piece in [1, 5, usize::MAX] {
            let list = b"[\n{\"a\":\"}\"},\n{\"b\":[{}]}\n]\n".repeat(20);
            assert_eq!(all(&list, piece, Lines::Objects(100)).unwrap(), list);
            assert!(all(&[b'{'; 300], piece, Lines::Objects(100)).is_err());
        }
    }

    #[test]
    fn the_first_line_can_be_looked_at_and_taken() {
        for piece in [1, 2, usize::MAX] {
            let mut chunks = Chunks::new(Pieces(b"a,\"b\nc\"\nd\n", piece), Lines::Quoted(b',', 100));
            assert_eq!(chunks.first_line().unwrap(), b"a,\"b\nc\"");
            let mut chunk = Vec::new();
            chunks.skip_line();
            assert!(chunks.next(&mut chunk).unwrap());
            assert_eq!(chunk, b"d\n");
            // One that is given back comes again.
            assert!(chunks.is_under_way());
            chunks.give_back(std::mem::take(&mut chunk), false);
            assert!(!chunks.is_under_way() && chunks.next(&mut chunk).unwrap());
            assert!(chunks.is_under_way() && chunk == b"d\n");
            assert!(!chunks.next(&mut chunk).unwrap());
            assert_eq!(Chunks::new(Pieces(b"", piece), Lines::Cut(9)).first_line().unwrap(), b"");
        }
    }
}
