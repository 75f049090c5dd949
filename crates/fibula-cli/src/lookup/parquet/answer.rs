//! The answers of a row group.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fibula::fib::Match;
use fibula::net::Key;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use super::super::answers::{AddressKind, Finders, Keys, V4Mapped};
use super::super::digits::put_prefix;
use super::super::finder::NO_PREFIX;
use super::super::pipeline::LineCounts;
use super::super::rows::Labels;
use super::guard::cannot_read;
use super::plan::{AddressEncoding, AnswerColumn, AnswerPart, ParquetPlan};
use crate::failure::Failure;
use crate::load::Columns;
use crate::messages::Messages;

/// Rows that are answered together.
pub(super) const BATCH: usize = 8192;

/// Bytes that the values of a column may take in its dictionary, of each row group.
const DICTIONARY_BYTES: usize = 16 << 20;

/// The answer's columns of a row group, encoded, and its counts.
pub(super) struct Group {
    pub(super) columns: Vec<(Bytes, ColumnCloseResult)>,
    pub(super) tally: LineCounts,
}

/// The texts of next hops 1, 2 and so on: a column of next hops, and one for each value.
pub(super) struct Texts(Vec<Vec<Option<ByteArray>>>);

impl Texts {
    pub(super) fn new(labels: &Labels<'_>, columns: &Columns) -> Self {
        let mut texts = vec![Vec::new(); 1 + columns.values.len()];
        labels.each(&mut |fields| {
            for (at, texts) in texts.iter_mut().enumerate() {
                let text = fields.get(at).and_then(|field| field.text());
                texts.push(text.map(|text| text.as_str().into()));
            }
        });
        Self(texts)
    }

    fn get(&self, column: usize, found: Match) -> Option<ByteArray> {
        let id = found.next_hop.id();
        match self.0[column].get(id as usize - 1) {
            Some(text) => text.clone(),
            // A next hop without a label, of a compiled table that another program made.
            None => (column == 0).then(|| id.to_string().as_str().into()),
        }
    }
}

/// Answers row groups.
pub(super) struct Answerer<'a, 't> {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    finders: &'a Finders<'t>,
    plan: &'a ParquetPlan,
    texts: &'a Texts,
    mapped: V4Mapped,
    messages: Messages,
    properties: WriterPropertiesPtr,
}

/// The answer for an address.
#[derive(Clone, Copy)]
pub(in super::super) enum AddressMatch {
    V4(u32, Match),
    V6(u128, Match),
    Nothing,
}

impl<'a, 't> Answerer<'a, 't> {
    pub(super) fn open(
        path: &Path,
        finders: &'a Finders<'t>,
        plan: &'a ParquetPlan,
        texts: &'a Texts,
        (mapped, messages): (V4Mapped, Messages),
    ) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| Failure::opening(path, &error))?;
        let reader = SerializedFileReader::new(file).map_err(|error| cannot_read(path, &error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .build();
        Ok(Self {
            path: path.to_owned(),
            reader,
            finders,
            plan,
            texts,
            mapped,
            messages,
            properties: Arc::new(properties),
        })
    }

    /// Returns the answer's columns of a row group, encoded.
    pub(super) fn answer(&mut self, group: usize) -> Result<Group, Failure> {
        let unreadable = |error: ParquetError| cannot_read(&self.path, &error);
        let rows = self.reader.get_row_group(group).map_err(unreadable)?;
        let mut left = usize::try_from(rows.metadata().num_rows()).unwrap_or(0);
        let mut inputs = Vec::new();
        for address in &self.plan.addresses {
            let reader = rows.get_column_reader(address.leaf).map_err(unreadable)?;
            inputs.push(AddressColumn::new(reader, address.shape, address.defined, self.mapped));
        }
        let answers = &self.plan.answers;
        let mut sinks: Vec<_> = answers.iter().map(|_| TrackedWrite::new(Vec::new())).collect();
        let writer = |(answer, sink): (&AnswerColumn, _)| {
            let pages = Box::new(SerializedPageWriter::new(sink));
            get_column_writer(Arc::clone(&answer.column), Arc::clone(&self.properties), pages)
        };
        let mut writers: Vec<ColumnWriter<'_>> = answers.iter().zip(&mut sinks).map(writer).collect();
        let mut tally = LineCounts::default();
        while left > 0 {
            let batch = left.min(BATCH);
            let (mut found, mut bad) = (Vec::new(), vec![false; batch]);
            for input in &mut inputs {
                input.read(&mut bad, &mut tally).map_err(unreadable)?;
                found.push(input.find(self.finders, self.messages)?);
            }
            for (answer, writer) in answers.iter().zip(&mut writers) {
                put(answer.part, &found[answer.address], self.texts, writer)?;
            }
            let any = |row: &usize| found.iter().any(|found| !matches!(found[*row], AddressMatch::Nothing));
            tally.matched += (0..batch).filter(any).count();
            tally.lines += batch;
            left -= batch;
        }
        let closed: Vec<ColumnCloseResult> =
            writers.into_iter().map(ColumnWriter::close).collect::<Result<_, _>>()?;
        let sinks = sinks.into_iter().map(|sink| sink.into_inner().map(Bytes::from));
        let bytes: Vec<Bytes> = sinks.collect::<Result<_, _>>()?;
        Ok(Group { columns: bytes.into_iter().zip(closed).collect(), tally })
    }
}

