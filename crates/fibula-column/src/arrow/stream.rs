//! Arrow's C stream interface: columns in several arrays, read one after the other, and results handed over the same way.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::ffi::CString;

use super::{ArrowArray, ArrowSchema, SharedArray};
use crate::error::ColumnError;

/// Arrays of one type, one after the other: `struct ArrowArrayStream` of the specification. It is released when it is dropped; one that
/// was moved out of has no `release`. Its fields are not public, because safe code that changed one would make the release unsound.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowStream)>,
    private_data: *mut c_void,
}

// SAFETY: by the specification, one thread at a time may use and release a stream, whichever it is.
unsafe impl Send for ArrowStream {}
// SAFETY: by the specification, any thread may use and release a schema.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: a shared schema is only read, and what it leads to is not changed before it is released, by the specification.
unsafe impl Sync for ArrowSchema {}
// SAFETY: as above.
unsafe impl Sync for ArrowArray {}

impl Drop for ArrowStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: whoever set `release` expects one call of it with its own base structure.
            unsafe { release(self) };
        }
    }
}

impl ArrowSchema {
    /// Returns a schema that was released, as a place for another.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

impl ArrowArray {
    /// Returns an array that was released, as a place for another.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

impl ArrowStream {
    /// Moves a stream from where its producer put it, which is then released.
    ///
    /// # Safety
    /// The stream is as the specification says.
    pub unsafe fn take(place: &mut Self) -> Self {
        let released = Self {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        };
        core::mem::replace(place, released)
    }

    /// Returns the type of all arrays.
    ///
    /// # Errors
    /// When the stream is released, or its producer fails.
    pub fn schema(&mut self) -> Result<ArrowSchema, ColumnError> {
        let mut schema = ArrowSchema::empty();
        let (Some(get_schema), Some(_)) = (self.get_schema, self.release) else {
            return Err(ColumnError::Array("released stream"));
        };
        // SAFETY: the stream is as the specification says, by the promise of `take`, and not released.
        let code = unsafe { get_schema(self, &raw mut schema) };
        if code == 0 { Ok(schema) } else { Err(self.failure(code)) }
    }

    /// Returns the next array; `None` after the last.
    ///
    /// # Errors
    /// When the stream is released, or its producer fails.
    pub fn next_array(&mut self) -> Result<Option<ArrowArray>, ColumnError> {
        let mut array = ArrowArray::empty();
        let (Some(get_next), Some(_)) = (self.get_next, self.release) else {
            return Err(ColumnError::Array("released stream"));
        };
        // SAFETY: as in `schema`.
        let code = unsafe { get_next(self, &raw mut array) };
        match code {
            0 => Ok(Some(array).filter(|array| array.release.is_some())),
            code => Err(self.failure(code)),
        }
    }

