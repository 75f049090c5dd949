//! The places of columns in lines, and the rows of a chunk. `enrich` and `count` read both alike.

use clap::ValueEnum;
use fibula::net::AddressError;

use super::answers::Keys;
use super::chunks::Lines;
use super::json::{self, JsonText};
use super::quotes::{Ends, Quote, quote};
use crate::failure::Failure;
use crate::text::thousands;

/// Length above which a row is refused. A thread holds two chunks and the answers to two, and each may be of one such row.
const ROW_LIMIT_BYTES: usize = 4 << 20;

/// Columns above which a first line is refused. Their names are kept.
const MOST_COLUMNS: usize = 1 << 16;

/// The formats of rows with columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Comma-separated values (RFC 4180)
    Csv,
    /// Values separated by tabs, without quotes
    Tsv,
    /// Words separated by blanks, as nfdump, ss and awk print them
    Words,
    /// One JSON object on each line
    JsonLine,
    /// JSON objects over any number of lines, in a list or one after another
    Json,
}

impl InputFormat {
    /// Returns the format that the name of a file and its beginning say. The name may end with that of a compression.
    pub(super) fn of(name: &str, head: &[u8]) -> Self {
        match Self::of_name(name) {
            Some(Self::JsonLine) | None if json::spans_lines(head) => Self::Json,
            Some(named) => named,
            None => Self::of_line(head),
        }
    }

    fn of_name(name: &str) -> Option<Self> {
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
    fn of_line(line: &[u8]) -> Self {
        match line.trim_ascii_start().first() {
            Some(b'{') => Self::JsonLine,
            _ if line.contains(&b'\t') => Self::Tsv,
            _ => Self::Csv,
        }
    }

    pub(super) fn lines(self) -> Lines {
        match self {
            Self::Csv => Lines::Quoted(b',', ROW_LIMIT_BYTES),
            Self::Tsv | Self::Words | Self::JsonLine => Lines::Whole(ROW_LIMIT_BYTES),
            Self::Json => Lines::Objects(ROW_LIMIT_BYTES),
        }
    }

    pub(super) fn is_json(self) -> bool {
        self.separator().is_none()
    }

    fn separator(self) -> Option<u8> {
        match self {
            Self::Csv => Some(b','),
            Self::Tsv => Some(b'\t'),
            Self::Words => Some(b' '),
            Self::JsonLine | Self::Json => None,
        }
    }
}

/// The fault of a row that lacks a column.
pub(super) const TOO_FEW: &str = " has no such column";

/// The fault of a row of JSON.
pub(super) const NO_OBJECT: &str = " is not a JSON object";

/// Returns the fault of a row whose column has something else.
pub(super) fn no_address(error: &AddressError) -> String {
    format!(" has no IP address in its column ({})", error.reason())
}

/// Where a column is in a row.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The number of the column, from 0.
    Column(usize),
    /// The field of an object, by its name.
    Field(String),
}

