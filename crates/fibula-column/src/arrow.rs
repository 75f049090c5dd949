//! Arrow's C data interface: arrays borrowed for the length of a call, and ids and values exported as arrays.
//!
//! The two structs are those of the specification, which every implementation of Arrow hands over, so no crate of Arrow is
//! needed. All of this crate's `unsafe` code is in this module.
//!
//! | format | rows |
//! |---|---|
//! | `I`, `i` | IPv4 in host order, by the bits |
//! | `L`, `l` | IPv4 in host order; above 2^32 - 1 and negative: invalid |
//! | `w:4`, `w:16` | IPv4, IPv6 in network order |
//! | `z`, `Z`, `vz` | 4 or 16 bytes in network order ([`Column::bytes_as_text`](crate::Column::bytes_as_text) takes them for text) |
//! | `u`, `U`, `vu` | text of either family |
//! | `n` | nulls alone |
//! | any of these, of a dictionary | the entries of the dictionary, by indices of any integer type |
#![allow(unsafe_code)]

mod shared;
mod stream;

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use std::ffi::CString;

use fibula::net::NextHop;

use crate::error::ColumnError;

pub use shared::SharedArray;
pub use stream::{ArrowStream, stream_of};

/// The type of an array: `struct ArrowSchema` of the specification. One that this crate made is released when it is dropped; one that was
/// moved out of has no `release`. Its fields are not public, because safe code that changed one would make the release unsound.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    /// The type, as a string that ends with 0.
    pub(crate) format: *const c_char,
    /// The name, or null.
    pub(crate) name: *const c_char,
    /// Metadata in the specification's form, or null.
    pub(crate) metadata: *const c_char,
    /// Flags: 2 where rows may be null.
    pub(crate) flags: i64,
    /// Number of children.
    pub(crate) n_children: i64,
    /// The children.
    pub(crate) children: *mut *mut ArrowSchema,
    /// The type of the entries of a dictionary, or null.
    pub(crate) dictionary: *mut ArrowSchema,
    /// Frees everything that the schema points to. `None` once it was released, or moved elsewhere.
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    /// For whoever made the schema.
    pub(crate) private_data: *mut c_void,
}

/// The rows of an array: `struct ArrowArray` of the specification. One that this crate made is released when it is dropped; one that was
/// moved out of has no `release`. Its fields are not public, because safe code that changed one would make the release unsound.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    /// Number of rows.
    pub(crate) length: i64,
    /// Number of null rows; -1 where it is not known.
    pub(crate) null_count: i64,
    /// Number of rows in the buffers before the first one.
    pub(crate) offset: i64,
    /// Number of buffers.
    pub(crate) n_buffers: i64,
    /// Number of children.
    pub(crate) n_children: i64,
    /// The buffers, as many as the type has.
    pub(crate) buffers: *mut *const c_void,
    /// The children.
    pub(crate) children: *mut *mut ArrowArray,
    /// The entries of a dictionary, or null.
    pub(crate) dictionary: *mut ArrowArray,
    /// Frees everything that the array points to. `None` once it was released, or moved elsewhere.
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    /// For whoever made the array.
    pub(crate) private_data: *mut c_void,
}

/// Rows may be null: a flag of a schema.
const NULLABLE: i64 = 2;

macro_rules! released_on_drop {
    ($($base:ty),*) => {$(
        impl Drop for $base {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: whoever set `release` expects one call of it with its own base structure.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}
released_on_drop!(ArrowSchema, ArrowArray);

/// Integers that are nothing but their bits.
///
/// # Safety
/// Every pattern of bits is a value, and there is no padding.
pub(crate) unsafe trait Plain: Copy + Send + Sync + core::fmt::Debug + 'static {}

macro_rules! plain {
    ($($integer:ty),*) => {$(
        // SAFETY: an integer or a float has no padding, and all of its bits may have any value.
        unsafe impl Plain for $integer {}
    )*};
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, u128, f64);

/// Returns the bytes of integers, in the machine's order.
pub(crate) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: the bytes of the slice are initialised, as `Plain` types have no padding, and bytes need no alignment.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns bytes as integers, if they are aligned as those are. Bytes after the last whole integer are left out.
pub(crate) fn aligned<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    let start = bytes.as_ptr().cast::<T>();
    if !start.is_aligned() {
        return None;
    }
    // SAFETY: the integers lie within the bytes, are aligned, and any bits are a `Plain` value.
    Some(unsafe { core::slice::from_raw_parts(start, bytes.len() / size_of::<T>()) })
}

/// Returns ids as next hops, to which engines write: 0 is none.
pub(crate) fn as_next_hops(ids: &mut [u32]) -> &mut [Option<NextHop>] {
    // SAFETY: `Option<NextHop>` is a transparent `Option<NonZeroU32>`, which has the layout of `u32`, and 0 for `None`; every `u32` is a
    // value of it and the other way round.
    unsafe { core::slice::from_raw_parts_mut(ids.as_mut_ptr().cast(), ids.len()) }
}

/// How the rows of a type lie in its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BufferShape {
    /// No buffers.
    Nulls,
    /// Bits.
    Bits,
    /// This many bytes each.
    Fixed(usize),
    /// Offsets of this many bytes into a buffer.
    Offsets(usize),
    Views,
}

impl BufferShape {
    fn of(format: &str) -> Option<Self> {
        Some(match format {
            "n" => Self::Nulls,
            "b" => Self::Bits,
            "c" | "C" => Self::Fixed(1),
            "s" | "S" => Self::Fixed(2),
            "i" | "I" | "f" => Self::Fixed(4),
            "l" | "L" | "g" => Self::Fixed(8),
            "w:4" => Self::Fixed(4),
            "w:16" => Self::Fixed(16),
            "z" | "u" => Self::Offsets(4),
            "Z" | "U" => Self::Offsets(8),
            "vz" | "vu" => Self::Views,
            _ => return None,
        })
    }
}

/// An array of Arrow that is borrowed, whose own fields were verified: the buffers that its type has, from its first row on.
/// [`Column::from_arrow`](crate::Column::from_arrow) makes a column of it.
#[derive(Debug)]
pub struct BorrowedArray<'a> {
    pub(crate) format: &'a str,
    pub(crate) rows: usize,
    pub(crate) buffers: RowBuffers<'a>,
    pub(crate) validity: Option<Validity<'a>>,
    pub(crate) dictionary: Option<Box<Self>>,
}

