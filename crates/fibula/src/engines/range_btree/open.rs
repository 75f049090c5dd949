//! The sections of files: the nodes, the width of values and the number of leaves, which is 0 for few ranges.

use core::marker::PhantomData;

use crate::fib::sections::{OwnedWords, Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::net::Ipv4Key;

use super::NAME;
use super::layout::{LASTS, Node, RangeBtree, RangeEncoding, TreeLayout};

impl<K> RangeBtree<K> {
    pub(super) fn parts(&self) -> Sections<'_> {
        let (width, leaves) = match self.form {
            RangeEncoding::Few { .. } => (2, 0),
            // The padding follows the leaves.
            RangeEncoding::Tree(tree) => (tree.width, self.nodes.len().saturating_sub(tree.leaves() + 1)),
        };
        Sections::new(NAME, &[("width", width.into()), ("leaves", leaves as u64)])
            .with("nodes", self.nodes.as_flattened())
    }
}

impl<K> RangeBtree<K> {
    /// Returns the arrays and numbers that lookups read: the nodes, and where the levels below the root begin.
    pub(super) fn searched(&self) -> Sections<'_> {
        let (width, levels, few, starts) = match self.form {
            RangeEncoding::Few { nodes } => (2, 0, nodes, vec![0]),
            RangeEncoding::Tree(tree) => (tree.width, tree.levels, 0, tree.starts[..=tree.levels].to_vec()),
        };
        Sections::new(NAME, &[("width", width.into()), ("levels", levels as u64), ("few", few as u64)])
            .with("nodes", self.nodes.as_flattened())
            .with_copy("starts", OwnedWords::Narrow(starts))
    }
}

/// Opens the tree of a file.
pub(super) fn open<K: Ipv4Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    let width = parts.number_to("width", LASTS.len() as u64 - 1)?;
    let nodes = parts.nodes("nodes", |node: &Node| *node)?;
    let leaves = parts.number_to("leaves", nodes.len() as u64)? as usize;
    let form = match leaves {
        0 => {
            let sized = [4, 8].contains(&nodes.len());
            CheckError::unless(sized, "(1) two or four registers of each", nodes.len())?;
            RangeEncoding::Few { nodes: nodes.len() / 2 }
        }
        leaves => {
            // Any number of ranges that fills as many leaves has this shape.
            let (tree, count) = TreeLayout::of(leaves * (LASTS[width as usize] + 1), width);
            CheckError::unless(nodes.len() == count + 1, "(2) levels follow one another", nodes.len())?;
            RangeEncoding::Tree(tree)
        }
    };
    Ok(Box::new(RangeBtree::<K> { form, nodes, keys: PhantomData }))
}
