//! Which columns have addresses, and which columns the answer has.
//!
//! | addresses | `prefix` | `prefix_len` |
//! |---|---|---|
//! | text, or bytes that are text or 4 or 16 bytes long | text, as in CSV | |
//! | `UInt32` | `UInt32` | `UInt8` |
//! | `FixedSizeBinary(4)` or `(16)` | the same | `UInt8` |
//!
//! The next hop and the values are text, from a dictionary. All are null where no route was found.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

use super::super::columns::no_column;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::load::Columns;
use crate::options::Format;

/// How a column has addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressEncoding {
    Text,
    /// Text, or an address in network order: DuckDB and polars write `FixedSizeBinary` so.
    Bytes,
    /// IPv4, as a number.
    Number,
    /// IPv4 in network order.
    Four,
    /// IPv6 in network order.
    Sixteen,
}

impl AddressEncoding {
    /// Returns the shape of a column; `None` if it has no addresses.
    fn of(column: &ColumnDescriptor) -> Option<Self> {
        if column.max_rep_level() > 0 {
            return None;
        }
        match (column.physical_type(), column.logical_type_ref()) {
            (Physical::BYTE_ARRAY, _) if column.converted_type() == ConvertedType::UTF8 => Some(Self::Text),
            (Physical::BYTE_ARRAY, None) if column.converted_type() == ConvertedType::NONE => {
                Some(Self::Bytes)
            }
            // Older writers say it by the converted type alone.
            (Physical::INT32, _) if column.converted_type() == ConvertedType::UINT_32 => Some(Self::Number),
            (Physical::FIXED_LEN_BYTE_ARRAY, None) => match column.type_length() {
                4 => Some(Self::Four),
                16 => Some(Self::Sixteen),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether a value may be text, as then prefixes are.
    pub(super) fn may_be_text(self) -> bool {
        matches!(self, Self::Text | Self::Bytes)
    }

    /// Returns the type of a column of prefixes.
    fn prefix(self, name: &str) -> Result<Type, ParquetError> {
        match self {
            Self::Text | Self::Bytes => text(name),
            Self::Number => number(name, 32),
            Self::Four => fixed(name, 4),
            Self::Sixteen => fixed(name, 16),
        }
    }
}

fn text(name: &str) -> Result<Type, ParquetError> {
    Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
        .with_logical_type(Some(LogicalType::String))
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

fn number(name: &str, bits: i8) -> Result<Type, ParquetError> {
    Type::primitive_type_builder(name, Physical::INT32)
        .with_logical_type(Some(LogicalType::integer(bits, false)))
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

fn fixed(name: &str, len: i32) -> Result<Type, ParquetError> {
    Type::primitive_type_builder(name, Physical::FIXED_LEN_BYTE_ARRAY)
        .with_length(len)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

/// A column with addresses.
#[derive(Debug)]
pub(super) struct Address {
    /// Its number among the columns that have values.
    pub(super) leaf: usize,
    pub(super) shape: AddressEncoding,
    /// The level of a value that is not null.
    pub(super) defined: i16,
}

/// The part of the answer that a column has.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnswerPart {
    Prefix,
    PrefixLen,
    /// The next hop, or a value: the number of the column of texts.
    Text(usize),
}

/// A column of the answer.
#[derive(Debug)]
pub(super) struct AnswerColumn {
    /// The number of the column with addresses, among those that were requested.
    pub(super) address: usize,
    pub(super) part: AnswerPart,
    pub(super) column: ColumnDescPtr,
}

/// The columns that are read, and those that are written.
#[derive(Debug)]
pub(super) struct ParquetPlan {
    pub(super) addresses: Vec<Address>,
    pub(super) answers: Vec<AnswerColumn>,
    /// The columns of the input, and those of the answer.
    pub(super) schema: TypePtr,
}

impl ParquetPlan {
    /// Finds the columns that were requested.
    pub(super) fn new(
        metadata: &ParquetMetaData,
        wanted: &[String],
        columns: &Columns,
    ) -> Result<Self, Failure> {
        let old = metadata.file_metadata().schema_descr();
        let mut fields = old.root_schema().get_fields().to_vec();
        let plain = names("", AddressEncoding::Number, columns);
        let clash = fields.iter().any(|field| plain.iter().any(|(_, name)| name == field.name()));
        let (mut addresses, mut paths) = (Vec::new(), Vec::new());
        for wanted in wanted {
            let address = Address::find(wanted, old)?;
            paths.push(old.column(address.leaf).path().string());
            addresses.push(address);
        }
        let several = wanted.len() > 1;
        let mut sources = Vec::new();
        for (at, (address, path)) in addresses.iter().zip(&paths).enumerate() {
            let prefix = if several || clash { format!("{path}_") } else { String::new() };
            for (part, name) in names(&prefix, address.shape, columns) {
                if fields.iter().any(|field| field.name() == name) {
                    return Err(Failure::BadInput(format!("the input has a column '{name}' already")));
                }
                fields.push(Arc::new(match part {
                    AnswerPart::Prefix => address.shape.prefix(&name)?,
                    AnswerPart::PrefixLen => number(&name, 8)?,
                    AnswerPart::Text(_) => text(&name)?,
                }));
                sources.push((at, part));
            }
        }
        let schema = Type::group_type_builder(old.name()).with_fields(fields).build()?;
        let schema = Arc::new(schema);
        let new = SchemaDescriptor::new(Arc::clone(&schema));
        let first = old.num_columns();
        let answer = |(at, (address, part)): (usize, _)| AnswerColumn {
            address,
            part,
            column: new.column(first + at),
        };
        let answers = sources.into_iter().enumerate().map(answer).collect();
        Ok(Self { addresses, answers, schema })
    }
}

/// Returns the answer's columns for a column with addresses.
fn names(prefix: &str, shape: AddressEncoding, columns: &Columns) -> Vec<(AnswerPart, String)> {
    let mut names = vec![(AnswerPart::Prefix, format!("{prefix}prefix"))];
    if !shape.may_be_text() {
        names.push((AnswerPart::PrefixLen, format!("{prefix}prefix_len")));
    }
    // Tabs need no quotes around names.
    let texts = Fields::new(Format::Csv, columns).appended(b'\t', prefix).list();
    names.extend(texts.into_iter().enumerate().map(|(at, name)| (AnswerPart::Text(at), name)));
    names
}

impl Address {
    /// Finds a column with addresses.
    pub(super) fn find(wanted: &str, schema: &SchemaDescriptor) -> Result<Self, Failure> {
        let leaf = find(wanted, schema)?;
        let column = schema.column(leaf);
        let Some(shape) = AddressEncoding::of(&column) else {
            return Err(Failure::BadInput(format!(
                "column '{wanted}' has no addresses, which are text, UInt32 (IPv4) or FixedSizeBinary of 4 or 16 bytes: it is {}",
                kind(&column)
            )));
        };
        Ok(Self { leaf, shape, defined: column.max_def_level() })
    }
}

/// A column with numbers of bytes.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) leaf: usize,
    /// The level of a value that is not null.
    pub(super) defined: i16,
    pub(super) is_signed: bool,
}

impl Number {
    /// Finds a column with integers.
    pub(super) fn find(wanted: &str, schema: &SchemaDescriptor) -> Result<Self, Failure> {
        let leaf = find(wanted, schema)?;
        let column = schema.column(leaf);
        let is_integer = matches!(column.physical_type(), Physical::INT32 | Physical::INT64);
        let converted = column.converted_type();
        let is_signed = match converted {
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => false,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64 => true,
            // Parquet stores dates, times and decimals as integers too, but they do not count bytes.
            _ => return Err(no_number(wanted, &column)),
        };
        if !is_integer || column.max_rep_level() > 0 {
            return Err(no_number(wanted, &column));
        }
        Ok(Self { leaf, defined: column.max_def_level(), is_signed })
    }
}

fn no_number(wanted: &str, column: &ColumnDescriptor) -> Failure {
    Failure::BadInput(format!("column '{wanted}' has no integers: it is {}", kind(column)))
}

/// Describes the type of a column.
fn kind(column: &ColumnDescriptor) -> String {
    format!(
        "{}{}{}",
        column.physical_type(),
        column.logical_type_ref().map(|logical| format!(" ({logical:?})")).unwrap_or_default(),
        if column.max_rep_level() > 0 { ", in a list" } else { "" },
    )
}

/// Finds a column by its name ('client.ip' is a field of a field), or by its number from 1.
fn find(wanted: &str, schema: &SchemaDescriptor) -> Result<usize, Failure> {
    let all = schema.columns();
    let named = all.iter().position(|column| column.path().string() == wanted);
    let numbered = || match wanted.parse::<usize>() {
        Ok(number @ 1..) if number <= all.len() => Some(number - 1),
        _ => None,
    };
    named.or_else(numbered).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|column| column.path().string()).collect();
        no_column(wanted, &names)
    })
}