/// The buffers of an array.
#[derive(Debug)]
pub(crate) enum RowBuffers<'a> {
    Nulls,
    Bits,
    /// Rows of this many bytes.
    Fixed(usize, &'a [u8]),
    Offsets32(&'a [[u8; 4]], &'a [u8]),
    Offsets64(&'a [[u8; 8]], &'a [u8]),
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
}

/// The bits of a validity bitmap, and the one of the first row.
#[derive(Debug)]
pub(crate) struct Validity<'a> {
    pub(crate) bits: &'a [u8],
    pub(crate) offset: usize,
}

/// Borrows an array of Arrow. Nothing is copied but the list of the buffers of views, and nothing is released.
///
/// The declarations of the array are verified: its lengths, offsets and number of buffers, and that no buffer is missing. Buffers need no
/// alignment.
///
/// # Errors
/// When the array is malformed, or of a type whose rows are none of those that this crate knows.
///
/// # Safety
/// The structs are as the specification says, are not released, and are not changed as long as they are borrowed, nor is the memory that
/// they point to. Each buffer is readable for as many bytes as its type, `length`, `offset`, its last offset and its list of buffer lengths say.
pub unsafe fn borrow<'a>(
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
) -> Result<BorrowedArray<'a>, ColumnError> {
    // First, because a released struct leads nowhere.
    // SAFETY: the caller's promise.
    let format = unsafe { format_of(schema) }?;
    // SAFETY: the caller's promise.
    let fields = unsafe { ArrayFields::new(array) }?;
    let no_dictionary = ColumnError::Array("no dictionary, although the type has one");
    let dictionary = if schema.dictionary.is_null() {
        None
    } else {
        // SAFETY: the pointer is not null, and leads to a schema that lives as long as this one, by the specification.
        let schema = unsafe { schema.dictionary.as_ref() }.ok_or(no_dictionary.clone())?;
        // SAFETY: as for the schema.
        let array = unsafe { array.dictionary.as_ref() }.ok_or(no_dictionary)?;
        // It could lead back to itself.
        if !schema.dictionary.is_null() {
            return Err(ColumnError::Array("dictionary of a dictionary"));
        }
        // SAFETY: the caller's promise covers the structs that these point to.
        Some(Box::new(unsafe { borrow(schema, array) }?))
    };
    let buffers = fields.row_buffers(format)?;
    let validity = if matches!(buffers, RowBuffers::Nulls) { None } else { fields.validity()? };
    Ok(BorrowedArray { format, rows: fields.rows, buffers, validity, dictionary })
}

/// Returns the format string of a schema.
///
/// # Safety
/// As for [`borrow`].
unsafe fn format_of(schema: &ArrowSchema) -> Result<&str, ColumnError> {
    if schema.release.is_none() {
        return Err(ColumnError::Array("released schema"));
    }
    if schema.format.is_null() {
        return Err(ColumnError::Array("schema without a format"));
    }
    // SAFETY: the format is a string that ends with 0, by the specification, and lives as long as the schema.
    let format = unsafe { CStr::from_ptr(schema.format) };
    format.to_str().map_err(|_| ColumnError::Type(format.to_string_lossy().into_owned()))
}

/// The fields of an array, verified as far as they can be without its type.
struct ArrayFields<'a> {
    rows: usize,
    /// Rows in the buffers before the first one.
    offset: usize,
    null_count: i64,
    buffers: &'a [*const c_void],
}

