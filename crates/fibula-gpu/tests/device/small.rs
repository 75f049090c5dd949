//! The small spaces: every table of one prefix of eight bits, pairs of prefixes, and tables of three bits, at all addresses.

use std::sync::Arc;

use fibula::fib::registry::Engine;
use fibula::net::{NextHop, Prefix, Route, Toy};
use fibula_gpu::device::Device;
use fibula_proof::subject::Tested;
use fibula_proof::tables::Random;
use fibula_proof::toy::{hop, keys, paint, prefixes};
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

use super::support::{Cases, engines};

/// Pairs of prefixes of eight bits, of 130,305 that there are.
const PAIRS: usize = 20_000;

/// Tables of three bits, of 14.3 million.
const TABLES: usize = 10_000;

/// Tables of one launch.
const PACKED: usize = 4096;

pub(crate) fn trials(device: &Arc<dyn Device>) -> Vec<Trial> {
    let mut trials = of_kind("one", device, engines(Toy::<8>::entries()), one_prefix);
    trials.extend(of_kind("pairs", device, engines(Toy::<8>::entries()), pairs));
    trials.extend(of_kind("three-bits", device, engines(Toy::<3>::entries()), three_bits));
    trials
}

type Run<const BITS: u8> = fn(&dyn Device, &Engine<Toy<BITS>>) -> Result<(), Failure>;

fn of_kind<const BITS: u8>(
    kind: &str,
    device: &Arc<dyn Device>,
    engines: Vec<Engine<Toy<BITS>>>,
    run: Run<BITS>,
) -> Vec<Trial>
where
    Toy<BITS>: fibula::net::Key,
{
    let trial = |engine: Engine<Toy<BITS>>| {
        let device = Arc::clone(device);
        let name = format!("{kind}/{}/{BITS}-bits/{}", engine.name, device.facts().id);
        Trial::test(name, move || run(&*device, &engine))
    };
    engines.into_iter().map(trial).collect()
}

/// Tables that are packed into launches, with their painted answers.
struct Packed<const BITS: u8>
where
    Toy<BITS>: fibula::net::Key,
{
    keys: Vec<Toy<BITS>>,
    painted: Vec<Option<NextHop>>,
    cases: Cases<Toy<BITS>>,
}

impl<const BITS: u8> Packed<BITS>
where
    Toy<BITS>: fibula::net::Key,
{
    fn new() -> Self {
        let keys = keys();
        Self { painted: vec![None; keys.len()], keys, cases: Cases::default() }
    }

    fn push(
        &mut self,
        device: &dyn Device,
        engine: &Engine<Toy<BITS>>,
        routes: &[Route<Toy<BITS>>],
    ) -> Result<(), Failure> {
        paint(routes, &mut self.painted);
        self.cases.push(engine, routes, &self.keys, &self.painted)?;
        if self.cases.len() == PACKED { self.cases.run(device) } else { Ok(()) }
    }
}

pub(crate) fn one_prefix(device: &dyn Device, engine: &Engine<Toy<8>>) -> Result<(), Failure> {
    let mut packed = Packed::new();
    packed.push(device, engine, &[])?;
    // Of each width that values have.
    for id in [1, 300, 70_000, 1 << 24] {
        for prefix in prefixes() {
            packed.push(device, engine, &[Route::new(prefix, hop(id))])?;
        }
    }
    packed.cases.run(device)
}

fn pairs(device: &dyn Device, engine: &Engine<Toy<8>>) -> Result<(), Failure> {
    let (mut random, mut packed, prefixes) = (Random(5), Packed::new(), prefixes::<Toy<8>>());
    let mut done = 0;
    while done < PAIRS {
        let mut pair = [0, 1].map(|_| prefixes[random.below(prefixes.len())]);
        pair.sort_unstable();
        if pair[0] == pair[1] {
            continue;
        }
        let ids = [1, [1, 2, 300, 70_000, 1 << 24][random.below(5)]];
        packed.push(device, engine, &routes(&pair, &ids))?;
        done += 1;
    }
    packed.cases.run(device)
}

fn three_bits(device: &dyn Device, engine: &Engine<Toy<3>>) -> Result<(), Failure> {
    let (mut random, mut packed, prefixes) = (Random(3), Packed::new(), prefixes::<Toy<3>>());
    for _ in 0..TABLES {
        // Each of the 15 prefixes is there or not, with one of two next hops.
        let routes: Vec<_> = prefixes
            .iter()
            .filter_map(|&prefix| NextHop::new(random.below(3) as u32).map(|hop| Route::new(prefix, hop)))
            .collect();
        packed.push(device, engine, &routes)?;
    }
    packed.cases.run(device)
}

fn routes<const BITS: u8>(prefixes: &[Prefix<Toy<BITS>>], ids: &[u32]) -> Vec<Route<Toy<BITS>>>
where
    Toy<BITS>: fibula::net::Key,
{
    prefixes.iter().zip(ids).map(|(&prefix, &id)| Route::new(prefix, hop(id))).collect()
}
