//! Pointers and counts of callers, checked where that is possible: handles, slices, paths, places for results.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::ptr;

use crate::checked::{self, Handle};
use crate::error::{ErrorPlace, Failure, Outcome, answer, call};

/// Returns the value of a handle.
///
/// # Safety
/// The pointer is NULL, or one that this library gave out and that was not freed.
pub unsafe fn handle<'a, T: Handle>(pointer: *const T) -> Outcome<&'a T> {
    checked::check(pointer)?;
    // SAFETY: the caller's promise.
    unsafe { reference(pointer, T::NULL) }
}

/// Returns the value of a handle for a call without a code.
///
/// # Safety
/// As for [`handle`].
#[inline]
pub unsafe fn peek<'a, T: Handle>(pointer: *const T) -> Option<&'a T> {
    if checked::ON {
        checked::check(pointer).ok()?;
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }
}

/// Returns the value that a pointer of the caller leads to.
///
/// # Safety
/// The pointer is NULL or leads to such a value.
pub unsafe fn reference<'a, T>(pointer: *const T, is_null: &'static str) -> Outcome<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(Failure::argument(is_null))
}

/// Returns `count` elements that are read.
///
/// # Safety
/// The pointer must be NULL or point to `count` elements. No thread may change them during the call.
pub unsafe fn elements<'a, T>(pointer: *const T, count: usize) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, count)?;
    // SAFETY: the caller's promise; the pointer is aligned and the bytes fit into the address space.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Returns `count` elements that are written.
///
/// # Safety
/// The pointer must be as for [`elements`], and no other thread may use the elements during the call. `T` must be an integer type: any
/// bytes are a valid integer.
pub unsafe fn elements_mut<'a, T>(pointer: *mut T, count: usize) -> Outcome<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, count)?;
    // SAFETY: as in `elements`.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn check<T>(pointer: *const T, count: usize) -> Outcome<()> {
    if pointer.is_null() {
        return Err(Failure::argument("an array is NULL"));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument("an array is not aligned to its elements"));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Failure::argument("an array is longer than the address space")),
    }
}

/// Returns a path.
///
/// # Safety
/// The pointer is NULL or leads to a text that ends with 0.
pub unsafe fn path<'a>(path: *const c_char) -> Outcome<&'a Path> {
    if path.is_null() {
        return Err(Failure::argument("the path is NULL"));
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
    }
    #[cfg(not(unix))]
    {
        path.to_str().map(Path::new).map_err(|_| Failure::argument("the path is not UTF-8"))
    }
}

/// Writes a result.
///
/// # Safety
/// The place is NULL or may be written.
pub unsafe fn put<T>(place: *mut T, value: T) -> Outcome<()> {
    if place.is_null() {
        return Err(Failure::argument("the place for the result is NULL"));
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Runs a call that makes a handle, and writes the handle to `place`; NULL if the call fails.
///
/// # Safety
/// `place` is NULL or may be written, and so is `error`.
pub unsafe fn make<T>(
    place: *mut *mut T,
    error: *mut ErrorPlace,
    run: impl FnOnce() -> Outcome<*mut T>,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        call(error, || {
            put(place, ptr::null_mut())?;
            put(place, run()?)
        })
    }
}

/// Returns a handle that C owns until [`free`].
pub fn owned<T: Handle>(value: T) -> *mut T {
    let handle = Box::into_raw(Box::new(value));
    checked::made(handle);
    handle
}

/// Frees a handle.
///
/// # Safety
/// The handle must be NULL or made by [`owned`], and it must not be used afterwards.
pub unsafe fn free<T: Handle>(handle: *mut T) {
    if handle.is_null() || checked::given_up(handle).is_err() {
        return;
    }
    if checked::ON {
        // SAFETY: the caller's promise. The memory stays, so that no other handle has this address.
        answer((), || unsafe { ptr::drop_in_place(handle) });
    } else {
        // SAFETY: the caller's promise.
        answer((), || drop(unsafe { Box::from_raw(handle) }));
    }
}
