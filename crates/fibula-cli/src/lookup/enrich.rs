//! From lines with an address among other columns to the same lines with the answer's columns after them.

use std::io;

use clap::ValueEnum;

use super::answers::{BLOCK, Finders, Keys, Kind};
use super::chunks::{Lines, ends};
use super::pipeline::{REPORTED, Tally, Worker};
use super::rows::{Labels, Rows, put_slice};
use crate::failure::Failure;
use crate::fields::Fields;
use crate::load::Columns;
use crate::messages::Messages;
use crate::options::Format;

/// Length above which a line is refused.
const LINE_LIMIT_BYTES: usize = 16 << 20;

/// The formats of lines with columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Comma-separated values (RFC 4180)
    Csv,
    /// Values separated by tabs
    Tsv,
    /// One JSON object on each line
    JsonLine,
}

impl InputFormat {
    /// Returns the format that the name of a file says, compressed or not.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let plain = [".gz", ".bz2", ".xz", ".zst"].iter().find_map(|end| name.strip_suffix(end));
        match plain.unwrap_or(&name).rsplit_once('.')?.1 {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "json" | "jsonl" | "ndjson" => Some(Self::JsonLine),
            _ => None,
        }
    }

    /// Returns the format that a first line has.
    pub(super) fn of_line(line: &[u8]) -> Self {
        match line.trim_ascii_start().first() {
            Some(b'{') => Self::JsonLine,
            _ if line.contains(&b'\t') => Self::Tsv,
            _ => Self::Csv,
        }
    }

    pub(super) fn lines(self) -> Lines {
        match self.separator() {
            Some(separator) => Lines::Quoted(separator, LINE_LIMIT_BYTES),
            None => Lines::Whole(LINE_LIMIT_BYTES),
        }
    }

    fn separator(self) -> Option<u8> {
        match self {
            Self::Csv => Some(b','),
            Self::Tsv => Some(b'\t'),
            Self::JsonLine => None,
        }
    }
}

/// Where addresses are in a line.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The number of the column, from 0.
    Column(usize),
    /// The field of an object, by the names on the way to it.
    Field(Vec<String>),
}

/// Where the columns that were requested are.
#[derive(Debug, Clone)]
pub(super) struct Located {
    /// Between columns; JSON has none.
    pub(super) separator: Option<u8>,
    pub(super) places: Vec<Place>,
    /// The names in the first line, or its values.
    names: Vec<String>,
    /// Whether the first line has names.
    pub(super) has_header: bool,
}

impl Located {
    /// Finds the columns by the first line. The first few of them have addresses.
    pub(super) fn new(
        format: InputFormat,
        wanted: &[&str],
        addresses: usize,
        first_line: &[u8],
    ) -> Result<Self, Failure> {
        let separator = format.separator();
        let Some(mark) = separator else {
            let place = |name: &&str| Place::Field(name.split('.').map(str::to_owned).collect());
            let places = wanted.iter().map(place).collect();
            return Ok(Self { separator, places, names: Vec::new(), has_header: false });
        };
        let (first_line, _) = without_return(first_line);
        let names = names(first_line, mark);
        let found: Vec<usize> = wanted.iter().map(|name| column(name, &names)).collect::<Result<_, _>>()?;
        // The first line has names where something was found by its name, or no address is where one should be.
        let is_address =
            |&at: &usize| names.get(at).is_some_and(|text| Keys::default().push(text.as_bytes()).is_ok());
        let named = wanted.iter().any(|name| name.parse::<usize>().is_err());
        let has_header = !first_line.is_empty() && (named || !found[..addresses].iter().any(is_address));
        let places = found.into_iter().map(Place::Column).collect();
        Ok(Self { separator, places, names, has_header })
    }

