//! The programs whose instructions are counted.

use std::path::PathBuf;

use super::Counter;
use crate::programs::root;

/// A program that lists its cases and runs them.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The chore's name.
    pub(super) chore: &'static str,
    pub(super) counter: Counter,
    pub(super) package: &'static str,
    pub(super) example: &'static str,
    /// A case of which a run without a pass says how many keys or packets a pass has.
    pub(super) case: &'static str,
    /// The function that is counted, where the work before it differs between two runs: hash maps have random keys.
    pub(super) within: Option<&'static str>,
    /// The file of the counts, in `records`.
    file: &'static str,
}

impl Subject {
    pub(super) fn file(&self) -> PathBuf {
        root().join("records").join(self.file)
    }
}

/// A lookup by every engine.
pub(crate) const LOOKUPS: Subject = Subject {
    chore: "instructions",
    counter: Counter::Callgrind,
    package: "fibula-published",
    example: "lookups",
    case: "ipv4 binary-trie scalar 1",
    within: None,
    file: "instructions.json",
};

/// A lookup by every engine with kernels of NEON.
pub(crate) const NEON: Subject = Subject {
    chore: "instructions-aarch64",
    counter: Counter::Aarch64,
    file: "instructions-aarch64.json",
    ..LOOKUPS
};

/// A packet through the router.
pub(crate) const ROUTER: Subject = Subject {
    chore: "instructions-router",
    counter: Counter::Callgrind,
    package: "fibula-router",
    example: "instructions",
    case: "ipv4",
    within: Some("instructions::forward*"),
    file: "instructions-router.json",
};
