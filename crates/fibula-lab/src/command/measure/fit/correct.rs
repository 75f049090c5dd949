//! The correction of a profile: shares that were read off a table do not quite give that table's shape when a generator
//! walks down the trie with them. At each depth the odds of one-sided nodes are shifted, all classes of sizes alike.

use std::error::Error;

use fibula::net::{Key, Route, RouteSlice};
use fibula_workload::table::{Parting, Profile, Shape, TableSpec, generate, shape};

use super::nodes::DepthShares;

/// The shift that turns a measured line into a committed one, and how far the best is off, in hundredths.
pub(crate) fn shift_between(measured: &DepthShares, committed: &Parting) -> (f64, u8) {
    let off = |shift: f64| {
        let line = measured.parting(shift);
        let pairs = line.one_sided_percent.into_iter().zip(committed.one_sided_percent);
        pairs.map(|(a, b)| a.abs_diff(b)).collect::<Vec<_>>()
    };
    // The smallest shift of the best ones comes first.
    let shifts = (0..=800).flat_map(|step| [f64::from(step) / 100.0, f64::from(step) / -100.0]);
    let key = |shift: &f64| {
        let off = off(*shift);
        (off.iter().copied().max(), off.iter().map(|&off| u32::from(off)).sum::<u32>())
    };
    let best = shifts.min_by_key(key).unwrap_or(0.0);
    (best, off(best).into_iter().max().unwrap_or(0))
}

/// Rounds of the search.
const ROUNDS: usize = 40;

/// The most that the first round shifts a depth. Later rounds shift less and less, because a change at one depth changes
/// all those below it.
const STEP_MAX: f64 = 0.5;

/// A depth counts if the table has this many nodes with longer prefixes below it.
const NODES_MIN: usize = 1_000;

/// Searches the shifts with which a generated table has as many nodes with longer prefixes at each depth as the table.
/// Prints how far off each round is.
pub(crate) fn search<K: Key>(
    routes: &[Route<K>],
    spec: &TableSpec,
    lines: &[DepthShares],
) -> Result<Vec<Parting>, Box<dyn Error>> {
    let committed = Profile::of::<K>();
    let first = committed.partings.first().map_or(0, |line| usize::from(line.depth));
    let bits: Vec<u8> =
        (first..lines.len()).map(|depth| depth as u8 + 1).filter(|&bits| bits <= K::BITS).collect();
    let real = shape(&RouteSlice::new(routes)?, &bits);
    let spec = TableSpec { routes: routes.len(), ..*spec };
    let made = |partings: Vec<Parting>| -> Result<Shape, Box<dyn Error>> {
        let routes = generate::<K>(&spec, &Profile { partings, ..committed.clone() })?;
        Ok(shape(&RouteSlice::new(&routes)?, &bits))
    };
    // The natural logarithm of how many times too many nodes there are, by depth.
    let errors = |made: &Shape| -> Vec<f64> {
        let pairs = real.chunks.iter().zip(&made.chunks);
        let error = |real: usize, made: usize| (made.max(1) as f64 / real as f64).ln();
        pairs
            .map(
                |(real, made)| if real.divided < NODES_MIN { 0.0 } else { error(real.divided, made.divided) },
            )
            .collect()
    };
    let mean =
        |errors: &[f64]| 100.0 * errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    println!("committed profile: {:.2} % off", mean(&errors(&made(committed.partings.clone())?)));
    let mut shifts = vec![0.0; bits.len()];
    let partings = |shifts: &[f64]| -> Vec<Parting> {
        lines[first..].iter().zip(shifts).map(|(line, &shift)| line.parting(shift)).collect()
    };
    let mut best = (f64::MAX, Vec::new());
    for round in 0..ROUNDS {
        let errors = errors(&made(partings(&shifts))?);
        println!("round {round}: {:.2} % off", mean(&errors));
        if mean(&errors) < best.0 {
            best = (mean(&errors), partings(&shifts));
        }
        for (at, shift) in shifts.iter_mut().enumerate() {
            // A node has 2 children less its share of one-sided nodes; the share must change by this.
            let error = errors[at] - if at > 0 { errors[at - 1] } else { 0.0 };
            let share = lines[first + at].one_sided_mean.clamp(0.02, 0.98);
            let step = error * (2.0 - share) / (share * (1.0 - share));
            *shift += step.clamp(-1.0, 1.0) * STEP_MAX * (ROUNDS - round) as f64 / ROUNDS as f64;
        }
    }
    Ok(best.1)
}
