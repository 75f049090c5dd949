//! Measures all engines over a table.

use std::error::Error;

use fibula::auto::Workload;
use fibula::fib::registry::Role;
use fibula::fib::{self, Fib};
use fibula::memory::Limits;
use fibula::net::{Key, RouteSlice};
use fibula::simd::Present;
use fibula_workload::probe::{ROUNDS, keys_for, rate};
use fibula_workload::traffic;

use super::{BATCHES, EngineRates, MeasuredEngine, MeasuredTable, TableToMeasure};

/// Measures all engines but the oracles, with every instruction set that this machine has.
///
/// # Errors
/// If the table cannot be generated, or an engine answers wrong.
pub fn measure<K: Key>(plan: &TableToMeasure) -> Result<MeasuredTable, Box<dyn Error>> {
    let routes = plan.routes::<K>()?;
    let slice = RouteSlice::new(&routes)?;
    let counted = Workload::default().with_table(&slice);
    let mut traffics = Vec::new();
    let reference = fibula_published::find::<K>("range-search")?.build(&slice, Limits::default())?;
    for name in ["match", "zipf"] {
        let pattern = traffic::find::<K>(name).ok_or("no such traffic")?;
        let keys = (pattern.generate)(&slice, keys_for(counted.ranges), plan.spec.seed)?;
        let mut expected = vec![None; keys.len()];
        reference.lookup_batch(&keys, &mut expected);
        traffics.push((keys, expected));
    }

    let (mut structures, mut built) = (Vec::new(), Vec::new());
    for engine in fib::engines::<K>() {
        if matches!(engine.role, Role::Oracle { .. }) {
            continue;
        }
        let fib = engine.build(&slice, Limits::default());
        let lookup_bytes = fib.as_ref().ok().map(|fib| fib.memory().lookup_bytes);
        structures.push(MeasuredEngine { engine: engine.name.to_owned(), lookup_bytes });
        built.extend(fib.ok().map(|fib| (engine, fib)));
    }
    let mut rates = Vec::new();
    for isa in Present::all() {
        // An engine without kernels for the set runs those of a smaller one, which are measured with that.
        let fibs: Vec<_> = built.iter().filter(|(engine, _)| engine.isas.contains(&isa.isa())).collect();
        for (engine, fib) in &fibs {
            for (keys, expected) in &traffics {
                let mut found = vec![None; keys.len()];
                fib.lookup_batch_on(isa, keys, &mut found);
                if found != *expected {
                    return Err(format!("{}: {} answers wrong", plan.name, engine.name).into());
                }
            }
        }
        let timed = |fib: &dyn Fib<K>, batch: usize| {
            let logarithms = traffics.iter().map(|(keys, _)| rate(fib, isa, keys, batch).ln());
            (logarithms.sum::<f64>() / traffics.len() as f64).exp()
        };
        let mut mlps = vec![[0.0_f64; BATCHES.len()]; fibs.len()];
        for (number, &batch) in BATCHES.iter().enumerate() {
            for _ in 0..ROUNDS {
                for ((_, fib), mlps) in fibs.iter().zip(&mut mlps) {
                    mlps[number] = timed(&**fib, batch).max(mlps[number]);
                }
            }
        }
        rates.extend(fibs.iter().zip(mlps).map(|((engine, _), mlps)| EngineRates {
            isa: isa.isa(),
            engine: engine.name.to_owned(),
            mlps,
        }));
    }
    Ok(MeasuredTable {
        name: plan.name.clone(),
        family: plan.family,
        is_held_out: plan.is_held_out,
        routes: counted.routes,
        host_routes: counted.host_routes,
        wide_routes: counted.wide_routes,
        next_hops: counted.next_hops,
        ranges: counted.ranges,
        structures,
        rates,
    })
}
