//! The sections of files: the two arrays, and the width of values.

use core::marker::PhantomData;

use crate::fib::parts::overflow::WIDTHS;
use crate::fib::sections::{Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::net::{Ipv4Key, Key};

use super::NAME;
use super::layout::{Dir17Sparse, PADDING, groups};

impl<K: Key> Dir17Sparse<K> {
    pub(super) fn parts(&self) -> Sections<'_> {
        Sections::new(NAME, &[("width", self.width.into())])
            .with("words", &self.words[..])
            .with("below", &self.below[..])
    }
}

/// Opens the table of a file.
pub(super) fn open<K: Ipv4Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    let width = parts.number_to("width", WIDTHS as u64 - 1)?;
    let (words, below) = (parts.shared::<u64>("words")?, parts.shared::<u32>("below")?);
    let least = groups(Dir17Sparse::<K>::WINDOWS) + PADDING;
    CheckError::unless(words.len() >= least, "the groups and their padding fit their array", words.len())?;
    Ok(Box::new(Dir17Sparse::<K> { width, words, below, keys: PhantomData }))
}
