//! The sections of files: the elements in use of the three arrays, and the bits that index the first table.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::fib::parts::units::Units;
use crate::fib::sections::{Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::net::{Ipv6Key, Key};
use crate::simd::LINE_WORDS;

use super::layout::{DirBtree, OBJECT_WORDS, cut};

/// Words of an element of each array.
const WORDS: [usize; 3] = [1, LINE_WORDS, OBJECT_WORDS];

impl<K: Key> DirBtree<K> {
    /// Returns the sections of an engine of this name.
    pub(in crate::engines) fn parts(&self, name: &'static str) -> Sections<'_> {
        // Elements past the ends are room to grow, which files leave out.
        let used = |at: usize, all: usize| {
            let end = |ends: &[AtomicU32; 3]| ends[at].load(Ordering::Relaxed) as usize * WORDS[at];
            self.ends.as_ref().map_or(all, |ends| end(ends).min(all))
        };
        Sections::new(name, &[("first-bits", self.first_bits.into())])
            .with("tables", &self.tables[..used(0, self.tables.len())])
            .with("lines", &self.lines[..used(1, self.lines.len())])
            .with("objects", &self.objects[..used(2, self.objects.len())])
    }
}

/// Opens the tables of a file. The free elements are not known.
pub(super) fn open<K: Ipv6Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    Ok(Box::new(of_parts::<K>(&mut parts)?))
}

/// Opens tables, lines and objects. Leaves may have any form.
pub(in crate::engines) fn of_parts<K: Key>(parts: &mut Parts) -> Result<DirBtree<K>, PartsError> {
    let first_bits = parts.number_to("first-bits", cut::<K>().upper.min(32).into())?;
    let tables = parts.shared::<u32>("tables")?;
    let (lines, objects) = (parts.shared::<u32>("lines")?, parts.shared::<u32>("objects")?);
    let whole = lines.len().is_multiple_of(WORDS[1]) && objects.len().is_multiple_of(WORDS[2]);
    CheckError::unless(whole, "(1) each array ends where its units do", lines.len())?;
    CheckError::unless(first_bits > 0, "(2) leading bits are upper bits", 0)?;
    CheckError::unless(tables.len() >= 1 << first_bits, "(2) an entry for all leading bits", tables.len())?;
    let mut ends = [0; 3];
    for (end, (words, each)) in ends.iter_mut().zip([&tables, &lines, &objects].into_iter().zip(WORDS)) {
        let elements = u32::try_from(words.len() / each);
        *end = elements.map_err(|_| CheckError::new("(1) elements have numbers of 32 bits", words.len()))?;
    }
    Ok(DirBtree {
        first_bits,
        tables,
        lines,
        objects,
        table_units: Units::default(),
        line_units: Units::default(),
        object_units: Units::default(),
        ends: Some(ends.map(AtomicU32::new)),
        keys: PhantomData,
    })
}
