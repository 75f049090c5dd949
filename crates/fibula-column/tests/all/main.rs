//! Columns through the public interface: the contract as data, what is looked up in, texts against other parsers.

mod contract;
mod echo;
#[cfg(target_os = "linux")]
mod inet_pton;
mod tables;
mod text;