/// Where the columns that were requested are.
#[derive(Debug, Clone)]
pub(super) struct Located {
    format: InputFormat,
    /// Between columns; JSON has none.
    pub(super) separator: Option<u8>,
    pub(super) places: Vec<Place>,
    /// The names in the first line, or its values.
    pub(super) names: Vec<String>,
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
        for (at, name) in wanted[..addresses].iter().enumerate() {
            if wanted[..at].contains(name) {
                return Err(Failure::WrongUse(format!("the column '{name}' is given twice")));
            }
        }
        let Some(mark) = separator else {
            let places = wanted.iter().map(|&name| Place::Field(name.to_owned())).collect();
            return Ok(Self { format, separator, places, names: Vec::new(), has_header: false });
        };
        let (first_line, _) = without_return(first_line);
        if let Some(unread) = unread(first_line, format) {
            return Err(Failure::BadInput(unread));
        }
        let names = names(first_line, mark);
        if names.len() > MOST_COLUMNS {
            let most = thousands(MOST_COLUMNS);
            return Err(Failure::BadInput(format!("the first line has more than {most} columns")));
        }
        let found: Vec<usize> = wanted.iter().map(|name| column(name, &names)).collect::<Result<_, _>>()?;
        // The first line has names where something was found by its name, or no address is where one should be.
        let is_address =
            |&at: &usize| names.get(at).is_some_and(|text| Keys::default().push(text.as_bytes()).is_ok());
        let named = wanted.iter().any(|name| name.parse::<usize>().is_err());
        let has_header = !first_line.is_empty() && (named || !found[..addresses].iter().any(is_address));
        let places = found.into_iter().map(Place::Column).collect();
        Ok(Self { format, separator, places, names, has_header })
    }

    /// Returns the text of a column of a row. `quoted` says whether the row may have quotes.
    #[inline]
    pub(super) fn field<'l>(&self, row: &'l [u8], index: usize, quoted: bool) -> Option<&'l [u8]> {
        match (&self.places[index], self.separator) {
            (&Place::Column(number), Some(b' ')) => word(row, number),
            (&Place::Column(number), Some(separator)) => field(row, separator, number, quoted),
            (Place::Field(name), _) => json::value(row, name),
            (Place::Column(_), None) => None,
        }
    }

    /// Returns the text of the first column of an object, if it is well formed. Calls `each` with the names of its fields.
    pub(super) fn object<'l>(&self, object: &'l [u8], each: impl FnMut(&[u8])) -> Option<Option<&'l [u8]>> {
        let Place::Field(name) = &self.places[0] else { return None };
        let (text, end) = json::read(object, name, each);
        (end == Some(object.len())).then_some(text)
    }

    /// Returns whether a row without this column is as good as one that has it: objects of one list need not be alike.
    pub(super) fn may_lack(&self) -> bool {
        self.separator.is_none() && self.places.len() > 1
    }

    /// Returns whether a row is a line.
    pub(super) fn is_by_line(&self) -> bool {
        self.format != InputFormat::Json
    }

    /// Calls `each` for every row of a chunk.
    #[inline]
    pub(super) fn rows<E>(
        &self,
        chunk: &[u8],
        mut each: impl FnMut(TextRow) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.format == InputFormat::Json {
            return objects(chunk, each);
        }
        let mut start = 0;
        let quotes = self.format == InputFormat::Csv && memchr::memchr(b'"', chunk).is_some();
        if quotes {
            let mut ends = Ends::new(chunk, b',', true);
            while start < chunk.len() {
                let before = ends.texts;
                // Only the last line of all may lack its line feed.
                let end = ends.next().unwrap_or(chunk.len());
                let unclosed = ends.texts > before;
                each(self.line(chunk, start, end, RowKind::Line { quoted: true, unclosed }))?;
                start = end + 1;
            }
            return Ok(());
        }
        let kind = RowKind::Line { quoted: false, unclosed: false };
        while let Some(len) = find(b'\n', &chunk[start..]) {
            each(self.line(chunk, start, start + len, kind))?;
            start += len + 1;
        }
        if start < chunk.len() {
            each(self.line(chunk, start, chunk.len(), kind))?;
        }
        Ok(())
    }

    #[inline]
    fn line(&self, chunk: &[u8], start: usize, end: usize, kind: RowKind) -> TextRow {
        let (line, ending) = without_return(&chunk[start..end]);
        let row = TextRow { start, end: start + line.len(), stop: end, has_return: !ending.is_empty(), kind };
        if self.separator.is_none() {
            return object(line, row);
        }
        match line.first() {
            // Most lines begin with something else than a blank.
            Some(byte) if !byte.is_ascii_whitespace() => row,
            _ if line.trim_ascii().is_empty() => TextRow { kind: RowKind::Blank, ..row },
            _ => row,
        }
    }
}

/// Returns the row of a line of JSON.
fn object(line: &[u8], row: TextRow) -> TextRow {
    match line.trim_ascii_end() {
        // The answer's fields come before the brace that ends the object.
        [object @ .., b'}'] => {
            let kind = RowKind::Object { start: row.start, in_line: true };
            TextRow { end: row.start + object.len(), kind, ..row }
        }
        [] => TextRow { kind: RowKind::Blank, ..row },
        _ => TextRow { kind: RowKind::NoObject, ..row },
    }
}

