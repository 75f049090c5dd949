//! Tables and figures of papers, measured again: `fibula paper`.
//!
//! A [`Paper`] is data: its [`Exhibit`]s are its tables and figures, each with the published values, the [`Part`]s that are
//! measured in their place, and the [`Claim`]s that the paper draws from it. [`run`] measures the parts one by one into a
//! [`Record`], which can be saved after each and continued later; [`report`](report()) makes an HTML page of a record that needs
//! no other file.
//!
//! Rates come from the [benchmark](crate::bench), with its rules: all contestants look up the same keys in turn, every answer is
//! checked, and two of them are compared by the ratios of the same runs, with a 95 % interval. What this machine or this project
//! lacks keeps its place and is marked as missing.
//!
//! A paper is a folder here and a line in [`papers`].

mod bloomfwd;
mod chart;
mod context;
mod definition;
mod document;
mod dxr;
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
mod verdict;

pub use context::{Context, Nothing, Recorded, Supply};
pub use definition::{
    At, Chart, Claim, Column, Contestants, Dimension, Exhibit, Finding, Judge, Paper, Part, Published,
    RECORDED, Rates, Table, Work,
};
pub use document::{findings, markdown};
pub use packets::{Keys, Packets, Router, Routers, Way};
pub use record::{Done, PaperError, Point, Record, SCHEMA, TableUsed};
pub use report::report;
pub use run::{Settings, Step, run};
pub use verdict::{Ratio, Verdict};

/// Returns all papers.
#[must_use]
pub fn papers() -> &'static [Paper] {
    &[dxr::PAPER, planb::PAPER, bloomfwd::PAPER, multibit::PAPER]
}

/// Returns the paper of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Paper> {
    papers().iter().find(|paper| paper.name == name)
}
