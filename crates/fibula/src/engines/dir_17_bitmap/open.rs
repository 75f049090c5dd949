//! The sections of files: the two arrays, units with their padding, and the step.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::fib::sections::{Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::net::{Ipv4Key, Key};

use super::NAME;
use super::layout::{Dir17Bitmap, PADDING, STEP_MAX};

impl<K: Key> Dir17Bitmap<K> {
    pub(super) fn parts(&self) -> Sections<'_> {
        let words = (self.end.load(Ordering::Relaxed) + PADDING).min(self.units.len());
        Sections::new(NAME, &[("step", self.step.into())])
            .with("direct", &self.direct[..])
            .with("units", &self.units[..words])
    }
}

/// Opens the tables of a file. The free units are not known.
pub(super) fn open<K: Ipv4Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    let (direct, units) = (parts.shared::<u32>("direct")?, parts.shared::<u64>("units")?);
    let step = parts.number_to("step", STEP_MAX.into())?;
    let entries = 1 << Dir17Bitmap::<K>::WINDOWS.direct_bits;
    CheckError::unless(direct.len() == entries, "an entry for all leading bits", direct.len())?;
    CheckError::unless(units.len() > PADDING, "the units and their padding fit their array", units.len())?;
    let end = AtomicUsize::new(units.len() - PADDING);
    Ok(Box::new(Dir17Bitmap::<K> { direct, units, allotted: None, end, step, keys: PhantomData }))
}
