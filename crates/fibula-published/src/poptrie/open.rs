//! What files hold: the three arrays, and the bytes of a leaf.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

use fibula::fib::Fib;
use fibula::net::Key;
use fibula::unstable::sections::{Parts, PartsError, Sections};

use super::NAME;
use super::layout::{Leaves, NODE_WORDS, Poptrie};

impl<K: Key> Poptrie<K> {
    pub(super) fn parts(&self) -> Sections<'_> {
        let end = |at: usize, all: usize, words: usize| {
            let end = |ends: &[AtomicU32; 2]| ends[at].load(Ordering::Relaxed) as usize * words;
            self.ends.as_ref().map_or(all, |ends| end(ends).min(all))
        };
        let leaf_bytes = if matches!(self.leaves, Leaves::Narrow(_)) { 2 } else { 4 };
        let sections = Sections::new(NAME, &[("leaf-bytes", leaf_bytes)])
            .with("direct", &self.direct[..])
            .with("nodes", &self.nodes[..end(0, self.nodes.len(), NODE_WORDS)]);
        match &self.leaves {
            Leaves::Narrow(leaves) => sections.with("leaves", &leaves[..end(1, leaves.len(), 1)]),
            Leaves::Wide(leaves) => sections.with("leaves", &leaves[..end(1, leaves.len(), 1)]),
        }
    }
}

/// Makes the trie of what a file holds. Which nodes and leaves are free is not known.
pub(super) fn open<K: Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    let (direct, nodes) = (parts.shared::<u32>("direct")?, parts.shared::<u64>("nodes")?);
    let (leaves, count) = if parts.number("leaf-bytes")? == 2 {
        let leaves = parts.shared::<u16>("leaves")?;
        let count = leaves.len();
        (Leaves::Narrow(leaves), count)
    } else {
        let leaves = parts.shared::<u32>("leaves")?;
        let count = leaves.len();
        (Leaves::Wide(leaves), count)
    };
    let ends = [nodes.len() / NODE_WORDS, count].map(|end| AtomicU32::new(end as u32));
    Ok(Box::new(Poptrie::<K> { direct, nodes, leaves, ends: Some(ends), keys: PhantomData }))
}
