//! Columns of addresses as programs in Python hold them.

use std::net::IpAddr;

use fibula_column::arrow::{ArrowStream, OwnedArray, SharedArray};
use fibula_column::{
    Bitmap, ByteRows, Column, ColumnError, LookupCounts, LookupOptions, V4MappedRule, ValueColumn,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyList, PyString};

use crate::arrow_column::{ArrowChunks, ArrowColumn};
use crate::buffer::{AddressBuffer, IdBuffer, Lent, lent};
use crate::capsule::{HeldArray, borrowed, stream_of};
use crate::error::{Failure, Outcome, detached, guarded, type_error, value_error};
use crate::loaded::Values;
use crate::scalar::{NoAddress, address_of};

/// Looks up a part of a column: the number of its first row, its rows, and the places of their ids.
pub type LookUp<'l> =
    dyn Fn(usize, &Column<'_>, &mut [u32], &LookupOptions) -> Result<LookupCounts, ColumnError> + Sync + 'l;

/// How a caller wants a column to be looked up.
#[derive(Clone, Copy)]
pub struct Wishes {
    pub options: LookupOptions,
    pub text: bool,
}

impl Wishes {
    pub fn new(threads: usize, invalid: &str, v4_mapped: &str, text: bool) -> PyResult<Self> {
        let refuse_invalid = match invalid {
            "null" => false,
            "raise" => true,
            other => return Err(value_error(format!("invalid is 'null' or 'raise', and not '{other}'"))),
        };
        let v4_mapped = match v4_mapped {
            "ipv6" => V4MappedRule::Ipv6,
            "ipv4" => V4MappedRule::Ipv4,
            other => return Err(value_error(format!("v4_mapped is 'ipv6' or 'ipv4', and not '{other}'"))),
        };
        if threads == 0 {
            return Err(value_error("threads are 1 at least"));
        }
        Ok(Self { options: LookupOptions { threads, v4_mapped, refuse_invalid }, text })
    }
}

/// Rows that were copied from objects of Python.
#[derive(Default)]
pub struct CopiedRows {
    bytes: Vec<u8>,
    ends: Vec<i64>,
    /// A bit for each row, if there are nulls.
    valid: Vec<u8>,
    has_nulls: bool,
    is_text: bool,
}

impl CopiedRows {
    fn push(&mut self, row: Option<&[u8]>) {
        let at = self.ends.len() - 1;
        if at.is_multiple_of(8) {
            self.valid.push(0);
        }
        match row {
            Some(bytes) => {
                self.bytes.extend_from_slice(bytes);
                self.valid[at / 8] |= 1 << (at % 8);
            }
            None => self.has_nulls = true,
        }
        self.ends.push(self.bytes.len() as i64);
    }

    /// Makes bytes in network order of the rows, which are texts so far.
    fn into_bytes(self) -> Self {
        let mut rows = Self { ends: vec![0], ..Self::default() };
        for at in 0..self.ends.len() - 1 {
            let text = &self.bytes[self.ends[at] as usize..self.ends[at + 1] as usize];
            let is_there = self.valid[at / 8] >> (at % 8) & 1 == 1;
            match fibula::net::parse_address(text) {
                _ if !is_there => rows.push(None),
                Ok(IpAddr::V4(v4)) => rows.push(Some(&v4.octets())),
                Ok(IpAddr::V6(v6)) => rows.push(Some(&v6.octets())),
                Err(_) => rows.push(Some(&[])),
            }
        }
        rows
    }

    /// Copies the rows of a list or of another iterable. An object that is no address is an error at once if its type is wrong, or if
    /// `refuse` is set.
    fn of(items: &Bound<'_, PyAny>, refuse: bool) -> PyResult<Self> {
        let mut rows = Self { ends: vec![0], is_text: true, ..Self::default() };
        let mut add = |row: usize, item: &Bound<'_, PyAny>| -> PyResult<()> {
            if item.is_none() {
                rows.push(None);
                return Ok(());
            }
            if rows.is_text {
                if let Ok(text) = item.cast::<PyString>() {
                    rows.push(Some(text.to_str().map_or("\u{fffd}".as_bytes(), str::as_bytes)));
                    return Ok(());
                }
                rows = std::mem::take(&mut rows).into_bytes();
            }
            match address_of(item) {
                Ok(IpAddr::V4(v4)) => rows.push(Some(&v4.octets())),
                Ok(IpAddr::V6(v6)) => rows.push(Some(&v6.octets())),
                Err(NoAddress::Invalid(_)) if !refuse => rows.push(Some(&[])),
                Err(error) => return Err(error.into_error(&format!("row {row}: "))),
            }
            Ok(())
        };
        if let Ok(list) = items.cast_exact::<PyList>() {
            list.iter().enumerate().try_for_each(|(row, item)| add(row, &item))?;
        } else {
            for (row, item) in items.try_iter()?.enumerate() {
                add(row, &item?)?;
            }
        }
        Ok(rows)
    }

    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn column(&self) -> Result<Column<'_>, ColumnError> {
        let rows = ByteRows::offsets64(&self.ends, &self.bytes);
        let column = if self.is_text { Column::text(rows) } else { Column::binary(rows) };
        if !self.has_nulls {
            return Ok(column);
        }
        column.with_validity(Bitmap::new(&self.valid, 0, self.len())?)
    }
}

