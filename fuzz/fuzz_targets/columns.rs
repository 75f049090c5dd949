//! See `fibula_fuzz`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fibula_fuzz::run("columns", bytes));