impl<'a> ArrayFields<'a> {
    /// # Safety
    /// As for [`borrow`].
    unsafe fn new(array: &'a ArrowArray) -> Result<Self, ColumnError> {
        let number = |value: i64, fault| usize::try_from(value).map_err(|_| ColumnError::Array(fault));
        if array.release.is_none() {
            return Err(ColumnError::Array("released array"));
        }
        let rows = number(array.length, "negative length")?;
        let offset = number(array.offset, "negative offset")?;
        let count = number(array.n_buffers, "negative number of buffers")?;
        if array.null_count < -1 {
            return Err(ColumnError::Array("negative number of nulls"));
        }
        // The largest row is of 16 bytes: every size in bytes is then a number.
        if offset.checked_add(rows).is_none_or(|all| all > isize::MAX as usize / 32) {
            return Err(ColumnError::Array("length and offset beyond the address space"));
        }
        if array.buffers.is_null() && count > 0 || count > isize::MAX as usize / 8 {
            return Err(ColumnError::Array("no list of buffers"));
        }
        let buffers: &[*const c_void] = match count {
            0 => &[],
            // SAFETY: `buffers` leads to `n_buffers` pointers, by the specification, which live as long as the array.
            _ => unsafe { core::slice::from_raw_parts(array.buffers, count) },
        };
        Ok(Self { rows, offset, null_count: array.null_count, buffers })
    }

    /// Returns the first `len` bytes of a buffer.
    ///
    /// # Safety
    /// The array declares that many bytes for this buffer.
    unsafe fn buffer(&self, index: usize, len: usize) -> Result<&'a [u8], ColumnError> {
        let start = *self.buffers.get(index).ok_or(ColumnError::Array("fewer buffers than the type has"))?;
        if len == 0 {
            return Ok(&[]);
        }
        if start.is_null() {
            return Err(ColumnError::Array("missing buffer"));
        }
        // SAFETY: the buffer is readable for as many bytes as the array declares, is not changed meanwhile, and bytes need no alignment.
        Ok(unsafe { core::slice::from_raw_parts(start.cast(), len) })
    }

    /// Returns the buffers that the rows of this format have.
    fn row_buffers(&self, format: &str) -> Result<RowBuffers<'a>, ColumnError> {
        let shape = BufferShape::of(format).ok_or_else(|| ColumnError::Type(format.to_owned()))?;
        match shape {
            BufferShape::Nulls => Ok(RowBuffers::Nulls),
            BufferShape::Bits => Ok(RowBuffers::Bits),
            BufferShape::Fixed(width) => Ok(RowBuffers::Fixed(width, self.fixed(width)?)),
            BufferShape::Offsets(width) => self.offsets(width),
            BufferShape::Views => self.views(),
        }
    }

    /// Returns the rows of a buffer that has `width` bytes for each.
    fn fixed(&self, width: usize) -> Result<&'a [u8], ColumnError> {
        // SAFETY: the array declares `offset + length` rows for the buffer of a type of fixed width.
        let bytes = unsafe { self.buffer(1, (self.offset + self.rows) * width) }?;
        Ok(bytes.get(self.offset * width..).unwrap_or_default())
    }

    /// Returns rows that follow each other in one buffer, with offsets of `width` bytes.
    fn offsets(&self, width: usize) -> Result<RowBuffers<'a>, ColumnError> {
        // Arrays without rows may have no offsets.
        let count = if self.rows == 0 { 0 } else { self.offset + self.rows + 1 };
        // SAFETY: the array declares an offset more than rows.
        let offsets = unsafe { self.buffer(1, count * width) }?;
        let offsets = offsets.get(self.offset * width..).unwrap_or_default();
        let last = match (offsets.as_chunks().0.last(), offsets.as_chunks().0.last()) {
            (Some(&last), _) if width == 4 => isize::try_from(i32::from_ne_bytes(last)).ok(),
            (_, Some(&last)) => isize::try_from(i64::from_ne_bytes(last)).ok(),
            _ => Some(0),
        };
        let last = last.and_then(|last| usize::try_from(last).ok());
        let last = last.ok_or(ColumnError::Array("last offset is negative"))?;
        // SAFETY: the last offset declares the length of the buffer of bytes.
        let bytes = unsafe { self.buffer(2, last) }?;
        Ok(if width == 4 {
            RowBuffers::Offsets32(offsets.as_chunks().0, bytes)
        } else {
            RowBuffers::Offsets64(offsets.as_chunks().0, bytes)
        })
    }

    /// Returns rows that are views into several buffers. The last buffer holds the lengths of those.
    fn views(&self) -> Result<RowBuffers<'a>, ColumnError> {
        let count = self.buffers.len().checked_sub(3);
        let count = count.ok_or(ColumnError::Array("fewer buffers than the type has"))?;
        // SAFETY: the array declares a length of 8 bytes for each buffer that is neither validity, views nor lengths.
        let lengths = unsafe { self.buffer(2 + count, 8 * count) }?;
        let mut buffers = Vec::with_capacity(count);
        for (at, &len) in lengths.as_chunks().0.iter().enumerate() {
            let len = isize::try_from(i64::from_ne_bytes(len)).ok().and_then(|len| usize::try_from(len).ok());
            let len = len.ok_or(ColumnError::Array("negative length of a buffer"))?;
            // SAFETY: the buffer of lengths declares it.
            buffers.push(unsafe { self.buffer(2 + at, len) }?);
        }
        Ok(RowBuffers::Views(self.fixed(16)?.as_chunks().0, buffers))
    }

    /// Returns the validity bitmap, if there may be nulls.
    fn validity(&self) -> Result<Option<Validity<'a>>, ColumnError> {
        let is_missing = self.buffers.first().is_none_or(|start| start.is_null());
        match (self.null_count, is_missing) {
            (0, _) | (-1, true) => Ok(None),
            (_, true) => Err(ColumnError::Array("nulls without a validity bitmap")),
            (_, false) => {
                // SAFETY: the array declares a bit for each of `offset + length` rows.
                let bits = unsafe { self.buffer(0, (self.offset + self.rows).div_ceil(8)) }?;
                Ok(Some(Validity { bits, offset: self.offset }))
            }
        }
    }
}

