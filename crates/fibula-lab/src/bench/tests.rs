//! The benchmark checks, counts and reports. No speed is asserted here.

use core::net::Ipv4Addr;
use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fibula::fib::registry::Role;
use fibula::fib::{BuildError, CheckError, Fib};
use fibula::memory::{Limits, Memory};
use fibula::net::{Key, NextHop, Route, RouteSlice};
use fibula::simd::{Isa, Present};
use fibula_workload::table::{Profile, TableSpec, generate};

use super::*;

mod reports;

fn table<K: Key>(routes: usize) -> Vec<Route<K>> {
    generate(&TableSpec { routes, next_hops: 20, seed: 5 }, &Profile::of::<K>()).unwrap()
}

fn plan() -> Plan {
    Plan { keys: 3_000, seconds: 0.0, batches: vec![1, 256], ..Plan::default() }
}

fn bench<K: Key>(plan: &Plan, routes: &[Route<K>], contestants: &[Contestant<K>]) -> Vec<Row> {
    run(plan, &RouteSlice::new(routes).unwrap(), contestants, Vec::new(), &mut |_| ()).unwrap()
}

fn contestant(name: &str, build: Build<u32>) -> Contestant<u32> {
    Contestant {
        name: name.into(),
        rival: true,
        kernels: vec![Kernel::of_rival("scalar")],
        role: Role::Own,
        bounds: Bounds::NONE,
        build,
    }
}

/// Right except for one fault.
struct Faulty {
    right: Box<dyn Fib<u32>>,
    fault: Fault,
}

#[derive(Clone, Copy)]
enum Fault {
    /// The last answer of each full batch is left as it was.
    LaneTail,
    /// The last address is never found.
    LastAddress,
    /// Single lookups of odd addresses find nothing.
    OddSingles,
}

impl Fib<u32> for Faulty {
    fn lookup_key(&self, key: u32) -> Option<NextHop> {
        match self.fault {
            Fault::LastAddress if key == u32::MAX => None,
            Fault::OddSingles if key % 2 == 1 => None,
            _ => self.right.lookup(key),
        }
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[u32], results: &mut [Option<NextHop>]) {
        let count = match self.fault {
            Fault::LaneTail => keys.len() - usize::from(keys.len() == 256),
            Fault::LastAddress => {
                keys.iter().zip(results).for_each(|(&key, result)| *result = self.lookup_key(key));
                return;
            }
            Fault::OddSingles => keys.len(),
        };
        self.right.lookup_batch_on(isa, &keys[..count], &mut results[..count]);
    }

    fn memory(&self) -> Memory {
        self.right.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        Ok(())
    }
}

fn faulty(fault: Fault) -> Contestant<u32> {
    contestant(
        "faulty",
        Box::new(move |routes| {
            let right = fibula_published::find("range-search")?.build(routes, Limits::default())?;
            Ok(Structure::Fib(Box::new(Faulty { right, fault })))
        }),
    )
}

/// Returns how many rows the plan makes for one cell: every kernel in the batch that compares instruction sets, the first and
/// the last kernel for single lookups, and the fastest kernel in other batches, where oracles and rivals that are not peers
/// have no row.
fn lanes<K: Key>(contestants: &[Contestant<K>], batch: usize, sets: usize) -> usize {
    let few = |contestant: &Contestant<K>| {
        let oracle = matches!(contestant.role, Role::Oracle { .. });
        oracle || contestant.rival && !peers::is_peer(&contestant.name)
    };
    let kernels = |contestant: &Contestant<K>| match (contestant.kernels.len(), batch) {
        (kernels, 1) => kernels.min(2),
        (kernels, batch) if batch == sets => kernels,
        _ => usize::from(!few(contestant)),
    };
    contestants.iter().map(kernels).sum()
}

