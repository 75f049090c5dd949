//! Addresses in buffers: arrays of NumPy, `array.array`, `memoryview` and all else that lends its memory.
//!
//! No thread may write to a buffer during a call that reads it: a thread that does gets wrong answers. All of this crate's `unsafe`
//! code is in this file and in `capsule.rs`.
#![allow(unsafe_code)]

use fibula_column::{AddressLayout, Column, ColumnError};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::error::{type_error, value_error};

/// The kind of a buffer's elements, as its format names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Unsigned,
    Signed,
    /// Bytes that are nothing else: NumPy's `V`.
    Raw,
    /// Text of four bytes a character: NumPy's `U`.
    Wide,
    /// References to objects.
    Object,
    /// Bytes that end at the first zero: NumPy's `S`.
    Cut,
    Other,
}

fn element(format: &str) -> (Element, bool) {
    let (order, code) = match format.as_bytes() {
        [order @ (b'<' | b'>' | b'=' | b'@' | b'!' | b'^'), ..] => (*order, &format[1..]),
        _ => (b'@', format),
    };
    let is_swapped =
        if cfg!(target_endian = "little") { matches!(order, b'>' | b'!') } else { order == b'<' };
    let kind = match code.trim_start_matches(|digit: char| digit.is_ascii_digit()) {
        "B" | "H" | "I" | "L" | "Q" | "N" => Element::Unsigned,
        "b" | "h" | "i" | "l" | "q" | "n" => Element::Signed,
        "x" => Element::Raw,
        "w" => Element::Wide,
        "O" => Element::Object,
        "s" => Element::Cut,
        _ => Element::Other,
    };
    (kind, is_swapped)
}

/// A buffer of addresses.
pub struct AddressBuffer {
    buffer: PyUntypedBuffer,
    layout: AddressLayout,
    stride: isize,
    rows: usize,
}

/// The contents of a buffer.
pub enum Lent {
    Addresses(AddressBuffer),
    /// Texts, copied: their bytes and the end of each.
    Texts(Vec<u8>, Vec<i64>),
    /// A buffer of objects, to be read one by one.
    Objects,
    /// Not a buffer.
    Nothing,
}

/// Returns the contents of the buffer that an object lends.
pub fn lent(object: &Bound<'_, PyAny>) -> PyResult<Lent> {
    let Ok(buffer) = PyUntypedBuffer::get(object) else { return Ok(Lent::Nothing) };
    let format = buffer.format().to_string_lossy().into_owned();
    let (kind, is_swapped) = element(&format);
    let refused =
        |why: &str| type_error(format!("a buffer of type '{format}' is no column of addresses: {why}"));
    if kind == Element::Object {
        return Ok(Lent::Objects);
    }
    if kind == Element::Cut {
        return Err(refused(
            "its rows end at their first zero byte, which addresses have; use 'V4', 'V16' or uint8 in rows of 4 or 16",
        ));
    }
    let size = buffer.item_size();
    let (shape, strides) = (buffer.shape(), buffer.strides());
    let layout = match (shape, kind, size) {
        (&[_], Element::Unsigned | Element::Signed, 4) if is_swapped => AddressLayout::NetworkIpv4,
        (&[_], Element::Unsigned | Element::Signed, 4) => AddressLayout::HostIpv4,
        (&[_], Element::Unsigned | Element::Signed, 8) if !is_swapped => AddressLayout::WideIpv4,
        (&[_], Element::Raw, 4) => AddressLayout::NetworkIpv4,
        (&[_], Element::Raw, 16) => AddressLayout::NetworkIpv6,
        (&[_], Element::Wide, _) => return texts(&buffer, size / 4, is_swapped),
        (&[rows, width @ (4 | 16)], Element::Unsigned, 1) => {
            if rows > 0 && strides.get(1) != Some(&1) {
                return Err(refused("the bytes of an address do not follow each other"));
            }
            if width == 4 { AddressLayout::NetworkIpv4 } else { AddressLayout::NetworkIpv6 }
        }
        (&[_], ..) => return Err(refused("integers of 4 or 8 bytes are one, and rows of 4 or 16 bytes")),
        _ => {
            return Err(refused(&format!(
                "it has {} dimensions; addresses have one, or two of which the last is 4 or 16 bytes",
                buffer.dimensions()
            )));
        }
    };
    let (rows, stride) = (shape[0], strides.first().copied().unwrap_or(size as isize));
    Ok(Lent::Addresses(AddressBuffer { buffer, layout, stride, rows }))
}

/// Copies texts of four bytes a character, which end at their first zero.
fn texts(buffer: &PyUntypedBuffer, characters: usize, is_swapped: bool) -> PyResult<Lent> {
    let (rows, stride) = (buffer.shape()[0], buffer.strides().first().copied().unwrap_or(0));
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows + 1));
    ends.push(0);
    for row in 0..rows {
        let start = buffer.buf_ptr().cast::<u8>().wrapping_offset(stride.wrapping_mul(row as isize));
        for at in 0..characters {
            let character = start.wrapping_add(at * 4).cast::<u32>();
            // SAFETY: by the protocol, the element lies in the buffer, which is held; its characters need no alignment here.
            let code = unsafe { character.read_unaligned() };
            let code = if is_swapped { code.swap_bytes() } else { code };
            if code == 0 {
                break;
            }
            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        ends.push(bytes.len() as i64);
    }
    Ok(Lent::Texts(bytes, ends))
}