    fn failure(&mut self, code: c_int) -> ColumnError {
        let said = match self.get_last_error {
            // SAFETY: as in `schema`; the call before failed, after which this call may be made.
            Some(get_last_error) => unsafe { get_last_error(self) },
            None => ptr::null(),
        };
        if said.is_null() {
            return ColumnError::Stream(format!("error {code}"));
        }
        // SAFETY: the text ends with 0, and lives until the next call of the stream.
        ColumnError::Stream(unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned())
    }
}

/// The arrays of an exported stream.
struct Arrays {
    /// Has their type.
    first: SharedArray,
    arrays: std::vec::IntoIter<SharedArray>,
    error: CString,
}

/// Writes the type of an exported stream.
///
/// # Safety
/// The stream was made by [`stream_of`] and not released; `schema` may be written.
unsafe extern "C" fn get_schema(stream: *mut ArrowStream, schema: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller's promise.
    let data = unsafe { (*stream).private_data };
    // SAFETY: it is from `Box::into_raw` in `stream_of`, and the stream is not released.
    let arrays = unsafe { &*data.cast::<Arrays>() };
    // SAFETY: the caller's promise.
    unsafe { schema.write(arrays.first.export().into_structs().0) };
    0
}

/// Writes the next array of an exported stream.
///
/// # Safety
/// As for [`get_schema`].
unsafe extern "C" fn get_next(stream: *mut ArrowStream, array: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`.
    let data = unsafe { (*stream).private_data };
    // SAFETY: as in `get_schema`; the stream is one thread's at a time, by the specification.
    let arrays = unsafe { &mut *data.cast::<Arrays>() };
    let next = arrays.arrays.next().map_or_else(ArrowArray::empty, |next| next.export().into_structs().1);
    // SAFETY: the caller's promise.
    unsafe { array.write(next) };
    0
}

/// Returns the last error of an exported stream, of which there is none.
///
/// # Safety
/// As for [`get_schema`].
unsafe extern "C" fn get_last_error(stream: *mut ArrowStream) -> *const c_char {
    // SAFETY: as in `get_schema`.
    let data = unsafe { (*stream).private_data };
    // SAFETY: as in `get_schema`.
    unsafe { &*data.cast::<Arrays>() }.error.as_ptr()
}

/// Frees an exported stream.
///
/// # Safety
/// As for [`get_schema`].
unsafe extern "C" fn release(stream: *mut ArrowStream) {
    // SAFETY: as in `get_schema`.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return };
    stream.release = None;
    // SAFETY: `private_data` is from `Box::into_raw` in `stream_of`, and as `release` was set, it was not freed before.
    drop(unsafe { Box::from_raw(stream.private_data.cast::<Arrays>()) });
}

/// Returns a stream of arrays, all of the type of `first`, which may have no rows and is not itself in the stream.
#[must_use]
pub fn stream_of(first: &SharedArray, arrays: Vec<SharedArray>) -> ArrowStream {
    let arrays = Arrays { first: first.clone(), arrays: arrays.into_iter(), error: CString::default() };
    ArrowStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(Box::new(arrays)).cast(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::numbers;
    use super::super::{OwnedArray, borrow};
    use super::*;

    #[test]
    fn arrays_go_through_a_stream_in_order() {
        let arrays: Vec<_> = [vec![1, 2], vec![], vec![3, 0]]
            .into_iter()
            .map(|ids| SharedArray::new(OwnedArray::of_ids(ids)))
            .collect();
        let mut place = stream_of(&arrays[0], arrays.clone());
        // SAFETY: the stream is this crate's own.
        let mut stream = unsafe { ArrowStream::take(&mut place) };
        assert!(place.schema().is_err() && place.next_array().is_err());
        let schema = stream.schema().unwrap();
        let mut read = Vec::new();
        while let Some(array) = stream.next_array().unwrap() {
            // SAFETY: both are this crate's own.
            assert!(unsafe { borrow(&schema, &array) }.is_ok());
            read.push(numbers::<u32>(&array));
        }
        assert_eq!(read, [vec![Some(1), Some(2)], vec![], vec![Some(3), None]]);
        assert!(stream.next_array().unwrap().is_none());
    }

    #[test]
    fn a_producer_that_fails_is_quoted() {
        unsafe extern "C" fn refuse(_: *mut ArrowStream, _: *mut ArrowArray) -> c_int {
            5
        }
        unsafe extern "C" fn why(_: *mut ArrowStream) -> *const c_char {
            c"the file is gone".as_ptr()
        }
        let array = SharedArray::new(OwnedArray::of_ids(Vec::new()));
        let mut stream = stream_of(&array, Vec::new());
        stream.get_next = Some(refuse);
        stream.get_last_error = Some(why);
        assert_eq!(stream.next_array().unwrap_err(), ColumnError::Stream("the file is gone".to_owned()));
        stream.get_last_error = None;
        assert_eq!(stream.next_array().unwrap_err(), ColumnError::Stream("error 5".to_owned()));
    }
}
