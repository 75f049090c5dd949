//! Reads the parameters of a profile off a table, made or read: `fit ipv4|ipv6 FILE|made`.
//!
//! What it prints are the lines that `table/partings.rs` and `table/profile.rs` started from: for each depth of the
//! binary trie and each class of sizes, how the leaves below a node part between its two halves; and how often a
//! route has the next hop of its neighbour or its cover.

use std::error::Error;

use fibula::net::{Key, Route};
use fibula_feed::{LoadError, LoadOptions, Table, load};
use fibula_lab::table::{Profile, TableSpec, generate};

/// Size classes of nodes: 2-3 routes, 4-7, and so on; the last is open.
const CLASSES: usize = 10;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [family, path] = arguments.as_slice() else {
        return Err("usage: fit ipv4|ipv6 FILE".into());
    };
    match (family.as_str(), path.as_str()) {
        ("ipv4", "made") => fit::<u32>(&generate(&TableSpec::ipv4(), &Profile::ipv4())?),
        ("ipv6", "made") => fit::<u128>(&generate(&TableSpec::ipv6(), &Profile::ipv6())?),
        ("ipv4", path) => fit::<u32>(&read(path)?.v4.iter().collect::<Vec<_>>()),
        ("ipv6", path) => fit::<u128>(&read(path)?.v6.iter().collect::<Vec<_>>()),
        _ => return Err("the family is ipv4 or ipv6".into()),
    }
    Ok(())
}

fn read(path: &str) -> Result<Table, LoadError> {
    load(path, &LoadOptions::default(), &mut |_| ())
}

fn fit<K: Key>(routes: &[Route<K>]) {
    lengths(routes);
    println!();
    let mut parting = vec![Depth::default(); 129];
    part(&leaves(routes), 0, &mut parting);
    let deepest = parting.iter().rposition(|depth| depth.nodes() > 99).unwrap_or(0);
    (0..=deepest).for_each(|at| print(&parting, at));
    neighbours(routes);
}

/// What happens at one depth.
#[derive(Clone, Default)]
struct Depth {
    /// Nodes by class.
    nodes: [u64; CLASSES],
    /// Those whose routes are all in one half.
    one_sided: [u64; CLASSES],
    /// Octaves by which the smaller half falls short of a quarter or more, and the chances to do so.
    octaves: [u64; CLASSES],
    chances: [u64; CLASSES],
    /// Nodes with a single route, and those where it is in the lower half.
    alone: u64,
    alone_low: u64,
    /// One-sided and uneven nodes with more routes, and those where the lower half has more.
    uneven: u64,
    uneven_low: u64,
}

impl Depth {
    fn nodes(&self) -> u64 {
        self.nodes.iter().sum::<u64>() + self.alone
    }
}

/// Prints the line of a depth. What was met too seldom there is taken together with the depths around, or from the
/// next smaller class.
fn print(parting: &[Depth], at: usize) {
    let percent = |count: &dyn Fn(&Depth) -> (u64, u64)| {
        let (mut part, mut whole) = count(&parting[at]);
        for around in 1..=4 {
            if whole >= 40 {
                break;
            }
            for depth in [at.checked_sub(around), Some(at + around)].into_iter().flatten() {
                let more = parting.get(depth).map_or((0, 0), count);
                (part, whole) = (part + more.0, whole + more.1);
            }
        }
        (whole >= 10).then(|| (100 * part + whole / 2) / whole)
    };
    let line = |count: &dyn Fn(&Depth, usize) -> (u64, u64)| {
        let mut shares = [None; CLASSES];
        (0..CLASSES).for_each(|class| shares[class] = percent(&|depth| count(depth, class)));
        let first = shares.iter().flatten().next().copied().unwrap_or(0);
        let mut before = first;
        shares.map(|share| {
            before = share.unwrap_or(before);
            before
        })
    };
    let one_sided = line(&|depth, class| (depth.one_sided[class], depth.nodes[class]));
    let skew = line(&|depth, class| (depth.octaves[class], depth.chances[class]));
    let low = percent(&|depth| (depth.uneven_low, depth.uneven)).unwrap_or(50);
    let alone = percent(&|depth| (depth.alone_low, depth.alone)).unwrap_or(50);
    println!("    ({at}, {low}, {alone}, {one_sided:?}, {skew:?}),");
}

/// The routes that cover no other.
fn leaves<K: Key>(routes: &[Route<K>]) -> Vec<Route<K>> {
    let leaf = |at: usize| routes.get(at + 1).is_none_or(|next| !routes[at].prefix.covers(next.prefix));
    (0..routes.len()).filter(|&at| leaf(at)).map(|at| routes[at]).collect()
}

