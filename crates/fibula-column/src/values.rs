//! Values of ids, as arrays of Arrow: a value for each row, or a dictionary of all values.

use crate::arrow::{ArrayBuffer, ArrayParts, OwnedArray};
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

    /// Returns the number of values, which is the largest id that has one.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.values {
            ValueData::U32(values) => values.len(),
            ValueData::U64(values) => values.len(),
            ValueData::I64(values) => values.len(),
            ValueData::F64(values) => values.len(),
            ValueData::Bool(values) => values.rows(),
            ValueData::Text(values) | ValueData::Bytes(values) => values.len(),
        }
    }

    /// Returns whether no id has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of the value of an id.
    fn place(&self, id: u32) -> Option<usize> {
        let at = (id as usize).checked_sub(1)?;
        (at < self.len() && self.validity.is_none_or(|validity| validity.is_valid(at))).then_some(at)
    }

    /// Returns the array of the values of these ids, one for each. Costs a copy of every value; [`dictionary`](Self::dictionary) costs
    /// one of every id, and is for long values.
    ///
    /// # Errors
    /// When memory runs out, or a text is not UTF-8.
    pub fn gather(&self, ids: &[u32]) -> Result<OwnedArray, ColumnError> {
        let places = ids.iter().map(|&id| self.place(id));
        let parts =
            |format| ArrayParts::new(format, ids.len()).validity(places.clone().map(|place| place.is_some()));
        OwnedArray::new(match &self.values {
            ValueData::U32(values) => parts("I").buffer(gathered(values, places.clone())?),
            ValueData::U64(values) => parts("L").buffer(gathered(values, places.clone())?),
            ValueData::I64(values) => parts("l").buffer(gathered(values, places.clone())?),
            ValueData::F64(values) => parts("g").buffer(gathered(values, places.clone())?),
            ValueData::Bool(values) => {
                let mut bits = room::<u8>(ids.len().div_ceil(8))?;
                bits.resize(ids.len().div_ceil(8), 0);
                for (row, place) in places.clone().enumerate() {
                    bits[row / 8] |= u8::from(place.is_some_and(|at| values.is_valid(at))) << (row % 8);
                }
                parts("b").buffer(bits)
            }
            ValueData::Text(values) => with_bytes(parts("U"), values, places.clone(), true)?,
            ValueData::Bytes(values) => with_bytes(parts("Z"), values, places.clone(), false)?,
        })
    }

    /// Returns these ids as entries of a dictionary of all values: Arrow's `dictionary` with indices of type `uint32`.
    ///
    /// # Errors
    /// When memory runs out, or a text is not UTF-8.
    pub fn dictionary(&self, ids: &[u32]) -> Result<OwnedArray, ColumnError> {
        let all =
            u32::try_from(self.len()).map_err(|_| ColumnError::Array("more values than there are ids"))?;
        let mut every = room(self.len())?;
        every.extend(1..=all);
        let dictionary = Some(Box::new(self.gather(&every)?));
        let mut entries = room(ids.len())?;
        entries.extend(ids.iter().map(|&id| self.place(id).map_or(0, |at| at as u32)));
        let parts = ArrayParts::new("I", ids.len()).validity(ids.iter().map(|&id| self.place(id).is_some()));
        OwnedArray::new(ArrayParts { dictionary, ..parts.buffer(entries) })
    }
}

/// Returns an empty vector with room for so many.
fn room<T>(count: usize) -> Result<Vec<T>, ColumnError> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| ColumnError::Memory { entries: count })?;
    Ok(values)
}

fn gathered<T: Copy + Default>(
    values: &[T],
    places: impl ExactSizeIterator<Item = Option<usize>>,
) -> Result<Vec<T>, ColumnError> {
    let mut gathered = room(places.len())?;
    gathered.extend(places.map(|place| place.map_or_else(T::default, |at| values[at])));
    Ok(gathered)
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
    use crate::arrow::tests::{booleans, bytes, dictionary, numbers, raw};

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
