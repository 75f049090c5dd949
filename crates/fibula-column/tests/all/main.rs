//! Columns through the public interface: the contract as data, texts against other parsers, arrays of Arrow.

mod contract;
mod echo;
#[cfg(target_os = "linux")]
mod inet_pton;
mod text;
