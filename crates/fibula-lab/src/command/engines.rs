//! **The list** of structures that the laboratory knows.

use clap::builder::{StringValueParser, TypedValueParser};
use fibula::fib::registry::Engines;
use fibula_cli::plumbing::Suggested;
use fibula_workload::engines::names;

/// Those that are listed, toured and measured, and that a configuration of the router may name: the library's and those of papers.
pub(super) const ENGINES: Engines = fibula_published::ENGINES;

/// The name of a structure, or of a rival.
pub(super) fn structure() -> impl TypedValueParser<Value = String> {
    Suggested { parser: StringValueParser::new(), names: || names(ENGINES) }
}
