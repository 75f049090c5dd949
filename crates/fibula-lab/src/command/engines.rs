//! **The list** of engines that the laboratory knows.

use clap::builder::{StringValueParser, TypedValueParser};
use fibula::fib::registry::{Engine, Engines};
use fibula::net::Key;
use fibula_cli::plumbing::Suggested;
use fibula_workload::engines::names;

/// Those that are listed, toured and measured, and that a configuration of the router may name: the library's and those of papers.
pub(super) const ENGINES: Engines = Engines::new(engines, engines);

/// Returns these for one family. An engine of yours is one line here, `all.extend(my_engine::own());`, and its crate one in `Cargo.toml`.
fn engines<K: Key>() -> Vec<Engine<K>> {
    let mut all = Vec::new();
    all.extend(fibula_published::engines());
    all
}

/// The name of an engine, or of a rival.
pub(super) fn engine() -> impl TypedValueParser<Value = String> {
    Suggested { parser: StringValueParser::new(), names: || names(ENGINES) }
}
