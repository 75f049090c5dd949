//! Times that the benchmark does not measure: lookups by steps of the search, and updates by prefix length.

use std::time::Instant;

use fibula::fib::registry::Engine;
use fibula::fib::{Applied, Fib};
use fibula::memory::Limits;
use fibula::net::{Change, Route};
use fibula::rib::Rib;
use fibula_workload::interval::Interval;
use fibula_workload::random::Random;
use fibula_workload::traffic;

use super::super::values::OfTable;
use super::super::{Context, Point};
use super::build;
use crate::bench::{self, Contestant, Plan, Row, Traffic};

/// The engine of Fig. 5, and its k.
const D18R: (&str, u8) = ("dxr-18", 18);

/// Fewest and most keys of a number of steps.
const KEYS_MIN: usize = 16;
const KEYS_MAX: usize = 1 << 16;

/// Most steps.
const STEPS: usize = 9;

/// Measures lookups of keys that take exactly so many steps.
pub(super) fn by_steps(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let settings = *context.settings;
    let (_, rib) = context.ipv4(table)?;
    let dxr = build(&rib, D18R.1)?;
    let mut keys: Vec<Vec<u32>> = vec![Vec::new(); STEPS + 1];
    // MATCH has more of those with many steps than RND.
    for pattern in ["rnd", "match"] {
        let pattern = traffic::find::<u32>(pattern).ok_or("both are patterns")?;
        let made = (pattern.generate)(&*rib, 4 * settings.keys, 1).map_err(|error| error.to_string())?;
        for key in made {
            let steps = dxr.search_steps(key) as usize;
            if let Some(keys) = keys.get_mut(steps).filter(|keys| keys.len() < KEYS_MAX) {
                keys.push(key);
            }
        }
    }
    drop(dxr);
    let (there, absent): (Vec<usize>, Vec<usize>) =
        (0..=STEPS).partition(|&steps| keys[steps].len() >= KEYS_MIN);
    let recorded: Vec<Traffic<u32>> = there
        .iter()
        .map(|&steps| Traffic {
            name: steps.to_string(),
            dependent: false,
            // All have as many keys, and as many different ones as there are.
            keys: keys[steps].iter().copied().cycle().take(KEYS_MAX.min(settings.keys)).collect(),
        })
        .collect();
    let engine = fibula_published::find::<u32>(D18R.0).map_err(|error| error.to_string())?;
    let plan = Plan {
        // No pattern but those of the steps: the first of them is named so that the plan does not mean all.
        traffic: vec!["rnd".to_owned()],
        batches: vec![256],
        keys: KEYS_MIN,
        runs: settings.runs,
        seconds: settings.run.as_secs_f64() * (settings.runs * (there.len() + 1)) as f64,
        ..Plan::default()
    };
    let contestants = [Contestant::new(engine, Limits::default())];
    let rows =
        bench::run(&plan, &*rib, &contestants, recorded, &mut |_| ()).map_err(|error| error.to_string())?;
    let mut points: Vec<Point> =
        rows.iter().filter(|row| row.traffic != "rnd").map(|row| time_of(row, "one core")).collect();
    points.extend(absent.iter().map(|steps| {
        Point::absent(
            steps.to_string(),
            "one core",
            "hardly any random key takes so many steps in this table",
        )
    }));
    Ok(points)
}

/// Returns the time of a lookup in a row, in nanoseconds.
fn time_of(row: &Row, column: &str) -> Point {
    let time = |rate: f64| 1e3 / rate;
    Point {
        low: row.mlps_high.map(time),
        high: row.mlps_low.map(time),
        runs: row.mlps_runs.iter().copied().map(time).collect(),
        value: row.mlps_median.map(time),
        race: Some("steps".to_owned()),
        ..Point::absent(row.traffic.clone(), column, row.isa.clone())
    }
}

/// Engines whose updates are measured.
const UPDATED: [&str; 3] = ["dxr-16", "dxr-18", "dxr-20"];

/// Most prefixes of a length.
const PREFIXES: usize = 256;

