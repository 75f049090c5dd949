//! The laboratory: tables and traffic to measure with, and the measuring itself.
//!
//! - [`table`]: seeded tables that are shaped like the Internet's, of any size and either family.
//! - [`traffic`]: the [patterns](traffic::patterns) of keys that lookups are measured with.
//! - [`measure`]: lookups and builds against the clock; every answer is checked in the same run.
//! - [`rival`]: what others have made, as contestants.
//! - [`random`]: draws that are the same on every platform and with every version of every dependency.
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

pub mod bench;
pub mod measure;
pub mod random;
pub mod rival;
pub mod table;
pub mod traffic;
