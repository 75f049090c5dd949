//! The Bloomfwd paper.

mod coprocessor;
mod counts;
mod sizes;

use super::values::{Function, bind};

/// The functions that the paper's file names.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("bloomfwd/table-3", |file| bind(file, counts::table_3)),
    ("bloomfwd/table-4", |file| bind(file, counts::table_4)),
    ("bloomfwd/table-5", |file| bind(file, counts::table_5)),
    ("bloomfwd/table-5-here", |file| bind(file, counts::table_5_here)),
    ("bloomfwd/ratios", |file| bind(file, counts::ratios)),
    ("bloomfwd/one-in", |file| bind(file, sizes::rates)),
    ("bloomfwd/by-buffer", |file| bind(file, coprocessor::by_buffer)),
    ("bloomfwd/by-share", |file| bind(file, coprocessor::by_share)),
];
