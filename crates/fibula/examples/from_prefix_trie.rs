//! Migrating from the crate `prefix-trie`: a map from prefixes to values of any kind.
//!
//! `cargo run -p fibula --example from_prefix_trie`; its output is shown in `docs/guide/cookbook.md`.

use std::error::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use fibula::ipnet::Ipv4Net;
use fibula::net::{Key, NextHop, Prefix, Route};
use fibula::rib::Rib;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Values by next hop: a `Rib` holds numbers, and the values are in a table of their own, each once.
///
/// The library has no map to values: a table of a million prefixes has a few hundred values, and fast structures hold
/// numbers.
#[derive(Default)]
struct Values<T>(Vec<T>);

impl<T: PartialEq> Values<T> {
    /// Returns the next hop for `value`. For many values, use a hash map.
    fn intern(&mut self, value: T) -> Result<NextHop, Box<dyn Error>> {
        let at = self.0.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.0.push(value);
            self.0.len() - 1
        });
        Ok(NextHop::try_from(u32::try_from(at + 1)?)?)
    }

    fn get(&self, next_hop: NextHop) -> &T {
        &self.0[next_hop.id() as usize - 1]
    }
}

/// `PrefixMap::remove_children`: removes the prefix and all prefixes inside it.
fn remove_subnets<K: Key>(rib: &mut Rib<K>, prefix: Prefix<K>) {
    let inside: Vec<_> = rib.subnets(prefix).map(|route| route.prefix).collect();
    for prefix in inside {
        rib.remove(prefix);
    }
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut rib = Rib::<u32>::default();
    let mut values = Values::default();
    for (net, value) in [
        ("10.0.0.0/8", "office"),
        ("10.1.0.0/16", "lab"),
        ("10.1.2.0/24", "bench"),
        ("10.2.0.0/16", "lab"),
        ("192.0.2.0/24", "guests"),
    ] {
        let net: Ipv4Net = net.parse()?;
        rib.insert(Route::new(net.into(), values.intern(value)?))?;
    }
    let net = |text: &str| text.parse::<Ipv4Net>().map(Prefix::from);

    // `get` is exact, as there.
    let lab = rib.get(net("10.1.0.0/16")?).ok_or("it was inserted")?;
    assert_eq!(*values.get(lab), "lab");
    assert_eq!(rib.get(net("10.1.0.0/17")?), None);

    // `get_lpm` of an address is `lookup_prefix`, or `lookup` for the next hop alone.
    let address = Ipv4Addr::new(10, 1, 2, 3);
    let found = rib.lookup_prefix(address.to_bits()).ok_or("the office holds it")?;
    writeln!(out, "{address} is in {}: {}", found.prefix, values.get(found.next_hop))?;

    // `get_lpm` of a prefix is the last of its covers.
    let found = rib.covers(net("10.1.128.0/17")?).last().ok_or("the lab holds it")?;
    writeln!(out, "10.1.128.0/17 is in {}: {}", found.prefix, values.get(found.next_hop))?;

    // `cover` is `covers`, shortest first; `children` is `subnets`, in order. Both begin with the prefix itself.
    let list = |routes: &mut dyn Iterator<Item = Route<u32>>| {
        routes.map(|route| route.prefix.to_string()).collect::<Vec<_>>().join(" ")
    };
    writeln!(out, "covers:  {}", list(&mut rib.covers(net("10.1.2.0/24")?)))?;
    writeln!(out, "subnets: {}", list(&mut rib.subnets(net("10.0.0.0/8")?)))?;

    // `remove` returns the value; prefixes inside stay unless they are removed too.
    assert!(rib.remove(net("192.0.2.0/24")?).is_some());
    assert!(rib.remove(net("192.0.2.0/24")?).is_none());
    remove_subnets(&mut rib, net("10.1.0.0/16")?);

    // Iteration is in lexicographic order, as there; the items are copies.
    for route in &rib {
        writeln!(out, "{} = {}", route.prefix, values.get(route.next_hop))?;
    }
    assert_eq!(rib.len(), 2);

    // Back to `ipnet`.
    let nets: Vec<Ipv4Net> = rib.iter().map(|route| route.prefix.into()).collect();
    assert_eq!(nets[0], "10.0.0.0/8".parse()?);
    Ok(())
}