/// A column of addresses.
enum Source {
    Buffer(AddressBuffer),
    Rows(CopiedRows),
    Array(HeldArray),
    Stream(ArrowStream),
}

/// Which kind of objects holds the addresses, and so which one holds the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    NumPy,
    Buffer,
    List,
    Arrow,
}

/// The addresses of a call.
pub struct Input {
    source: Source,
    holder: Holder,
}

fn module_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().module().map_or_else(|_| String::new(), |name| name.to_string())
}

impl Input {
    /// Finds out how an object holds addresses.
    pub fn of(object: &Bound<'_, PyAny>, wishes: &Wishes) -> PyResult<Self> {
        let py = object.py();
        let is_scalar = object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyInt>()
            || object.is_instance_of::<PyByteArray>()
            || object.is_instance_of::<PyDict>()
            || object.hasattr(intern!(py, "packed"))?;
        if is_scalar {
            let name = object.get_type().qualname()?;
            return Err(type_error(format!("'{name}' is no column of addresses: lookup takes one address")));
        }
        let refuse = wishes.options.refuse_invalid;
        let rows = |object: &Bound<'_, PyAny>, holder| {
            Ok(Self { source: Source::Rows(CopiedRows::of(object, refuse)?), holder })
        };
        let module = module_of(object);
        let is_numpy = module == "numpy" || module.starts_with("numpy.");
        if module.starts_with("pandas") {
            // Numbers of NumPy are taken as such; the rest is Arrow's, where it is installed.
            let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
            if kind.is_ok_and(|kind| kind.to_string().starts_with(['i', 'u']))
                && module_of(&object.getattr("dtype")?).starts_with("numpy")
            {
                return Self::of(&object.call_method0("to_numpy")?, wishes);
            }
            if py.import("pyarrow").is_err() {
                return rows(object, Holder::List);
            }
        }
        if object.hasattr(intern!(py, "__arrow_c_array__"))? {
            return Ok(Self { source: Source::Array(HeldArray::of(object)?), holder: Holder::Arrow });
        }
        if object.hasattr(intern!(py, "__arrow_c_stream__"))? {
            return Ok(Self { source: Source::Stream(stream_of(object)?), holder: Holder::Arrow });
        }
        let holder = if is_numpy { Holder::NumPy } else { Holder::Buffer };
        match lent(object)? {
            Lent::Addresses(buffer) => Ok(Self { source: Source::Buffer(buffer), holder }),
            Lent::Texts(bytes, ends) => {
                let valid = vec![0xff; ends.len().div_ceil(8)];
                let copied = CopiedRows { bytes, ends, valid, has_nulls: false, is_text: true };
                Ok(Self { source: Source::Rows(copied), holder })
            }
            Lent::Objects => rows(object, holder),
            Lent::Nothing if is_numpy => {
                let dtype = object.getattr("dtype")?;
                // Texts of any length, which NumPy does not lend.
                if dtype.getattr("kind")?.to_string() == "T" {
                    return rows(object, holder);
                }
                Err(type_error(format!("an array of type {dtype} is no column of addresses")))
            }
            Lent::Nothing => rows(object, Holder::List),
        }
    }

    /// Looks the addresses up, and writes their ids to where they are asked for. Returns them otherwise.
    fn look_up(self, py: Python<'_>, wishes: &Wishes, with: &LookUp<'_>) -> Outcome<Found> {
        let Self { source, holder } = self;
        let options = &wishes.options;
        let one = |column: Result<Column<'_>, ColumnError>| -> Outcome<Found> {
            let column = column?;
            let rows = column.len();
            let mut ids = room(rows)?;
            let counts = detached(py, rows, || with(0, &column, &mut ids, options))??;
            Ok(Found { chunks: vec![ids], counts, holder, is_chunked: false })
        };
        match source {
            Source::Buffer(buffer) => one(buffer.column()),
            Source::Rows(rows) => one(rows.column()),
            Source::Array(array) => {
                one(array.column().map(|column| if wishes.text { column.bytes_as_text() } else { column }))
            }
            Source::Stream(mut stream) => {
                let (chunks, counts) = py.detach(|| guarded(|| of_chunks(&mut stream, wishes, with)))??;
                Ok(Found { chunks, counts, holder, is_chunked: true })
            }
        }
    }

    /// Looks the addresses up, and returns their ids as what held the addresses holds numbers.
    pub fn ids<'py>(
        self,
        py: Python<'py>,
        out: Option<&Bound<'py, PyAny>>,
        wishes: &Wishes,
        with: &LookUp<'_>,
    ) -> Outcome<(Bound<'py, PyAny>, LookupCounts)> {
        if let Source::Buffer(buffer) = &self.source {
            let rows = buffer.rows();
            let out = match (out, self.holder) {
                (Some(out), _) => out.clone(),
                (None, Holder::NumPy) => numpy_room(py, rows)?,
                (None, _) => ids_array(py, &vec![0; rows])?,
            };
            let mut place = IdBuffer::of(&out, rows)?;
            place.apart_from(buffer)?;
            let (column, ids) = (buffer.column()?, place.ids());
            let counts = detached(py, rows, || with(0, &column, ids, &wishes.options))??;
            return Ok((out, counts));
        }
        let found = self.look_up(py, wishes, with)?;
        let counts = found.counts;
        if let Some(out) = out {
            let rows = found.chunks.iter().map(Vec::len).sum();
            let mut place = IdBuffer::of(out, rows)?;
            let (ids, mut at) = (place.ids(), 0);
            for chunk in &found.chunks {
                ids[at..at + chunk.len()].copy_from_slice(chunk);
                at += chunk.len();
            }
            return Ok((out.clone(), counts));
        }
        let answer = match found.holder {
            Holder::Arrow => found.arrow(py, |ids| Ok(OwnedArray::of_ids(ids)))?,
            Holder::NumPy => numpy_ids(py, &found.chunks[0])?,
            Holder::Buffer | Holder::List => ids_array(py, &found.chunks[0])?,
        };
        Ok((answer, counts))
    }

    /// Looks the addresses up, and returns their values.
    pub fn values<'py>(
        self,
        py: Python<'py>,
        values: &Values<'_>,
        dictionary: Option<bool>,
        wishes: &Wishes,
        with: &LookUp<'_>,
    ) -> Outcome<(Bound<'py, PyAny>, LookupCounts)> {
        let holder = self.holder;
        let found = self.look_up(py, wishes, with)?;
        let counts = found.counts;
        let answer = match holder {
            Holder::Arrow => {
                let entries = match dictionary.unwrap_or_else(|| values.are_long()) {
                    true => Some(values.entries()?),
                    false => None,
                };
                let column = ValueColumn::from(values.column());
                found.arrow(py, |ids| match &entries {
                    Some(entries) => column.entries_of(&ids, entries),
                    None => column.gather(&ids),
                })?
            }
            Holder::NumPy => {
                let ids = numpy_ids(py, &found.chunks[0])?;
                py.import("fibula._numpy")?.call_method1("gather", (values.prepared(py)?, ids))?
            }
            Holder::Buffer | Holder::List => {
                let objects = values.objects(py)?;
                let none = py.None().into_bound(py);
                let items = found.chunks[0]
                    .iter()
                    .map(|&id| objects.get_item(id as usize).unwrap_or_else(|_| none.clone()));
                PyList::new(py, items.collect::<Vec<_>>())?.into_any()
            }
        };
        Ok((answer, counts))
    }
}

