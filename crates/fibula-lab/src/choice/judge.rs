//! The choices of `auto` for recorded tables, and their costs.

use fibula::auto::{self, Known, Machine, Workload};
use fibula::net::{Family, Key};
use fibula::simd::Isa;

use super::{BATCHES, MachineRecord, MeasuredTable};

/// One choice.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedChoice {
    /// The table.
    pub table: String,
    /// Whether it was left out of the fit.
    pub is_held_out: bool,
    /// The instruction set.
    pub isa: Isa,
    /// Keys a call.
    pub batch: usize,
    /// Whether any number of bytes was allowed.
    pub is_unlimited: bool,
    /// The engine that was chosen.
    pub chosen: &'static str,
    /// The engine that was measured to be the fastest.
    pub best: String,
    /// How many times the chosen engine's rate the fastest one's is; infinite where the chosen one refuses the table.
    pub loss: f64,
}

/// Judges the choice for every table, set and batch of a record, with the default limit on bytes and with none, by a calibration: the
/// record's own, or one of another moment.
///
/// The library learns each engine's bytes and refusals, as from a build, and estimates the rates itself. If a calibration has no rates of
/// engines, it gets them from the record, which measured the same tables.
#[must_use]
pub fn judge(recorded: &MachineRecord, machine: &Machine) -> Vec<JudgedChoice> {
    let machine = &with_rates(recorded, *machine);
    let mut all = Vec::new();
    for table in &recorded.tables {
        match table.family {
            Family::Ipv6 => judge_table::<u128>(machine, table, &mut all),
            _ => judge_table::<u32>(machine, table, &mut all),
        }
    }
    all
}

/// Returns the machine with rates of engines over the tables of a calibration: its own, or those of the record.
fn with_rates(recorded: &MachineRecord, machine: Machine) -> Machine {
    if Isa::ALL.iter().any(|&isa| machine.has_rates(isa)) {
        return machine;
    }
    recorded.calibrated().into_iter().fold(machine, Machine::with_rates)
}

fn judge_table<K: Key>(machine: &Machine, table: &MeasuredTable, all: &mut Vec<JudgedChoice>) {
    let mut isas: Vec<Isa> = table.rates.iter().map(|rates| rates.isa).collect();
    isas.sort();
    isas.dedup();
    let known: Vec<Known> = fibula::fib::engines::<K>()
        .iter()
        .filter(|engine| table.structures.iter().any(|structure| structure.engine == engine.name))
        .map(|engine| Known { engine: engine.name, lookup_bytes: table.lookup_bytes(engine.name) })
        .collect();
    for (isa, batch) in isas.iter().flat_map(|&isa| (0..BATCHES.len()).map(move |batch| (isa, batch))) {
        for max_bytes in [None, Some(usize::MAX)] {
            let &MeasuredTable { ranges, routes, host_routes, wide_routes, next_hops, .. } = table;
            let machine = *machine;
            let batch_keys = BATCHES[batch];
            let wanted = Workload {
                ranges,
                routes,
                host_routes,
                wide_routes,
                next_hops,
                batch: batch_keys,
                isa,
                machine,
                max_bytes,
            };
            let Some(choice) = auto::pick(&auto::rank_knowing::<K>(&wanted, &known), None) else { continue };
            let most = wanted.most_bytes::<K>();
            // An engine that is no longer in the registry does not compete.
            let fits = |name: &str| {
                table.lookup_bytes(name).is_some_and(|bytes| bytes <= most)
                    && known.iter().any(|known| known.engine == name)
            };
            let rate = |name: &str| table.rates_within(name, isa);
            let rates = table.structures.iter().map(|structure| &*structure.engine);
            let rates = rates.filter(|name| fits(name)).filter_map(rate);
            let Some(best) = rates.max_by(|a, b| a.mlps[batch].total_cmp(&b.mlps[batch])) else { continue };
            let chosen = rate(choice.engine.name).filter(|rates| fits(&rates.engine));
            all.push(JudgedChoice {
                table: table.name.clone(),
                is_held_out: table.is_held_out,
                isa,
                batch: batch_keys,
                is_unlimited: max_bytes.is_some(),
                chosen: choice.engine.name,
                best: best.engine.clone(),
                loss: chosen.map_or(f64::INFINITY, |chosen| best.mlps[batch] / chosen.mlps[batch]),
            });
        }
    }
}