    /// Returns the text of a column of a line. `quoted` says whether the line may have quotes.
    #[inline]
    pub(super) fn field<'l>(&self, line: &'l [u8], index: usize, quoted: bool) -> Option<&'l [u8]> {
        match (&self.places[index], self.separator) {
            (&Place::Column(number), Some(separator)) => field(line, separator, number, quoted),
            (Place::Field(path), _) => value(line, path),
            (Place::Column(_), None) => None,
        }
    }
}

/// The columns with addresses, and what is appended for each.
#[derive(Clone)]
pub(super) struct Plan {
    located: Located,
    rows: Vec<Rows>,
    /// The first line with the names of the new columns, if the first line has names.
    pub(super) header: Option<Vec<u8>>,
}

impl Plan {
    /// Finds the columns that were requested, by the first line.
    pub(super) fn new(
        format: InputFormat,
        wanted: &[String],
        first_line: &[u8],
        columns: &Columns,
        labels: &Labels<'_>,
    ) -> Result<Self, Failure> {
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let located = Located::new(format, &names, names.len(), first_line)?;
        let several = wanted.len() > 1;
        let Some(mark) = located.separator else {
            let prefixes = wanted.iter().map(|name| if several { format!("{name}_") } else { String::new() });
            let rows = prefixes.map(|prefix| Rows::appended(None, &prefix, columns, labels)).collect();
            return Ok(Self { located, rows, header: None });
        };
        let (first_line, end) = without_return(first_line);
        let plain = Fields::new(Format::Csv, columns).appended(mark, "").list();
        let clash =
            located.has_header && located.names.iter().any(|name| name == "prefix" || plain.contains(name));
        let mut header = first_line.to_vec();
        let mut rows = Vec::new();
        for place in &located.places {
            let Place::Column(at) = *place else { continue };
            let name = located.names.get(at).filter(|_| located.has_header).cloned();
            let name = name.unwrap_or_else(|| (at + 1).to_string());
            let prefix = if several || clash { format!("{name}_") } else { String::new() };
            let fields = Fields::new(Format::Csv, columns).appended(mark, &prefix);
            for text in [format!("{prefix}prefix"), fields.names()] {
                header.push(mark);
                header.extend_from_slice(text.as_bytes());
            }
            rows.push(Rows::appended(located.separator, &prefix, columns, labels));
        }
        header.extend_from_slice(end);
        header.push(b'\n');
        let header = located.has_header.then_some(header);
        Ok(Self { located, rows, header })
    }
}

/// Returns the index of a column, which is given by its name or by its number from 1.
fn column(wanted: &str, names: &[String]) -> Result<usize, Failure> {
    if let Some(at) = names.iter().position(|name| name == wanted) {
        return Ok(at);
    }
    match wanted.parse::<usize>() {
        Ok(number @ 1..) if number <= names.len() => Ok(number - 1),
        Ok(_) => Err(Failure::BadInput(format!("no column {wanted}; the first line has {}", names.len()))),
        // An empty line has one column without a name, which the message could not list.
        Err(_) if names.iter().all(String::is_empty) => Err(Failure::BadInput(format!(
            "no column '{wanted}': the input is empty, or its first line names no columns"
        ))),
        Err(_) => Err(Failure::BadInput(format!("no column '{wanted}'; there are: {}", names.join(", ")))),
    }
}

/// Returns the fields of a line, without quotes.
fn names(line: &[u8], separator: u8) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(name) = field(line, separator, names.len(), true) {
        names.push(String::from_utf8_lossy(name).replace("\"\"", "\""));
    }
    names
}

/// Returns a field of a line by its number from 0, without the quotes and blanks around it. `quoted` says whether the line
/// may have quotes.
#[inline]
fn field(line: &[u8], separator: u8, number: usize, quoted: bool) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..number {
        rest = &rest[field_end(rest, separator, quoted)?..][1..];
    }
    let text = rest[..field_end(rest, separator, quoted).unwrap_or(rest.len())].trim_ascii();
    Some(match text {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        text => text,
    })
}