fn objects<E>(chunk: &[u8], mut each: impl FnMut(TextRow) -> Result<(), E>) -> Result<(), E> {
    let (mut start, mut at) = (0, 0);
    let has_return = false;
    while let Some(part) = json::next_part(chunk, at) {
        let (end, kind) = match part {
            JsonText::Object(first, brace) => {
                at = brace + 1;
                (brace, RowKind::Object { start: first, in_line: false })
            }
            JsonText::Other(end) => {
                at = end;
                (end, RowKind::NoObject)
            }
        };
        each(TextRow { start, end, stop: at, has_return, kind })?;
        // The brace that ends an object is written with the answer.
        start = at;
    }
    if start < chunk.len() {
        let end = chunk.len();
        each(TextRow { start, end, stop: end, has_return, kind: RowKind::Between })?;
    }
    Ok(())
}

/// A row of a chunk: where its text begins, and where it ends or the answer's columns are inserted.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextRow {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where its text ends, without a line feed.
    pub(super) stop: usize,
    /// Whether a carriage return comes before the line feed.
    pub(super) has_return: bool,
    pub(super) kind: RowKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A line with columns.
    Line {
        /// Whether it may have quotes.
        quoted: bool,
        /// Whether it has a quote that encloses no field.
        unclosed: bool,
    },
    /// A line without columns.
    Blank,
    /// A candidate for an object, with a brace at its end. Text of a list before it belongs to the row.
    Object { start: usize, in_line: bool },
    /// Something that is not an object, where one should be.
    NoObject,
    /// The text after the last object.
    Between,
}

/// Returns why a log is not read that looks like one with columns and has others.
fn unread(first_line: &[u8], format: InputFormat) -> Option<String> {
    if first_line.starts_with(b"#separator") {
        let instead =
            "its JSON ('redef LogAscii::use_json = T;'), or what 'zeek-cut' prints with --input-format tsv";
        return Some(format!("a log of Zeek with tabs is not read; read instead: {instead}"));
    }
    let count = |byte: u8| memchr::memchr_iter(byte, first_line).count();
    let other = [b'|', b';'].into_iter().find(|&other| count(other) > 1)?;
    (format == InputFormat::Csv && count(b',') == 0).then(|| {
        let other = char::from(other);
        format!(
            "columns separated by '{other}' are not read; read instead: CSV, for example by tr '{other}' ,"
        )
    })
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
        Err(_) if names.iter().all(String::is_empty) => {
            Err(Failure::BadInput(format!("no column '{wanted}': the first line names no columns")))
        }
        Err(_) => Err(no_column(wanted, names)),
    }
}

/// Refuses a name, and says which there are, as far as a message has room for them.
pub(super) fn no_column(wanted: &str, names: &[String]) -> Failure {
    const ROOM: usize = 160;
    let mut bytes = 0;
    let fits = |name: &&String| {
        bytes += name.len() + 2;
        bytes <= ROOM
    };
    let shown: Vec<&str> = names.iter().take_while(fits).map(String::as_str).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more if shown.is_empty() => format!("{} with long names", thousands(more)),
        more => format!(" and {} more", thousands(more)),
    };
    Failure::BadInput(format!("no column '{wanted}'; there are: {}{more}", shown.join(", ")))
}

