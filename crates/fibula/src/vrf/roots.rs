//! The roots: readers start from them.

use std::sync::Arc;

use crate::fib::Fib;
use crate::memory::Shared;
use crate::net::Key;

/// A word for each VRF, the blocks, and the engines.
///
/// A word that leads to an engine is only ever stored in a directory that is published together with the engine. For example,
/// a reader whose roots are older has an older directory too, so it never follows a word to an engine that it does not have.
pub struct VrfRoots {
    pub(super) directory: Shared<u64>,
    pub(super) v4: FamilyRoots<u32>,
    pub(super) v6: FamilyRoots<u128>,
}

/// The blocks and engines that the words of one family lead to.
pub(super) struct FamilyRoots<K: Key> {
    pub(super) words: Shared<u32>,
    /// Structures by their number.
    pub(super) large: Structures<K>,
}

/// Structures by their number.
pub(super) type Structures<K> = Vec<Option<Arc<dyn Fib<K>>>>;
