//! Answers as arrays of Arrow, which every library that knows Arrow takes.

use fibula_column::arrow::{SharedArray, stream_of};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::{array_capsule, schema_capsule, stream_capsule};

/// Answers in one array of Arrow.
///
/// Libraries take it by its capsules: ``pyarrow.array(column)``, ``polars.Series(column)``. They share its memory.
#[pyclass(frozen, module = "fibula")]
pub struct ArrowColumn(SharedArray);

impl ArrowColumn {
    pub fn new(array: SharedArray) -> Self {
        Self(array)
    }
}

#[pymethods]
impl ArrowColumn {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<fibula.ArrowColumn of {} rows>", self.0.len())
    }

    /// Return the type as a capsule of Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.0.export().into_structs().0)
    }

    /// Return the type and the array as capsules of Arrow's C data interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The requested schema is only a preference: the caller converts the array that it gets.
        let _ = requested_schema;
        let (schema, array) = self.0.export().into_structs();
        Ok((schema_capsule(py, schema)?, array_capsule(py, array)?))
    }
}

/// Answers in several arrays of Arrow, one for each chunk of the addresses.
///
/// Libraries take it by its capsule: ``pyarrow.chunked_array(chunks)``, ``polars.Series(chunks)``. They share its memory.
#[pyclass(frozen, module = "fibula")]
pub struct ArrowChunks {
    /// Has the type.
    first: SharedArray,
    arrays: Vec<SharedArray>,
}

impl ArrowChunks {
    pub fn new(first: SharedArray, arrays: Vec<SharedArray>) -> Self {
        Self { first, arrays }
    }
}

#[pymethods]
impl ArrowChunks {
    fn __len__(&self) -> usize {
        self.arrays.iter().map(SharedArray::len).sum()
    }

    fn __repr__(&self) -> String {
        format!("<fibula.ArrowChunks of {} rows in {} arrays>", self.__len__(), self.arrays.len())
    }

    /// Return the type as a capsule of Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.first.export().into_structs().0)
    }

    /// Return the arrays as a capsule of Arrow's C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream_capsule(py, stream_of(&self.first, self.arrays.clone()))
    }
}