/// A column with addresses, and a batch of it.
pub(super) struct AddressColumn {
    reader: ColumnReader,
    shape: AddressEncoding,
    /// The level of a value that is not null.
    defined: i16,
    kinds: Vec<AddressKind>,
    keys: Keys,
}

impl AddressColumn {
    pub(super) fn new(reader: ColumnReader, shape: AddressEncoding, defined: i16, mapped: V4Mapped) -> Self {
        Self { reader, shape, defined, kinds: Vec::new(), keys: Keys::new(mapped) }
    }

    /// Reads the next addresses, one for each of `counted`, which says which of the rows count as bad already.
    pub(super) fn read(&mut self, counted: &mut [bool], tally: &mut LineCounts) -> Result<(), ParquetError> {
        let count = counted.len();
        self.kinds.clear();
        self.keys.clear();
        let Self { reader, shape, defined, kinds, keys } = self;
        let mut bad = |row: usize, why: &str| {
            // A row counts once, whatever the number of its columns.
            if counted.get_mut(row - 1).is_some_and(|counted| !std::mem::replace(counted, true)) {
                tally.bad(tally.lines + row, || format!(" has no IP address in its column ({why})"));
            }
            AddressKind::Bad
        };
        let mut push = |bytes: Option<Value<'_>>| {
            let row = kinds.len() + 1;
            kinds.push(match bytes {
                None => bad(row, "null"),
                Some(Value::Number(key)) => {
                    keys.v4.push(key);
                    AddressKind::V4
                }
                Some(Value::Bytes(bytes)) => {
                    // Text first, where the column does not name its type.
                    let text = shape.may_be_text().then(|| keys.push(bytes.trim_ascii()));
                    let (four, sixteen) = (bytes.try_into(), bytes.try_into());
                    match (text, four, sixteen) {
                        (Some(Ok(kind)), ..) => kind,
                        (Some(Err(error)), ..) if *shape == AddressEncoding::Text => {
                            bad(row, &error.reason().to_string())
                        }
                        (_, Ok(four), _) => {
                            keys.v4.push(u32::from_be_bytes(four));
                            AddressKind::V4
                        }
                        (_, _, Ok(sixteen)) => keys.push_v6(u128::from_be_bytes(sixteen)),
                        (Some(Err(error)), ..) => bad(row, &error.reason().to_string()),
                        (None, ..) => bad(row, "not of 4 or 16 bytes"),
                    }
                }
            });
        };
        match reader {
            ColumnReader::Int32ColumnReader(reader) => each(reader, count, *defined, |value| {
                push(value.map(|number| Value::Number(number.cast_unsigned())));
            }),
            ColumnReader::ByteArrayColumnReader(reader) => each(reader, count, *defined, |value| {
                push(value.map(|bytes| Value::Bytes(bytes.data())));
            }),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => each(reader, count, *defined, |value| {
                push(value.map(|bytes| Value::Bytes(bytes.data())));
            }),
            _ => Err(ParquetError::General("a column changed its type".to_owned())),
        }
    }

    /// Returns the answer for each of them.
    pub(super) fn find(
        &mut self,
        finders: &Finders<'_>,
        messages: Messages,
    ) -> Result<Vec<AddressMatch>, Failure> {
        self.keys.find(finders, messages)?;
        let Keys { v4, v6, found_v4, found_v6, .. } = &self.keys;
        let mut all_v4 = v4.iter().zip(found_v4);
        let mut all_v6 = v6.iter().zip(found_v6);
        Ok(self
            .kinds
            .iter()
            .map(|kind| match kind {
                AddressKind::V4 => match all_v4.next() {
                    Some((&key, &Some(found))) => AddressMatch::V4(key, found),
                    _ => AddressMatch::Nothing,
                },
                AddressKind::V6 => match all_v6.next() {
                    Some((&key, &Some(found))) => AddressMatch::V6(key, found),
                    _ => AddressMatch::Nothing,
                },
                AddressKind::Bad => AddressMatch::Nothing,
            })
            .collect())
    }
}