/// Memory that an exported array owns: made of a vector of integers, of floats or of bytes.
#[derive(Debug)]
pub struct ArrayBuffer(Box<dyn OwnedBuffer>);

trait OwnedBuffer: Send + Sync + core::fmt::Debug {
    fn bytes(&self) -> &[u8];
}

impl<T: Plain> OwnedBuffer for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytes_of(self)
    }
}

#[allow(private_bounds, reason = "the trait is for the types of this file alone")]
impl<T: Plain> From<Vec<T>> for ArrayBuffer {
    fn from(values: Vec<T>) -> Self {
        Self(Box::new(values))
    }
}

/// The parts of an array that is to be exported. [`OwnedArray::new`] verifies them.
#[derive(Debug)]
pub struct ArrayParts {
    /// The format string of the type: one of the table above, of an integer, of a float of 64 bits, or of booleans.
    pub format: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// Number of rows in the buffers before the first one.
    pub offset: usize,
    /// Number of null rows; `None` where it is not known.
    pub null_count: Option<usize>,
    /// The buffers that the type has, the validity bitmap first.
    pub buffers: Vec<Option<ArrayBuffer>>,
    /// The dictionary that the rows are entries of.
    pub dictionary: Option<Box<OwnedArray>>,
}

impl ArrayParts {
    /// Returns the parts of an array of this many rows, as yet without buffers.
    #[must_use]
    pub fn new(format: &'static str, rows: usize) -> Self {
        Self { format, rows, offset: 0, null_count: None, buffers: Vec::new(), dictionary: None }
    }

    /// Adds a buffer.
    #[must_use]
    pub fn buffer(mut self, values: impl Into<ArrayBuffer>) -> Self {
        self.buffers.push(Some(values.into()));
        self
    }

    /// Adds a buffer that is absent.
    #[must_use]
    pub fn no_buffer(mut self) -> Self {
        self.buffers.push(None);
        self
    }

    /// Adds the validity bitmap of these rows, from the first row in the buffers on; an absent one if no row is null.
    #[must_use]
    pub fn validity(mut self, is_valid: impl IntoIterator<Item = bool>) -> Self {
        let mut bits = Vec::new();
        let mut null_count = 0;
        for (row, is_valid) in is_valid.into_iter().enumerate() {
            if row % 8 == 0 {
                bits.push(0_u8);
            }
            bits[row / 8] |= u8::from(is_valid) << (row % 8);
            null_count += usize::from(!is_valid);
        }
        self.null_count = (self.offset == 0 || null_count == 0).then_some(null_count);
        self.buffers.push((null_count > 0).then(|| bits.into()));
        self
    }

    /// Returns the bytes of a buffer; none if it is absent.
    fn bytes(&self, at: usize) -> &[u8] {
        self.buffers.get(at).and_then(Option::as_ref).map_or(&[], |buffer| buffer.0.bytes())
    }

    /// Returns whether each buffer has the bytes that an array declares for it.
    fn are_whole(&self) -> bool {
        let Some(rows) = self.offset.checked_add(self.rows).filter(|&rows| rows <= isize::MAX as usize / 32)
        else {
            return false;
        };
        let has = |at: usize, bytes: usize| self.bytes(at).len() >= bytes;
        let shape = BufferShape::of(self.format);
        if shape == Some(BufferShape::Nulls) {
            return self.buffers.is_empty();
        }
        let has_validity =
            has(0, rows.div_ceil(8)) || self.null_count.unwrap_or(0) == 0 && self.bytes(0).is_empty();
        has_validity
            && match shape {
                None | Some(BufferShape::Nulls) => false,
                Some(BufferShape::Bits) => self.buffers.len() == 2 && has(1, rows.div_ceil(8)),
                Some(BufferShape::Fixed(width)) => self.buffers.len() == 2 && has(1, rows * width),
                Some(BufferShape::Offsets(width)) => {
                    let last = self.bytes(1).get(rows * width..(rows + 1) * width);
                    let last = match last.map(|last| (last.try_into(), last.try_into())) {
                        Some((Ok(last), _)) => usize::try_from(i32::from_ne_bytes(last)).ok(),
                        Some((_, Ok(last))) => usize::try_from(i64::from_ne_bytes(last)).ok(),
                        _ => None,
                    };
                    self.buffers.len() == 3 && last.is_some_and(|last| has(2, last))
                }
                Some(BufferShape::Views) => {
                    let lengths = self.bytes(self.buffers.len().saturating_sub(1)).as_chunks().0;
                    has(1, rows * 16)
                        && self.buffers.len().checked_sub(3) == Some(lengths.len())
                        && lengths.iter().enumerate().all(|(at, &len)| {
                            usize::try_from(i64::from_ne_bytes(len)).is_ok_and(|len| has(2 + at, len))
                        })
                }
            }
    }
}

