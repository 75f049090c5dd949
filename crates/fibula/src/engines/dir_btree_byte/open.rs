//! The sections of files are those of `dir-btree`.

use crate::engines::dir_btree::open::of_parts;
use crate::fib::sections::{Parts, PartsError};
use crate::fib::{CheckError, Fib};
use crate::net::Ipv6Key;
use crate::simd::CODED_VALUES;

use super::layout::DirBtreeByte;

/// Opens the tables of a file.
pub(super) fn open<K: Ipv6Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    // All else that a lookup depends on is checked where it is read, because words of a mapped file may change.
    let trees = of_parts::<K>(&mut parts)?;
    CheckError::unless(trees.lines.len() >= CODED_VALUES, "each code has a word", trees.lines.len())?;
    Ok(Box::new(DirBtreeByte { trees }))
}