/// Returns the place of the separator after the first field.
#[inline]
fn field_end(rest: &[u8], separator: u8, quoted: bool) -> Option<usize> {
    let mut at = 0;
    if quoted && rest.first() == Some(&b'"') {
        at = 1;
        while let Some(quote) = memchr::memchr(b'"', &rest[at..]) {
            at += quote + 1;
            // Two quotes are one that belongs to the field.
            if rest.get(at) != Some(&b'"') {
                break;
            }
            at += 1;
        }
    }
    find(separator, &rest[at..]).map(|found| at + found)
}

/// Returns the index of the first such byte. The first 16 bytes are searched inline: most fields and many lines are that short, and
/// calling `memchr` for them would cost more than the search.
#[inline]
fn find(byte: u8, text: &[u8]) -> Option<usize> {
    let first = match (text.first_chunk(), text.first_chunk(), text.last_chunk()) {
        (Some(bytes), ..) => u128::from_le_bytes(*bytes),
        (None, Some(first), Some(last)) => {
            // The last eight bytes overlap the first, where they are the same.
            let last = u128::from(u64::from_le_bytes(*last)) << (8 * (text.len() - 8));
            u128::from(u64::from_le_bytes(*first)) | last
        }
        _ => return text.iter().position(|&found| found == byte),
    };
    let [ones, highest] = [1, 0x80].map(|byte| u128::from_le_bytes([byte; 16]));
    let differing = first ^ (ones * u128::from(byte));
    // The lowest bit that this sets is that of the first byte that is zero.
    let equal = differing.wrapping_sub(ones) & !differing & highest;
    match text.get(16..) {
        _ if equal != 0 => Some(equal.trailing_zeros() as usize / 8),
        Some(rest) => memchr::memchr(byte, rest).map(|at| at + 16),
        None => None,
    }
}

fn without_return(line: &[u8]) -> (&[u8], &'static [u8]) {
    match line {
        [line @ .., b'\r'] => (line, b"\r"),
        line => (line, b""),
    }
}

/// Answers lines with columns.
pub(super) struct Enricher<'a, 't> {
    finders: &'a Finders<'t>,
    plan: Plan,
    messages: Messages,
    /// Lines of the chunk that wait: start, end, and whether a carriage return follows.
    lines: Vec<(u32, u32, Shape)>,
    kinds: Vec<Kind>,
    keys: Keys,
    tally: Tally,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Line,
    /// A carriage return follows.
    Return,
    /// Nothing is appended: blank, or not an object.
    Kept,
}

impl<'a, 't> Enricher<'a, 't> {
    pub(super) fn new(finders: &'a Finders<'t>, plan: &Plan, messages: Messages) -> Self {
        let (lines, kinds, keys, tally) = Default::default();
        Self { finders, plan: plan.clone(), messages, lines, kinds, keys, tally }
    }

    #[inline]
    fn push(
        &mut self,
        chunk: &[u8],
        start: usize,
        end: usize,
        quoted: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.tally.lines += 1;
        let (line, end_of_line) = without_return(&chunk[start..end]);
        let mut shape = if end_of_line.is_empty() { Shape::Line } else { Shape::Return };
        let mut end = start + line.len();
        let is_object = self.plan.located.separator.is_none();
        if is_object {
            // The answer's fields come before the brace that ends the object.
            match line.trim_ascii_end() {
                [object @ .., b'}'] if line.trim_ascii_start().starts_with(b"{") => {
                    end = start + object.len();
                }
                _ => shape = Shape::Kept,
            }
        }
        if line.trim_ascii().is_empty() || shape == Shape::Kept {
            if !line.trim_ascii().is_empty() {
                self.bad(" is not a JSON object");
            }
            self.lines.push((start as u32, (start + line.len()) as u32, Shape::Kept));
        } else {
            self.lines.push((start as u32, end as u32, shape));
            for index in 0..self.plan.located.places.len() {
                let text = self.plan.located.field(line, index, quoted);
                let kind = match text.map(|text| self.keys.push(text)) {
                    Some(Ok(kind)) => kind,
                    Some(Err(error)) => {
                        self.bad(&format!(" has no IP address in its column ({})", error.reason()));
                        Kind::Bad
                    }
                    None => {
                        self.bad(" has too few columns");
                        Kind::Bad
                    }
                };
                self.kinds.push(kind);
            }
        }
        if self.lines.len() == BLOCK { self.respond(chunk, out) } else { Ok(()) }
    }

