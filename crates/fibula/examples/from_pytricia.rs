//! Migrating from Python's `pytricia`: strings as keys, in Rust.
//!
//! `cargo run -p fibula --example from_pytricia`; its output is shown in `docs/guide/cookbook.md`.
//!
//! The trap first: `pyt.get` is the longest match. Here `get` is exact, and `lookup` is the longest match.

use std::error::Error;
use std::io::{self, Write};

use fibula::net::{HostBits, NextHop, Prefix, Route};
use fibula::rib::Rib;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Reads a prefix as `pytricia` does: an address alone is a prefix of full length, host bits are ignored.
fn prefix(text: &str) -> Result<Prefix<u32>, Box<dyn Error>> {
    Ok(Prefix::parse(text.as_bytes(), HostBits::Mask)?)
}

/// Returns the longest route that contains an address or prefix, as `pyt[text]` and `pyt.get_key(text)` do.
fn longest(rib: &Rib<u32>, text: &str) -> Result<Option<Route<u32>>, Box<dyn Error>> {
    Ok(rib.covers(prefix(text)?).last())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // `PyTricia()` is a `Rib<u32>`, `PyTricia(128)` a `Rib<u128>`: families never mix.
    let mut pyt = Rib::<u32>::default();
    let names = ["a", "b", "c"];
    // `pyt["10.0.0.0/8"] = "a"`: next hop 1 is the first name.
    for (text, id) in [("10.1.1.0/24", 3), ("10.0.0.0/8", 1), ("10.1.0.0/16", 2)] {
        pyt.insert(Route::new(prefix(text)?, NextHop::try_from(id)?))?;
    }
    let name = |route: Option<Route<u32>>| route.map(|route| names[route.next_hop.id() as usize - 1]);
    let key = |route: Option<Route<u32>>| route.map(|route| route.prefix.to_string());

    writeln!(out, "len {}", pyt.len())?;
    // `pyt[...]` and `pyt.get(...)`, of a prefix and of an address.
    writeln!(out, "10.1.0.0/20 {:?}", name(longest(&pyt, "10.1.0.0/20")?))?;
    writeln!(out, "10.9.9.9    {:?}", name(longest(&pyt, "10.9.9.9")?))?;
    // `Option` has the default; a missing route raises nothing.
    assert_eq!(name(longest(&pyt, "192.0.2.1")?).unwrap_or("nobody"), "nobody");
    // `pyt.get_key`.
    writeln!(out, "get_key 10.1.1.7 {:?}", key(longest(&pyt, "10.1.1.7")?))?;
    // `in` is a match of any length, `has_key` an exact one.
    assert!(longest(&pyt, "10.0.0.0/12")?.is_some());
    assert!(!pyt.contains(prefix("10.0.0.0/12")?));
    assert!(pyt.contains(prefix("10.1.0.0/16")?));
    // `pyt.parent`, which here also takes prefixes that are not in the table.
    writeln!(out, "parent 10.1.1.0/24 {:?}", key(pyt.parent(prefix("10.1.1.0/24")?)))?;
    writeln!(out, "parent 10.0.0.0/8  {:?}", key(pyt.parent(prefix("10.0.0.0/8")?)))?;
    // `pyt.children` leaves the prefix itself out; `subnets` begins with it.
    let top = prefix("10.0.0.0/8")?;
    let children: Vec<String> = pyt
        .subnets(top)
        .map(|route| route.prefix)
        .filter(|&inside| inside != top)
        .map(|p| p.to_string())
        .collect();
    writeln!(out, "children 10.0.0.0/8 {children:?}")?;
    // `del pyt[...]`: a missing prefix raises nothing; `remove` returns `None`.
    assert!(pyt.remove(prefix("10.1.0.0/16")?).is_some());
    assert!(pyt.remove(prefix("10.1.0.0/16")?).is_none());
    // `for key in pyt`, with the values, which `pytricia` looks up again.
    for route in &pyt {
        writeln!(out, "{} {:?}", route.prefix, name(Some(route)))?;
    }
    // The error of a text that is not a prefix says what is wrong, and where.
    let error = prefix("10.0.0.0/33").expect_err("there are 32 bits");
    writeln!(out, "{error}")?;
    Ok(())
}
