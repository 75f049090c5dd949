//! Route origin validation (RFC 6811): payloads as relying-party software exports them, and the states of routes by them.

mod export;
mod validate;

pub use export::{Export, ExportError, read};
pub use validate::{Payload, State, Validator};
