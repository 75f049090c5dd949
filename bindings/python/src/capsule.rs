//! Arrow's arrays and streams in capsules (PyCapsule): borrowed from other libraries, and handed to them.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::NonNull;

use fibula_column::arrow::{ArrowArray, ArrowSchema, ArrowStream, BorrowedArray, borrow};
use fibula_column::{Column, ColumnError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::type_error;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// An array that another library owns, held for the length of a call.
pub struct HeldArray {
    _schema: Py<PyCapsule>,
    _array: Py<PyCapsule>,
    schema: NonNull<ArrowSchema>,
    array: NonNull<ArrowArray>,
}

// SAFETY: the capsules keep the structs alive, and any thread may read them.
unsafe impl Send for HeldArray {}
// SAFETY: as above.
unsafe impl Sync for HeldArray {}

fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &'static CStr) -> PyResult<NonNull<T>> {
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

impl HeldArray {
    /// Asks an object for its array.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pair = object.call_method0(intern!(object.py(), "__arrow_c_array__"))?;
        let wrong = |_| type_error("__arrow_c_array__ did not return two capsules");
        let pair = pair.cast_into::<PyTuple>().map_err(|_| wrong(()))?;
        if pair.len() != 2 {
            return Err(wrong(()));
        }
        let schema = pair.get_item(0)?.cast_into::<PyCapsule>().map_err(|_| wrong(()))?;
        let array = pair.get_item(1)?.cast_into::<PyCapsule>().map_err(|_| wrong(()))?;
        let (schema_at, array_at) = (pointer(&schema, SCHEMA)?, pointer(&array, ARRAY)?);
        Ok(Self { schema: schema_at, array: array_at, _schema: schema.unbind(), _array: array.unbind() })
    }

    pub fn column(&self) -> Result<Column<'_>, ColumnError> {
        // SAFETY: a capsule of this name holds a schema, by Arrow's specification, and is held. Nobody changes it meanwhile.
        let schema = unsafe { self.schema.as_ref() };
        // SAFETY: as above, an array.
        let array = unsafe { self.array.as_ref() };
        Column::from_arrow(borrowed(schema, array)?)
    }
}

/// Asks an object for its stream.
pub fn stream_of(object: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let capsule = object.call_method0(intern!(object.py(), "__arrow_c_stream__"))?;
    let capsule = capsule
        .cast_into::<PyCapsule>()
        .map_err(|_| type_error("__arrow_c_stream__ did not return a capsule"))?;
    let mut at: NonNull<ArrowStream> = pointer(&capsule, STREAM)?;
    // SAFETY: a capsule of this name holds a stream, by Arrow's specification, and is held.
    let stream = unsafe { at.as_mut() };
    // SAFETY: as above; a consumer moves it.
    Ok(unsafe { ArrowStream::take(stream) })
}

/// Borrows an array that another library made.
pub fn borrowed<'a>(
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
) -> Result<BorrowedArray<'a>, ColumnError> {
    // SAFETY: the producer made both, as the specification says; they are not released before they are dropped.
    unsafe { borrow(schema, array) }
}

pub fn schema_capsule(py: Python<'_>, schema: ArrowSchema) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

pub fn array_capsule(py: Python<'_>, array: ArrowArray) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, array, ARRAY)
}

pub fn stream_capsule(py: Python<'_>, stream: ArrowStream) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, stream, STREAM)
}