enum Value<'a> {
    Number(u32),
    Bytes(&'a [u8]),
}

/// Reads values, and calls `push` with each, or with `None` where it is null.
pub(super) fn each<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    defined: i16,
    mut push: impl FnMut(Option<&T::T>),
) -> Result<(), ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::with_capacity(count));
    let (rows, ..) = reader.read_records(count, Some(&mut levels), None, &mut values)?;
    if rows != count {
        return Err(ParquetError::EOF("a row group has fewer rows than it says".to_owned()));
    }
    if defined == 0 {
        values.iter().for_each(|value| push(Some(value)));
        return Ok(());
    }
    let mut values = values.iter();
    for level in levels {
        push(if level == defined { values.next() } else { None });
    }
    Ok(())
}

/// Writes a part of the answer for each row.
fn put(
    part: AnswerPart,
    found: &[AddressMatch],
    texts: &Texts,
    writer: &mut ColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let mut levels = Vec::with_capacity(found.len());
    match (part, writer) {
        (AnswerPart::Prefix, ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let values = prefixes(found, &mut levels);
            writer.write_batch(&values, Some(&levels), None)?;
        }
        (AnswerPart::Text(column), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let values = values(found, &mut levels, |found| texts.get(column, found.matched()?));
            writer.write_batch(&values, Some(&levels), None)?;
        }
        (AnswerPart::Prefix, ColumnWriter::Int32ColumnWriter(writer)) => {
            let values = values(found, &mut levels, |found| match found {
                AddressMatch::V4(key, found) => Some(network(key, found)?.cast_signed()),
                _ => None,
            });
            writer.write_batch(&values, Some(&levels), None)?;
        }
        (AnswerPart::Prefix, ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
            let values = values(found, &mut levels, |found| {
                let bytes = match found {
                    AddressMatch::V4(key, found) => network(key, found)?.to_be_bytes().to_vec(),
                    AddressMatch::V6(key, found) => network(key, found)?.to_be_bytes().to_vec(),
                    AddressMatch::Nothing => return None,
                };
                Some(FixedLenByteArray::from(bytes))
            });
            writer.write_batch(&values, Some(&levels), None)?;
        }
        (AnswerPart::PrefixLen, ColumnWriter::Int32ColumnWriter(writer)) => {
            let len = |found: AddressMatch| found.matched().map(|found| found.prefix_len);
            let known = |len: &u8| *len != NO_PREFIX;
            let values = values(found, &mut levels, |found| len(found).filter(known).map(i32::from));
            writer.write_batch(&values, Some(&levels), None)?;
        }
        _ => return Err(ParquetError::General("a column changed its type".to_owned())),
    }
    Ok(())
}

impl AddressMatch {
    fn matched(self) -> Option<Match> {
        match self {
            Self::V4(_, found) | Self::V6(_, found) => Some(found),
            Self::Nothing => None,
        }
    }
}

/// Returns the first address of the matched prefix, if that is known.
fn network<K: Key>(key: K, found: Match) -> Option<K> {
    (found.prefix_len != NO_PREFIX).then(|| key.and(K::mask(found.prefix_len)))
}

/// Returns the result of `value` for each row that is not null. The levels hold the places of nulls.
fn values<T>(
    found: &[AddressMatch],
    levels: &mut Vec<i16>,
    value: impl Fn(AddressMatch) -> Option<T>,
) -> Vec<T> {
    let mut values = Vec::with_capacity(found.len());
    for &found in found {
        let value = value(found);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    values
}

/// Returns the prefixes as text, in one allocation.
fn prefixes(found: &[AddressMatch], levels: &mut Vec<i16>) -> Vec<ByteArray> {
    let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(found.len()));
    for &found in found {
        let known = found.matched().is_some_and(|found| found.prefix_len != NO_PREFIX);
        levels.push(i16::from(known));
        if !known {
            continue;
        }
        match found {
            AddressMatch::V4(key, found) => put_prefix(key, found.prefix_len, &mut text),
            AddressMatch::V6(key, found) => put_prefix(key, found.prefix_len, &mut text),
            AddressMatch::Nothing => {}
        }
        ends.push(text.len());
    }
    let (text, mut start) = (Bytes::from(text), 0);
    let slice = |end: usize| ByteArray::from(text.slice(std::mem::replace(&mut start, end)..end));
    ends.into_iter().map(slice).collect()
}
