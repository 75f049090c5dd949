//! Rates of lookups, by the benchmark.

use fibula::memory::Limits;

use super::context::{Context, PaperKey};
use super::definition::{Dimension, Exhibit, RECORDED, RatesPart};
use super::record::Point;
use crate::bench::{self, Contestant, Plan, Row, Traffic};

/// Measures the rates of a part. Values are million lookups a second, all threads together.
pub(super) fn measure<K: PaperKey>(
    rates: &RatesPart,
    exhibit: &Exhibit,
    context: &mut Context<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Point>, String> {
    let table = K::table(context, &rates.table)?;
    let settings = context.settings;
    let contestants = contestants(rates)?;
    let (threads, beyond): (Vec<usize>, Vec<usize>) =
        rates.threads.iter().partition(|&&threads| threads <= settings.cores);
    let mut points = Vec::new();
    let (recorded, lists_missing) = recorded(rates, context)?;
    points.extend(lists_missing.iter().flat_map(|name| no_list(rates, exhibit, name)));
    if !threads.is_empty() {
        // Each kernel of each contestant in each cell has the same time, and four times as long for the larger set of keys.
        let kernels: usize = contestants.iter().map(|contestant| contestant.kernels.len()).sum();
        let by_keys = [rates.rows, rates.columns].contains(&Dimension::Keys);
        let lanes = kernels * rates.traffic.len() * rates.batches.len() * threads.len();
        let lanes = if by_keys { 5 * lanes } else { lanes };
        let patterns = rates.traffic.iter().filter(|name| !name.starts_with(RECORDED));
        let plan = Plan {
            // Named, so that all of them look up the larger set too.
            engines: contestants.iter().map(|contestant| contestant.name.clone()).collect(),
            traffic: patterns.cloned().collect(),
            batches: rates.batches.clone(),
            threads,
            keys: settings.keys,
            many_keys: by_keys.then_some(settings.many_keys),
            runs: settings.runs,
            seconds: settings.run.as_secs_f64() * (settings.runs * lanes) as f64,
            every_isa: true,
            ..Plan::default()
        };
        let rows = bench::run(&plan, &*table.rib, &contestants, recorded, &mut |step| progress(step.step))
            .map_err(|error| error.to_string())?;
        if let Some(row) = rows.iter().find(|row| row.wrong > 0) {
            return Err(format!("{} gave {} wrong answers", row.engine, row.wrong));
        }
        points.extend(best(rates, &table.name, &rows));
    }
    points.extend(absent(rates, exhibit, &table.name, &beyond, settings.cores));
    Ok(points)
}

/// Returns the traffic of recorded addresses, and the names of lists that are not there.
fn recorded<'r, K: PaperKey>(
    rates: &'r RatesPart,
    context: &Context<'_>,
) -> Result<(Vec<Traffic<K>>, Vec<&'r str>), String> {
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for name in rates.traffic.iter().filter_map(|name| name.strip_prefix(RECORDED)) {
        match context.recorded::<K>(name)? {
            Some(keys) => there.push(Traffic { name: "recorded".to_owned(), dependent: false, keys }),
            None => missing.push(name),
        }
    }
    Ok((there, missing))
}

/// Returns the places of recorded traffic that is not there.
fn no_list(rates: &RatesPart, exhibit: &Exhibit, name: &str) -> Vec<Point> {
    let why = format!("needs the recorded addresses '{name}', which do not come with the program");
    if rates.rows != Dimension::Traffic {
        return Vec::new();
    }
    exhibit.columns.iter().map(|column| Point::absent("recorded", &column.name, why.clone())).collect()
}

fn contestants<K: PaperKey>(rates: &RatesPart) -> Result<Vec<Contestant<K>>, String> {
    let entry = |name: &String| {
        let engine = fibula_published::find::<K>(name).map_err(|error| error.to_string())?;
        Ok(Contestant::new(engine, Limits::default()))
    };
    rates.contestants.iter().map(entry).collect()
}

/// Returns a point for each row and column, that of the fastest of them.
fn best(rates: &RatesPart, table: &str, rows: &[Row]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for row in rows {
        let name = |dimension| match dimension {
            Dimension::Engine => row.engine.clone(),
            Dimension::EngineKind => parameter(&row.engine).0.to_owned(),
            Dimension::Parameter => parameter(&row.engine).1.to_owned(),
            Dimension::Table => table.to_owned(),
            Dimension::Traffic => row.traffic.clone(),
            Dimension::Threads => row.threads.to_string(),
            Dimension::Keys => row.key_set.to_string(),
            Dimension::EngineAndTraffic => format!("{}, {}", row.engine, row.traffic),
        };
        let way = format!("{}, {} a call", row.isa, row.batch);
        let point = Point {
            row: name(rates.rows),
            column: name(rates.columns),
            value: row.mlps_median,
            low: row.mlps_low,
            high: row.mlps_high,
            runs: row.mlps_runs.clone(),
            race: Some(format!(
                "{table}, {}, {} keys, {} a call, {} threads",
                row.traffic, row.key_set, row.batch, row.threads
            )),
            note: Some(row.error.clone().unwrap_or(way)),
        };
        let rate = |point: &Point| point.value.unwrap_or(0.0);
        match points.iter_mut().find(|other| other.row == point.row && other.column == point.column) {
            Some(other) if rate(other) < rate(&point) => *other = point,
            Some(_) => {}
            None => points.push(point),
        }
    }
    points
}

/// Divides the name of an engine before its last parameter.
fn parameter(name: &str) -> (&str, &str) {
    name.rsplit_once(':').unwrap_or((name, ""))
}

/// Returns the places of the numbers of threads that there are no cores for.
fn absent(rates: &RatesPart, exhibit: &Exhibit, table: &str, beyond: &[usize], cores: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for &threads in beyond {
        let why = format!("takes {threads} cores, and this machine has {cores}");
        let row = match rates.rows {
            Dimension::Threads => threads.to_string(),
            Dimension::Table => table.to_owned(),
            _ => continue,
        };
        match rates.columns {
            Dimension::Threads => points.push(Point::absent(row, threads.to_string(), why)),
            _ => points.extend(
                exhibit.columns.iter().map(|column| Point::absent(row.clone(), &column.name, why.clone())),
            ),
        }
    }
    points
}