fn every_structure_in_every_cell<K: Key>() {
    let routes = table::<K>(600);
    let plan = Plan { batches: vec![1, 7, 256], threads: vec![1, 3], runs: 6, ..plan() };
    let more_threads = |row: &&Row| row.threads == 3;
    let rows = bench(&plan, &routes, &Contestant::all(Limits::default()));
    let contestants = Contestant::<K>::all(Limits::default());
    let lanes = |batch| lanes(&contestants, batch, 256);
    let patterns = traffic_names::<K>().len();
    assert!(patterns >= 3);
    let one_thread = rows.iter().filter(|row| !more_threads(row)).count();
    assert_eq!(one_thread, (patterns - 1) * (lanes(1) + lanes(7) + lanes(256)) + lanes(1));
    // Several threads: every engine that is not an oracle, in batches of 256, and in dependent single lookups.
    let full: Vec<_> = contestants.iter().filter(|c| !matches!(c.role, Role::Oracle { .. })).collect();
    let singles: usize = full.iter().map(|c| c.kernels.len().min(2)).sum();
    assert_eq!(rows.iter().filter(more_threads).count(), (patterns - 1) * full.len() + singles);
    for row in &rows {
        assert_eq!((row.wrong, row.runs, row.error.as_deref()), (0, 6, None), "{row:?}");
        let [min, median, max] = row.rates().unwrap();
        assert!(0.0 < min && min <= median && median <= max, "{row:?}");
        assert!(row.lookup_bytes.unwrap() > 0 && row.bytes_per_prefix.unwrap() > 0.0);
        assert!(row.build_time_ms.unwrap() > 0.0 && row.builds >= 1);
        assert_eq!(row.routes, 600);
        assert!((1..=20).contains(&row.next_hops));
        assert_eq!((row.family.as_str(), row.rival), (K::FAMILY.name(), false));
        assert_ne!(row.judge, row.engine, "no engine judges itself");
        assert!(row.checked > row.keys && row.keys > 0);
        assert_eq!(row.dependent, row.traffic == "seq");
        assert!(!row.dependent || row.batch == 1);
    }
    let samples = |name: &str| rows.iter().filter(|row| row.engine == name).all(|row| row.sample);
    assert!(!samples("radix"));
}

#[test]
fn every_structure_is_measured_in_every_cell() {
    every_structure_in_every_cell::<u32>();
    every_structure_in_every_cell::<u128>();
}

#[test]
fn the_slow_oracle_looks_up_a_sample() {
    let routes = table::<u32>(60_000);
    let plan = Plan { traffic: vec!["match".into()], engines: vec!["linear".into()], ..plan() };
    for row in bench(&plan, &routes, &Contestant::all(Limits::default())) {
        assert_eq!((row.sample, row.keys, row.wrong), (true, (1 << 25) / 60_000, 0));
    }
}

#[test]
fn wrong_answers_are_counted() {
    let mut routes = table::<u32>(500);
    let route = |prefix: &str| Route::new(prefix.parse().unwrap(), NextHop::new(1).unwrap());
    routes.extend([route("128.0.0.0/1"), route("240.0.0.0/4")]);
    routes.sort_unstable();
    let wrong = |fault, traffic: &str| {
        let plan = Plan { traffic: vec![traffic.into()], ..plan() };
        let rows = bench(&plan, &routes, &[faulty(fault)]);
        rows.iter().map(|row| row.wrong).collect::<Vec<_>>()
    };
    // 3,000 keys are 11 batches of 256 and a rest; addresses at the ends of 502 prefixes are 7 and a rest.
    assert_eq!(wrong(Fault::LaneTail, "match"), [7, 7 + 11]);
    // The last address is the end of two prefixes, and is checked once for itself.
    assert_eq!(wrong(Fault::LastAddress, "match"), [3, 3]);
    let singles = wrong(Fault::OddSingles, "match");
    assert!(singles[0] > 1_000 && singles[1] == 0, "{singles:?}");
    assert!(wrong(Fault::OddSingles, "seq")[0] > 0);
}

/// Right, in a form of its own: answers are bits inverted. A fault leaves out the last answer of each full block.
struct OwnForm {
    right: Box<dyn Fib<u32>>,
    fault: bool,
}

struct OwnAnswers<'a> {
    of: &'a OwnForm,
    keys: Vec<u32>,
    answers: Vec<u32>,
}

impl Native<u32> for OwnForm {
    fn memory(&self) -> Memory {
        self.right.memory()
    }

    fn prepare(&self, keys: &[u32], room: usize) -> Box<dyn Prepared + '_> {
        Box::new(OwnAnswers { of: self, keys: keys.to_vec(), answers: vec![7; room] })
    }

    fn build_time(&self) -> Option<Duration> {
        Some(Duration::from_secs(9))
    }
}

