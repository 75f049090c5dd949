//! The C library. `include/fibula.h` documents each call, and these files do not repeat it.
//!
//! ```text
//! checked.rs handles that are freed or used twice, in the checked library
//! error.rs   codes and messages; panics end here
//! reserve.rs memory for small allocations that the system refuses
//! options.rs options that callers fill in, by their size
//! input.rs   pointers and counts as slices, checked
//! table.rs   tables: opened, built, saved, counted, listed
//! lookup.rs  lookups of one address and of many
//! live.rs    tables that change, and their readers
//! follow.rs  files that are replaced
//! values.rs  columns of values by id
//! vrf.rs     many tables in one handle
//! ```

#![allow(unsafe_code, reason = "C passes pointers; each is used as far as fibula.h makes its caller promise")]
#![allow(unreachable_pub, missing_docs, reason = "include/fibula.h documents the exported items")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "the operations of a call rest on one promise of its caller, that of include/fibula.h"
)]
#![allow(clippy::missing_safety_doc, reason = "the promises are those of include/fibula.h")]

mod checked;
mod error;
mod follow;
mod input;
mod live;
mod lookup;
mod options;
mod reserve;
#[cfg(feature = "rpki")]
mod rpki;
mod table;
mod values;
mod vrf;

use std::ffi::{CStr, c_char};

/// The version, as Cargo has it.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

#[unsafe(no_mangle)]
pub extern "C" fn fibula_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The set whose kernels the batches of this process use.
#[unsafe(no_mangle)]
pub extern "C" fn fibula_isa() -> *const c_char {
    let name = match engine::simd::chosen().isa().name() {
        "avx2" => c"avx2",
        "avx512" => c"avx512",
        "icelake" => c"icelake",
        "neon" => c"neon",
        _ => c"scalar",
    };
    name.as_ptr()
}