/// Returns the fields of a line, without quotes: as many as are allowed, and one more.
fn names(line: &[u8], separator: u8) -> Vec<String> {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    if separator == b' ' {
        return words(line).take(MOST_COLUMNS + 1).map(text).collect();
    }
    let quoted = separator == b',';
    let (mut names, mut rest) = (Vec::new(), Some(line));
    while let Some(left) = rest.filter(|_| names.len() <= MOST_COLUMNS) {
        let name = text(field(left, separator, 0, quoted).unwrap_or_default());
        names.push(if quoted { name.replace("\"\"", "\"") } else { name });
        rest = field_end(left, separator, quoted).map(|end| &left[end + 1..]);
    }
    names
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Returns a word of a line by its number from 0.
fn word(line: &[u8], number: usize) -> Option<&[u8]> {
    words(line).nth(number)
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
    if quoted
        && let Some(first) = rest.iter().position(|&byte| byte != b' ')
        && rest[first] == b'"'
        && let Quote::Closed(end) = quote(rest, first, separator, true)
    {
        at = end;
    }
    find(separator, &rest[at..]).map(|found| at + found)
}

/// Returns the index of the first such byte. The first 16 bytes are searched inline: most fields and many lines are that short, and
/// calling `memchr` for them would cost more than the search.
#[inline]
pub(super) fn find(byte: u8, text: &[u8]) -> Option<usize> {
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

pub(super) fn without_return(line: &[u8]) -> (&[u8], &'static [u8]) {
    match line {
        [line @ .., b'\r'] => (line, b"\r"),
        line => (line, b""),
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
        // Blanks may come before a quote.
        assert_eq!(field(b"1, \"a, 2, b\", 3", b',', 2, true), Some(&b"3"[..]));
        assert_eq!(names(b"id, \"the, name\"", b','), ["id", "the, name"]);
        // A quote that is never closed is text.
        assert_eq!(field(b"\"a,b", b',', 1, true), Some(&b"b"[..]));
    }

    #[test]
    fn logs_with_other_columns_are_refused_by_name() {
        let refused = |line: &str, format| match Located::new(format, &["1"], 1, line.as_bytes()) {
            Err(Failure::BadInput(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(refused("#separator \\x09", InputFormat::Csv).contains("Zeek"));
        assert!(refused("sIP| dIP|sPort|", InputFormat::Csv).contains("separated by '|'"));
        assert!(refused("a;b;c", InputFormat::Csv).contains("separated by ';'"));
        assert!(Located::new(InputFormat::Csv, &["1"], 1, b"192.0.2.1,a|b|c").is_ok());
        assert!(Located::new(InputFormat::Words, &["1"], 1, b"192.0.2.1 a|b|c").is_ok());
    }

    #[test]
    fn words_have_any_number_of_blanks_between_them() {
        let line = b"  tcp   192.0.2.1:22\t->  198.51.100.1:4000 ";
        let all = ["tcp", "192.0.2.1:22", "->", "198.51.100.1:4000"];
        assert_eq!(names(line, b' '), all);
        assert_eq!(word(line, 4), None);
        assert_eq!(word(b"", 0), None);
    }

    #[test]
    fn formats_are_known_by_name_and_by_line() {
        let of = |name, line: &str| InputFormat::of(name, line.as_bytes());
        assert_eq!(of("flows.csv.gz", "a\tb"), InputFormat::Csv);
        assert_eq!(of("/a.b/FLOWS.TSV", "a,b"), InputFormat::Tsv);
        assert_eq!(of("x.ndjson.zst", "{\"a\":1}"), InputFormat::JsonLine);
        assert_eq!(of("x.json", "["), InputFormat::Json);
        assert_eq!(of("-", "{"), InputFormat::Json);
        assert_eq!(of("x.log", " {\"a\":1}"), InputFormat::JsonLine);
        assert_eq!(of("x.log", "a\tb,c"), InputFormat::Tsv);
        assert_eq!(of("x.log", "a,b"), InputFormat::Csv);
    }

    #[test]
    fn a_message_lists_the_names_that_fit() {
        let text = |names: &[String]| match no_column("x", names) {
            Failure::BadInput(text) => text,
            other => panic!("{other:?}"),
        };
        let all: Vec<String> = (0..5000).map(|number| format!("column-{number}")).collect();
        assert_eq!(text(&all[..2]), "no column 'x'; there are: column-0, column-1");
        let many = text(&all);
        assert!(many.ends_with(", column-14 and 4,985 more") && many.len() < 300, "{many}");
        assert!(text(&["y".repeat(400)]).ends_with("there are: 1 with long names"));
    }
}