/// An array of Arrow that owns its buffers: ids, or values. Both structs are released when it is dropped.
#[derive(Debug)]
pub struct OwnedArray {
    schema: ArrowSchema,
    array: ArrowArray,
}

/// The owner of an exported array's memory, to which `private_data` leads.
struct ArrayOwner {
    buffers: Vec<Option<ArrayBuffer>>,
    pointers: Vec<*const c_void>,
    dictionary: Option<Box<ArrowArray>>,
}

/// The owner of an exported schema's memory, to which `private_data` leads.
struct SchemaOwner {
    format: CString,
    name: CString,
    dictionary: Option<Box<ArrowSchema>>,
}

/// Frees an exported array.
///
/// # Safety
/// It was made by [`OwnedArray::of_whole`], maybe moved bit by bit, and not released before.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller's promise, and that of the specification: the pointer leads to the array itself.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    array.release = None;
    // SAFETY: `private_data` is from `Box::into_raw` in `OwnedArray::of_whole`, and as `release` was set, it was not freed before.
    drop(unsafe { Box::from_raw(array.private_data.cast::<ArrayOwner>()) });
}

/// Frees an exported schema.
///
/// # Safety
/// As for [`release_array`].
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller's promise, and that of the specification: the pointer leads to the schema itself.
    let Some(schema) = (unsafe { schema.as_mut() }) else { return };
    schema.release = None;
    // SAFETY: `private_data` is from `Box::into_raw` in `OwnedArray::of_whole`, and as `release` was set, it was not freed before.
    drop(unsafe { Box::from_raw(schema.private_data.cast::<SchemaOwner>()) });
}

impl OwnedArray {
    /// Returns the array of ids: `uint32`, null where an id is 0.
    #[must_use]
    pub fn of_ids(ids: Vec<u32>) -> Self {
        let parts = ArrayParts::new("I", ids.len()).validity(ids.iter().map(|&id| id != 0));
        Self::of_whole(parts.buffer(ids))
    }

    /// Returns the array of these parts.
    ///
    /// # Errors
    /// When a buffer is shorter than the array declares, is missing or is too many, or the type is none of those that
    /// [`ArrayParts::format`] may be.
    pub fn new(parts: ArrayParts) -> Result<Self, ColumnError> {
        if parts.are_whole() {
            Ok(Self::of_whole(parts))
        } else {
            Err(ColumnError::Array("buffers other than the type and the number of rows ask for"))
        }
    }

    /// Returns the array of parts whose buffers have all bytes that it declares.
    fn of_whole(parts: ArrayParts) -> Self {
        let ArrayParts { format, rows, offset, null_count, buffers, dictionary } = parts;
        let (dictionary_schema, dictionary_array) = match dictionary {
            Some(dictionary) => {
                let (schema, array) = dictionary.into_structs();
                (Some(Box::new(schema)), Some(Box::new(array)))
            }
            None => (None, None),
        };
        let pointer = |buffer: &Option<ArrayBuffer>| {
            buffer.as_ref().map_or(ptr::null(), |buffer| buffer.0.bytes().as_ptr().cast())
        };
        let pointers = buffers.iter().map(pointer).collect();
        let mut owner = Box::new(ArrayOwner { buffers, pointers, dictionary: dictionary_array });
        let array = ArrowArray {
            length: rows as i64,
            null_count: null_count.map_or(-1, |count| count as i64),
            offset: offset as i64,
            n_buffers: owner.buffers.len() as i64,
            n_children: 0,
            buffers: owner.pointers.as_mut_ptr(),
            children: ptr::null_mut(),
            dictionary: owner.dictionary.as_deref_mut().map_or(ptr::null_mut(), ptr::from_mut),
            release: Some(release_array),
            private_data: Box::into_raw(owner).cast(),
        };
        let format = CString::new(format).expect("a format without 0");
        let mut owner =
            Box::new(SchemaOwner { format, name: CString::default(), dictionary: dictionary_schema });
        let schema = ArrowSchema {
            format: owner.format.as_ptr(),
            name: owner.name.as_ptr(),
            metadata: ptr::null(),
            flags: NULLABLE,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: owner.dictionary.as_deref_mut().map_or(ptr::null_mut(), ptr::from_mut),
            release: Some(release_schema),
            private_data: Box::into_raw(owner).cast(),
        };
        Self { schema, array }
    }

