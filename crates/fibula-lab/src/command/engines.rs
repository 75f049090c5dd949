//! **The list** of structures that the laboratory knows.

use clap::builder::{StringValueParser, TypedValueParser};
use fibula_cli::plumbing::Suggested;
use fibula_router::config::Names;
use fibula_workload::engines::Engines;

/// Those that are listed, toured and measured.
pub(super) const ENGINES: Engines = Engines::LIBRARY;

/// Those that a configuration of the router may name.
pub(super) const NAMES: Names = Names::LIBRARY;

/// The name of a structure, or of a rival.
pub(super) fn structure() -> impl TypedValueParser<Value = String> {
    Suggested { parser: StringValueParser::new(), names: || ENGINES.names() }
}
