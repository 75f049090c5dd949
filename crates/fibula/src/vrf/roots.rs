//! What readers start from.

use std::sync::Arc;

use crate::fib::Fib;
use crate::memory::Shared;
use crate::net::Key;

/// A word for each VRF, the blocks, and the structures.
///
/// A word that leads to a structure is only ever stored in a directory that is published with the structure: a reader whose
/// roots are older has an older directory.
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
