//! fuzz.