impl AddressBuffer {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the first byte and the one after the last.
    fn range(&self) -> (usize, usize) {
        let start = self.buffer.buf_ptr() as usize;
        if self.rows == 0 {
            return (start, start);
        }
        let way = self.stride.wrapping_mul(self.rows as isize - 1);
        let last = start.wrapping_add_signed(way);
        (start.min(last), start.max(last) + self.layout.bytes())
    }

    pub fn column(&self) -> Result<Column<'_>, ColumnError> {
        let (start, end) = self.range();
        if self.rows == 0 {
            return Ok(Column::ipv4(&[]));
        }
        let size = self.layout.bytes();
        let is_packed = self.stride == size as isize;
        let first = self.buffer.buf_ptr() as usize - start;
        if is_packed && self.layout == AddressLayout::HostIpv4 && start.is_multiple_of(4) {
            // SAFETY: the buffer protocol promises `rows` integers at this address while the buffer is held, and `start` is aligned. Callers
            // must not write to the buffer during the call (see the top of this file).
            let keys = unsafe { std::slice::from_raw_parts(start as *const u32, self.rows) };
            return Ok(Column::ipv4(keys));
        }
        // SAFETY: as above. All rows lie between the first and the last byte of the buffer.
        let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
        Column::strided(bytes, first, self.stride, self.rows, self.layout)
    }
}

/// A buffer that ids are written to: integers of 32 bits without a sign.
pub struct IdBuffer {
    buffer: PyUntypedBuffer,
}

impl IdBuffer {
    /// Returns `object` as the buffer for the ids of `rows` addresses.
    pub fn of(object: &Bound<'_, PyAny>, rows: usize) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)
            .map_err(|_| type_error("out is no buffer: an array of uint32 is wanted"))?;
        let format = buffer.format().to_string_lossy().into_owned();
        if element(&format) != (Element::Unsigned, false) || buffer.item_size() != 4 {
            return Err(type_error(format!("out has type '{format}', and ids are uint32")));
        }
        // Of no rows, the place is any.
        let is_aligned = buffer.item_count() == 0 || (buffer.buf_ptr() as usize).is_multiple_of(4);
        if buffer.readonly() || !buffer.is_c_contiguous() || !is_aligned {
            return Err(value_error("out is read-only, or its elements do not follow each other"));
        }
        match buffer.shape() {
            &[own] if own == rows => Ok(Self { buffer }),
            shape => Err(value_error(format!("out has shape {shape:?}, and there are {rows} addresses"))),
        }
    }

    /// Refuses a place that lies in the addresses.
    pub fn apart_from(&self, addresses: &AddressBuffer) -> PyResult<()> {
        let (start, end) = addresses.range();
        let own = self.buffer.buf_ptr() as usize;
        if own < end && start < own + self.buffer.len_bytes() {
            return Err(value_error("out and the addresses lie in the same memory"));
        }
        Ok(())
    }

    /// Returns the ids. A place is used by one call alone, whose caller holds it.
    pub fn ids(&mut self) -> &mut [u32] {
        let count = self.buffer.item_count();
        if count == 0 {
            return &mut [];
        }
        // SAFETY: `of` verified that the integers are writable and aligned, and the buffer is held. No column of the call overlaps it, and
        // callers must not use it during the call (see the top of this file).
        unsafe { std::slice::from_raw_parts_mut(self.buffer.buf_ptr().cast(), count) }
    }
}

/// Returns a copy of a buffer's bytes, which are one block.
pub fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    let Ok(buffer) = PyUntypedBuffer::get(object) else { return Ok(None) };
    if !buffer.is_c_contiguous() {
        return Err(value_error("the bytes of the table do not follow each other"));
    }
    let count = buffer.len_bytes();
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    // SAFETY: the buffer protocol promises `count` bytes at this address while the buffer is held.
    Ok(Some(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), count) }.to_vec()))
}

/// Bytes that an object lends, for as long as they are held: `bytes`, or a file that is mapped for reading.
pub struct HeldBytes {
    buffer: PyUntypedBuffer,
}

impl HeldBytes {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(value_error("read-only, contiguous bytes are required"));
        }
        Ok(Self { buffer })
    }

    pub fn bytes(&self) -> &[u8] {
        let count = self.buffer.len_bytes();
        if count == 0 {
            return &[];
        }
        // SAFETY: the buffer protocol promises `count` bytes at this address while the buffer is held, and it is read-only: Python has no way
        // to change them. A program that writes into a mapped file gets wrong records.
        unsafe { std::slice::from_raw_parts(self.buffer.buf_ptr().cast::<u8>(), count) }
    }
}
