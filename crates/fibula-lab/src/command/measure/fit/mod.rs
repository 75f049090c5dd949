//! Reads the parameters of a generator's profile off a table, and compares them with the committed ones.
//!
//! For each depth of the binary trie and each class of sizes it measures how the leaves below a node part between the two
//! halves of the node; and how often a route has the next hop of its neighbour or its cover.

mod correct;
mod nodes;

use clap::Args;
use fibula::net::{Key, Route};
use fibula_feed::{LoadError, LoadOptions, LoadedRoutes, Loader};
use fibula_workload::table::{Length, Parting, Profile, TableSpec, generate};

use super::{OfFamily, Outcome};
use nodes::DepthShares;

/// Options of `fibula-lab measure fit`.
#[derive(Debug, Args)]
pub(in crate::command) struct FitArgs {
    /// The family
    #[arg(value_enum, value_name = "FAMILY")]
    family: OfFamily,

    /// The table; 'made' measures a generated one
    #[arg(value_name = "FILE")]
    file: String,

    /// Fail where the committed lengths and partings do not come from this table
    #[arg(long)]
    check: bool,

    /// Search the correction anew, and print corrected partings
    #[arg(long, conflicts_with = "check")]
    correct: bool,
}

/// Returns whether the table is as the profile says.
pub(super) fn run(args: &FitArgs) -> Outcome<bool> {
    let path = args.file.as_str();
    match (args.family, path) {
        (OfFamily::Ipv4, "made") => {
            fit::<u32>(&generate(&TableSpec::ipv4(), &Profile::ipv4())?, &TableSpec::ipv4(), args)
        }
        (OfFamily::Ipv6, "made") => {
            fit::<u128>(&generate(&TableSpec::ipv6(), &Profile::ipv6())?, &TableSpec::ipv6(), args)
        }
        (OfFamily::Ipv4, _) => {
            fit::<u32>(&read(path)?.ribs.v4.iter().collect::<Vec<_>>(), &TableSpec::ipv4(), args)
        }
        (OfFamily::Ipv6, _) => {
            fit::<u128>(&read(path)?.ribs.v6.iter().collect::<Vec<_>>(), &TableSpec::ipv6(), args)
        }
    }
}

fn read(path: &str) -> Result<LoadedRoutes, LoadError> {
    Loader::new(LoadOptions::default()).load(path)
}

fn fit<K: Key>(routes: &[Route<K>], spec: &TableSpec, args: &FitArgs) -> Outcome<bool> {
    let (lengths, lines) = (lengths(routes), nodes::lines(routes));
    if args.check {
        return Ok(check::<K>(&lengths, &lines));
    }
    if args.correct {
        correct::search(routes, spec, &lines)?.iter().for_each(print);
        return Ok(true);
    }
    for (Length { len, weight, leaf_permille }, count) in &lengths {
        println!("    ({len}, {weight}, {leaf_permille}), // {count}");
    }
    println!();
    lines.iter().for_each(|line| print(&line.parting(0.0)));
    neighbours(routes);
    Ok(true)
}

fn print(line: &Parting) {
    let Parting { depth, low_percent, alone_low_percent, one_sided_percent, skew_percent } = line;
    println!("    ({depth}, {low_percent}, {alone_low_percent}, {one_sided_percent:?}, {skew_percent:?}),");
}

/// The line of each length with ten routes or more, and their number.
fn lengths<K: Key>(routes: &[Route<K>]) -> Vec<(Length, usize)> {
    let mut counts = vec![(0, 0); usize::from(K::BITS) + 1];
    for (index, route) in routes.iter().enumerate() {
        let count: &mut (usize, usize) = &mut counts[usize::from(route.prefix.len())];
        count.0 += 1;
        count.1 += usize::from(routes.get(index + 1).is_none_or(|next| !route.prefix.covers(next.prefix)));
    }
    let line = |(len, (count, leaves)): (usize, (usize, usize))| {
        let leaf_permille = round(leaves as f64 / count as f64 * 1e3, 10.0);
        (Length { len: len as u8, weight: weight(count as f64 / routes.len() as f64), leaf_permille }, count)
    };
    counts.into_iter().enumerate().filter(|(_, (count, _))| *count > 9).map(line).collect()
}

/// Parts in a million, with fewer digits the larger they are: a profile is to have a table's shape, not the table.
fn weight(share: f64) -> u32 {
    let million = share * 1e6;
    round(
        million,
        if million < 1e3 {
            10.0
        } else if million < 1e4 {
            100.0
        } else {
            1e3
        },
    )
}

fn round(number: f64, unit: f64) -> u32 {
    ((number / unit).round() * unit) as u32
}

/// The most that rounding may make of a share, in hundredths: the committed corrections were rounded more than once.
const OFF_MAX: u8 = 2;

/// Compares the committed profile with the measured parameters.
fn check<K: Key>(lengths: &[(Length, usize)], lines: &[DepthShares]) -> bool {
    let committed = Profile::of::<K>();
    let mut wrong = 0;
    for line in &committed.lengths {
        match lengths.iter().find(|(measured, _)| measured.len == line.len) {
            Some((measured, _)) if measured == line => {}
            other => {
                wrong += 1;
                println!(
                    "/{}: committed {line:?}, measured {:?}",
                    line.len,
                    other.map(|(measured, _)| measured)
                );
            }
        }
    }
    let absent = |len: u8| committed.lengths.iter().all(|line| line.len != len);
    for (Length { len, .. }, count) in lengths.iter().filter(|(line, _)| absent(line.len)) {
        println!("/{len}: left out of the profile, the table has {count}");
    }
    for line in &committed.partings {
        let depth = line.depth;
        let Some(measured) = lines.get(usize::from(depth)) else {
            wrong += 1;
            println!("depth {depth}: nothing was measured");
            continue;
        };
        let (shift, off) = correct::shift_between(measured, line);
        let others = Parting { one_sided_percent: line.one_sided_percent, ..measured.parting(0.0) };
        if others != *line || off > OFF_MAX {
            wrong += 1;
            println!("depth {depth}: committed {line:?}, measured {:?}", measured.parting(0.0));
        } else if shift != 0.0 {
            println!("depth {depth}: as measured, log odds of one-sided nodes shifted by {shift:+.2}");
        }
    }
    let (lengths, depths) = (committed.lengths.len(), committed.partings.len());
    println!("{}: {lengths} lengths and {depths} depths, {wrong} not as measured", K::FAMILY);
    wrong == 0
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