    /// Returns both structs, for the consumer of the array: written to where it wants them, they are its own to release.
    #[must_use]
    pub fn into_structs(self) -> (ArrowSchema, ArrowArray) {
        (self.schema, self.array)
    }

    /// Returns both structs. They stay the array's own.
    #[must_use]
    pub fn structs(&self) -> (&ArrowSchema, &ArrowArray) {
        (&self.schema, &self.array)
    }

    /// Returns the rows of an array of text, for callers that have no library of Arrow.
    ///
    /// # Errors
    /// When the array is not of type `large_string`, or a text is not UTF-8.
    pub fn texts(&self) -> Result<Vec<Option<String>>, ColumnError> {
        let BorrowedArray {
            format: "U", rows, buffers: RowBuffers::Offsets64(offsets, bytes), validity, ..
        } = self.borrowed()?
        else {
            return Err(ColumnError::Array("another type than large_string"));
        };
        let values = crate::rows::ByteRows::packed_offsets64(offsets, bytes);
        let valid = validity.map(|Validity { bits, offset }| crate::bitmap::Bitmap::new(bits, offset, rows));
        let valid = valid.transpose()?;
        let text = |row: usize| {
            if valid.is_some_and(|valid| !valid.is_valid(row)) {
                return Ok(None);
            }
            let bytes = values.get(row).ok_or(ColumnError::Array("text outside its buffer"))?;
            let text = str::from_utf8(bytes).map_err(|_| ColumnError::Array("text that is not UTF-8"))?;
            Ok(Some(text.to_owned()))
        };
        (0..rows).map(text).collect()
    }

