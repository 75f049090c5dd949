//! Tables and figures of papers, measured again: `fibula-lab paper`.
//!
//! A [`Paper`] is data, in a file of its own: its [`Exhibit`]s are its tables and figures, each with the published values, the
//! [`ExhibitPart`]s that are measured in their place, and the [`Claim`]s that the paper draws from it. [`run`] measures the parts one
//! by one into a [`PaperRecord`], which can be saved after each and continued later; [`report`](report()) makes an HTML page of a
//! record that needs no other file.
//!
//! Rates come from the [benchmark](crate::bench), with its rules: all contestants look up the same keys in turn, every
//! answer is checked, and two of them are compared by the ratios of the same runs, with a 95 % interval. Values that
//! need a machine, or a part of this project, that is not there keep their places and are marked as missing.
//!
//! A paper is a folder here, with the file and the functions that it names, a line in `FILES` and one in `FUNCTIONS`.

mod bloomfwd;
mod chart;
mod context;
mod definition;
mod document;
mod dxr;
mod file;
mod multibit;
mod packets;
mod planb;
mod rates;
mod record;
mod report;
mod run;
mod schedules;
#[cfg(test)]
mod tests;
mod values;
mod verdict;

use std::sync::LazyLock;

use values::{Function, bind};

pub use context::{Context, Nothing, RecordedAddresses, Supply};
pub use definition::{
    At, Chart, Claim, Dimension, Exhibit, ExhibitColumn, ExhibitPart, Expected, Judge, OURS, Paper,
    PaperTable, Published, RECORDED, RatesPart, TOLERANCE, Work,
};
pub use document::{findings, markdown};
pub use packets::{Destinations, PacketPath, Packets, Router, Routers};
pub use record::{FinishedPart, PaperError, PaperRecord, Point, SCHEMA, TableUsed};
pub use report::report;
pub use run::{Settings, Step, run};
pub use values::Values;
pub use verdict::{Ratio, Verdict};

/// The names of the papers, and their files.
const FILES: [(&str, &str); 4] = [
    ("dxr", include_str!("dxr/paper.toml")),
    ("planb", include_str!("planb/paper.toml")),
    ("bloomfwd", include_str!("bloomfwd/paper.toml")),
    ("multibit", include_str!("multibit/paper.toml")),
];

/// The functions that files name.
const FUNCTIONS: &[&[(&str, Function)]] = &[
    dxr::FUNCTIONS,
    planb::FUNCTIONS,
    bloomfwd::FUNCTIONS,
    multibit::FUNCTIONS,
    &[
        ("packets/by-engine", |file| bind(file, packets::by_structure)),
        ("schedules/rates", |file| bind(file, schedules::rates)),
    ],
];

/// Returns the names of all papers, without reading their files.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// Returns all papers.
#[must_use]
pub fn papers() -> &'static [Paper] {
    static PAPERS: LazyLock<[Paper; FILES.len()]> =
        LazyLock::new(|| FILES.map(|(name, text)| file::paper(name, text)));
    &*PAPERS
}

/// Returns the paper of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Paper> {
    papers().iter().find(|paper| paper.name == name)
}