    #[cold]
    fn bad(&mut self, what: &str) {
        self.tally.bad += 1;
        if self.tally.first_bad.len() < REPORTED {
            self.tally.first_bad.push((self.tally.lines, what.to_owned()));
        }
    }

    fn respond(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let Self { finders, plan, lines, kinds, keys, tally, messages } = self;
        keys.find(finders, *messages)?;
        let (mut at_v4, mut at_v6) = (0, 0);
        let mut kinds_left = kinds.iter();
        for &(start, end, shape) in lines.iter() {
            let (start, end) = (start as usize, end as usize);
            put_slice(chunk, start, end, out);
            if shape == Shape::Kept {
                out.push(b'\n');
                continue;
            }
            let is_json = plan.located.separator.is_none();
            let empty = is_json && chunk[start..end].trim_ascii_end().ends_with(b"{");
            let (mut hit, after) = (false, out.len());
            for (rows, kind) in plan.rows.iter_mut().zip(&mut kinds_left) {
                match kind {
                    Kind::V4 => {
                        let (key, found) = (keys.v4[at_v4], keys.found_v4[at_v4]);
                        at_v4 += 1;
                        match found {
                            Some(found) => rows.hit(out, b"", key, found),
                            None => rows.miss(out, b""),
                        }
                        hit |= found.is_some();
                    }
                    Kind::V6 => {
                        let (key, found) = (keys.v6[at_v6], keys.found_v6[at_v6]);
                        at_v6 += 1;
                        match found {
                            Some(found) => rows.hit(out, b"", key, found),
                            None => rows.miss(out, b""),
                        }
                        hit |= found.is_some();
                    }
                    Kind::Bad => rows.miss(out, b""),
                }
            }
            if empty {
                // No field comes before the first of ours.
                out.remove(after);
            }
            tally.matched += usize::from(hit);
            if is_json {
                out.push(b'}');
            }
            if shape == Shape::Return {
                out.push(b'\r');
            }
            out.push(b'\n');
        }
        lines.clear();
        kinds.clear();
        keys.clear();
        Ok(())
    }
}

impl Worker for Enricher<'_, '_> {
    fn answer(&mut self, chunk: &[u8], _: bool, out: &mut Vec<u8>) -> Result<Tally, Failure> {
        if u32::try_from(chunk.len()).is_err() {
            return Err(Failure::Output(io::ErrorKind::OutOfMemory.into()));
        }
        let quotes = self.plan.located.separator.filter(|_| memchr::memchr(b'"', chunk).is_some());
        let mut start = 0;
        match quotes {
            None => {
                while let Some(len) = find(b'\n', &chunk[start..]) {
                    self.push(chunk, start, start + len, false, out)?;
                    start += len + 1;
                }
            }
            Some(separator) => {
                for end in ends(chunk, separator) {
                    self.push(chunk, start, end, true, out)?;
                    start = end + 1;
                }
            }
        }
        // Only the last line of all may lack its line feed.
        if start < chunk.len() {
            self.push(chunk, start, chunk.len(), quotes.is_some(), out)?;
        }
        self.respond(chunk, out)?;
        Ok(std::mem::take(&mut self.tally))
    }
}

