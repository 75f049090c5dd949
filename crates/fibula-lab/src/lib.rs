//! Generated tables, traffic and benchmarks for lookup structures.
//!
//! - [`table`]: tables shaped like the Internet's, of any size and either family, determined by a seed.
//! - [`traffic`]: [patterns](traffic::patterns) of keys to measure lookups with.
//! - [`measure`]: quick measurements of lookups and builds; every answer is checked in the same run.
//! - [`mod@bench`]: the benchmark, its records, charts and document.
//! - [`algorithms`]: the registry as a list, and what was found of its structures.
//! - [`choice`]: what [`fibula::auto`] chooses structures by: recorded, fitted and judged.
//! - [`page`]: pages of HTML that need no other file.
//! - [`paper`]: tables and figures of papers, measured again.
//! - [`rival`]: other libraries, as contestants of the benchmark.
//! - [`random`]: random numbers that a seed determines, the same on every platform and with every dependency.
//!
//! ```
//! use std::time::Duration;
//!
//! use fibula::fib::registry;
//! use fibula::memory::Limits;
//! use fibula::net::RouteSlice;
//! use fibula_lab::measure::{self, Settings};
//! use fibula_lab::table::{Profile, TableSpec, generate};
//! use fibula_lab::traffic;
//!
//! let spec = TableSpec { routes: 2_000, ..TableSpec::ipv4() };
//! let routes = generate::<u32>(&spec, &Profile::ipv4())?;
//! let routes = RouteSlice::new(&routes)?;
//! let keys = (traffic::find("match").unwrap().generate)(&routes, 1_000, 1)?;
//!
//! let oracle = registry::find("binary-trie")?.build(&routes, Limits::default())?;
//! let expected: Vec<_> = keys.iter().map(|&key| oracle.lookup(key)).collect();
//! let (fib, _build_time_ns) = measure::measure_build(&registry::find("range-search")?, &routes, Limits::default())?;
//! let settings = Settings { budget: Duration::from_millis(5), ..Settings::default() };
//! let measurement = measure::measure_lookups(fib.as_ref(), &keys, &expected, &settings);
//! assert_eq!(measurement.wrong, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod algorithms;
pub mod bench;
pub mod choice;
pub mod measure;
pub mod page;
pub mod paper;
pub mod random;
pub mod replay;
pub mod rival;
pub mod table;
pub mod traffic;
