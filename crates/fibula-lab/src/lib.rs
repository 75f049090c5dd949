//! The laboratory: benchmarks of lookup structures and of rivals, and the papers measured again.
//!
//! Tables and traffic are those of [`fibula_workload`].
//!
//! - [`mod@bench`]: the benchmark, its records, charts and document.
//! - [`algorithms`]: what was found of the structures of the registry.
//! - [`choice`]: what [`fibula::auto`] chooses structures by: recorded, fitted and judged.
//! - [`paper`]: tables and figures of papers, measured again.
//! - [`rival`]: other libraries, as contestants of the benchmark.

pub mod algorithms;
pub mod bench;
pub mod choice;
pub mod paper;
pub mod rival;

// What lies below, by the names that it has here.
use fibula_workload::{page, random, replay, table, traffic};
