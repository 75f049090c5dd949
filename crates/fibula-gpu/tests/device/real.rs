//! Real tables, where `FIBULA_DATA` names their folder: at the ends of every prefix, their neighbours and random addresses.

use std::path::PathBuf;
use std::sync::Arc;

use fibula::fib::registry::Engine;
use fibula::net::Route;
use fibula::rib::DualRib;
use fibula_gpu::device::Device;
use fibula_proof::subject::Tested;
use fibula_proof::tables::Random;
use fibula_proof::verdict::{Failure, edges};
use libtest_mimic::{Completion, Trial};

use super::full::judged;
use super::support::engines;

const FIBULA_DATA: &str = "FIBULA_DATA";

/// Random addresses below random routes.
const INSIDE: usize = 500_000;

pub(crate) fn trials(device: &Arc<dyn Device>) -> Vec<Trial> {
    let v4 = |ribs: DualRib| ribs.v4.iter().collect();
    let v6 = |ribs: DualRib| ribs.v6.iter().collect();
    let mut trials = of_table::<u32>(device, "dfz4-2023", v4);
    trials.extend(of_table::<u32>(device, "dfz4-2023-origin-as", v4));
    trials.extend(of_table::<u128>(device, "dfz6-2024", v6));
    trials.extend(of_table::<u128>(device, "dfz6-2024-origin-as", v6));
    trials
}

fn of_table<K: Tested>(
    device: &Arc<dyn Device>,
    table: &'static str,
    routes: fn(DualRib) -> Vec<Route<K>>,
) -> Vec<Trial> {
    let trial = |engine: Engine<K>| {
        let device = Arc::clone(device);
        let name = format!("real-{table}/{}/{}/{}", engine.name, K::FAMILY.name(), device.facts().id);
        Trial::ignorable_test(name, move || {
            let Some(folder) = std::env::var_os(FIBULA_DATA).map(PathBuf::from) else {
                return Ok(Completion::ignored_with(format!("{FIBULA_DATA} is not set")));
            };
            judge(&*device, &engine, &folder.join(format!("{table}.txt.xz")), routes)
        })
    };
    engines(K::entries()).into_iter().map(trial).collect()
}

fn judge<K: Tested>(
    device: &dyn Device,
    engine: &Engine<K>,
    path: &std::path::Path,
    routes: fn(DualRib) -> Vec<Route<K>>,
) -> Result<Completion, Failure> {
    let loaded = fibula_feed::Loader::new(fibula_feed::LoadOptions::default()).load(path)?;
    let routes = routes(loaded.ribs);
    let mut random = Random(31);
    let mut keys = edges(routes.iter().map(|route| route.prefix));
    for _ in 0..INSIDE {
        let route = routes[random.below(routes.len())];
        keys.push(random.inside(route.prefix));
        keys.push(random.key());
    }
    judged(device, engine, &routes, &keys)?;
    Ok(Completion::Completed)
}
