//! The benchmark: a [`Plan`] lists the measurements, [`run`] measures it, [`Row`]s are the results, a [`Record`] keeps
//! them in a file, and charts and documents are generated from records.
//!
//! How its figures are made comparable:
//!
//! - Every contestant looks up the same keys in the same table in the same run of the program. Keys and expected
//!   answers are made before the clock starts.
//! - Before it is timed, each contestant answers every key of the cell, with the same calls and as many threads as in
//!   the timed run. Every answer is compared with that of a judge: the oracle, or for the oracle's own rows another
//!   engine. Addresses at the ends of prefixes, and next to them, are checked too. A wrong answer of one of our
//!   engines fails the benchmark.
//! - Contestants are timed in turn, at least five times each, and each run begins with another one. Rates are
//!   medians; all runs are kept with them, so that two contestants can be compared by their
//!   [ratios](fibula_workload::interval::Interval) in the same run. A median with a wide interval is marked as noisy.
//! - An engine is built once and timed with every instruction set that it has a kernel for and the machine
//!   supports in batches of 256, and elsewhere with the one that was the fastest there ([`Plan`] has the rules). A plan
//!   can restrict all contestants, rivals too, to one set and those that it contains.
//! - Each timed run follows an untimed one over the same keys, which fills the caches. An engine that looks up all
//!   keys within 20 ms looks them all up, timed and untimed.
//! - One thread is timed by its processor time, several by wall-clock time.
//! - Keys are prefetched once ([`KeyPrefetch`]), because a program has usually just read its keys from packets or a
//!   file: by the loop over the batches, before each batch up to 4 KiB of the keys of the next one, for our engines
//!   and DPDK's; or by the engine's own kernel, if it [says so](fibula::fib::Fib::prefetches_keys), and then not by
//!   the loop. Rivals in other programs read their keys in order. Single keys are not prefetched. Kernels may prefetch
//!   the memory that a key leads to, and later keys of their batch. Rows name the prefetcher of the keys, and whether huge
//!   pages were requested.
//! - An engine that is too slow for all keys looks up a sample of them, and its rows say so.
//! - An engine that takes its own form of keys, or gives its own form of answers, is timed and checked on those
//!   ([`Native`]). If it runs in another program, that program times it.
//!
//! ```
//! use fibula::memory::Limits;
//! use fibula::net::RouteSlice;
//! use fibula_lab::bench::{self, Contestant, Plan};
//! use fibula_workload::table::{Profile, TableSpec, generate};
//!
//! let routes = generate::<u32>(&TableSpec { routes: 500, ..TableSpec::ipv4() }, &Profile::ipv4())?;
//! let routes = RouteSlice::new(&routes)?;
//! let plan = Plan { traffic: vec!["match".into()], keys: 1000, seconds: 0.0, ..Plan::default() };
//! let rows = bench::run(&plan, &routes, &Contestant::all(Limits::default()), Vec::new(), &mut |_| ())?;
//! assert!(rows.iter().all(|row| row.wrong == 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chart;
mod clock;
mod contestant;
pub mod device;
mod document;
mod field;
mod key_sets;
mod lane;
mod native;
mod pass;
mod peers;
mod plan;
mod program;
pub mod reach;
mod record;
mod row;
mod runner;
pub mod schedule;
mod sources;
mod summary;
pub mod updates;

pub use chart::{ChartError, svg};
pub use clock::Spent;
pub(crate) use clock::thread_time;
pub use contestant::{Bounds, Build, Contestant, Kernel};
pub use document::{Document, document, duration};
pub use key_sets::{Traffic, traffic_names};
pub use native::{KeyPrefetch, Native, Prepared, Shape, Structure};
pub use plan::{BATCHES, Estimate, Order, Plan, PlanError, RUNS, RUNS_MIN};
pub use program::Program;
pub use record::{FamilyInfo, Record, RecordError, SCHEMA, TableInfo};
pub use row::Row;
pub use runner::{BenchError, Progress, run};
pub use sources::{Measures, Scope};

#[cfg(test)]
mod tests;
