//! One row for each input, in every format.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fibula::fib::Match;
use fibula::file::StoredColumn;
use fibula::net::NextHop;
use fibula_feed::{Label, NextHops};

use super::digits::{Digits, put_prefix, put_short};
use super::finder::NO_PREFIX;
use crate::fields::{Fields, Shown};
use crate::load::Columns;
use crate::options::Format;

/// Writes rows. The parts that repeat are made once, including the ends with the next hops: a row is then four copies and
/// a prefix.
#[derive(Clone)]
pub(super) struct AnswerRows {
    form: Arc<RowTemplate>,
    any: bool,
}

/// The labels of next hops 1, 2 and so on.
pub(super) enum Labels<'a> {
    Loaded(&'a NextHops),
    /// The columns of a compiled table: that of next hops, and those after it.
    Compiled(Vec<&'a StoredColumn>),
}

impl Labels<'_> {
    /// Calls `each` with the next hop and the values of each id.
    pub(super) fn each(&self, each: &mut dyn FnMut(&[Shown<'_>])) {
        match self {
            Self::Loaded(labels) => labels.iter().for_each(|(_, label)| {
                let fields = label.fields().iter();
                let shown = fields.map(Shown::of);
                each(&shown.collect::<Vec<_>>());
            }),
            Self::Compiled(columns) => {
                // Ids of old files may have gaps, after which next hops are shown by their numbers.
                let dense = |column: &&StoredColumn| match column.ids() {
                    None => column.len(),
                    Some(ids) => {
                        ids.iter().zip(1..).take_while(|(id, at)| id.load(Ordering::Relaxed) == *at).count()
                    }
                };
                let most = columns.iter().map(dense).max().unwrap_or(0);
                for id in (1..=most as u32).filter_map(NextHop::new) {
                    let values: Vec<_> = columns.iter().map(|column| column.value(id)).collect();
                    let shown =
                        values.iter().map(|value| value.as_ref().map_or(Shown::Absent, Shown::Column));
                    each(&shown.collect::<Vec<_>>());
                }
            }
        }
    }
}

/// The constant parts of a format, and the ends of rows.
struct RowTemplate {
    /// Before all rows.
    start: String,
    /// After all rows, if there are any, and if there are none.
    end: (&'static str, &'static str),
    /// Between rows.
    between: &'static str,
    /// Before the address.
    head: &'static str,
    /// Between address and prefix, and between prefix and next hop.
    middle: (String, &'static str),
    /// Between address and next hop, if the prefix is not known.
    unknown: String,
    /// After the address, if nothing matches.
    miss: String,
    /// Instead of a row, if the line is not an address.
    bad: String,
    /// Where the end of a row for next hop id - 1 ends in `ends`.
    bounds: Vec<usize>,
    /// The ends, and [`SHORT`] bytes that none of them has.
    ends: Vec<u8>,
    /// The end of a row for a next hop without a label.
    unnamed: Fields,
}

impl AnswerRows {
    /// Returns rows for next hops 1, 2 and so on, which have these labels.
    pub(super) fn new(format: Format, columns: &Columns, labels: &Labels<'_>) -> Self {
        let fields = Fields::new(format, columns);
        let form = RowTemplate::new(format, &fields);
        Self::with(form, &fields, labels)
    }

    /// Returns the columns that follow the line of an address, without the end of the line: as CSV with this separator, or as JSON.
    /// The names of all columns begin with `prefix`.
    pub(super) fn appended(
        separator: Option<u8>,
        prefix: &str,
        columns: &Columns,
        labels: &Labels<'_>,
    ) -> Self {
        let format = if separator.is_some() { Format::Csv } else { Format::JsonLine };
        let fields = Fields::new(format, columns).appended(separator.unwrap_or(b','), prefix);
        let base = RowTemplate::new(Format::Text, &fields);
        let form = match separator {
            Some(separator) => {
                let between = char::from(separator);
                RowTemplate {
                    middle: (
                        between.to_string(),
                        match separator {
                            b'\t' => "\t",
                            b' ' => " ",
                            _ => ",",
                        },
                    ),
                    unknown: format!("{between}{}{between}", fields.absent()),
                    miss: format!("{between}{}{between}{}", fields.absent(), fields.empty()),
                    ..base
                }
            }
            None => {
                let name = serde_json::Value::from(format!("{prefix}prefix"));
                RowTemplate {
                    middle: (format!(",{name}:\""), "\","),
                    unknown: format!(",{name}:null,"),
                    miss: format!(",{name}:null,{}", fields.empty()),
                    ..base
                }
            }
        };
        Self::with(form, &fields, labels)
    }

    fn with(mut form: RowTemplate, fields: &Fields, labels: &Labels<'_>) -> Self {
        labels.each(&mut |values| {
            fields.put_all(values, &mut form.ends);
            form.ends.extend_from_slice(fields.tail());
            form.bounds.push(form.ends.len());
        });
        form.ends.extend_from_slice(&[0; SHORT]);
        Self { form: Arc::new(form), any: false }
    }

    /// Says whether the next row is the first of all.
    pub(super) fn set_first(&mut self, first: bool) {
        self.any = !first;
    }

    pub(super) fn start(&self, out: &mut Vec<u8>) {
        put(out, &self.form.start);
    }

    /// Ends the output, which has rows or none.
    pub(super) fn end(&self, any: bool, out: &mut Vec<u8>) {
        put(out, if any { self.form.end.0 } else { self.form.end.1 });
    }

    #[inline]
    pub(super) fn hit<K: Digits>(&mut self, out: &mut Vec<u8>, address: &[u8], key: K, found: Match) {
        self.head(out, address);
        if found.prefix_len == NO_PREFIX {
            put(out, &self.form.unknown);
        } else {
            put(out, &self.form.middle.0);
            put_prefix(key, found.prefix_len, out);
            put(out, self.form.middle.1);
        }
        self.tail(out, found.next_hop);
    }

    #[inline]
    pub(super) fn miss(&mut self, out: &mut Vec<u8>, address: &[u8]) {
        self.head(out, address);
        put(out, &self.form.miss);
    }

    pub(super) fn bad(&mut self, out: &mut Vec<u8>) {
        self.separate(out);
        put(out, &self.form.bad);
    }

    /// An address that was parsed needs no quotes in any format: digits, letters, dots and colons.
    #[inline]
    fn head(&mut self, out: &mut Vec<u8>, address: &[u8]) {
        self.separate(out);
        put(out, self.form.head);
        if !address.is_empty() {
            out.extend_from_slice(address);
        }
    }

    #[inline]
    fn separate(&mut self, out: &mut Vec<u8>) {
        if self.any {
            put(out, self.form.between);
        }
        self.any = true;
    }

    #[inline]
    fn tail(&self, out: &mut Vec<u8>, next_hop: NextHop) {
        let RowTemplate { bounds, ends, unnamed, .. } = &*self.form;
        let id = next_hop.id() as usize;
        match bounds.get(id - 1..=id) {
            Some(&[start, end]) => put_slice(ends, start, end, out),
            // A next hop without a label, of a compiled table that another program made.
            _ => {
                unnamed.put(&Label::Number(next_hop.id()), out);
                out.extend_from_slice(unnamed.tail());
            }
        }
    }
}

impl RowTemplate {
    fn new(format: Format, fields: &Fields) -> Self {
        let empty = |head: &str| head.to_owned() + &fields.empty() + &String::from_utf8_lossy(fields.tail());
        let base = Self {
            start: String::new(),
            end: ("", ""),
            between: "",
            head: "",
            middle: (" ".to_owned(), " via "),
            unknown: " via ".to_owned(),
            miss: " no route\n".to_owned(),
            bad: "- not an address\n".to_owned(),
            bounds: vec![0],
            ends: Vec::new(),
            unnamed: fields.clone(),
        };
        match format {
            Format::Text => base,
            Format::Csv => Self {
                start: format!("address,prefix,{}\n", fields.names()),
                middle: (",".to_owned(), ","),
                unknown: ",,".to_owned(),
                miss: empty(",,"),
                bad: empty(",,"),
                ..base
            },
            Format::JsonLine => Self {
                head: "{\"address\":\"",
                middle: ("\",\"prefix\":\"".to_owned(), "\","),
                unknown: "\",\"prefix\":null,".to_owned(),
                miss: empty("\",\"prefix\":null,"),
                bad: empty("{\"address\":null,\"prefix\":null,"),
                ..base
            },
            Format::Json => Self {
                start: "[".to_owned(),
                end: ("\n]\n", "]\n"),
                between: ",",
                head: "\n  {\"address\":\"",
                middle: ("\",\"prefix\":\"".to_owned(), "\","),
                unknown: "\",\"prefix\":null,".to_owned(),
                miss: empty("\",\"prefix\":null,"),
                bad: empty("\n  {\"address\":null,\"prefix\":null,"),
                ..base
            },
        }
    }
}

#[inline]
fn put(out: &mut Vec<u8>, text: &str) {
    match text.as_bytes() {
        [] => {}
        // A separator of columns: not worth a call.
        &[byte] => out.push(byte),
        bytes => out.extend_from_slice(bytes),
    }
}

/// Most bytes that [`put_slice`] copies without a call.
const SHORT: usize = 32;

/// Appends a part of a text.
#[inline]
pub(super) fn put_slice(text: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    match text[start..].first_chunk::<SHORT>() {
        Some(bytes) if end - start <= SHORT => put_short(bytes, end - start, out),
        _ => out.extend_from_slice(&text[start..end]),
    }
}
