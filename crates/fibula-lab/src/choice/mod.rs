//! The knowledge of [`auto`](fibula::auto): rates of all engines over many tables, recorded, fitted and judged.
//!
//! `fibula-lab measure choices` measures the tables of [`tables`] in a few minutes and writes
//! `records/choices/MACHINE.txt`; `fibula-lab document choices` makes `crates/fibula/src/auto/model.csv` from the
//! tables that are for the fit. [`judge`] compares the choices of `auto` for the other tables with the measured rates.

mod fit;
mod judge;
mod measure;
mod record;
mod tables;

/// Keys a call that are measured.
pub use fibula::auto::BATCHES;
pub use fit::fit;
pub use judge::{JudgedChoice, judge};
pub use measure::measure;
pub use record::{ChoiceRecordError, EngineRates, MachineRecord, MeasuredEngine, MeasuredTable};
pub use tables::{TableToMeasure, tables};
