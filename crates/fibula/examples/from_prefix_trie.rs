//! Migrating from the crate `prefix-trie`: a map from prefixes to values of any kind.
//!
//! `cargo run -p fibula --example from_prefix_trie`; its output is shown in `docs/guide/cookbook.md`.

use std::error::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use fibula::ipnet::Ipv4Net;
use fibula::map::PrefixMap;
use fibula::net::Prefix;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // The key is the family; prefixes are of `ipnet`, as there.
    let mut map = PrefixMap::<u32, &str>::new();
    for (net, value) in [
        ("10.0.0.0/8", "office"),
        ("10.1.0.0/16", "lab"),
        ("10.1.2.0/24", "bench"),
        ("10.2.0.0/16", "lab"),
        ("192.0.2.0/24", "guests"),
    ] {
        map.insert(net.parse::<Ipv4Net>()?, value);
    }
    let net = |text: &str| text.parse::<Ipv4Net>();

    // `get` is exact, as there.
    assert_eq!(map.get(net("10.1.0.0/16")?), Some(&"lab"));
    assert_eq!(map.get(net("10.1.0.0/17")?), None);

    // `get_lpm` of an address is `lookup_prefix`, or `lookup` for the value alone.
    let address = Ipv4Addr::new(10, 1, 2, 3);
    let (prefix, value) = map.lookup_prefix(address).ok_or("the office holds it")?;
    writeln!(out, "{address} is in {prefix}: {value}")?;

    // `get_lpm` of a prefix is the last of its covers.
    let (prefix, value) = map.covers(net("10.1.128.0/17")?).last().ok_or("the lab holds it")?;
    writeln!(out, "10.1.128.0/17 is in {prefix}: {value}")?;

    // `cover` is `covers`, shortest first; `children` is `subnets`, in order. Both begin with the prefix itself.
    let list = |items: &mut dyn Iterator<Item = (Prefix<u32>, &&str)>| {
        items.map(|(prefix, _)| prefix.to_string()).collect::<Vec<_>>().join(" ")
    };
    writeln!(out, "covers:  {}", list(&mut map.covers(net("10.1.2.0/24")?)))?;
    writeln!(out, "subnets: {}", list(&mut map.subnets(net("10.0.0.0/8")?)))?;

    // `entry` is as in the standard library.
    *map.entry(net("10.2.0.0/16")?).or_insert("new") = "lab";

    // `remove` returns the value; prefixes inside stay unless they are removed too: `remove_children` there.
    assert_eq!(map.remove(net("192.0.2.0/24")?), Some("guests"));
    assert_eq!(map.remove(net("192.0.2.0/24")?), None);
    assert_eq!(map.remove_subnets(net("10.1.0.0/16")?), 2);

    // Iteration is in lexicographic order, as there.
    for (prefix, value) in &map {
        writeln!(out, "{prefix} = {value}")?;
    }
    assert_eq!(map.len(), 2);

    // Back to `ipnet`.
    let nets: Vec<Ipv4Net> = map.keys().map(Into::into).collect();
    assert_eq!(nets[0], net("10.0.0.0/8")?);
    Ok(())
}
