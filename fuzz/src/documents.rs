//! Tables that are documents: they give the same routes in pieces of any size, and take no more memory than is allowed.
//!
//! Each kind has its own beginning, so that the bytes are read as that kind.

use std::io::{self, Read};

use fibula_feed::{Label, LoadOptions, LoadedRoutes, Loader, Source};

pub(crate) fn json(bytes: &[u8]) {
    compare(bytes);
    compare(&[b"[{\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"a\"},".as_slice(), bytes].concat());
}

pub(crate) fn csv(bytes: &[u8]) {
    compare(&[b"prefix,next_hop,asn\n10.0.0.0/8,a,64500\n".as_slice(), bytes].concat());
}

pub(crate) fn bird(bytes: &[u8]) {
    let beginning = b"BIRD 2.0.12 ready.\nTable master4:\n10.0.0.0/8           unicast [b1 2024-01-01] * (100) [AS64500i]\n\tvia 192.0.2.1 on e0\n";
    compare(&[beginning.as_slice(), bytes].concat());
}

/// A database is its search tree, its data and, at the end, its description.
pub(crate) fn maxmind(bytes: &[u8]) {
    compare(bytes);
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

/// The routes with their labels, and how much could not be read; `None` where the table is refused.
type Outcome = Option<(Vec<String>, u64)>;

fn load(bytes: &[u8], piece: usize, options: LoadOptions) -> Outcome {
    let loaded = Loader::new(options).load(Source::reader("fuzz", Pieces(bytes, piece)));
    loaded.ok().map(|table| (routes(&table), table.report().bad_lines))
}

fn routes(table: &LoadedRoutes) -> Vec<String> {
    table.ribs.v4.check().unwrap();
    table.ribs.v6.check().unwrap();
    let label = |next_hop| table.next_hops.label(next_hop).unwrap_or(&Label::Absent);
    table.ribs.iter().map(|(prefix, next_hop)| format!("{prefix} {}", label(next_hop))).collect()
}

fn compare(bytes: &[u8]) {
    let whole = load(bytes, usize::MAX, LoadOptions::default());
    for piece in [1, 7, 4096] {
        assert_eq!(load(bytes, piece, LoadOptions::default()), whole, "in pieces of {piece}");
    }
    // Under a limit the table is the same, or refused.
    let mut options = LoadOptions::default();
    options.limits.memory_bytes = Some(1 << 20);
    if let Some(limited) = load(bytes, usize::MAX, options) {
        assert_eq!(Some(limited), whole);
    }
    // A line that is misread is an error on request, and nothing else is.
    let mut options = LoadOptions::default();
    options.strict = true;
    if let Some((strict, bad)) = load(bytes, usize::MAX, options) {
        assert_eq!(bad, 0);
        assert_eq!(Some(strict), whole.map(|(routes, _)| routes));
    }
}
