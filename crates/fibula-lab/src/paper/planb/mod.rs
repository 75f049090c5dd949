//! The PlanB paper.

mod ablation;
mod counts;

use super::values::{Function, bind};

/// The functions that the paper's file names.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("planb/table-1", |file| bind(file, counts::table_1)),
    ("planb/capacity", |file| bind(file, counts::capacity_of_levels)),
    ("planb/intervals", |file| bind(file, counts::intervals)),
    ("planb/memory", |file| bind(file, counts::memory)),
    ("planb/updates", |file| bind(file, counts::updates)),
    ("planb/steps", |file| bind(file, ablation::steps)),
];