/// Makes an array of text of ids.
pub type Shown<'s> = dyn Fn(&[u32]) -> Result<OwnedArray, ColumnError> + Sync + Send + 's;

impl Input {
    /// Looks the addresses up, and returns a text for each: in an array of Arrow if these held the addresses, and else in a list.
    pub fn texts<'py>(
        self,
        py: Python<'py>,
        wishes: &Wishes,
        with: &LookUp<'_>,
        shown: &Shown<'_>,
    ) -> Outcome<(Bound<'py, PyAny>, LookupCounts)> {
        let is_arrow = self.holder == Holder::Arrow;
        let found = self.look_up(py, wishes, with)?;
        let counts = found.counts;
        if is_arrow {
            return Ok((found.arrow(py, |ids| shown(&ids))?, counts));
        }
        let texts = detached(py, found.chunks[0].len(), || shown(&found.chunks[0]))??;
        let list = PyList::empty(py);
        for text in texts.texts()? {
            list.append(text)?;
        }
        Ok((list.into_any(), counts))
    }
}

/// Returns ids as an `array.array`, which needs no package.
fn ids_array<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import("array")?.call_method1("array", ("I",))?;
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_ne_bytes()).collect();
    array.call_method1("frombytes", (PyBytes::new(py, &bytes),))?;
    Ok(array)
}

