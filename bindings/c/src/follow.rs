//! Files that are replaced while a program uses them.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use engine::file::Follower;

use crate::checked::Handle;
use crate::error::{ErrorPlace, answer, call};
use crate::input::{free, handle, make, owned, path, peek, put};
use crate::options::{MAP, Options, OptionsPlace};
use crate::table::{ENGINES, Table};

/// `fibula_follower`.
pub struct Following(Mutex<Follower>);

impl Handle for Following {
    const NAME: &'static str = "follower";
    const NULL: &'static str = "the follower is NULL";
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_follower_open(
    file: *const c_char,
    options: *const OptionsPlace,
    follower: *mut *mut Following,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: the promises that fibula.h asks of the caller, here and below.
    unsafe {
        make(follower, error, || {
            let (file, options) = (path(file)?, Options::read(options)?);
            let opened = if options.has(MAP) {
                Follower::map_with(file, ENGINES)?
            } else {
                Follower::open_with(file, options.limits(), ENGINES)?
            };
            Ok(owned(Following(Mutex::new(opened))))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_follower_free(follower: *mut Following) {
    // SAFETY: as in `fibula_follower_open`.
    unsafe { free(follower) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_follower_poll(
    follower: *mut Following,
    is_new: *mut c_int,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_follower_open`.
    unsafe {
        call(error, || {
            put(is_new, 0)?;
            let follower = handle(follower)?;
            // A panic of another thread while it polled has left the table that was there.
            let changed = follower.0.lock().unwrap_or_else(PoisonError::into_inner).poll()?;
            put(is_new, c_int::from(changed))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_follower_table(follower: *const Following) -> *mut Table {
    answer(ptr::null_mut(), || {
        // SAFETY: as in `fibula_follower_open`.
        let Some(follower) = (unsafe { peek(follower) }) else { return ptr::null_mut() };
        let follower = follower.0.lock().unwrap_or_else(PoisonError::into_inner);
        Table::of_file(Arc::clone(follower.table())).into_raw()
    })
}
