//! One row for each input, in every format.

use fibula::fib::Match;
use fibula::net::NextHop;

use super::digits::{Digits, put_prefix};
use super::finder::NO_PREFIX;
use crate::objects::csv_field;
use crate::options::Format;

/// Writes rows. The parts that repeat are made once, including the ends with the next hops: a row is then four copies and
/// a prefix.
pub(super) struct Rows {
    form: &'static Form,
    /// Where the end of a row for next hop id - 1 ends in `ends`.
    bounds: Vec<usize>,
    ends: Vec<u8>,
    any: bool,
}

/// The constant parts of a format.
struct Form {
    /// Before all rows.
    start: &'static str,
    /// After all rows, if there are any, and if there are none.
    end: (&'static str, &'static str),
    /// Between rows.
    between: &'static str,
    /// Before the address.
    head: &'static str,
    /// Between address and prefix, and between prefix and next hop.
    middle: (&'static str, &'static str),
    /// Between address and next hop, if the prefix is not known.
    unknown: &'static str,
    /// After the next hop.
    tail: &'static str,
    /// After the address, if nothing matches.
    miss: &'static str,
    /// Instead of a row, if the line is not an address.
    bad: &'static str,
}

static TEXT: Form = Form {
    start: "",
    end: ("", ""),
    between: "",
    head: "",
    middle: (" ", " via "),
    unknown: " via ",
    tail: "\n",
    miss: " no route\n",
    bad: "- not an address\n",
};

static CSV: Form = Form {
    start: "address,prefix,next_hop\n",
    end: ("", ""),
    between: "",
    head: "",
    middle: (",", ","),
    unknown: ",,",
    tail: "\n",
    miss: ",,\n",
    bad: ",,\n",
};

static JSON_LINE: Form = Form {
    start: "",
    end: ("", ""),
    between: "",
    head: "{\"address\":\"",
    middle: ("\",\"prefix\":\"", "\",\"next_hop\":"),
    unknown: "\",\"prefix\":null,\"next_hop\":",
    tail: "}\n",
    miss: "\",\"prefix\":null,\"next_hop\":null}\n",
    bad: "{\"address\":null,\"prefix\":null,\"next_hop\":null}\n",
};

static JSON: Form = Form {
    start: "[",
    end: ("\n]\n", "]\n"),
    between: ",",
    head: "\n  {\"address\":\"",
    tail: "}",
    miss: "\",\"prefix\":null,\"next_hop\":null}",
    bad: "\n  {\"address\":null,\"prefix\":null,\"next_hop\":null}",
    ..JSON_LINE
};

impl Rows {
    /// Returns rows for next hops 1, 2 and so on, which have these labels.
    pub(super) fn new(format: Format, labels: impl Iterator<Item = String>) -> Self {
        let form = match format {
            Format::Text => &TEXT,
            Format::Csv => &CSV,
            Format::Json => &JSON,
            Format::JsonLine => &JSON_LINE,
        };
        let mut rows = Self { form, bounds: vec![0], ends: Vec::new(), any: false };
        for label in labels {
            let label = match format {
                Format::Text => label,
                Format::Csv => csv_field(&label).into_owned(),
                Format::Json | Format::JsonLine => serde_json::Value::from(label).to_string(),
            };
            rows.ends.extend_from_slice(label.as_bytes());
            rows.ends.extend_from_slice(form.tail.as_bytes());
            rows.bounds.push(rows.ends.len());
        }
        rows
    }

    pub(super) fn start(&self, out: &mut Vec<u8>) {
        put(out, self.form.start);
    }

    pub(super) fn end(&self, out: &mut Vec<u8>) {
        put(out, if self.any { self.form.end.0 } else { self.form.end.1 });
    }

    #[inline]
    pub(super) fn hit<K: Digits>(&mut self, out: &mut Vec<u8>, address: &[u8], key: K, found: Match) {
        self.head(out, address);
        if found.prefix_len == NO_PREFIX {
            put(out, self.form.unknown);
        } else {
            put(out, self.form.middle.0);
            put_prefix(key, found.prefix_len, out);
            put(out, self.form.middle.1);
        }
        self.tail(out, found.next_hop);
    }

    #[inline]
    pub(super) fn miss(&mut self, out: &mut Vec<u8>, address: &[u8]) {
        self.head(out, address);
        put(out, self.form.miss);
    }

    pub(super) fn bad(&mut self, out: &mut Vec<u8>) {
        self.separate(out);
        put(out, self.form.bad);
    }

    /// An address that was parsed needs no quotes in any format: digits, letters, dots and colons.
    #[inline]
    fn head(&mut self, out: &mut Vec<u8>, address: &[u8]) {
        self.separate(out);
        put(out, self.form.head);
        out.extend_from_slice(address);
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
        let id = next_hop.id() as usize;
        match self.bounds.get(id - 1..=id) {
            Some(&[start, end]) => out.extend_from_slice(&self.ends[start..end]),
            // A next hop without a label, of a compiled table that another program made.
            _ => {
                let number = next_hop.to_string();
                let is_json = self.form.tail.starts_with('}');
                put(out, &if is_json { serde_json::Value::from(number).to_string() } else { number });
                put(out, self.form.tail);
            }
        }
    }
}

#[inline]
fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}
