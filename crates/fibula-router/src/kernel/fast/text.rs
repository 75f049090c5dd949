//! The committed program: `program.txt`, which `cargo xtask fast` makes of `program.bpf.c`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;

use fibula_bpf::kernel::Function;

/// The program that is compiled in.
const COMMITTED: &str = include_str!("program.txt");

/// The value of a place of the program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Filling {
    /// The map with this descriptor.
    Map(RawFd),
    /// The memory of the map with this descriptor.
    Memory(RawFd),
    /// A number.
    Number(u32),
}

/// A program with places for maps and numbers.
#[derive(Debug, Clone)]
pub(super) struct CodeListing {
    code: Vec<u8>,
    functions: Vec<Function>,
    places: Vec<(usize, String)>,
}

/// The kinds of values of 64 bits, as instructions have them: a number, a map, the memory of a map.
const KINDS: [u8; 3] = [0, 1, 2];

impl CodeListing {
    /// Returns the committed program, or that of the file that `FIBULA_FAST_PROGRAM` names: for tests of another compiler.
    pub(super) fn read() -> io::Result<Self> {
        match std::env::var_os("FIBULA_FAST_PROGRAM") {
            Some(path) => Self::parse(&std::fs::read_to_string(path)?),
            None => Self::parse(COMMITTED),
        }
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the program is broken"))
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, code) = text.split_once("\ncode\n")?;
        let (mut functions, mut places) = (Vec::new(), Vec::new());
        for line in head.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["function", at, name] => {
                    let (at, name) = (at.parse().ok()?, name.to_owned());
                    functions.push(Function { at, takes: takes(&name), name });
                }
                ["place", at, name] => places.push((at.parse().ok()?, name.to_owned())),
                _ => {}
            }
        }
        let words = code.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
        let code: Vec<u8> =
            words.collect::<Option<Vec<_>>>()?.into_iter().flat_map(u64::to_be_bytes).collect();
        let fits = |at: usize| code.len() >= 8 * (at + 2);
        let is_whole = places.iter().all(|(at, _)| fits(*at)) && functions.first()?.at == 0;
        is_whole.then_some(Self { code, functions, places })
    }

    /// Returns the instructions with all places filled, and the functions.
    pub(super) fn filled(&self, fillings: &BTreeMap<String, Filling>) -> io::Result<(Vec<u8>, &[Function])> {
        let mut code = self.code.clone();
        for (at, name) in &self.places {
            let filling = fillings.get(name).copied().ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, format!("the program has a place '{name}'"))
            })?;
            let (kind, value) = match filling {
                Filling::Number(number) => (KINDS[0], number),
                Filling::Map(fd) => (KINDS[1], fd as u32),
                Filling::Memory(fd) => (KINDS[2], fd as u32),
            };
            let instruction = &mut code[8 * at..8 * at + 16];
            // The upper half of the registers' byte is the kind; the second half of the value is 0.
            instruction[1] = instruction[1] & 15 | kind << 4;
            instruction[4..8].copy_from_slice(&value.to_le_bytes());
            instruction[12..16].fill(0);
        }
        Ok((code, &self.functions))
    }
}

/// Returns how many numbers a function of the program takes.
fn takes(name: &str) -> u32 {
    match name {
        "lookup_v4" => 2,
        "lookup_v6" => 3,
        name if name.starts_with("v4_") => 3,
        name if name.starts_with("v6_") => 5,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_by_name_and_none_is_left() {
        let text = CodeListing::parse(COMMITTED).unwrap();
        assert!(text.filled(&BTreeMap::new()).is_err());
        let names = text.places.iter().map(|place| place.1.clone());
        let fillings: BTreeMap<_, _> = names.map(|name| (name, Filling::Memory(7))).collect();
        let (code, functions) = text.filled(&fillings).unwrap();
        assert_eq!((functions[0].name.as_str(), functions.len()), ("fibula_fast", 11));
        for (at, name) in &text.places {
            assert_eq!((code[8 * at], code[8 * at + 1] >> 4, code[8 * at + 4]), (0x18, 2, 7), "{name}");
        }
    }

    /// `MAX_USED_MAPS` of Linux (include/linux/bpf_verifier.h): a program with more maps is refused. It bounds the number of VRFs.
    const MOST_MAPS: usize = 64;

    #[test]
    fn a_program_has_nine_maps_a_vrf_and_as_many_as_the_kernel_takes() {
        let text = CodeListing::parse(COMMITTED).unwrap();
        let numbers = ["port_number", "tagged_frames"];
        let names = text.places.iter().map(|place| place.1.as_str()).filter(|name| !numbers.contains(name));
        let maps: std::collections::BTreeSet<&str> = names.collect();
        let of = |slot: usize| {
            maps.iter()
                .filter(|name| {
                    ["v4", "v6"].iter().any(|family| name.starts_with(&format!("{family}_{slot}_")))
                })
                .count()
        };
        assert_eq!(of(0), 9);
        assert!(
            (0..crate::config::FAST_VRFS).all(|slot| of(slot) == of(0)) && of(crate::config::FAST_VRFS) == 0
        );
        assert!(maps.len() <= MOST_MAPS, "{} maps", maps.len());
    }

    #[test]
    fn a_broken_text_is_refused() {
        for text in ["", "code\n", "function 0 main\ncode\n12x", "place 9 hops\nfunction 0 m\ncode\n00"] {
            assert!(CodeListing::parse(text).is_none(), "{text}");
        }
    }
}
