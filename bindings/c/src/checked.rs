//! The checked library (feature `checked`): it knows which handles are there and which readers are in use, and refuses any other by
//! `FIBULA_E_MISUSE`. Addresses of freed handles are not given out again, so that an old pointer never leads to a new handle. In the
//! normal library all of this is compiled away.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Code, Failure, Outcome};

/// Whether this is the checked library.
pub const ON: bool = cfg!(feature = "checked");

/// A type that C has handles of.
pub trait Handle {
    /// Its name in messages.
    const NAME: &'static str;
    /// The message where the pointer is NULL.
    const NULL: &'static str;
}

/// A handle that was given out.
struct Known {
    name: &'static str,
    /// References that C has. A handle without one is freed, and stays known.
    references: usize,
    is_in_use: bool,
}

/// By address.
static HANDLES: Mutex<BTreeMap<usize, Known>> = Mutex::new(BTreeMap::new());

fn handles() -> MutexGuard<'static, BTreeMap<usize, Known>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says on the standard error stream what is wrong, because calls without a code have no other way.
fn misuse(message: String) -> Failure {
    eprintln!("fibula (checked): {message}");
    Failure::new(Code::Misuse, message)
}

impl Known {
    /// Returns the handle at a pointer that is not NULL.
    fn at<T: Handle>(handles: &mut BTreeMap<usize, Self>, pointer: *const T) -> Outcome<&mut Self> {
        match handles.get_mut(&pointer.addr()) {
            None => Err(misuse(format!("{pointer:p} is no handle, a {} is wanted", T::NAME))),
            Some(known) if known.references == 0 => {
                Err(misuse(format!("the {} at {pointer:p} was freed", known.name)))
            }
            Some(known) if known.name != T::NAME => {
                Err(misuse(format!("{pointer:p} is a {}, a {} is wanted", known.name, T::NAME)))
            }
            Some(known) => Ok(known),
        }
    }
}

/// Notes a handle that C gets.
pub fn made<T: Handle>(pointer: *const T) {
    if ON {
        handles().insert(pointer.addr(), Known { name: T::NAME, references: 1, is_in_use: false });
    }
}

/// Refuses a pointer that is neither NULL nor a handle of this type.
#[inline]
pub fn check<T: Handle>(pointer: *const T) -> Outcome<()> {
    if ON && !pointer.is_null() {
        Known::at(&mut handles(), pointer)?;
    }
    Ok(())
}

/// Notes one more reference to a handle.
#[inline]
pub fn referred<T: Handle>(pointer: *const T) -> Outcome<()> {
    if ON && !pointer.is_null() {
        Known::at(&mut handles(), pointer)?.references += 1;
    }
    Ok(())
}

/// Notes one reference less. Returns whether it was the last one.
#[inline]
pub fn given_up<T: Handle>(pointer: *const T) -> Outcome<bool> {
    if !ON || pointer.is_null() {
        return Ok(false);
    }
    let mut handles = handles();
    let known = Known::at(&mut handles, pointer)?;
    if known.is_in_use {
        return Err(misuse(format!("the {} at {pointer:p} is freed while a call uses it", known.name)));
    }
    known.references -= 1;
    Ok(known.references == 0)
}

/// The use of a handle by one call.
pub struct Use(usize);

/// Notes that a call uses a handle that no other call may use meanwhile.
#[inline]
pub fn used<T: Handle>(pointer: *const T) -> Outcome<Use> {
    if ON && !pointer.is_null() {
        let mut handles = handles();
        let known = Known::at(&mut handles, pointer)?;
        if known.is_in_use {
            return Err(misuse(format!("two threads use the {} at {pointer:p} at once", known.name)));
        }
        known.is_in_use = true;
    }
    Ok(Use(pointer.addr()))
}

impl Drop for Use {
    #[inline]
    fn drop(&mut self) {
        if ON && let Some(known) = handles().get_mut(&self.0) {
            known.is_in_use = false;
        }
    }
}
