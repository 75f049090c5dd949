//! A device's copy of a live table: after every refresh it answers as the table did at the version that it names.

use core::time::Duration;
use std::sync::Arc;

use fibula::engines::{Dir17Bitmap, Dir18Lines, Dir248, EngineType};
use fibula::live::{Options as TableOptions, Table, TableKey};
use fibula::net::{Change, NextHop};
use fibula::rib::DualRib;
use fibula_gpu::cooperate::{Cooperative, Options};
use fibula_gpu::device::Device;
use fibula_proof::tables::{Model, Random};
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

pub(crate) fn trials(device: &Arc<dyn Device>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for engine in [Dir17Bitmap::engine(), Dir18Lines::engine(), Dir248::engine()] {
        let options = TableOptions { ipv4: engine, ..TableOptions::default() };
        trials.push(trial::<u32>(device, engine.name, options));
    }
    trials.push(trial::<u128>(device, "dir-btree", TableOptions::default()));
    let device = Arc::clone(device);
    trials.push(Trial::test(format!("live/unknown/{}", device.facts().id), move || {
        let table =
            empty(TableOptions { ipv4: fibula_published::find("dxr-18")?, ..TableOptions::default() })?;
        match Cooperative::<u32>::following(device, &table, Options::default()) {
            Err(fibula_gpu::GpuError::NoEngine { .. }) => Ok(()),
            other => Err(format!("a structure that no device knows: {other:?}").into()),
        }
    }));
    trials
}

fn trial<K: TableKey>(device: &Arc<dyn Device>, engine: &'static str, options: TableOptions) -> Trial {
    let device = Arc::clone(device);
    let name = format!("live/{engine}/{}/{}", K::FAMILY.name(), device.facts().id);
    Trial::test(name, move || follows::<K>(device, options))
}

fn empty(options: TableOptions) -> Result<Table, Failure> {
    Ok(Table::from_routes(DualRib::default(), options)?)
}

fn follows<K: TableKey>(device: Arc<dyn Device>, options: TableOptions) -> Result<(), Failure> {
    let (mut random, mut model) = (Random(21), Model::<K>::default());
    let table = empty(options)?;
    let mut together = Options::default();
    (together.buffer_keys, together.chunk_keys, together.threads) = (512, 64, 0);
    together.refresh = Duration::ZERO;
    let mut both = Cooperative::following(device, &table, together)?;
    let (mut whole, mut parts, mut before) = (0, 0, 0);
    for round in 0..120 {
        // Few next hops, then more than values of a byte hold; a table that grows out of its room, then shrinks.
        let hops = if round % 3 == 2 { 100_000 } else { 200 };
        let count = if round == 60 { 4_000 } else { 1 + random.below(40) };
        let changes: Vec<Change<K>> = (0..count).map(|_| model.change(&mut random, hops)).collect();
        changes.iter().for_each(|&change| model.apply(change));
        let outcome = if round % 5 == 4 {
            let (v4, v6) = K::split(&changes);
            table.apply_atomic(v4, v6)?
        } else {
            table.apply(&changes)?
        };
        let mut keys: Vec<K> = changes.iter().map(|change| random.inside(change.prefix())).collect();
        keys.extend((0..700).map(|_| random.key::<K>()));
        let mut found = vec![None; keys.len()];
        let report = both.lookup(&table, &keys, &mut found)?;
        if let Some(failure) = report.failure {
            return Err(failure.into());
        }
        for (&key, &found) in keys.iter().zip(&found) {
            let right: Option<NextHop> = model.lookup(key).map(|route| route.next_hop);
            if found != right {
                return Err(
                    format!("round {round}: {}: {found:?} where {right:?} is right", key.address()).into()
                );
            }
        }
        let versions = report.batches.iter().map(|batch| batch.version);
        if report.batches.is_empty() || versions.clone().any(|version| version < outcome.version.max(before))
        {
            return Err(format!(
                "round {round}: versions {:?} after {}",
                versions.collect::<Vec<_>>(),
                outcome.version
            )
            .into());
        }
        before = both.version();
        if report.refresh_bytes > 100_000 { whole += 1 } else { parts += 1 }
    }
    // Changes of short prefixes send much of a direct table, others little.
    if parts < 10 || whole < 2 {
        return Err(format!("{whole} whole uploads, {parts} of parts").into());
    }
    Ok(())
}
