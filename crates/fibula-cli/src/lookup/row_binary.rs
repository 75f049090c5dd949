//! Rows of ClickHouse's RowBinary: one address in, one answer out, as its executable functions want it.
//!
//! A text is its length, as an unsigned LEB128 number, and its bytes; IPv4 is a number of 32 bits, the low byte first; IPv6 is its
//! 16 bytes in network order. A nullable value is a byte, 1 for null, and unless it is null the value
//! (<https://clickhouse.com/docs/interfaces/formats/RowBinary>).

use std::sync::Arc;

use fibula::net::NextHop;

use super::answers::{AddressKind, BLOCK, Finders, Keys, V4Mapped};
use super::pipeline::{LineCounts, Out, Worker};
use super::row_type::RowType;
use super::rows::Labels;
use crate::failure::Failure;
use crate::messages::Messages;

/// The answers to a hit, by the id of its route.
#[derive(Debug, Default)]
pub(super) struct Ends {
    bounds: Vec<usize>,
    bytes: Vec<u8>,
}

impl Ends {
    /// Makes the answers: the next hop or, of so many values that were requested, these.
    pub(super) fn new(labels: &Labels<'_>, requested: usize) -> Self {
        let mut ends = Self { bounds: vec![0], bytes: Vec::new() };
        labels.each(&mut |shown| {
            let (first, count) = if requested == 0 || shown.len() < 2 { (0, 1) } else { (1, requested) };
            for at in first..first + count {
                put(shown.get(at).and_then(|value| value.text()).as_deref(), &mut ends.bytes);
            }
            ends.bounds.push(ends.bytes.len());
        });
        ends
    }

    fn put(&self, id: NextHop, columns: usize, out: &mut Vec<u8>) {
        let id = id.id() as usize;
        match self.bounds.get(id - 1..=id) {
            Some(&[start, end]) => out.extend_from_slice(&self.bytes[start..end]),
            // A next hop without a label, of a compiled table that another program made.
            _ => {
                put(Some(&id.to_string()), out);
                (1..columns).for_each(|_| put(None, out));
            }
        }
    }
}

/// Appends a nullable text.
fn put(text: Option<&str>, out: &mut Vec<u8>) {
    let Some(text) = text else { return out.push(1) };
    out.push(0);
    let mut len = text.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Answers rows.
pub(super) struct RowAnswers<'a, 't> {
    finders: &'a Finders<'t>,
    row_type: RowType,
    ends: Arc<Ends>,
    /// Nullable values in an answer.
    columns: usize,
    keys: Keys,
    kinds: Vec<AddressKind>,
    messages: Messages,
    tally: LineCounts,
}

impl<'a, 't> RowAnswers<'a, 't> {
    pub(super) fn new(
        finders: &'a Finders<'t>,
        row_type: RowType,
        ends: Arc<Ends>,
        requested: usize,
        mapped: V4Mapped,
        messages: Messages,
    ) -> Self {
        let (kinds, tally) = Default::default();
        let columns = requested.max(1);
        Self { finders, row_type, ends, columns, keys: Keys::new(mapped), kinds, messages, tally }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.tally.lines += 1;
        let kind = match self.row_type {
            RowType::String => self.keys.push(bytes.trim_ascii()).unwrap_or_else(|error| {
                let line = self.tally.lines;
                self.tally.bad(line, || format!(": {}", error.reason()));
                AddressKind::Bad
            }),
            RowType::Ipv4 => {
                self.keys.v4.push(u32::from_le_bytes(bytes.try_into().unwrap_or_default()));
                AddressKind::V4
            }
            RowType::Ipv6 => self.keys.push_v6(u128::from_be_bytes(bytes.try_into().unwrap_or_default())),
        };
        self.kinds.push(kind);
    }

    fn respond(&mut self, out: &mut Out<'_>) -> Result<(), Failure> {
        self.keys.find(self.finders, self.messages)?;
        let (mut v4, mut v6) = (self.keys.found_v4.iter(), self.keys.found_v6.iter());
        for kind in self.kinds.drain(..) {
            let found = match kind {
                AddressKind::V4 => v4.next(),
                AddressKind::V6 => v6.next(),
                AddressKind::Bad => None,
            };
            match found.copied().flatten() {
                Some(found) => {
                    self.tally.matched += 1;
                    self.ends.put(found.next_hop, self.columns, &mut out.bytes);
                }
                None => (0..self.columns).for_each(|_| put(None, &mut out.bytes)),
            }
            out.relieve();
        }
        self.keys.clear();
        Ok(())
    }
}

impl Worker for RowAnswers<'_, '_> {
    fn answer(&mut self, chunk: &[u8], _: bool, out: &mut Out<'_>) -> Result<LineCounts, Failure> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let row = self.row_type.row(rest).map_err(|fault| Failure::BadInput(fault.to_owned()))?;
            let Some((len, start)) = row else {
                return Err(Failure::BadInput("the input ends in the middle of a row".to_owned()));
            };
            self.push(&rest[start..len]);
            rest = &rest[len..];
            if self.kinds.len() == BLOCK {
                self.respond(out)?;
            }
        }
        self.respond(out)?;
        Ok(std::mem::take(&mut self.tally))
    }
}
