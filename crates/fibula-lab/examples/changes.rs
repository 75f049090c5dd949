//! Prints what changes of the routes of an IPv6 table would rewrite in `dir-btree`: `changes FILE`.

use std::error::Error;

use fibula::fib::internals::DirBtree;
use fibula::memory::Limits;
use fibula_feed::{LoadOptions, Loader};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: changes FILE")?;
    let table = Loader::new(LoadOptions::default()).load(file.as_str())?;
    let fib = DirBtree::build(&table.ribs.v6, Limits::default())?;
    let mut lines = Vec::new();
    let mut shorter = 0;
    for route in table.ribs.v6.iter() {
        match fib.lines_of_change(route.prefix) {
            Some(count) => lines.push(count),
            None => shorter += 1,
        }
    }
    lines.sort_unstable();
    let count = lines.len().max(1);
    let mean = lines.iter().sum::<usize>() as f64 / count as f64;
    let at = |share: usize| lines.get((lines.len() * share / 100).min(count - 1)).copied().unwrap_or(0);
    println!("{} routes within one slot: {mean:.1} lines on average, {} in the median", lines.len(), at(50));
    println!("99 % at most {}, all at most {}; one word publishes them", at(99), at(100));
    println!("{shorter} routes meet several slots");
    Ok(())
}
