//! The sections of files: the arrays, the width of values, and the byte at which shared lines begin.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;

use crate::fib::parts::overflow::{AreaWalk, PADDING, WIDTHS, moved};
use crate::fib::sections::{OwnedWords, Parts, PartsError, Sections};
use crate::fib::{CheckError, Fib};
use crate::memory::Cell;
use crate::net::{Ipv4Key, Key};

use super::NAME;
use super::check::CheckedLine;
use super::layout::{Dir18Lines, Live, line_words};

impl<K: Key> Dir18Lines<K> {
    pub(super) fn parts(&self) -> Sections<'_> {
        Sections::new(NAME, &[("width", self.width.into()), ("shared-from", self.shared_from.into())])
            .with("direct", &self.direct[..])
            .with("lines", &self.lines[..])
            .with("maps", &self.maps[..])
            .with("below", &self.below[..])
    }
}

impl<K: Key> Live<K> {
    /// Returns the sections of a file: the arrays as they would be built. `None` if the tables are not in order.
    pub(super) fn parts(&self) -> Option<Sections<'_>> {
        let windows = self.windows();
        let (arrays, line_words) = (self.arrays(), line_words(windows, self.width));
        let walk = AreaWalk::new(windows, &self.below[..]);
        // For each line by number, the checked line; later its number among the lines that are written.
        let mut checked: Vec<Option<CheckedLine>> = Vec::new();
        checked.resize_with(self.used[0].load(Ordering::Relaxed) as usize, || None);
        let mut own = Vec::new();
        let mut shared = BTreeMap::new();
        let entries = self.direct.iter().map(|entry| entry.read() as usize / (4 * line_words));
        for number in entries.clone() {
            let checked = checked.get_mut(number)?;
            if checked.is_none() {
                let line = arrays.line(windows, number, &walk).ok()?;
                if line.alone {
                    // A next hop has two shared lines while its entries move from one to the other. One of them is
                    // written.
                    shared.entry(line.first).or_insert(number);
                } else {
                    own.push(number);
                }
                *checked = Some(line);
            }
        }
        let shared_from = own.len();
        let mut written = vec![0; checked.len()];
        let (mut lines, mut maps, mut below) = (Vec::new(), Vec::new(), Vec::new());
        for (to, &number) in own.iter().chain(shared.values()).enumerate() {
            written[number] = to as u32;
            lines.extend(self.lines[number * line_words..][..line_words].iter().map(Cell::read));
            let words = checked[number].as_ref()?.below.clone();
            maps.push(words.map_or(0, |words| {
                // Places of maps count from the beginning of `below`, so they change with their words.
                let map = self.maps[number].read() - words.start as u32;
                let by = (below.len() as u32).wrapping_sub(words.start as u32);
                let place = below.len() as u32 + map;
                below.extend(moved(&self.below[words], map as usize, windows, by));
                place
            }));
        }
        // A built table without deeper slots has no maps at all.
        if maps.iter().all(|&map| map == 0) {
            maps.clear();
        }
        let place = |number: usize| {
            let line = checked[number].as_ref()?;
            let number = if line.alone { *shared.get(&line.first)? } else { number };
            Some(written[number] * 4 * line_words as u32)
        };
        let direct = entries.map(place).collect::<Option<Vec<u32>>>()?;
        lines.extend([0; PADDING]);
        below.extend([0; PADDING]);
        let shared_from = (4 * line_words * shared_from) as u64;
        let shape = [("width", self.width.into()), ("shared-from", shared_from)];
        let arrays = [("direct", direct), ("lines", lines), ("maps", maps), ("below", below)];
        let sections = Sections::new(NAME, &shape);
        Some(
            arrays
                .into_iter()
                .fold(sections, |all, (name, words)| all.with_copy(name, OwnedWords::Narrow(words))),
        )
    }
}

/// Opens the tables of a file. Those of a mapped file may change at any time, as those that a writer changes.
pub(super) fn open<K: Ipv4Key>(mut parts: Parts) -> Result<Box<dyn Fib<K>>, PartsError> {
    let width = parts.number_to("width", WIDTHS as u64 - 1)?;
    let shared_from = parts.number_to("shared-from", u32::MAX.into())?;
    if parts.are_mapped() {
        return open_mapped::<K>(parts, width);
    }
    let (direct, lines) = (parts.buffer::<u32>("direct")?, parts.buffer::<u32>("lines")?);
    let (maps, below) = (parts.buffer::<u32>("maps")?, parts.buffer::<u32>("below")?);
    CheckError::unless(lines.len() > PADDING, "the lines and their padding", lines.len())?;
    Ok(Box::new(Dir18Lines::<K> { width, direct, lines, shared_from, maps, below, keys: PhantomData }))
}

fn open_mapped<K: Ipv4Key>(mut parts: Parts, width: u32) -> Result<Box<dyn Fib<K>>, PartsError> {
    let (direct, lines) = (parts.shared::<u32>("direct")?, parts.shared::<u32>("lines")?);
    let (maps, below) = (parts.shared::<u32>("maps")?, parts.shared::<u32>("below")?);
    let windows = Dir18Lines::<K>::WINDOWS[width as usize];
    let entries = 1 << windows.direct_bits;
    CheckError::unless(direct.len() == entries, "an entry for all leading bits", direct.len())?;
    CheckError::unless(lines.len() > PADDING, "the lines and their padding", lines.len())?;
    let used = [(lines.len() - PADDING) / line_words(windows, width), below.len()];
    let used = used.map(|words| AtomicU32::new(u32::try_from(words).unwrap_or(u32::MAX)));
    Ok(Box::new(Live::<K> { width, direct, lines, maps, below, used, keys: PhantomData }))
}
