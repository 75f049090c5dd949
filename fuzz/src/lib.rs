//! What the fuzz targets do with their bytes. Targets of parsers and structures compare with an independent implementation or a model,
//! others hold their subject to rules: the same routes in pieces of any size, memory within a limit, counters that add up. They panic
//! on a difference.
//!
//! `TARGETS` is the list; a target is a function here, an entry there, and a file of three lines under
//! `fuzz_targets/` for the fuzzer. Corpora under `corpus/` replay in the test run, without a fuzzer.

mod address;
mod changes;
mod columns;
mod documents;
mod file;
mod forms;
mod hops;
mod live;
mod log;
mod mrt;
mod router;
mod text;
mod vrfs;

/// A target: its name, which is also its corpus' folder, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("address", address::compare),
    ("bird", documents::bird),
    ("changes", changes::follow),
    ("columns", columns::compare),
    ("csv", documents::csv),
    ("file", file::open),
    ("forms", forms::load),
    ("hops", hops::follow),
    ("json", documents::json),
    ("live", live::follow),
    ("log", log::enrich),
    ("maxmind", documents::maxmind),
    ("mrt", mrt::compare),
    ("router", router::forward),
    ("text", text::compare),
    ("vrfs", vrfs::follow),
];

/// Runs the target of this name.
///
/// # Panics
/// When there is none, and when the target finds a fault.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target of this name");
    target(bytes);
}