impl Prepared for OwnAnswers<'_> {
    fn lookup(&mut self, _: Shape, keys: Range<usize>) {
        for block in self.keys[keys].chunks(self.answers.len()) {
            let answered = block.len() - usize::from(self.of.fault && block.len() == 256);
            for (&key, answer) in block[..answered].iter().zip(&mut self.answers) {
                *answer = !self.of.right.lookup(key).map_or(0, NextHop::id);
            }
        }
    }

    fn take(&mut self, results: &mut [Option<NextHop>]) {
        for (result, answer) in results.iter_mut().zip(&self.answers) {
            *result = NextHop::new(!answer);
        }
        self.answers.fill(7);
    }
}

#[test]
fn a_native_form_is_timed_and_checked() {
    let routes = table::<u32>(500);
    let rows = |fault| {
        let build: Build<u32> = Box::new(move |routes| {
            let right = fibula_published::find("range-search")?.build(routes, Limits::default())?;
            Ok(Structure::Native(Box::new(OwnForm { right, fault })))
        });
        let plan = Plan { traffic: vec!["match".into(), "seq".into()], threads: vec![1, 3], ..plan() };
        bench(&plan, &routes, &[contestant("rte-own", build)])
    };
    for row in rows(false) {
        assert_eq!((row.wrong, row.build_time_ms), (0, Some(9_000.0)), "{row:?}");
        assert_eq!(row.key_prefetch, "none", "its own loop does not prefetch");
        assert!(row.rates().is_some_and(|[min, ..]| min > 0.0) && row.checked > row.keys, "{row:?}");
    }
    // Of 2,002 addresses at the ends of prefixes 7 blocks are full, of 3,000 keys 11; of 1,000 a thread 3.
    let wrong: Vec<_> = rows(true).iter().map(|row| row.wrong).collect();
    assert_eq!(wrong, [7 + 11, 7 + 11, 7 + 9, 7 + 11, 7 + 9]);
}

#[test]
fn a_refused_table_gives_rows_with_the_reason() {
    let routes = table::<u32>(500);
    let refuse = contestant(
        "refuses",
        Box::new(|routes| Err(BuildError::limit("refuses", "routes", 100, routes.len() as u64).into())),
    );
    let mut contestants = Contestant::all(Limits::default());
    contestants.insert(1, refuse);
    let plan = Plan { traffic: vec!["rnd".into()], ..plan() };
    let rows = bench(&plan, &routes, &contestants);
    assert_eq!(rows.len(), lanes(&contestants, 1, 256) + lanes(&contestants, 256, 256));
    let refused: Vec<_> = rows.iter().filter(|row| row.error.is_some()).collect();
    assert_eq!(refused.len(), 2);
    for row in refused {
        assert_eq!((row.engine.as_str(), row.rival, row.runs, row.wrong), ("refuses", true, 0, 0));
        assert_eq!(row.error.as_deref(), Some("refuses: at most 100 routes, this table needs 500"));
        assert_eq!((row.rates(), row.lookup_bytes, row.sample, row.checked), (None, None, false, 0));
    }
    let memory = Contestant::all(Limits::within(10));
    assert!(bench(&plan, &routes, &memory).iter().all(|row| row.error.is_some()));
}

/// Counts how often it is built, and answers right with every instruction set.
fn counted(builds: Arc<AtomicUsize>) -> Contestant<u32> {
    let mut counted = contestant(
        "counted",
        Box::new(move |routes| {
            builds.fetch_add(1, Ordering::Relaxed);
            // Too slow a build to be repeated.
            std::thread::sleep(Duration::from_millis(300));
            Ok(fibula_published::find("range-search")?.build(routes, Limits::default())?.into())
        }),
    );
    counted.kernels = Present::all().map(Kernel::ours).collect();
    counted
}

