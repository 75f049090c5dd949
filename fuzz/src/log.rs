//! Rows of logs: they give the same answers in pieces of any size, and `serde_json` reads the same objects.

use std::collections::HashSet;
use std::io::{self, Read};
use std::net::IpAddr;
use std::sync::OnceLock;

use fibula_cli::plumbing::enrich_bytes;
use fibula_feed::{LoadOptions, LoadedRoutes, Loader, Source};
use serde_json::{Map, Value};

/// The forms of rows; the first byte of an input is the number of one.
const FORMATS: [Option<&str>; 6] =
    [None, Some("csv"), Some("tsv"), Some("words"), Some("json-line"), Some("json")];

fn table() -> &'static LoadedRoutes {
    static TABLE: OnceLock<LoadedRoutes> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = "0.0.0.0/1 low\n192.0.2.0/24 \"a b\"\n::/0 six\n";
        Loader::new(LoadOptions::default()).load(Source::reader("table", text.as_bytes())).expect("a table")
    })
}

/// Brings its bytes in pieces of one size.
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

pub(crate) fn enrich(bytes: &[u8]) {
    let Some((&selector, input)) = bytes.split_first() else { return };
    let format = FORMATS[usize::from(selector) % FORMATS.len()];
    let column = if selector & 0x80 == 0 { "ip" } else { "1" };
    let run = |piece: usize| enrich_bytes(table(), format, column, Pieces(input, piece)).ok();
    let whole = run(usize::MAX);
    for piece in [1, 5, 64] {
        assert_eq!(run(piece), whole, "in pieces of {piece}");
    }
    let Some((out, _)) = whole else { return };
    if format == Some("json-line") {
        objects(input, &out, column);
    } else if format != Some("json") && format.is_some() {
        // Every row stays where it is; a header and a last line without its line feed get one.
        let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
        assert!(
            (lines(input)..=lines(input) + 1).contains(&lines(&out)) || input.starts_with(b"\xef\xbb\xbf")
        );
    }
}

/// Each line that is an object stays that object, with more fields and with no name twice.
fn objects(input: &[u8], out: &[u8], column: &str) {
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let lines = |bytes: &'_ [u8]| bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    for (before, after) in lines(input).iter().zip(lines(out)) {
        let Ok(object) = serde_json::from_slice::<Map<String, Value>>(before) else { continue };
        if names(before).is_none_or(|names| names.len() != object.len()) {
            // The input has a name twice: which one counts is not said.
            continue;
        }
        let answered: Map<String, Value> = serde_json::from_slice(&after).expect("the answer is an object");
        let all = names(&after).expect("the answer is an object");
        assert_eq!(
            all.iter().collect::<HashSet<_>>().len(),
            all.len(),
            "{}",
            String::from_utf8_lossy(&after)
        );
        assert!(object.iter().all(|(name, value)| answered.get(name) == Some(value)));
        assert!(answered.len() == object.len() + 2 || answered.len() == object.len());
        if let Some(Value::String(text)) = object.get(column)
            && let Ok(IpAddr::V6(_)) = text.parse::<IpAddr>()
            && answered.len() > object.len()
        {
            assert!(answered.values().any(|value| value == "::/0"), "{}", String::from_utf8_lossy(&after));
        }
    }
}

/// Returns the names of an object's fields, with every repetition.
fn names(object: &[u8]) -> Option<Vec<String>> {
    struct Names(Vec<String>);
    impl<'de> serde::Deserialize<'de> for Names {
        fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
            struct All;
            impl<'de> serde::de::Visitor<'de> for All {
                type Value = Names;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                    let mut names = Vec::new();
                    while let Some(name) = map.next_key()? {
                        map.next_value::<serde::de::IgnoredAny>()?;
                        names.push(name);
                    }
                    Ok(Names(names))
                }
            }
            reader.deserialize_map(All)
        }
    }
    serde_json::from_slice::<Names>(object).ok().map(|Names(names)| names)
}
