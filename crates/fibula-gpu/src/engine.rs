//! **The list** of structures that devices look up in: the parts of each that go into an image, in their order.
//!
//! A structure is added by a function in `kernels/lookup.c`, its line here, and `Fib::exported` in its folder.

use fibula::fib::{Fib, Sections};
use fibula::memory::Words;
use fibula::net::Key;

use crate::error::GpuError;
pub use crate::image::Engine;
use crate::image::Image;

const fn engine(
    name: &'static str,
    kernel: &'static str,
    key_words: usize,
    numbers: &'static [&'static str],
    arrays: &'static [&'static str],
) -> Engine {
    Engine { name, kernel, key_words, numbers, arrays }
}

/// The numbers of the two forms of Bloomfwd; its arrays are made of those of its levels.
const BLOOMFWD: &[&str] = &["levels", "direct-bits", "filter-hash", "table-hash"];

const WINDOWS_AND_STEP: &[&str] = &["direct-bits", "slot-bits", "rest-bits", "step"];
const WINDOWS_AND_WIDTH: &[&str] = &["direct-bits", "slot-bits", "rest-bits", "width"];

/// All of them.
pub(crate) const ENGINES: &[Engine] = &[
    engine("bloomfwd", "bloomfwd_narrow", 1, BLOOMFWD, &[]),
    engine("bloomfwd", "bloomfwd", 4, BLOOMFWD, &[]),
    engine(
        "dir-24-8",
        "dir_24_8",
        1,
        &["direct-bits", "rest-bits", "dictionary"],
        &["first", "segments", "next-hops"],
    ),
    engine("dir-17-bitmap", "dir_17_bitmap", 1, WINDOWS_AND_STEP, &["direct", "units"]),
    engine("dir-18-lines", "dir_18_lines", 1, WINDOWS_AND_WIDTH, &["direct", "lines", "maps", "below"]),
    engine("range-btree", "range_btree", 1, &["width", "levels", "few"], &["nodes", "starts"]),
    engine(
        "dir-btree",
        "dir_btree",
        4,
        &["first-bits", "upper-bits", "key-bits"],
        &["tables", "lines", "objects"],
    ),
];

/// Returns the names of the structures, each once.
pub fn names() -> impl Iterator<Item = &'static str> {
    let first = |at: usize| !ENGINES[..at].iter().any(|engine| engine.name == ENGINES[at].name);
    ENGINES.iter().enumerate().filter(move |&(at, _)| first(at)).map(|(_, engine)| engine.name)
}

/// Returns the engine of a structure that has arrays of its own.
pub(crate) fn of_arrays(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.name == name && !engine.arrays.is_empty())
}

/// Returns the error for a structure that no device looks up in.
pub(crate) fn unknown(name: &str) -> GpuError {
    GpuError::NoEngine { name: name.to_owned(), known: names().collect() }
}

impl Image {
    /// Returns the image of a structure.
    ///
    /// # Errors
    /// When no device looks up in such structures ([`names`] has those that there are), or it is too large.
    pub fn of<K: Key>(fib: &dyn Fib<K>, name: &str) -> Result<Self, GpuError> {
        image(&fib.exported().ok_or_else(|| unknown(name))?)
    }
}

/// Returns the image of a structure's arrays and numbers.
fn image(sections: &Sections<'_>) -> Result<Image, GpuError> {
    if sections.engine == "bloomfwd" {
        return bloomfwd(sections);
    }
    let engine = of_arrays(sections.engine).ok_or_else(|| unknown(sections.engine))?;
    let numbers: Vec<u32> = engine.numbers.iter().map(|&name| number(sections, name)).collect();
    let mut image = Image::new(engine, &numbers);
    for &name in engine.arrays {
        let found = sections.arrays.iter().find(|(found, _)| *found == name);
        match found {
            Some((_, elements)) => image.push(elements.words())?,
            None => image.push(Words::from(&[0u32][..]))?,
        }
    }
    Ok(image)
}

/// Returns a number; 0 if there is none.
fn number(sections: &Sections<'_>, name: &str) -> u32 {
    let found = sections.shape.iter().find(|&&(found, _)| found == name);
    found.map_or(0, |&(_, number)| number as u32)
}

/// Returns the image of Bloom filters: descriptions of the levels, the direct table, and all arrays of the levels in one.
fn bloomfwd(sections: &Sections<'_>) -> Result<Image, GpuError> {
    let key_words = if number(sections, "narrow") != 0 { 1 } else { 4 };
    let of_keys = |engine: &&Engine| engine.name == "bloomfwd" && engine.key_words == key_words;
    let engine = ENGINES.iter().find(of_keys).ok_or_else(|| unknown(sections.engine))?;

    // Numbers of the levels follow from the first length on: length, stored bits, hashes, and two divisors of four.
    const NUMBERS: usize = 11;
    let first = sections.shape.iter().position(|&(name, _)| name == "length").unwrap_or(sections.shape.len());
    let (levels, _) = sections.shape[first..].as_chunks::<NUMBERS>();
    let arrays: Vec<Words<'_>> = sections
        .arrays
        .iter()
        .filter(|(name, _)| *name != "direct")
        .map(|(_, words)| words.words())
        .collect();
    let (of_levels, _) = arrays.as_chunks::<3>();
    let (mut described, mut place) = (Vec::new(), 0u64);
    for (numbers, arrays) in levels.iter().zip(of_levels) {
        described.extend(numbers.iter().map(|&(_, number)| number as u32));
        for words in arrays {
            described.push(place as u32);
            place += words.len() as u64;
        }
        let entry_words = numbers[1].1 / 32 + 2;
        described.push((arrays[2].len() as u64 / entry_words) as u32);
    }
    if place > u64::from(u32::MAX) {
        return Err(GpuError::TooLarge { words: place });
    }
    let rest = ["direct-bits", "filter-hash", "table-hash"].map(|name| number(sections, name));
    let mut image = Image::new(engine, &[&[levels.len() as u32], &rest[..]].concat());
    image.push(Words::from(&described[..]))?;
    let direct = sections.arrays.iter().find(|(name, _)| *name == "direct");
    image.push(direct.map_or(Words::from(&[0u32][..]), |(_, elements)| elements.words()))?;
    image.push_all(&arrays)?;
    Ok(image)
}