#[test]
fn a_structure_is_built_once_and_timed_with_every_set() {
    let builds = Arc::new(AtomicUsize::new(0));
    let contestants = [counted(Arc::clone(&builds))];
    let rows = bench(&Plan { traffic: vec!["rnd".into()], ..plan() }, &table(500), &contestants);
    let of =
        |batch| rows.iter().filter(|row| row.batch == batch).map(|row| row.isa.as_str()).collect::<Vec<_>>();
    let present: Vec<_> = Present::all().map(|present| present.isa().name()).collect();
    assert_eq!((builds.load(Ordering::Relaxed), of(256)), (1, present.clone()));
    assert_eq!(of(1).len(), present.len().min(2));
    assert!(rows.iter().all(|row| row.wrong == 0 && row.runs == RUNS));
    assert!(rows.iter().all(|row| (row.key_prefetch == "next batch") == (row.batch > 1)));
    assert!(rows.iter().all(|row| row.clock == if cfg!(unix) { "thread" } else { "wall" }));
}

#[test]
fn one_instruction_set_restricts_all_contestants() {
    let kernels = |isa: &str| {
        let mut all = vec![counted(Arc::default())];
        for theirs in ["scalar", "sse4.2", "avx512", "amx"] {
            let mut rival = faulty(Fault::LastAddress);
            (rival.name, rival.kernels) = (theirs.into(), vec![Kernel::of_rival(theirs)]);
            all.push(rival);
        }
        let plan = Plan { isa: Some(isa.into()), traffic: vec!["rnd".into()], batches: vec![64], ..plan() };
        let rows = bench(&plan, &table(500), &all);
        rows.iter().map(|row| format!("{} {}", row.engine, row.isa)).collect::<Vec<_>>()
    };
    for present in Present::all() {
        let isa = present.isa();
        let ours = Present::all().map(Present::isa).filter(|&ours| ours <= isa);
        let mut within: Vec<_> = ours.map(|ours| format!("counted {ours}")).collect();
        // Of a set that is none of ours nothing is known: it is within the last of all.
        for (theirs, least) in [
            ("scalar", Isa::Scalar),
            ("sse4.2", Isa::Avx2),
            ("avx512", Isa::Avx512),
            ("amx", Isa::ALL[Isa::ALL.len() - 1]),
        ] {
            within.extend((least <= isa).then(|| format!("{theirs} {theirs}")));
        }
        assert_eq!(kernels(isa.name()), within, "{isa}");
    }
}

#[test]
fn keys_in_network_order_are_batches_of_ours() {
    let mut contestants = Contestant::all(Limits::default());
    contestants.push(faulty(Fault::LastAddress));
    let orders = vec![Order::Host, Order::Network];
    let traffic = vec!["rnd".into(), "seq".into()];
    let plan = Plan { traffic, orders, batches: vec![1, 32, 64, 256], ..plan() };
    let rows = bench::<u32>(&plan, &table(500), &contestants);
    let network: Vec<_> = rows.iter().filter(|row| row.order == "network" && row.batch == 256).collect();
    let listed = contestants.iter().filter(|c| !c.rival && !matches!(c.role, Role::Oracle { .. })).count();
    assert_eq!(network.len(), listed);
    assert_eq!(rows.iter().filter(|row| row.order == "network" && row.batch == 32).count(), listed);
    assert!(rows.iter().all(|row| row.order == "host" || [32, 256].contains(&row.batch)));
    assert!(network.iter().all(|row| row.batch == 256 && row.traffic == "rnd" && !row.rival));
    assert!(network.iter().all(|row| row.wrong == 0 && row.rates().is_some()));
}

#[test]
fn several_threads_are_held_against_one() {
    let plan = Plan { threads: vec![1, 2], traffic: vec!["match".into()], ..plan() };
    for row in bench::<u32>(&plan, &table(500), &Contestant::all(Limits::default())) {
        assert_eq!(row.scaling.is_some(), row.threads == 2);
        assert!(row.threads == 1 || row.batch == 256);
        assert!(row.scaling.is_none_or(|scaling| scaling > 0.0));
        assert!(row.clock == "wall" || row.threads == 1);
    }
}

