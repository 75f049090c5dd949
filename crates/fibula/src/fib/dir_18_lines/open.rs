//! What files hold: the arrays, the width of values, and where shared lines begin.

use core::marker::PhantomData;

use crate::fib::parts::overflow::PADDING;
use crate::fib::sections::{Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::net::{Ipv4Key, Key};

use super::NAME;
use super::layout::{Dir18Lines, WIDTHS};

impl<K: Key> Dir18Lines<K> {
    pub(super) fn parts(&self) -> Sections<'_> {
        Sections::new(NAME, &[("width", self.width.into()), ("shared-from", self.shared_from.into())])
            .with("direct", &self.direct[..])
            .with("lines", &self.lines[..])
            .with("maps", &self.maps[..])
            .with("below", &self.below[..])
    }
}

/// Makes the tables of what a file holds.
pub(super) fn open<K: Ipv4Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    let width = parts.number_to("width", WIDTHS as u64 - 1)?;
    let shared_from = parts.number_to("shared-from", u32::MAX.into())?;
    let (direct, lines) = (parts.buffer::<u32>("direct")?, parts.buffer::<u32>("lines")?);
    let (maps, below) = (parts.buffer::<u32>("maps")?, parts.buffer::<u32>("below")?);
    CheckError::unless(lines.len() > PADDING, "the lines and their padding", lines.len())?;
    Ok(Box::new(Dir18Lines::<K> { width, direct, lines, shared_from, maps, below, keys: PhantomData }))
}
