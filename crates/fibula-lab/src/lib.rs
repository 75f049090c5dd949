//! The laboratory, and its command `fibula-lab` ([`run`]): benchmarks of engines and of rivals, and the papers measured again.
//!
//! Tables and traffic are those of [`fibula_workload`].
//!
//! - [`mod@bench`]: the benchmark, its records, charts and document.
//! - [`engines`]: the registry's engines, with the findings about each.
//! - [`choice`]: the rates by which [`fibula::auto`] chooses engines: recorded, fitted and judged.
//! - [`paper`]: tables and figures of papers, measured again.
//! - [`rival`]: other libraries, as contestants of the benchmark.

#[cfg(all(feature = "dpdk", feature = "router-dpdk"))]
compile_error!(
    "features 'dpdk' and 'router-dpdk' are not for the same program: one links parts of DPDK statically, the other all of it"
);

pub mod bench;
pub mod choice;
mod command;
pub mod engines;
pub mod paper;
pub mod rival;

pub use command::run;
