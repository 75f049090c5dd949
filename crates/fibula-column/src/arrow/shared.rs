//! Arrays that are exported more than once.

use core::ffi::{CStr, c_void};
use core::ptr;
use std::ffi::CString;
use std::sync::Arc;

use super::{ArrowArray, ArrowSchema, OwnedArray};

/// An array that several consumers may have: each export shares its buffers, which are freed with the last of them. A clone is another
/// handle to the same array.
///
/// ```
/// use fibula_column::arrow::{OwnedArray, SharedArray};
///
/// let ids = SharedArray::new(OwnedArray::of_ids(vec![1, 2, 3]));
/// let (one, two) = (ids.export(), ids.export());
/// drop((ids, one));
/// assert!(two.borrowed().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct SharedArray(Arc<OwnedArray>);

/// The owner of an export, to which `private_data` leads.
struct ExportOwner {
    /// Owns the buffers.
    _array: SharedArray,
    pointers: Vec<*const c_void>,
    dictionary: Option<Box<ArrowArray>>,
}

/// The owner of the schema of an export.
struct NamesOwner {
    format: CString,
    dictionary: Option<Box<ArrowSchema>>,
}

/// Frees an export's array.
///
/// # Safety
/// It was made by [`exported`], maybe moved bit by bit, and not released before.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller's promise, and that of the specification: the pointer leads to the array itself.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    array.release = None;
    // SAFETY: `private_data` is from `Box::into_raw` in `exported`, and as `release` was set, it was not freed before.
    drop(unsafe { Box::from_raw(array.private_data.cast::<ExportOwner>()) });
}

/// Frees an export's schema.
///
/// # Safety
/// As for [`release_array`].
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller's promise, and that of the specification: the pointer leads to the schema itself.
    let Some(schema) = (unsafe { schema.as_mut() }) else { return };
    schema.release = None;
    // SAFETY: `private_data` is from `Box::into_raw` in `exported`, and as `release` was set, it was not freed before.
    drop(unsafe { Box::from_raw(schema.private_data.cast::<NamesOwner>()) });
}

impl SharedArray {
    /// Returns a handle to this array.
    #[must_use]
    pub fn new(array: OwnedArray) -> Self {
        Self(Arc::new(array))
    }

    /// Returns the array.
    #[must_use]
    pub fn array(&self) -> &OwnedArray {
        &self.0
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.0.array.length).unwrap_or(0)
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an array with the same buffers, for a consumer or as a dictionary of others. Costs the same for any number of rows.
    #[must_use]
    pub fn export(&self) -> OwnedArray {
        let (schema, array) = exported(self, &self.0.schema, &self.0.array);
        OwnedArray { schema, array }
    }
}

/// Returns structs that lead to the same buffers as these, which `owner` owns.
fn exported(owner: &SharedArray, schema: &ArrowSchema, array: &ArrowArray) -> (ArrowSchema, ArrowArray) {
    // SAFETY: it is null, or leads to the type of the dictionary that the structs of `owner` own.
    let dictionary_schema = unsafe { schema.dictionary.as_ref() };
    // SAFETY: as above, to its rows.
    let dictionary_array = unsafe { array.dictionary.as_ref() };
    let dictionary = dictionary_schema.zip(dictionary_array);
    let dictionary = dictionary.map(|(schema, array)| exported(owner, schema, array));
    let (dictionary_schema, dictionary_array) = match dictionary {
        Some((schema, array)) => (Some(Box::new(schema)), Some(Box::new(array))),
        None => (None, None),
    };
    let pointers = match usize::try_from(array.n_buffers) {
        // SAFETY: `buffers` leads to `n_buffers` pointers, which `OwnedArray` made.
        Ok(count) if count > 0 => unsafe { core::slice::from_raw_parts(array.buffers, count) }.to_vec(),
        _ => Vec::new(),
    };
    let mut owned = Box::new(ExportOwner { _array: owner.clone(), pointers, dictionary: dictionary_array });
    let array = ArrowArray {
        length: array.length,
        null_count: array.null_count,
        offset: array.offset,
        n_buffers: array.n_buffers,
        n_children: 0,
        buffers: owned.pointers.as_mut_ptr(),
        children: ptr::null_mut(),
        dictionary: owned.dictionary.as_deref_mut().map_or(ptr::null_mut(), ptr::from_mut),
        release: Some(release_array),
        private_data: Box::into_raw(owned).cast(),
    };
    // SAFETY: the format is a string that ends with 0, which `OwnedArray` made.
    let format = unsafe { CStr::from_ptr(schema.format) }.to_owned();
    let mut owned = Box::new(NamesOwner { format, dictionary: dictionary_schema });
    let schema = ArrowSchema {
        format: owned.format.as_ptr(),
        name: c"".as_ptr(),
        metadata: ptr::null(),
        flags: schema.flags,
        n_children: 0,
        children: ptr::null_mut(),
        dictionary: owned.dictionary.as_deref_mut().map_or(ptr::null_mut(), ptr::from_mut),
        release: Some(release_schema),
        private_data: Box::into_raw(owned).cast(),
    };
    (schema, array)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bytes, dictionary, numbers, raw};
    use super::*;
    use crate::rows::ByteRows;
    use crate::values::{ValueColumn, ValueData};

    #[test]
    fn exports_share_buffers_and_outlive_each_other() {
        let texts: [&[u8]; 2] = [b"one", b"two"];
        let values = ValueColumn::new(ValueData::Text(ByteRows::slices(&texts)));
        let shared = SharedArray::new(values.dictionary(&[2, 0, 1]).unwrap());
        let (one, two) = (shared.export(), shared.clone().export());
        assert_eq!(raw(&one).buffers.is_null(), raw(&two).buffers.is_null());
        drop((shared, one));
        assert_eq!(numbers::<u32>(raw(&two)), [Some(1), None, Some(0)]);
        assert_eq!(bytes(dictionary(&two)), [Some(texts[0]), Some(texts[1])]);
        let again = SharedArray::new(two);
        assert_eq!(again.len(), 3);
        assert_eq!(numbers::<u32>(raw(&again.export())), [Some(1), None, Some(0)]);
    }
}