#[test]
fn recorded_addresses_are_traffic() {
    let routes = table::<u32>(500);
    let keys = vec![Ipv4Addr::new(192, 0, 2, 1).to_bits(); 10];
    let recorded = Traffic { name: "recorded".into(), dependent: false, keys };
    let nothing = Traffic { name: "nothing".into(), dependent: false, keys: Vec::new() };
    let plan = Plan { traffic: vec!["rnd".into()], threads: vec![4], ..plan() };
    let contestants = Contestant::all(Limits::default());
    let routes = RouteSlice::new(&routes).unwrap();
    let rows = run(&plan, &routes, &contestants, vec![recorded, nothing], &mut |_| ()).unwrap();
    for row in rows.iter().filter(|row| row.traffic == "recorded") {
        assert_eq!((row.keys, row.key_set, row.runs, row.wrong), (10, 10, RUNS, 0));
    }
    assert!(rows.iter().filter(|row| row.traffic == "nothing").all(|row| row.rates().is_none()));
    assert_eq!(
        rows.iter().filter(|row| row.traffic == "recorded").count(),
        lanes(&contestants, 1, 256) + lanes(&contestants, 256, 256)
    );
}

#[test]
fn progress_counts_all_steps_and_time_left_comes_to_an_end() {
    let routes = table::<u32>(500);
    let contestants = Contestant::all(Limits::default());
    let mut seen = Vec::new();
    let routes = RouteSlice::new(&routes).unwrap();
    run(&plan(), &routes, &contestants, Vec::new(), &mut |progress| {
        assert!(progress.step.starts_with("IPv4: "), "{}", progress.step);
        seen.push((progress.done, progress.total, progress.left));
    })
    .unwrap();
    let total = seen[0].1;
    assert_eq!(seen.len(), total);
    assert!(seen.iter().enumerate().all(|(at, step)| (step.0, step.1) == (at, total)));
    let estimate = Plan { seconds: 9.0, ..plan() }.estimate(4, 20, 0, 4);
    assert_eq!(estimate.slot.as_millis(), 50);
    assert!((11..15).contains(&estimate.time.as_secs()), "timed runs, warm-up, builds: {estimate:?}");
    assert_eq!(estimate.key_bytes, 3_000 * 12);
    let many = Plan { seconds: 9.0, many_keys: Some(10_000), ..plan() }.estimate(4, 23, 1, 4);
    assert_eq!(
        (many.slot.as_micros(), many.key_bytes),
        (38_461, 10_000 * 12),
        "one lane of 23 counts four times"
    );
}

#[test]
fn each_question_has_the_cells_that_answer_it() {
    let many_keys = Some(5_000);
    let batches = vec![1, 8, 32, 64, 256, 1024];
    let traffic = vec!["rnd".into(), "match".into(), "miss".into()];
    let plan = Plan { many_keys, batches: batches.clone(), traffic, ..plan() };
    let contestants = Contestant::all(Limits::default());
    let rows = bench::<u32>(&plan, &table(500), &contestants);
    for contestant in &contestants {
        let of: Vec<&Row> = rows.iter().filter(|row| row.engine == contestant.name).collect();
        let many: Vec<(&str, usize)> =
            of.iter().filter(|row| row.many_keys).map(|row| (&*row.traffic, row.batch)).collect();
        let full = contestant.role == Role::Own || peers::is_peer(&contestant.name);
        let all = [("rnd", 32), ("rnd", 256), ("match", 32), ("match", 256)];
        assert_eq!(many, if full { &all[..] } else { &[] }, "{}", contestant.name);
        for traffic in ["rnd", "miss"] {
            let sets = |batch| {
                let is = |row: &&&Row| row.traffic == traffic && row.batch == batch && !row.many_keys;
                of.iter().filter(is).collect::<Vec<_>>()
            };
            assert_eq!(sets(256).len(), contestant.kernels.len());
            let rate = |row: &Row| row.mlps_median.unwrap();
            let best = sets(256).into_iter().map(|row| rate(row)).fold(0.0, f64::max);
            let is_best = |isa: &str| sets(256).iter().any(|row| row.isa == isa && rate(row) == best);
            for batch in [8, 32, 64, 1024] {
                let oracle = matches!(contestant.role, Role::Oracle { .. });
                assert_eq!(sets(batch).len(), usize::from(!oracle));
                assert!(sets(batch).iter().all(|row| is_best(&row.isa)));
            }
        }
        for row in of {
            assert_eq!(row.key_set, if row.many_keys { 5_000 } else { 3_000 });
            assert_eq!((row.mlps_runs.len(), row.runs), (RUNS, RUNS));
            let (low, median, high) =
                (row.mlps_low.unwrap(), row.mlps_median.unwrap(), row.mlps_high.unwrap());
            assert!(row.mlps_min.unwrap() <= low && low <= median && median <= high);
            assert!(row.build_low_ms <= row.build_time_ms && row.build_time_ms <= row.build_high_ms);
        }
    }
    // In the order of the plan, though the batch that compares sets comes first.
    let order: Vec<usize> = rows.iter().filter(|row| row.traffic == "miss").map(|row| row.batch).collect();
    assert!(order.is_sorted());
}

