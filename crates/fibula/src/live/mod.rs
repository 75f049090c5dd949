//! Tables that change while other threads look addresses up.

#[allow(dead_code, unused_imports, reason = "tables that change under readers are built on it")]
mod epoch;
#[cfg(test)]
mod epoch_tests;
mod sync;