/// Returns an array of NumPy with room for ids.
fn numpy_room<'py>(py: Python<'py>, rows: usize) -> PyResult<Bound<'py, PyAny>> {
    py.import("numpy")?.call_method1("empty", (rows, intern!(py, "uint32")))
}

/// Returns ids as an array of NumPy.
fn numpy_ids<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    let array = numpy_room(py, ids.len())?;
    IdBuffer::of(&array, ids.len())?.ids().copy_from_slice(ids);
    Ok(array)
}

fn room(rows: usize) -> Result<Vec<u32>, ColumnError> {
    let mut ids = Vec::new();
    ids.try_reserve_exact(rows).map_err(|_| ColumnError::Memory { entries: rows })?;
    ids.resize(rows, 0);
    Ok(ids)
}

/// The ids of a column, by chunk.
struct Found {
    chunks: Vec<Vec<u32>>,
    counts: LookupCounts,
    holder: Holder,
    is_chunked: bool,
}

impl Found {
    /// Makes an array of Arrow of each chunk.
    fn arrow<'py>(
        self,
        py: Python<'py>,
        make: impl Fn(Vec<u32>) -> Result<OwnedArray, ColumnError> + Sync + Send,
    ) -> Outcome<Bound<'py, PyAny>> {
        let is_chunked = self.is_chunked;
        let arrays = py.detach(|| -> Result<Vec<SharedArray>, ColumnError> {
            self.chunks.into_iter().map(|ids| Ok(SharedArray::new(make(ids)?))).collect()
        })?;
        if is_chunked {
            let first = match arrays.first() {
                Some(first) => first.clone(),
                None => SharedArray::new(make(Vec::new())?),
            };
            return Ok(Bound::new(py, ArrowChunks::new(first, arrays))?.into_any());
        }
        let array = arrays.into_iter().next().ok_or_else(|| Failure(value_error("no array")))?;
        Ok(Bound::new(py, ArrowColumn::new(array))?.into_any())
    }
}

/// Looks up the arrays of a stream, one after the other.
fn of_chunks(
    stream: &mut ArrowStream,
    wishes: &Wishes,
    with: &LookUp<'_>,
) -> Result<(Vec<Vec<u32>>, LookupCounts), ColumnError> {
    let schema = stream.schema()?;
    let (mut chunks, mut counts, mut first) = (Vec::new(), LookupCounts::default(), 0);
    while let Some(array) = stream.next_array()? {
        let column = Column::from_arrow(borrowed(&schema, &array)?)?;
        let column = if wishes.text { column.bytes_as_text() } else { column };
        let rows = column.len();
        let mut ids = room(rows)?;
        let found = with(first, &column, &mut ids, &wishes.options).map_err(|error| match error {
            ColumnError::Invalid { row, fault } => ColumnError::Invalid { row: row + first, fault },
            other => other,
        })?;
        counts.invalid += found.invalid;
        counts.first_invalid = counts.first_invalid.or(found.first_invalid.map(|row| row + first));
        first += rows;
        chunks.push(ids);
    }
    Ok((chunks, counts))
}