#[test]
fn every_set_is_measured_in_all_batches_where_the_plan_says_so() {
    let plan = Plan { every_isa: true, batches: vec![1, 8, 64, 256], traffic: vec!["rnd".into()], ..plan() };
    let builds = Arc::default();
    let rows = bench(&plan, &table(500), &[counted(builds)]);
    let sets = Present::all().count();
    for (batch, count) in [(1, sets.min(2)), (8, sets), (64, sets), (256, sets)] {
        // The contestant is a rival, and not a peer: other batches have no row of it.
        let few = [8, 64].contains(&batch);
        assert_eq!(rows.iter().filter(|row| row.batch == batch).count(), if few { 0 } else { count });
    }
    let rows = bench::<u32>(&plan, &table(500), &Contestant::all(Limits::default()));
    let of = |batch| rows.iter().filter(|row| row.engine == "planb" && row.batch == batch).count();
    assert_eq!((of(8), of(64), of(256)), (sets, sets, sets));
}

/// An engine whose kernels prefetch keys beyond the batch.
struct Ahead(Box<dyn Fib<u32>>);

impl Fib<u32> for Ahead {
    fn lookup_key(&self, key: u32) -> Option<NextHop> {
        self.0.lookup(key)
    }

    fn prefetches_keys(&self, isa: Present) -> bool {
        isa.isa() > Isa::Scalar
    }

    fn memory(&self) -> Memory {
        self.0.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        Ok(())
    }
}

#[test]
fn rows_say_what_prefetches_the_keys() {
    let mut ahead = contestant(
        "ahead",
        Box::new(|routes| {
            let right = fibula_published::find("range-search")?.build(routes, Limits::default())?;
            Ok(Structure::Fib(Box::new(Ahead(right))))
        }),
    );
    ahead.kernels = Present::all().map(Kernel::ours).collect();
    let traffic = vec!["rnd".into()];
    for row in bench(&Plan { traffic, ..plan() }, &table(500), &[ahead]) {
        let by = match (row.batch, &*row.isa) {
            (1, _) => "none",
            (_, "scalar") => "next batch",
            _ => "kernel",
        };
        assert_eq!((&*row.key_prefetch, row.wrong), (by, 0));
    }
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    let routes = table::<u32>(10);
    let contestants = Contestant::all(Limits::default());
    let error = |plan: Plan| {
        let routes = RouteSlice::new(&routes).unwrap();
        run(&plan, &routes, &contestants, Vec::new(), &mut |_| ()).unwrap_err().to_string()
    };
    for wrong in [
        Plan { batches: vec![], ..plan() },
        Plan { batches: vec![1, 0], ..plan() },
        Plan { threads: vec![0], ..plan() },
        Plan { runs: 4, ..plan() },
        Plan { orders: vec![], ..plan() },
        Plan { isa: Some("sse9".into()), ..plan() },
        Plan { keys: 0, ..plan() },
        Plan { many_keys: Some(3_000), ..plan() },
        Plan { seconds: f64::NAN, ..plan() },
        Plan { seconds: -1.0, ..plan() },
    ] {
        assert!(!error(wrong).is_empty());
    }
    let unknown = error(Plan { engines: vec!["dirt".into()], ..plan() });
    assert!(unknown.starts_with("no engine 'dirt'; there are: binary-trie, range-btree, "), "{unknown}");
    let unknown = error(Plan { traffic: vec!["jam".into()], ..plan() });
    assert!(unknown.starts_with("no traffic 'jam'; there are: rnd, match, "), "{unknown}");
    let matching = Plan { traffic: vec!["match".into()], ..plan() };
    let empty = run(&matching, &RouteSlice::new(&[]).unwrap(), &contestants, Vec::new(), &mut |_| ());
    assert!(matches!(empty, Err(BenchError::Traffic(_))));
}