fn part<K: Key>(routes: &[Route<K>], depth: u8, parting: &mut [Depth]) {
    if routes.first().is_none_or(|route| route.prefix.len() == depth) {
        return;
    }
    let (low, high) = routes.split_at(routes.partition_point(|route| !route.prefix.addr().bit(depth)));
    let line = &mut parting[usize::from(depth)];
    if let [_] = routes {
        line.alone += 1;
        line.alone_low += low.len() as u64;
    } else {
        let class = (routes.len().ilog2() as usize - 1).min(CLASSES - 1);
        let small = low.len().min(high.len());
        line.nodes[class] += 1;
        line.one_sided[class] += u64::from(small == 0);
        if small > 0 {
            let most = (routes.len() / 2).ilog2();
            let octaves = (routes.len() / (2 * small)).ilog2().min(most);
            line.octaves[class] += u64::from(octaves);
            line.chances[class] += u64::from((octaves + 1).min(most));
        }
        if low.len() != high.len() {
            line.uneven += 1;
            line.uneven_low += u64::from(low.len() > high.len());
        }
    }
    part(low, depth + 1, parting);
    part(high, depth + 1, parting);
}

/// Prints the line of each length: its part of a million routes, and how many in a thousand cover no other.
fn lengths<K: Key>(routes: &[Route<K>]) {
    let mut lengths = vec![(0, 0); 129];
    for (index, route) in routes.iter().enumerate() {
        let line: &mut (usize, usize) = &mut lengths[usize::from(route.prefix.len())];
        line.0 += 1;
        line.1 += usize::from(routes.get(index + 1).is_none_or(|next| !route.prefix.covers(next.prefix)));
    }
    for (len, (count, leaves)) in lengths.into_iter().enumerate().filter(|(_, line)| line.0 > 9) {
        println!("    ({len}, {}, {}), // {count}", count * 1_000_000 / routes.len(), leaves * 1000 / count);
    }
}

/// A cover, none of the ground, and the last route inside it.
type Open<K> = (Option<Route<K>>, Option<Route<K>>);

/// Prints how often a route has the next hop of the one before it in the same cover, by octaves of the distance
/// in units of the route, and of its cover otherwise.
fn neighbours<K: Key>(routes: &[Route<K>]) {
    let mut followed = [[(0u64, 0u64); 33]; 2];
    let mut inherited = (0u64, 0u64);
    let mut first = (0u64, 0u64);
    // The ground is the first.
    let mut open: Vec<Open<K>> = vec![(None, None)];
    for &route in routes {
        while open.len() > 1
            && open.last().and_then(|line| line.0).is_some_and(|cover| !cover.prefix.covers(route.prefix))
        {
            open.pop();
        }
        let (cover, before) = *open.last().expect("the ground is never closed");
        let mut same = false;
        if let Some(before) = before {
            let distance = (route.prefix.addr().to_bits() - before.prefix.last().to_bits())
                >> (K::BITS - route.prefix.len());
            let octave = (distance.max(1).ilog2() as usize).min(32);
            same = before.next_hop == route.next_hop;
            let line = &mut followed[usize::from(cover.is_some())][octave];
            line.0 += u64::from(same);
            line.1 += 1;
        }
        if let Some(cover) = cover {
            let line = if before.is_none() { &mut first } else { &mut inherited };
            if !same {
                line.0 += u64::from(cover.next_hop == route.next_hop);
                line.1 += 1;
            }
        }
        open.last_mut().expect("the ground is never closed").1 = Some(route);
        open.push((Some(route), None));
    }
    for (name, line) in ["top", "nested"].into_iter().zip(&followed) {
        let shares: Vec<String> =
            line.iter().map(|&(part, whole)| format!("{}/{whole}", 1000 * part / whole.max(1))).collect();
        println!("{name}: {}", shares.join(" "));
    }
    let share = |(part, whole): (u64, u64)| 1000 * part / whole.max(1);
    println!("first in its cover, has its next hop: {} of {}", share(first), first.1);
    println!("not the next hop of the one before: the cover's {} of {}", share(inherited), inherited.1);
    let mut counts = std::collections::HashMap::new();
    routes.iter().for_each(|route| *counts.entry(route.next_hop).or_insert(0u64) += 1);
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    println!(
        "popularity: {:?}",
        counts.iter().map(|count| count * 10_000 / routes.len() as u64).collect::<Vec<_>>()
    );
}
