//! What a paper is made of.

use fibula::net::Key;

use super::context::Context;
use super::record::Point;
use super::run::Settings;
use crate::bench::Contestant;

/// A paper.
#[derive(Debug, Clone, Copy)]
pub struct Paper {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Authors, where it was published, and when.
    pub citation: &'static str,
    /// What it proposes, in a sentence or two.
    pub summary: &'static str,
    /// Its tables and figures, in order.
    pub exhibits: &'static [Exhibit],
    /// What the committed records find otherwise than the paper, and why.
    pub findings: &'static [Finding],
}

/// What was found otherwise than a paper has it, and why.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    /// The name of the exhibit.
    pub exhibit: &'static str,
    /// The finding and its cause, in a few sentences.
    pub text: &'static str,
}

/// A table or figure.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit {
    /// The name, in lower case with hyphens, such as `table-1`.
    pub name: &'static str,
    /// The title: what the paper calls it, and what it is about.
    pub title: &'static str,
    /// What it shows and how it is measured here, in a few sentences.
    pub about: &'static str,
    /// What its rows are, such as `threads`.
    pub rows: &'static str,
    /// Its columns, or the lines of a figure.
    pub columns: &'static [Column],
    /// The published values.
    pub published: &'static [Published],
    /// The machine and the tables of the published values.
    pub setting: &'static str,
    /// What is different here.
    pub differs: &'static str,
    /// What is measured.
    pub parts: &'static [Part],
    /// The column that all others are divided by, row by row.
    pub against: Option<&'static str>,
    /// How it is drawn.
    pub chart: Chart,
    /// What the paper concludes from it.
    pub claims: &'static [Claim],
}

impl Exhibit {
    /// Returns the published value of a row and column, if there is one.
    #[must_use]
    pub fn published_at(&self, row: &str, column: &str) -> Option<f64> {
        let found = self.published.iter().find(|value| value.row == row && value.column == column);
        found.map(|value| value.value)
    }
}

/// A column of an exhibit.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name, which points have.
    pub name: &'static str,
    /// The unit of its values; empty for counts.
    pub unit: &'static str,
}

/// A published value.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// The row.
    pub row: &'static str,
    /// The column.
    pub column: &'static str,
    /// The value, in the column's unit.
    pub value: f64,
}

impl Published {
    /// Returns the value of a row and column.
    #[must_use]
    pub const fn new(row: &'static str, column: &'static str, value: f64) -> Self {
        Self { row, column, value }
    }
}

/// How an exhibit is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chart {
    /// Not at all.
    None,
    /// A bar for each row and column.
    Bars,
    /// A line for each column, over the rows.
    Lines,
}

/// A part of an exhibit, which is measured as one.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The name, in lower case with hyphens. No two parts of an exhibit have the same.
    pub name: &'static str,
    /// What is measured.
    pub work: Work,
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Rates of lookups in an IPv4 table.
    Ipv4(Rates<u32>),
    /// Rates of lookups in an IPv6 table.
    Ipv6(Rates<u128>),
    /// Values that a function computes or measures; the error says why there are none.
    Values(fn(&mut Context<'_>) -> Result<Vec<Point>, String>),
}

/// What the traffic of recorded addresses begins with, before the name of their list, such as `recorded:clients`. The rows of
/// the benchmark call it `recorded`.
pub const RECORDED: &str = "recorded:";

/// Rates of lookups: every contestant with all traffics, batches and numbers of threads.
#[derive(Debug, Clone, Copy)]
pub struct Rates<K: Key> {
    /// The table.
    pub table: Table,
    /// The structures.
    pub contestants: Contestants<K>,
    /// Names of traffic patterns, and [`RECORDED`] with the names of lists of addresses.
    pub traffic: &'static [&'static str],
    /// Keys a call.
    pub batches: &'static [usize],
    /// Numbers of threads. Those that the machine has no cores for are missing.
    pub threads: &'static [usize],
    /// What rows are named by.
    pub rows: Dimension,
    /// What columns are named by.
    pub columns: Dimension,
}

/// The structures of a measurement.
#[derive(Debug, Clone, Copy)]
pub enum Contestants<K: Key> {
    /// Registry entries by name, with all their kernels.
    Registry(&'static [&'static str]),
    /// Contestants that a function makes.
    Made(fn(&Settings) -> Vec<Contestant<K>>),
}

/// What tells the points of a measurement apart. Of points with the same row and column, the one with the greatest rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// The structure.
    Algorithm,
    /// The structure, without the last parameter of its name: `bloomfwd:h2+h2` of `bloomfwd:h2+h2:30`.
    Structure,
    /// The last parameter of the structure's name: `30` of `bloomfwd:h2+h2:30`.
    Parameter,
    /// The table.
    Table,
    /// The traffic.
    Traffic,
    /// Threads.
    Threads,
    /// Keys of the traffic: the usual number, and the larger one of [`Settings::many_keys`].
    Keys,
    /// The structure and the traffic, as `dxr-18, rnd`.
    AlgorithmAndTraffic,
}

/// A routing table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The name of a real table, which takes part where there is a folder with it.
    pub real: Option<&'static str>,
    /// The generated table that stands in for it, as `fibula bench --synth` names it.
    pub made: &'static str,
}

/// A conclusion of the paper.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// What the paper concludes.
    pub text: &'static str,
    /// Its figure, as published.
    pub published: &'static str,
    /// How it is judged here.
    pub judge: Judge,
}

/// A row and a column. A row of `*` means every row that has a value.
pub type At = (&'static str, &'static str);

/// How a claim is judged.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// By the ratio of two values, which lies between these bounds if it holds.
    Ratio {
        /// The value that is divided.
        of: At,
        /// What it is divided by.
        over: At,
        /// The least ratio.
        least: f64,
        /// The greatest ratio.
        most: f64,
    },
    /// By a value, which lies between these bounds if it holds.
    Value {
        /// The value.
        of: At,
        /// The least value.
        least: f64,
        /// The greatest value.
        most: f64,
    },
    /// Not at all: nothing that it rests on is measured.
    Missing(&'static str),
}
