//! The calibration of a machine, for the choice of an engine: the speed of arithmetic and loads, and rates of the engines themselves.

use std::time::Duration;

use fibula::auto::{BATCHES, Machine, MeasuredRates, Workload};
use fibula::fib::registry::Role;
use fibula::fib::{self, Fib};
use fibula::memory::Limits;
use fibula::net::{Key, RouteSlice};
use fibula::simd::{self, Present};

use crate::table::{Profile, TableSpec, generate};
use crate::{probe, traffic};

/// The table of each family that engines are measured over, of the Internet's shape. Of tables with 1,280 to 40,000 routes one with
/// 5,120 made the choice best on a machine that the model was not fitted to; the others were within a point of it.
pub const TABLE: TableSpec = TableSpec { routes: 5_120, next_hops: 256, seed: 1 };

/// Keys of each traffic: enough to touch most lines of the table.
const KEYS: usize = 1 << 14;

/// Rounds in which all engines are timed in turn. The best of an engine counts.
const ROUNDS: usize = 3;

/// Shortest time of a timing.
const SHORTEST: Duration = Duration::from_micros(50);

/// Measures this machine on one core: [`Machine::measure`], then the engines of both families with each of these instruction sets.
/// With the best set alone it takes about a tenth of a second.
///
/// An engine that cannot be built here has no rates. Choices then use none of the others'.
#[must_use]
pub fn calibrate(l2_bytes: Option<usize>, sets: &[Present]) -> Machine {
    let before = simd::chosen();
    let machine = with_rates::<u128>(with_rates::<u32>(Machine::measure(l2_bytes), sets), sets);
    // Single lookups were measured with a set that was forced.
    simd::force(Some(before.isa())).expect("it was there before");
    machine
}

fn with_rates<K: Key>(mut machine: Machine, sets: &[Present]) -> Machine {
    let Ok(routes) = generate::<K>(&TABLE, &Profile::of::<K>()) else { return machine };
    let Ok(slice) = RouteSlice::new(&routes) else { return machine };
    let ranges = Workload::default().with_table(&slice).ranges;
    let mut keys = Vec::new();
    for name in ["match", "zipf"] {
        let pattern = traffic::find::<K>(name).expect("there is such traffic");
        let Ok(more) = (pattern.generate)(&slice, KEYS, TABLE.seed) else { return machine };
        keys.extend(more);
    }
    let engines =
        fib::engines::<K>().into_iter().filter(|engine| !matches!(engine.role, Role::Oracle { .. }));
    let fibs: Vec<(_, Box<dyn Fib<K>>)> =
        engines.filter_map(|engine| Some((engine, engine.build(&slice, Limits::default()).ok()?))).collect();
    for &set in sets {
        let mut best = vec![[0.0_f64; BATCHES.len()]; fibs.len()];
        for _ in 0..ROUNDS {
            for ((_, fib), best) in fibs.iter().zip(&mut best) {
                for (batch, best) in BATCHES.into_iter().zip(best) {
                    *best = best.max(probe::rate_of(&**fib, set, &keys, batch, SHORTEST));
                }
            }
        }
        for ((engine, fib), mlps) in fibs.iter().zip(best) {
            // Its best kernels within the set have run.
            let within = engine.isas.iter().filter(|kernels| kernels.is_within(set.isa()));
            let Some(&isa) = within.max() else { continue };
            let (family, engine, bytes) = (K::FAMILY, engine.name, fib.memory().lookup_bytes);
            machine = machine.with_rates(MeasuredRates { family, engine, isa, ranges, bytes, mlps });
        }
    }
    machine
}
