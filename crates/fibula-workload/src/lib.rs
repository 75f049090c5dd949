//! What engines are worked with: tables, traffic, changes, and the machine that all of it runs on.
//!
//! Below the commands `fibula` and `fibula-lab`, and whatever else needs tables and traffic alone.
//!
//! - [`table`]: tables shaped like the Internet's, of any size and either family, determined by a seed.
//! - [`traffic`]: [patterns](traffic::patterns) of keys to measure lookups with.
//! - [`replay`]: recorded changes, put into a live table while other threads look up.
//! - [`interval`]: medians, and ratios of runs side by side.
//! - [`measure`] and [`probe`]: quick measurements of lookups and builds.
//! - [`calibrate`](calibrate()): the calibration of a machine, for the choice of an engine.
//! - [`engines`]: the registry as a list.
//! - [`machine`]: the processor and its caches.
//! - [`page`] and [`drawing`]: pages of HTML that need no other file, and charts for them.
//! - [`random`]: random numbers that a seed determines, the same on every platform and with every dependency.
//!
//! ```
//! use std::time::Duration;
//!
//! use fibula::fib::registry;
//! use fibula::memory::Limits;
//! use fibula::net::RouteSlice;
//! use fibula_workload::measure::{self, Settings};
//! use fibula_workload::table::{Profile, TableSpec, generate};
//! use fibula_workload::traffic;
//!
//! let spec = TableSpec { routes: 2_000, ..TableSpec::ipv4() };
//! let routes = generate::<u32>(&spec, &Profile::ipv4())?;
//! let routes = RouteSlice::new(&routes)?;
//! let keys = (traffic::find("match").unwrap().generate)(&routes, 1_000, 1)?;
//!
//! let oracle = registry::find("binary-trie")?.build(&routes, Limits::default())?;
//! let expected: Vec<_> = keys.iter().map(|&key| oracle.lookup(key)).collect();
//! let (fib, _build_time_ns) = measure::measure_build(&registry::find("range-btree")?, &routes, Limits::default())?;
//! let settings = Settings { budget: Duration::from_millis(5), ..Settings::default() };
//! let measurement = measure::measure_lookups(fib.as_ref(), &keys, &expected, &settings);
//! assert_eq!(measurement.wrong, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calibrate;
pub mod drawing;
pub mod engines;
pub mod interval;
pub mod machine;
pub mod measure;
pub mod page;
pub use calibrate::{TABLE, calibrate};
pub use fibula::auto::probe;
pub mod random;
pub mod replay;
pub mod table;
pub mod traffic;