/// Measures the time to remove a prefix and to add it back, by its length.
pub(super) fn updates(context: &mut Context<'_>, OfTable { table }: &OfTable) -> Result<Vec<Point>, String> {
    let settings = *context.settings;
    let (_, rib) = context.ipv4(table)?;
    let mut after: Rib<u32> = (*rib).clone();
    let mut random = Random::new(7);
    let mut by_length: Vec<Vec<Route<u32>>> = vec![Vec::new(); 33];
    rib.iter().for_each(|route| by_length[usize::from(route.prefix.len())].push(route));
    let counts: Vec<usize> = by_length.iter().map(Vec::len).collect();
    for routes in &mut by_length {
        for at in 0..routes.len().min(PREFIXES) {
            let other = at + random.below((routes.len() - at) as u64) as usize;
            routes.swap(at, other);
        }
        routes.truncate(PREFIXES);
    }
    let mut updated = UPDATED.map(Updated::new).into_iter().collect::<Result<Vec<_>, _>>()?;
    for updated in &mut updated {
        updated.build(&rib)?;
    }
    let lengths: Vec<usize> = (0..33).filter(|&length| !by_length[length].is_empty()).collect();
    for _ in 0..settings.runs {
        for &length in &lengths {
            for updated in &mut updated {
                updated.round(&mut after, &by_length[length], length)?;
            }
        }
    }
    let mut points = Vec::new();
    for Updated { engine, times, rebuilt, .. } in &updated {
        let name = engine.name;
        for &length in &lengths {
            let point = point(length.to_string(), name, &times[length])?;
            let changes = 2 * settings.runs * by_length[length].len();
            let note = || format!("{} of {changes} updates built the engine anew", rebuilt[length]);
            points.push(if rebuilt[length] > 0 { point.noted(note()) } else { point });
        }
        // The mean over all lengths is weighted by the routes that the table has of each length.
        let all: usize = counts.iter().sum();
        let mean = |run: usize| {
            let sum: f64 = lengths.iter().map(|&length| times[length][run] * counts[length] as f64).sum();
            sum / all as f64
        };
        let means: Vec<f64> = (0..settings.runs).map(mean).collect();
        points.push(point("all".to_owned(), name, &means)?);
    }
    Ok(points)
}

fn point(row: String, column: &str, times: &[f64]) -> Result<Point, String> {
    let Interval { low, median, high } = Interval::of(times).ok_or("there are runs")?;
    let race = Some("updates".to_owned());
    let point = Point::new(row, column, median);
    Ok(Point { low: Some(low), high: Some(high), runs: times.to_vec(), race, ..point })
}

/// An engine that changes, and the times of its changes.
struct Updated {
    engine: Engine<u32>,
    fib: Option<Box<dyn Fib<u32>>>,
    /// Microseconds of an update, by length and run.
    times: Vec<Vec<f64>>,
    /// Updates that built it anew, by length: a short prefix may need more room at once than there is.
    rebuilt: [usize; 33],
}

impl Updated {
    fn new(name: &str) -> Result<Self, String> {
        let engine = fibula_published::find::<u32>(name).map_err(|error| error.to_string())?;
        Ok(Self { engine, fib: None, times: vec![Vec::new(); 33], rebuilt: [0; 33] })
    }

    fn build(&mut self, rib: &Rib<u32>) -> Result<(), String> {
        let built = self.engine.build_updatable(rib, Limits::default());
        self.fib = Some(built.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Removes and adds each route. The routes themselves are not timed.
    fn round(&mut self, after: &mut Rib<u32>, routes: &[Route<u32>], length: usize) -> Result<(), String> {
        let mut spent = 0.0;
        for &route in routes {
            for change in [Change::Remove(route.prefix), Change::Insert(route)] {
                after.apply(&[change]).map_err(|error| error.to_string())?;
                let begin = Instant::now();
                let fib = self.fib.as_mut().and_then(|fib| fib.updatable()).ok_or("it changes in place")?;
                let applied = fib.apply(&[change], after).map_err(|error| error.to_string())?;
                if let Applied::NeedsRebuild(_) = applied {
                    self.build(after)?;
                    self.rebuilt[length] += 1;
                }
                spent += begin.elapsed().as_secs_f64();
            }
        }
        self.times[length].push(spent * 1e6 / (2 * routes.len()) as f64);
        Ok(())
    }
}
