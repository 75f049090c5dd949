//! One row for each input, in every format.

use fibula::fib::Match;
use fibula::net::NextHop;
use fibula_feed::NextHops;

use super::digits::{Digits, put_prefix};
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
    pub(super) fn new(format: Format, next_hops: &NextHops) -> Self {
        let form = match format {
            Format::Text => &TEXT,
            Format::Csv => &CSV,
            Format::Json => &JSON,
            Format::JsonLine => &JSON_LINE,
        };
        let mut rows = Self { form, bounds: vec![0], ends: Vec::new(), any: false };
        for (_, label) in next_hops.iter() {
            let label = label.to_string();
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
        put(out, self.form.middle.0);
        put_prefix(key, found.prefix_len, out);
        put(out, self.form.middle.1);
        out.extend_from_slice(self.tail(found.next_hop));
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
    fn tail(&self, next_hop: NextHop) -> &[u8] {
        let id = next_hop.id() as usize;
        &self.ends[self.bounds[id - 1]..self.bounds[id]]
    }
}

#[inline]
fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}