    /// Borrows the array, as [`borrow`] does.
    ///
    /// # Errors
    /// When its dictionary has a dictionary.
    pub fn borrowed(&self) -> Result<BorrowedArray<'_>, ColumnError> {
        // SAFETY: this crate made the structs, of buffers that have all bytes that they declare; nobody changes them while they are
        // borrowed.
        unsafe { borrow(&self.schema, &self.array) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn raw(array: &OwnedArray) -> &ArrowArray {
        array.structs().1
    }

    pub(crate) fn format(array: &OwnedArray) -> &str {
        // SAFETY: the schema is the array's own.
        unsafe { format_of(array.structs().0) }.unwrap()
    }

    pub(crate) fn dictionary(array: &OwnedArray) -> &ArrowArray {
        // SAFETY: the array owns its dictionary.
        unsafe { raw(array).dictionary.as_ref() }.expect("an array with a dictionary")
    }

    fn buffer<T: Plain>(array: &ArrowArray, at: usize, count: usize) -> &[T] {
        // SAFETY: the list has a pointer for each buffer.
        let start = unsafe { array.buffers.wrapping_add(at).read() };
        assert!(start.cast::<T>().is_aligned());
        // SAFETY: the arrays of these tests have that many values.
        unsafe { core::slice::from_raw_parts(start.cast(), count) }
    }

    fn nulls(array: &ArrowArray) -> impl Fn(usize) -> bool {
        // SAFETY: the list has a pointer for each buffer.
        let is_absent = unsafe { array.buffers.read() }.is_null();
        let count = if is_absent { 0 } else { (array.length as usize).div_ceil(8) };
        let bits = if is_absent { Vec::new() } else { buffer::<u8>(array, 0, count).to_vec() };
        move |row| !is_absent && bits[row / 8] >> (row % 8) & 1 == 0
    }

    /// Reads an array of numbers as a consumer would.
    pub(crate) fn numbers<T: Plain>(array: &ArrowArray) -> Vec<Option<T>> {
        let is_null = nulls(array);
        let values = buffer(array, 1, array.length as usize);
        values.iter().enumerate().map(|(row, &value)| (!is_null(row)).then_some(value)).collect()
    }

    /// Reads an array of truth values.
    pub(crate) fn booleans(array: &ArrowArray) -> Vec<Option<bool>> {
        let (is_null, rows) = (nulls(array), array.length as usize);
        let bits = buffer::<u8>(array, 1, rows.div_ceil(8));
        (0..rows).map(|row| (!is_null(row)).then(|| bits[row / 8] >> (row % 8) & 1 == 1)).collect()
    }

    /// Reads an array of `large_string` or `large_binary`.
    pub(crate) fn bytes(array: &ArrowArray) -> Vec<Option<&[u8]>> {
        let is_null = nulls(array);
        let offsets = buffer::<i64>(array, 1, array.length as usize + 1);
        let all = buffer::<u8>(array, 2, *offsets.last().unwrap() as usize);
        let row =
            |(row, ends): (usize, &[i64])| (!is_null(row)).then(|| &all[ends[0] as usize..ends[1] as usize]);
        offsets.windows(2).enumerate().map(row).collect()
    }

    fn error(array: &(ArrowSchema, ArrowArray)) -> ColumnError {
        // SAFETY: the structs of these tests declare no more than their buffers have, or are refused before one is read.
        unsafe { borrow(&array.0, &array.1) }.map(drop).expect_err("a malformed array")
    }

    fn texts() -> (ArrowSchema, ArrowArray) {
        let parts = ArrayParts::new("u", 2).validity([true, false]);
        let parts = parts.buffer(vec![0_i32, 7, 7]).buffer(b"1.2.3.4".to_vec());
        OwnedArray::new(parts).unwrap().into_structs()
    }

    fn changed(change: impl FnOnce(&mut ArrowSchema, &mut ArrowArray)) -> ColumnError {
        let mut array = texts();
        change(&mut array.0, &mut array.1);
        error(&array)
    }

    fn set_buffer(array: &mut ArrowArray, at: usize, start: *const c_void) {
        // SAFETY: the list has a pointer for each buffer.
        unsafe { array.buffers.wrapping_add(at).write(start) };
    }

    #[test]
    fn what_an_array_declares_is_verified() {
        let what = |error| match error {
            ColumnError::Array(what) => what,
            other => panic!("{other}"),
        };
        assert_eq!(what(changed(|_, array| array.length = -1)), "negative length");
        assert_eq!(what(changed(|_, array| array.offset = -1)), "negative offset");
        assert_eq!(what(changed(|_, array| array.n_buffers = -1)), "negative number of buffers");
        assert_eq!(what(changed(|_, array| array.null_count = -2)), "negative number of nulls");
        let beyond = "length and offset beyond the address space";
        assert_eq!(what(changed(|_, array| array.length = i64::MAX)), beyond);
        assert_eq!(what(changed(|_, array| array.offset = i64::MAX / 16)), beyond);
        assert_eq!(what(changed(|_, array| array.buffers = ptr::null_mut())), "no list of buffers");
        for count in 0..3 {
            assert_eq!(what(changed(|_, array| array.n_buffers = count)), "fewer buffers than the type has");
        }
        for at in 1..3 {
            assert_eq!(what(changed(|_, array| set_buffer(array, at, ptr::null()))), "missing buffer");
        }
        assert_eq!(
            what(changed(|_, array| set_buffer(array, 0, ptr::null()))),
            "nulls without a validity bitmap"
        );
        assert_eq!(what(changed(|schema, _| schema.format = ptr::null())), "schema without a format");
        let negative = [0_i32, 7, -7];
        let last = what(changed(|_, array| set_buffer(array, 1, negative.as_ptr().cast())));
        assert_eq!(last, "last offset is negative");

        let mut array = texts();
        let release = array.0.release.take();
        assert_eq!(what(error(&array)), "released schema");
        array.0.release = release;
        let release = array.1.release.take();
        assert_eq!(what(error(&array)), "released array");
        array.1.release = release;
    }

    #[test]
    fn types_that_are_not_known_are_named() {
        for format in [c"w:5", c"w:", c"tsn:", c"+l", c"", c"uu", c"d:38,0"] {
            let mut array = texts();
            array.0.format = format.as_ptr();
            let format = format.to_str().unwrap().to_owned();
            assert_eq!(error(&array), ColumnError::Type(format));
        }
    }

    #[test]
    fn dictionaries_are_verified() {
        let entries = |format| {
            let parts = ArrayParts::new("C", 1).validity([true]).buffer(vec![0_u8]);
            let dictionary = Some(Box::new(OwnedArray::new(format).unwrap()));
            OwnedArray::new(ArrayParts { dictionary, ..parts }).unwrap()
        };
        let texts = || ArrayParts::new("u", 1).no_buffer().buffer(vec![0_i32, 1]).buffer(vec![b':']);
        let mut array = entries(texts()).into_structs();
        let dictionary = core::mem::replace(&mut array.1.dictionary, ptr::null_mut());
        assert_eq!(error(&array), ColumnError::Array("no dictionary, although the type has one"));
        array.1.dictionary = dictionary;
        // SAFETY: the array owns its dictionary, and nothing else refers to it.
        let inner = unsafe { array.0.dictionary.as_mut() }.unwrap();
        let before = core::mem::replace(&mut inner.dictionary, ptr::from_mut(&mut array.0));
        assert_eq!(error(&array), ColumnError::Array("dictionary of a dictionary"));
        // SAFETY: as above.
        unsafe { array.0.dictionary.as_mut() }.unwrap().dictionary = before;
        assert!(entries(ArrayParts::new("n", 1)).borrowed().is_ok());
    }

    #[test]
    fn lengths_of_the_buffers_of_views_are_verified() {
        let parts = ArrayParts::new("vu", 0).no_buffer().buffer(vec![0_u8; 0]).buffer(vec![b':'; 4]);
        let mut array = OwnedArray::new(parts.buffer(vec![4_i64])).unwrap().into_structs();
        let negative = [-1_i64];
        set_buffer(&mut array.1, 3, negative.as_ptr().cast());
        assert_eq!(error(&array), ColumnError::Array("negative length of a buffer"));
        set_buffer(&mut array.1, 3, ptr::null());
        assert_eq!(error(&array), ColumnError::Array("missing buffer"));
    }

    #[test]
    fn nulls_are_those_of_the_bitmap_unless_there_are_none() {
        let has_nulls = |null_count, bitmap: bool| {
            let (schema, mut array) = texts();
            array.null_count = null_count;
            if !bitmap {
                set_buffer(&mut array, 0, ptr::null());
            }
            // SAFETY: the buffers have all bytes that the array declares.
            let borrowed = unsafe { borrow(&schema, &array) }.unwrap();
            borrowed.validity.is_some_and(|validity| (validity.bits, validity.offset) == (&[0b01], 0))
        };
        for null_count in [-1, 1, 2] {
            assert!(has_nulls(null_count, true));
        }
        assert!(!has_nulls(0, true) && !has_nulls(-1, false) && !has_nulls(0, false));
    }

    #[test]
    fn integers_are_taken_as_such_where_they_are_aligned() {
        let bytes: Vec<u8> = bytes_of(&[1_u64, 2]).to_vec();
        let words = [1_u64, 2];
        assert_eq!(aligned::<u64>(bytes_of(&words)), Some(&words[..]));
        assert_eq!(aligned::<u64>(&bytes_of(&words)[1..]), None);
        assert_eq!(aligned::<u8>(&bytes[1..]).map(<[u8]>::len), Some(15));
    }

    #[test]
    fn arrays_without_rows_need_no_buffers() {
        for format in [c"u", c"Z", c"I", c"w:16", c"vu"] {
            let parts = ArrayParts::new("vu", 0).no_buffer().no_buffer().no_buffer();
            let (mut schema, array) = OwnedArray::new(parts).unwrap().into_structs();
            schema.format = format.as_ptr();
            // SAFETY: nothing is declared.
            assert!(unsafe { borrow(&schema, &array) }.is_ok_and(|array| array.rows == 0), "{format:?}");
        }
    }

    #[test]
    fn ids_are_exported_with_their_nulls() {
        let array = OwnedArray::of_ids(vec![7, 0, u32::MAX]);
        assert_eq!(numbers::<u32>(raw(&array)), [Some(7), None, Some(u32::MAX)]);
        assert_eq!((raw(&array).null_count, raw(&array).n_buffers), (1, 2));
        let array = OwnedArray::of_ids(vec![7; 9]);
        assert_eq!((raw(&array).null_count, numbers::<u32>(raw(&array))), (0, vec![Some(7); 9]));
        assert!(numbers::<u32>(raw(&OwnedArray::of_ids(Vec::new()))).is_empty());
    }

    #[test]
    fn a_consumer_moves_an_array_and_releases_it_once() {
        let dictionary = OwnedArray::of_ids(vec![1]);
        let parts = ArrayParts::new("C", 1).validity([true]).buffer(vec![0_u8]);
        let array = OwnedArray::new(ArrayParts { dictionary: Some(Box::new(dictionary)), ..parts }).unwrap();
        let (schema, mut array) = array.into_structs();
        // The specification's move: the bits are copied, and the source is marked as released.
        // SAFETY: the source is not released after this.
        let mut moved = unsafe { ptr::read(&raw const array) };
        array.release = None;
        drop(array);
        let release = moved.release.unwrap();
        // SAFETY: the array was not released before.
        unsafe { release(&raw mut moved) };
        assert!(moved.release.is_none());
        drop((schema, moved));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let offsets = || ArrayParts::new("u", 2).no_buffer().buffer(vec![0_i32, 1, 2]);
        for parts in [
            ArrayParts::new("I", 2).no_buffer().buffer(vec![1_u32]),
            ArrayParts::new("I", 2).no_buffer(),
            ArrayParts::new("I", 1).no_buffer().buffer(vec![1_u32]).no_buffer(),
            ArrayParts { null_count: Some(1), ..ArrayParts::new("I", 1).no_buffer().buffer(vec![1_u32]) },
            ArrayParts { offset: 1, ..ArrayParts::new("I", 1).no_buffer().buffer(vec![1_u32]) },
            ArrayParts { offset: usize::MAX, ..ArrayParts::new("I", 1).no_buffer().buffer(vec![1_u32]) },
            ArrayParts::new("I", 9).buffer(vec![0xff_u8]).buffer(vec![1_u32; 9]),
            offsets(),
            offsets().buffer(vec![b':']),
            ArrayParts::new("u", 2).no_buffer().buffer(vec![0_i32, 1]).buffer(vec![b':'; 9]),
            ArrayParts::new("U", 1).no_buffer().buffer(vec![0_i64, -1]).buffer(vec![b':'; 9]),
            ArrayParts::new("vu", 1)
                .no_buffer()
                .buffer(vec![0_u8; 16])
                .buffer(vec![2_i64])
                .buffer(vec![9_i64]),
            ArrayParts::new("vu", 1).no_buffer().buffer(vec![0_u8; 16]).buffer(vec![2_i64]),
            ArrayParts::new("+l", 0),
            ArrayParts::new("n", 1).no_buffer(),
        ] {
            assert!(OwnedArray::new(parts).is_err());
        }
        assert!(OwnedArray::new(offsets().buffer(vec![b':'; 2])).is_ok());
    }
}
