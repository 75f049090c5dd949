//! The benchmark that judges every structure: a [`Plan`] of what to measure, [`run`] to measure it, [`Row`]s that
//! say what came out, [`Record`]s that keep it, charts and documents made of those.
//!
//! What makes its figures comparable:
//!
//! - Every contestant looks up the same keys over the same table in the same run of the program. Keys and right
//!   answers are made before the clock runs.
//! - Before it is timed, each contestant answers every key of the cell, in the same way and on as many threads as
//!   it will be timed, and every answer is compared with a judge's: the oracle's, and for the oracle's own
//!   rows another structure's. So are addresses at the ends of prefixes and beside them. A benchmark with a
//!   wrong answer has failed.
//! - Contestants are timed in turn, at least five times each, and each run begins with another one. Rates are
//!   medians; the slowest and the fastest run stand beside them.
//! - A structure is built once and looked up in with every instruction set that it has kernels for and the machine has;
//!   each set is timed as a contestant of its own. A plan can restrict everybody, rivals too, to what one set contains.
//! - Each timed run follows an untimed one over the same keys, which fills the caches: one policy for all. Who does all
//!   keys in 20 ms does them all, timed and untimed.
//! - One thread is timed by its own clock, which stands while others have the core; several are timed by the wall's.
//! - The keys of the next batch, their first 4 KiB, are prefetched before each batch, for everybody whose batches this
//!   crate hands over, ours and rivals' alike: keys come from packets or files that somebody has just read. Single keys
//!   are not. Kernels may prefetch what a key leads to, and later keys of their batch. Rows say so, and whether huge pages
//!   were asked for.
//! - Who is too slow for all keys is asked a sample of them, as its rows say.
//! - Who has keys and answers of its own forms is timed and checked on those ([`Native`]), and by a clock of its own where
//!   it stands in another program.
//!
//! ```
//! use fibula::memory::Limits;
//! use fibula::net::RouteSlice;
//! use fibula_lab::bench::{self, Contestant, Plan};
//! use fibula_lab::table::{Profile, TableSpec, generate};
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
mod document;
mod drawing;
mod key_sets;
mod machine;
mod native;
mod pass;
mod plan;
pub mod reach;
mod record;
mod row;
mod runner;
mod summary;

pub use chart::{ChartError, svg};
pub use clock::Spent;
pub use contestant::{Bounds, Build, Contestant, Kernel};
pub use document::{Document, document};
pub use key_sets::{Traffic, traffic_names};
pub use machine::{Cache, Machine, Program};
pub use native::{Native, Prepared, Shape, Structure};
pub use plan::{BATCHES, Estimate, Order, Plan, PlanError, RUNS_MIN};
pub use record::{FamilyInfo, Record, RecordError, TableInfo};
pub use row::Row;
pub use runner::{BenchError, Progress, family_name, run};

#[cfg(test)]
mod tests;
