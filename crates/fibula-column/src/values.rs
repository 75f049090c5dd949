//! Values of ids, as arrays of Arrow: a value for each row, or a dictionary of all values.

use core::fmt;
use core::sync::atomic::Ordering;
use std::io::Write as _;

use fibula::file::{ColumnType, ColumnValue, ColumnWords, StoredColumn};
use fibula::net::NextHop;

use crate::arrow::{ArrayBuffer, ArrayParts, OwnedArray, SharedArray};
use crate::bitmap::Bitmap;
use crate::error::ColumnError;
use crate::rows::ByteRows;

/// The values of ids, borrowed: that of id `i` is number `i - 1`. An id without one is null, and so is id 0.
#[derive(Debug, Clone)]
pub struct ValueColumn<'a> {
    values: ValueData<'a>,
    validity: Option<Bitmap<'a>>,
}

/// Values of one type.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ValueData<'a> {
    /// Integers without a sign: Arrow's `uint32`.
    U32(&'a [u32]),
    /// Integers without a sign: Arrow's `uint64`.
    U64(&'a [u64]),
    /// Integers with a sign: Arrow's `int64`.
    I64(&'a [i64]),
    /// Numbers: Arrow's `double`.
    F64(&'a [f64]),
    /// Truth values: Arrow's `bool`.
    Bool(Bitmap<'a>),
    /// UTF-8: Arrow's `large_string`.
    Text(ByteRows<'a>),
    /// Any bytes: Arrow's `large_binary`.
    Bytes(ByteRows<'a>),
    /// A column of a table file, of any of these types.
    Stored(&'a StoredColumn),
}

/// A column of a table file, with the nulls that it has.
impl<'a> From<&'a StoredColumn> for ValueColumn<'a> {
    fn from(column: &'a StoredColumn) -> Self {
        Self::new(ValueData::Stored(column))
    }
}

impl<'a> ValueColumn<'a> {
    /// Returns the values of the ids from 1 on.
    #[must_use]
    pub fn new(values: ValueData<'a>) -> Self {
        Self { values, validity: None }
    }

    /// Returns the values with nulls, where the bitmap has no bit.
    ///
    /// # Errors
    /// When the bitmap has another number of rows.
    pub fn with_validity(self, validity: Bitmap<'a>) -> Result<Self, ColumnError> {
        if validity.rows() != self.len() {
            return Err(ColumnError::Length { rows: self.len(), other: validity.rows() });
        }
        Ok(Self { validity: Some(validity), ..self })
    }

    /// Returns the number of values, which is the largest id that has one, unless a file of version 1 has ids with gaps.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.values {
            ValueData::U32(values) => values.len(),
            ValueData::U64(values) => values.len(),
            ValueData::I64(values) => values.len(),
            ValueData::F64(values) => values.len(),
            ValueData::Bool(values) => values.rows(),
            ValueData::Text(values) | ValueData::Bytes(values) => values.len(),
            ValueData::Stored(column) => column.len(),
        }
    }

    /// Returns whether no id has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of the value of an id.
    fn place(&self, id: u32) -> Option<usize> {
        if let ValueData::Stored(column) = self.values {
            return column.place(NextHop::new(id)?).filter(|&at| self.is_there(at));
        }
        let at = (id as usize).checked_sub(1)?;
        (at < self.len() && self.is_there(at)).then_some(at)
    }

    fn is_there(&self, at: usize) -> bool {
        self.validity.is_none_or(|validity| validity.is_valid(at))
    }

    /// Returns the array of the values of these ids, one for each. Costs a copy of every value; [`dictionary`](Self::dictionary) costs
    /// one of every id, and is for long values.
    ///
    /// # Errors
    /// When memory runs out, or a text is not UTF-8.
    pub fn gather(&self, ids: &[u32]) -> Result<OwnedArray, ColumnError> {
        self.at_places(ids.iter().map(|&id| self.place(id)))
    }

    /// Returns the array of the values at these places.
    fn at_places(
        &self,
        places: impl ExactSizeIterator<Item = Option<usize>> + Clone,
    ) -> Result<OwnedArray, ColumnError> {
        let parts = |format| {
            ArrayParts::new(format, places.len()).validity(places.clone().map(|place| place.is_some()))
        };
        OwnedArray::new(match &self.values {
            ValueData::U32(values) => parts("I").buffer(gathered(places.clone(), |at| values[at])?),
            ValueData::U64(values) => parts("L").buffer(gathered(places.clone(), |at| values[at])?),
            ValueData::I64(values) => parts("l").buffer(gathered(places.clone(), |at| values[at])?),
            ValueData::F64(values) => parts("g").buffer(gathered(places.clone(), |at| values[at])?),
            ValueData::Bool(values) => parts("b").buffer(bits(places.clone(), |at| values.is_valid(at))?),
            ValueData::Text(values) => with_bytes(parts("U"), values, places.clone(), true)?,
            ValueData::Bytes(values) => with_bytes(parts("Z"), values, places.clone(), false)?,
            ValueData::Stored(column) => match column.words() {
                ColumnWords::Narrow(words) => {
                    parts("I").buffer(gathered(places.clone(), |at| words[at].load(Ordering::Relaxed))?)
                }
                ColumnWords::Wide(words) => {
                    let words = gathered(places.clone(), |at| words[at].load(Ordering::Relaxed))?;
                    // The bits of all of these are those of the words.
                    parts(match column.kind() {
                        ColumnType::I64 => "l",
                        ColumnType::F64 => "g",
                        _ => "L",
                    })
                    .buffer(words)
                }
                ColumnWords::Bits(words) => {
                    let bit = |at: usize| words[at / 8].load(Ordering::Relaxed) >> (at % 8) & 1 == 1;
                    parts("b").buffer(bits(places.clone(), bit)?)
                }
                _ => {
                    let is_text = column.kind() == ColumnType::Text;
                    with_stored(parts(if is_text { "U" } else { "Z" }), column, places.clone(), is_text)?
                }
            },
        })
    }

    /// Returns the array of the values of these ids as text: Arrow's `large_string`, whatever the type of the values is. Numbers and truth
    /// values are as [`ColumnValue`] writes them, in the fewest digits that are the same number again. Costs that of
    /// [`gather`](Self::gather), and a number's digits.
    ///
    /// # Errors
    /// When memory runs out, or bytes are not UTF-8.
    pub fn gather_text(&self, ids: &[u32]) -> Result<OwnedArray, ColumnError> {
        let places = ids.iter().map(|&id| self.place(id));
        let parts = ArrayParts::new("U", ids.len()).validity(places.clone().map(|place| place.is_some()));
        match &self.values {
            ValueData::Text(values) | ValueData::Bytes(values) => {
                return OwnedArray::new(with_bytes(parts, values, places, true)?);
            }
            ValueData::Stored(column) if matches!(column.kind(), ColumnType::Text | ColumnType::Bytes) => {
                return OwnedArray::new(with_stored(parts, column, places, true)?);
            }
            _ => {}
        }
        texts_of(ids.iter().map(|&id| match &self.values {
            // A file that is mapped may change between two looks at it, so the second look may find no value.
            ValueData::Stored(column) => NextHop::new(id).and_then(|id| column.value(id)),
            values => {
                let at = self.place(id)?;
                Some(match values {
                    ValueData::U32(values) => ColumnValue::U32(values[at]),
                    ValueData::U64(values) => ColumnValue::U64(values[at]),
                    ValueData::I64(values) => ColumnValue::I64(values[at]),
                    ValueData::F64(values) => ColumnValue::F64(values[at]),
                    ValueData::Bool(values) => ColumnValue::Bool(values.is_valid(at)),
                    _ => return None,
                })
            }
        }))
    }

    /// Returns these ids as entries of a dictionary of all values: Arrow's `dictionary` with indices of type `uint32`.
    ///
    /// # Errors
    /// When memory runs out, or a text is not UTF-8.
    pub fn dictionary(&self, ids: &[u32]) -> Result<OwnedArray, ColumnError> {
        self.entries_of(ids, &self.entries()?)
    }

    /// Returns all values, for [`entries_of`](Self::entries_of): made once, several arrays share them.
    ///
    /// # Errors
    /// When memory runs out, or a text is not UTF-8.
    pub fn entries(&self) -> Result<SharedArray, ColumnError> {
        if u32::try_from(self.len()).is_err() {
            return Err(ColumnError::Array("more values than there are ids"));
        }
        // A null among the values is an entry that no row has.
        let is_null = |at: usize| match self.values {
            ValueData::Stored(column) => column
                .validity()
                .is_some_and(|bits| bits[at / 8].load(Ordering::Relaxed) >> (at % 8) & 1 == 0),
            _ => false,
        };
        let every = (0..self.len()).map(|at| Some(at).filter(|&at| self.is_there(at) && !is_null(at)));
        Ok(SharedArray::new(self.at_places(every)?))
    }

    /// Returns these ids as entries of a dictionary, which is the column's own [`entries`](Self::entries).
    ///
    /// # Errors
    /// When memory runs out, or there are fewer entries than values.
    pub fn entries_of(&self, ids: &[u32], values: &SharedArray) -> Result<OwnedArray, ColumnError> {
        if values.len() < self.len() {
            return Err(ColumnError::Array("fewer entries than values"));
        }
        let mut entries = room(ids.len())?;
        entries.extend(ids.iter().map(|&id| self.place(id).map_or(0, |at| at as u32)));
        let parts = ArrayParts::new("I", ids.len()).validity(ids.iter().map(|&id| self.place(id).is_some()));
        let dictionary = Some(Box::new(values.export()));
        OwnedArray::new(ArrayParts { dictionary, ..parts.buffer(entries) })
    }
}

/// Returns the array of the texts of all rows: Arrow's `large_string`.
///
/// # Errors
/// When memory runs out.
pub fn texts_of<T: fmt::Display>(
    rows: impl ExactSizeIterator<Item = Option<T>>,
) -> Result<OwnedArray, ColumnError> {
    let mut offsets = room::<i64>(rows.len() + 1)?;
    let mut is_there = room::<bool>(rows.len())?;
    let mut bytes: Vec<u8> = Vec::new();
    offsets.push(0);
    for row in rows {
        if let Some(shown) = &row {
            write!(bytes, "{shown}").map_err(|_| ColumnError::Memory { entries: offsets.len() })?;
        }
        is_there.push(row.is_some());
        offsets.push(bytes.len() as i64);
    }
    let parts = ArrayParts::new("U", is_there.len()).validity(is_there);
    OwnedArray::new(parts.buffer(ArrayBuffer::from(offsets)).buffer(bytes))
}

/// Returns an empty vector with room for so many.
fn room<T>(count: usize) -> Result<Vec<T>, ColumnError> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| ColumnError::Memory { entries: count })?;
    Ok(values)
}

fn gathered<T: Default>(
    places: impl ExactSizeIterator<Item = Option<usize>>,
    value: impl Fn(usize) -> T,
) -> Result<Vec<T>, ColumnError> {
    let mut gathered = room(places.len())?;
    gathered.extend(places.map(|place| place.map_or_else(T::default, &value)));
    Ok(gathered)
}

/// Returns a bitmap of truth values.
fn bits(
    places: impl ExactSizeIterator<Item = Option<usize>>,
    is_set: impl Fn(usize) -> bool,
) -> Result<Vec<u8>, ColumnError> {
    let bytes = places.len().div_ceil(8);
    let mut bits = room::<u8>(bytes)?;
    bits.resize(bytes, 0);
    for (row, place) in places.enumerate() {
        bits[row / 8] |= u8::from(place.is_some_and(&is_set)) << (row % 8);
    }
    Ok(bits)
}

/// Adds offsets and bytes of the values of a file. Its words may change meanwhile, so each value is read once.
fn with_stored(
    parts: ArrayParts,
    column: &StoredColumn,
    places: impl ExactSizeIterator<Item = Option<usize>>,
    is_text: bool,
) -> Result<ArrayParts, ColumnError> {
    let mut offsets = room::<i64>(places.len() + 1)?;
    let mut bytes: Vec<u8> = Vec::new();
    offsets.push(0);
    for place in places {
        if let Some(at) = place {
            let value = column.bytes_at(at).ok_or(ColumnError::Array("value outside its buffer"))?;
            let before = bytes.len();
            bytes.try_reserve(value.len()).map_err(|_| ColumnError::Memory { entries: offsets.len() })?;
            bytes.extend(value.iter().map(|byte| byte.load(Ordering::Relaxed)));
            if is_text && str::from_utf8(&bytes[before..]).is_err() {
                return Err(ColumnError::Array("text that is not UTF-8"));
            }
        }
        offsets.push(bytes.len() as i64);
    }
    Ok(parts.buffer(ArrayBuffer::from(offsets)).buffer(bytes))
}

/// Adds offsets and bytes of rows of different lengths.
fn with_bytes(
    parts: ArrayParts,
    values: &ByteRows<'_>,
    places: impl ExactSizeIterator<Item = Option<usize>> + Clone,
    is_text: bool,
) -> Result<ArrayParts, ColumnError> {
    let rows = places.len();
    let get = |place: Option<usize>| match place.map(|at| values.get(at)) {
        None => Ok(&[][..]),
        Some(None) => Err(ColumnError::Array("value outside its buffer")),
        Some(Some(bytes)) if is_text && str::from_utf8(bytes).is_err() => {
            Err(ColumnError::Array("text that is not UTF-8"))
        }
        Some(Some(bytes)) => Ok(bytes),
    };
    let mut offsets = room::<i64>(rows + 1)?;
    let mut end = 0_usize;
    offsets.push(0);
    for place in places.clone() {
        end = end.saturating_add(get(place)?.len());
        offsets.push(end as i64);
    }
    let mut bytes: Vec<u8> = room(end)?;
    for place in places {
        bytes.extend_from_slice(get(place)?);
    }
    Ok(parts.buffer(ArrayBuffer::from(offsets)).buffer(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::tests::{booleans, bytes, dictionary, format, numbers, raw};
    use fibula::file::ColumnBuilder;

    const IDS: [u32; 6] = [2, 0, 3, 1, 4, 2];

    #[test]
    fn values_are_gathered_by_id() {
        let column = ValueColumn::new(ValueData::U32(&[15, 25, 35]));
        let array = column.gather(&IDS).unwrap();
        assert_eq!(numbers::<u32>(raw(&array)), [Some(25), None, Some(35), Some(15), None, Some(25)]);
        assert_eq!(array.structs().1.null_count, 2);

        let bits = [0b101_0000];
        let column = column.with_validity(Bitmap::new(&bits, 4, 3).unwrap()).unwrap();
        let array = column.gather(&IDS).unwrap();
        assert_eq!(numbers::<u32>(raw(&array)), [None, None, Some(35), Some(15), None, None]);

        let array = ValueColumn::new(ValueData::U64(&[1 << 40, 2, 3])).gather(&IDS).unwrap();
        assert_eq!(numbers::<u64>(raw(&array))[3], Some(1 << 40));
        let array = ValueColumn::new(ValueData::I64(&[-1, -2, -3])).gather(&IDS).unwrap();
        assert_eq!(numbers::<i64>(raw(&array)), [Some(-2), None, Some(-3), Some(-1), None, Some(-2)]);
        let array = ValueColumn::new(ValueData::F64(&[0.5, 1.5, 2.5])).gather(&IDS).unwrap();
        assert_eq!(numbers::<f64>(raw(&array)), [Some(1.5), None, Some(2.5), Some(0.5), None, Some(1.5)]);
        let bits = Bitmap::new(&[0b011], 0, 3).unwrap();
        let array = ValueColumn::new(ValueData::Bool(bits)).gather(&IDS).unwrap();
        assert_eq!(booleans(raw(&array)), [Some(true), None, Some(false), Some(true), None, Some(true)]);
    }

    #[test]
    fn values_of_every_type_are_texts() {
        let text = |column: &ValueColumn<'_>, expected: [Option<&str>; 6]| {
            let array = column.gather_text(&IDS).unwrap();
            assert_eq!(format(&array), "U");
            assert_eq!(bytes(raw(&array)), expected.map(|text| text.map(str::as_bytes)));
            assert_eq!(array.texts().unwrap(), expected.map(|text| text.map(str::to_owned)));
        };
        let some = |[a, b, c]: [&'static str; 3]| [Some(b), None, Some(c), Some(a), None, Some(b)];
        text(&ValueColumn::new(ValueData::U32(&[15, 0, u32::MAX])), some(["15", "0", "4294967295"]));
        text(&ValueColumn::new(ValueData::U64(&[1, u64::MAX, 3])), some(["1", "18446744073709551615", "3"]));
        text(
            &ValueColumn::new(ValueData::I64(&[i64::MIN, -1, 3])),
            some(["-9223372036854775808", "-1", "3"]),
        );
        text(
            &ValueColumn::new(ValueData::F64(&[0.1, -1.0, 1e21])),
            some(["0.1", "-1", "1000000000000000000000"]),
        );
        text(
            &ValueColumn::new(ValueData::Bool(Bitmap::new(&[0b011], 0, 3).unwrap())),
            some(["true", "true", "false"]),
        );
        let texts: [&[u8]; 3] = [b"one", b"", "d\u{fc}nn".as_bytes()];
        text(&ValueColumn::new(ValueData::Text(ByteRows::slices(&texts))), some(["one", "", "d\u{fc}nn"]));
        let mut builder = ColumnBuilder::new("c", ColumnType::F64);
        for value in [Some(2.5), None, Some(-0.0)] {
            builder.push(value.map(ColumnValue::F64)).unwrap();
        }
        let column = builder.finish();
        text(&ValueColumn::from(&column), [None, None, Some("-0"), Some("2.5"), None, None]);
        let mut builder = ColumnBuilder::new("c", ColumnType::Bytes);
        builder.push(Some(ColumnValue::Bytes(b"\xff"[..].into()))).unwrap();
        let column = builder.finish();
        assert!(matches!(ValueColumn::from(&column).gather_text(&[1]), Err(ColumnError::Array(_))));
    }

    #[test]
    fn texts_are_gathered_or_in_a_dictionary() {
        let texts: [&[u8]; 3] = [b"one", b"", "d\u{fc}nn".as_bytes()];
        let column = ValueColumn::new(ValueData::Text(ByteRows::slices(&texts)));
        let expected = [Some(texts[1]), None, Some(texts[2]), Some(texts[0]), None, Some(texts[1])];
        let array = column.gather(&IDS).unwrap();
        assert_eq!(bytes(raw(&array)), expected);
        let array = column.dictionary(&IDS).unwrap();
        let entries = numbers::<u32>(raw(&array));
        let values = bytes(dictionary(&array));
        assert_eq!(
            entries.iter().map(|entry| entry.and_then(|at| values[at as usize])).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(bytes(raw(&column.gather(&[]).unwrap())), []);
    }

    /// Columns of a table file, against the same values in slices.
    #[test]
    fn columns_of_files_are_arrays_as_slices_are() {
        let stored = |kind, values: &[Option<ColumnValue<'_>>]| {
            let mut builder = ColumnBuilder::new("c", kind);
            values.iter().for_each(|value| builder.push(value.clone()).unwrap());
            builder.finish()
        };
        let column = stored(ColumnType::U32, &[Some(ColumnValue::U32(15)), None, Some(ColumnValue::U32(35))]);
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!(numbers::<u32>(raw(&array)), [None, None, Some(35), Some(15), None, None]);
        assert_eq!(array.structs().1.null_count, 4);
        let array = ValueColumn::from(&column).dictionary(&IDS).unwrap();
        assert_eq!(numbers::<u32>(raw(&array)), [None, None, Some(2), Some(0), None, None]);
        assert_eq!(numbers::<u32>(dictionary(&array)), [Some(15), None, Some(35)]);

        let column = stored(ColumnType::U64, &[1, 1 << 40, 3].map(|word| Some(ColumnValue::U64(word))));
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!(numbers::<u64>(raw(&array)), [Some(1 << 40), None, Some(3), Some(1), None, Some(1 << 40)]);
        assert_eq!(format(&array), "L");
        let column = stored(ColumnType::I64, &[-1, -2, -3].map(|word| Some(ColumnValue::I64(word))));
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!(numbers::<i64>(raw(&array)), [Some(-2), None, Some(-3), Some(-1), None, Some(-2)]);
        assert_eq!(format(&array), "l");
        let column = stored(ColumnType::F64, &[0.5, 1.5, 2.5].map(|word| Some(ColumnValue::F64(word))));
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!(numbers::<f64>(raw(&array)), [Some(1.5), None, Some(2.5), Some(0.5), None, Some(1.5)]);
        assert_eq!(format(&array), "g");
        let column =
            stored(ColumnType::Bool, &[true, true, false].map(|is_true| Some(ColumnValue::Bool(is_true))));
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!(booleans(raw(&array)), [Some(true), None, Some(false), Some(true), None, Some(true)]);

        let texts = ["one", "", "d\u{fc}nn"].map(|text| Some(ColumnValue::Text(text.into())));
        let column = stored(ColumnType::Text, &texts);
        let expected = [Some(&b""[..]), None, Some("d\u{fc}nn".as_bytes()), Some(b"one"), None, Some(b"")];
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!((bytes(raw(&array)), format(&array)), (expected.to_vec(), "U"));
        let array = ValueColumn::from(&column).dictionary(&IDS).unwrap();
        let values = bytes(dictionary(&array));
        let entries = numbers::<u32>(raw(&array));
        assert!(entries.iter().map(|entry| entry.and_then(|at| values[at as usize])).eq(expected));
        let column = stored(ColumnType::Bytes, &[None, Some(ColumnValue::Bytes(vec![0xff].into()))]);
        let array = ValueColumn::from(&column).gather(&IDS).unwrap();
        assert_eq!(bytes(raw(&array)), [Some(&[0xff][..]), None, None, None, None, Some(&[0xff])]);
        assert_eq!(format(&array), "Z");
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused() {
        let texts: [&[u8]; 2] = [b"one", b"\xff"];
        let column = ValueColumn::new(ValueData::Text(ByteRows::slices(&texts)));
        assert!(column.gather(&[1, 0]).is_ok());
        assert_eq!(column.gather(&[1, 2]).unwrap_err(), ColumnError::Array("text that is not UTF-8"));
        assert!(column.dictionary(&[1]).is_err());
        let column = ValueColumn::new(ValueData::Bytes(ByteRows::slices(&texts)));
        assert_eq!(bytes(raw(&column.gather(&[2]).unwrap())), [Some(texts[1])]);
    }
}