/// Returns the text of a string, or of another plain value, in an object of JSON, by the names on the way to it. What is
/// not well formed ends the search.
fn value<'a>(object: &'a [u8], path: &[String]) -> Option<&'a [u8]> {
    let (name, deeper) = path.split_first()?;
    let mut at = blanks(object, 0);
    if object.get(at) != Some(&b'{') {
        return None;
    }
    at = blanks(object, at + 1);
    while object.get(at) == Some(&b'"') {
        let end = skip(object, at)?;
        let key = &object[at + 1..end - 1];
        at = blanks(object, end);
        if object.get(at) != Some(&b':') {
            return None;
        }
        at = blanks(object, at + 1);
        let end = skip(object, at)?;
        let text = &object[at..end];
        if key == name.as_bytes() {
            return match text {
                [b'{', ..] => value(text, deeper),
                _ if !deeper.is_empty() => None,
                [b'"', inner @ .., b'"'] => Some(inner.trim_ascii()),
                text => Some(text.trim_ascii()),
            };
        }
        at = blanks(object, end);
        if object.get(at) != Some(&b',') {
            return None;
        }
        at = blanks(object, at + 1);
    }
    None
}

fn blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns where the value that begins at `at` ends.
fn skip(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at += 1;
                loop {
                    at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
                    if text[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            _ => {
                at += 1;
                let plain = |byte: &u8| !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',');
                while text.get(at).is_some_and(plain) {
                    at += 1;
                }
            }
        }
        if depth == 0 && matches!(text.get(at.wrapping_sub(1)), Some(b'"' | b'}' | b']')) {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_with_and_without_quotes() {
        let line = b"a, b ,\"c,\"\"d\"\",\n\",,\"1.2.3.4\"";
        let all = ["a", "b", "c,\"\"d\"\",", "", "1.2.3.4"];
        for (number, expected) in all.iter().enumerate() {
            assert_eq!(field(line, b',', number, true), Some(expected.as_bytes()), "{number}");
        }
        assert_eq!(field(line, b',', 5, true), None);
        assert_eq!(names(line, b',')[2], "c,\"d\",");
        assert_eq!(field(b"a\tb", b'\t', 1, false), Some(&b"b"[..]));
        assert_eq!(field(b"", b',', 0, false), Some(&b""[..]));
    }

    #[test]
    fn values_are_found_in_objects() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let find = |object: &'static str, name: &str| {
            value(object.as_bytes(), &path(name)).map(|text| std::str::from_utf8(text).unwrap())
        };
        let object =
            r#" { "a" : "x\"," , "b":{"c":[1,{"d":"e"}],"ip":"1.1.1.1"},"n":-1.5e3 ,"t":true,"ip": "::1"}"#;
        assert_eq!(find(object, "ip"), Some("::1"));
        assert_eq!(find(object, "b.ip"), Some("1.1.1.1"));
        assert_eq!(find(object, "a"), Some(r#"x\","#));
        assert_eq!(find(object, "n"), Some("-1.5e3"));
        assert_eq!(find(object, "t"), Some("true"));
        for absent in ["c", "b.x", "a.b", "ip.x", ""] {
            assert_eq!(find(object, absent), None, "{absent}");
        }
        for bad in [
            "",
            "{",
            "{\"",
            "{\"ip",
            "{\"ip\"",
            "{\"ip\":",
            "{\"ip\":\"",
            "[]",
            "{\"a\":{\"ip\":\"x\"",
            "{\"a\" \"ip\"}",
        ] {
            assert_eq!(find(bad, "ip"), None, "{bad}");
        }
    }

    #[test]
    fn formats_are_known_by_name_or_by_line() {
        assert_eq!(InputFormat::of_name("flows.csv.gz"), Some(InputFormat::Csv));
        assert_eq!(InputFormat::of_name("/a.b/FLOWS.TSV"), Some(InputFormat::Tsv));
        assert_eq!(InputFormat::of_name("x.ndjson.zst"), Some(InputFormat::JsonLine));
        assert_eq!(InputFormat::of_name("x.log"), None);
        assert_eq!(InputFormat::of_line(b" {\"a\":1}"), InputFormat::JsonLine);
        assert_eq!(InputFormat::of_line(b"a\tb,c"), InputFormat::Tsv);
        assert_eq!(InputFormat::of_line(b"a,b"), InputFormat::Csv);
    }
}
